"""The quadratic programme of the kernel machine, and its solutions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from widemargin.kernel.kernels import Kernel
from widemargin.progress import continued

TINY = float(np.finfo(np.float64).tiny)
STALLED = 500  # working sets without progress that end a fit
ROUNDED = 16 * float(np.finfo(np.float64).eps)  # of an objective
GAINED = 0.05  # share of the gap that counts as progress of the dual objective


@dataclass(frozen=True)
class Problem:
    """min 1/2 a'Qa + p'a over 0 <= a <= U, with Q_ij = s_i s_j k(x_i, x_j).

    The dual of a support vector machine without a bias.  The hinge loss has the labels as signs s,
    and p = -1.  The gradient g = Qa + p gives the duality gap, a sum of non-negative terms:

        P - D = sum_i (U_i - a_i) max(0, -g_i) + a_i max(0, g_i)

    A machine with an intercept b has the linear term p + b s, and the constraint s'a = ``total``,
    which is 0 but for a machine of one class.  Both objectives are those at a fixed intercept.

    Regression has variables on two sides, |a| <= U: a row is pulled up or down.  Its loss does not
    count within epsilon of the target y, which makes p = epsilon - y where a > 0 and the same with
    twice epsilon more where a < 0: ``turn`` is what a negative variable costs per unit.  The
    gradient leaves that kink out, and a row violates where g < 0 or g > turn.
    """

    kernel: Kernel
    rows: Any  # of each variable, in the kernel's layout; a row may occur more than once
    sign: np.ndarray
    linear: np.ndarray
    upper: np.ndarray
    has_offset: bool = False
    cluster: np.ndarray | None = None  # of each variable, where clusters hardly know of each other
    turn: float = np.inf  # of variables on two sides, twice epsilon
    total: float = 0.0  # what s'a has to be, of a machine with an intercept

    def __len__(self) -> int:
        return len(self.sign)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Q_ii, kept away from zero because steps divide by it."""
        return away_from_zero(self.kernel.diagonal(self.rows))

    def linear_at(self, offset: float) -> np.ndarray:
        """Return the linear term at an intercept."""
        return self.linear + offset * self.sign if offset else self.linear

    def slack(self, alpha: np.ndarray, primal: float, offset: float) -> float:
        """Return what a violated intercept constraint may add to the dual objective.

        P(b') >= D - (b' - b) s'a for every b', and |b'| <= 1 + sqrt(2 P max k(x, x)) at the best.
        """
        if not self.has_offset:
            return 0.0
        largest = 2 * max(primal, 0.0) * float(self.diagonal.max(initial=0.0))
        reach = largest_linear(self.linear, self.turn) + abs(offset) + float(np.sqrt(largest))
        missed = abs(float(self.sign @ alpha) - self.total)
        return missed * (2 * reach if self.total else reach)  # where |w| at the best may be larger

    def dual_value(self, alpha: np.ndarray, gradient: np.ndarray, offset: float = 0.0) -> float:
        """Return -1/2 a'Qa - p'a, from the gradient of all nonzero variables."""
        linear = self.linear_at(offset)
        smooth = float(linear @ alpha + 0.5 * alpha @ (gradient - linear))
        return -smooth - float(turned_cost(alpha, self.turn).sum())


def lower_bound(upper: np.ndarray, turn: float) -> Any:
    """Of variables on one side, or two."""
    return 0.0 if turn == np.inf else -upper


def turned_cost(alpha: np.ndarray, turn: float) -> np.ndarray:
    """What each negative variable costs."""
    return np.zeros(len(alpha)) if turn == np.inf else -turn * np.minimum(alpha, 0)


def largest_linear(linear: np.ndarray, turn: float) -> float:
    """The largest linear term on any side."""
    other = linear if turn == np.inf else turn - linear
    return float(np.maximum(np.abs(linear), np.abs(other)).max(initial=0.0))


def firmness(alpha: np.ndarray, gradient: np.ndarray, upper: np.ndarray, turn: float) -> np.ndarray:
    """How firmly the gradient holds variables at a bound or at zero; of free ones, -inf."""
    with np.errstate(invalid="ignore"):  # infinite gradients hold nothing
        at_zero = np.minimum(gradient, turn - gradient)
        at_bound = np.where(alpha > 0, -gradient, gradient - turn)
    return np.where(alpha == 0, at_zero, np.where(np.abs(alpha) >= upper, at_bound, -np.inf))


def loosened(alpha: np.ndarray, gradient: np.ndarray, turn: float, by: Any) -> np.ndarray:
    """Gradients of variables at a bound or at zero, held less firmly by so much."""
    falls = np.where(alpha == 0, gradient <= turn / 2, alpha < 0)
    return gradient - np.where(falls, by, -by)


def slopes(before: np.ndarray, after: np.ndarray, gradient: np.ndarray, turn: float) -> np.ndarray:
    """The slope on the side of zero on which each variable moves."""
    return gradient if turn == np.inf else gradient - turn * (np.minimum(before, after) < 0)


def away_from_zero(diagonal: np.ndarray) -> np.ndarray:
    typical = float(np.abs(diagonal).sum()) / max(len(diagonal), 1)
    return np.maximum(diagonal, 1e-12 * typical if typical > 0 else 1.0)


class Product(Protocol):
    """The interface of a `Backend` that this module uses."""

    def product(self, kernel: Kernel, a: Any, b: Any, coef: np.ndarray) -> np.ndarray: ...


@dataclass
class Solution:
    """The dual variables, and bounds on their distance from the optimum."""

    alpha: np.ndarray
    primal: float  # for several problems, here and below, the sum
    dual: float
    n_iter: int  # of the slowest
    offset: np.ndarray = field(default_factory=lambda: np.zeros(1))  # of each problem
    history: list[dict] = field(default_factory=list)
    double: bool = False  # whether single precision did not suffice
    stopped: bool = False  # by a limit or a callback
    each: np.ndarray | None = None  # for several problems: primal and dual objective (across)
    gradient: np.ndarray | None = None  # in double precision, if computed
    rounding: float = 0.0  # largest share of a gap that rounding may hide

    @property
    def relative_gap(self) -> float:
        """Largest relative gap of the problems."""
        if self.each is None:
            return relative_gap(self.primal, self.dual)
        primal, dual = self.each.T
        return float(((primal - dual) / np.maximum(primal, TINY)).max(initial=0.0))

    def after(self, before: Solution) -> Solution:
        """Return this solution with the steps and history of the one that it started from."""
        history = before.history + continued(before.history, self.history)
        return replace(self, n_iter=before.n_iter + self.n_iter, history=history)


@dataclass
class Patience:
    """Detects a descent without progress.

    In `STALLED` working sets, neither did the gap halve nor did the dual objective gain a share of
    it: kernel values span too many orders of magnitude.  A tenth of these suffices where the gap
    may be rounding of objectives that the descent has passed, as where the optimum is 0.
    """

    gap: float = np.inf
    dual: float = -np.inf
    step: int = 0
    size: float = 0.0  # of the largest objective so far

    def is_over(self, step: int, dual: float, gap: float) -> bool:
        self.size = max(self.size, abs(dual), gap)
        is_rounding = max(gap, self.gap) <= ROUNDED * self.size
        if not (is_rounding or (gap >= 0.5 * self.gap and dual <= self.dual + GAINED * gap)):
            self.step, self.dual, self.gap = step, dual, gap
        return step - self.step >= (STALLED // 10 if is_rounding else STALLED)


def relative_gap(primal: float, dual: float) -> float:
    return (primal - dual) / max(primal, TINY)


def gap_terms(
    alpha: np.ndarray, gradient: np.ndarray, upper: np.ndarray, turn: float = np.inf
) -> np.ndarray:
    """Each variable's share of primal minus dual."""
    terms = np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)
    if turn == np.inf:
        return terms
    return terms + turned_cost(alpha, turn) + upper * np.maximum(gradient - turn, 0)


def gradient_of(
    problem: Problem,
    alpha: np.ndarray,
    variables: np.ndarray,
    backend: Product,
    offset: float = 0.0,
) -> np.ndarray:
    """Return Qa + p of some variables at an intercept, from the support vectors alone."""
    gradient = problem.linear_at(offset)[variables]
    support = np.flatnonzero(alpha)
    if len(variables) and len(support):
        coef = (alpha * problem.sign)[support, None]
        rows, vectors = problem.rows[variables], problem.rows[support]
        inner = backend.product(problem.kernel, rows, vectors, coef)[:, 0]
        gradient += problem.sign[variables] * inner
    return gradient
