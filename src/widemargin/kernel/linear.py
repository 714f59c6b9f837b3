"""The linear kernel, solved on the weights: a sweep costs as much as the data has values.

Dual coordinate descent (Hsieh et al., ICML 2008) on the active variables, with sweeps over all
variables in between; if sweeps are slow, proximal steps solved by Newton's method replace them.
With the squared hinge loss and no more features than rows, such a step comes first, and is mostly
the solution.
The duality gap is that of the weights in double precision.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from widemargin import _core
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.precision import EXTENDED_UNIT, UNIT, Errors, most_hidden, roundings
from widemargin.kernel.problem import TINY, Solution, away_from_zero
from widemargin.kernel.problems import Variables
from widemargin.kernel.rows import RangeError
from widemargin.multiclass import Coding

FIRST_SWEEPS, MOST_SWEEPS = 20, 1000  # over active variables, between two over all
REST, LEAST_REST = 0.1, 1e-3  # of the last full sweep's violation, at which these end
NEAR, SLOW = 1e-4, 500  # relative gap or sweeps from which conjugate gradients pay
CG_STEPS, NEWTON_STEPS, LONGEST = 200, 50, 1e6
FIRST_REACH = 1000.0  # of a proximal step, in units of the inverse diagonal
ROUGHLY = 0.1  # of the gradient that conjugate gradients leave, far from the minimum
FAR = 1e9  # reach, in units of the inverse ridge, at which a proximal step solves the problem
SEED = 88172645463325252
UNCOUNTED = 1e-3  # share of tol that rounding may hide without a closer bound
PATIENCE = 10  # checks in which a gap that rounding may hide does not halve
EXTENDED_VALUES = 1 << 21  # most values of data with certificates in extended precision
_AT_ONCE = 1 << 24  # products of rows and weights


@dataclass(frozen=True)
class LinearRows:
    """Rows of the data with one more, ``constant`` feature for a penalised intercept."""

    X: Any  # dense in C order, or CSR; float32 or float64
    constant: float = 0.0
    core: _core.LinearRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X, d = self.X, self.X.shape[1]
        if sp.issparse(X):
            parts = (X.indptr.astype(np.int64), X.indices.astype(np.int32))
            core = _core.LinearRows(*parts, X.data, d)
        else:
            core = _core.LinearRows(None, None, X, d)
        object.__setattr__(self, "core", core)

    @classmethod
    def of(cls, X, constant: float = 0.0) -> LinearRows:
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if sp.issparse(X):
            return cls(sp.csr_array(X).astype(dtype, copy=False), constant)
        return cls(np.ascontiguousarray(X, dtype=dtype), constant)

    def __len__(self) -> int:
        return self.X.shape[0]

    def diagonal(self) -> np.ndarray:
        """Squared norms, without the constant."""
        if sp.issparse(self.X):
            squares = np.square(self.X.data, dtype=np.float64)
            return np.bincount(self._row_of_values(), squares, minlength=len(self))
        return np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)

    @property
    def n_terms(self) -> int:
        """Largest number of products in an inner product."""
        if sp.issparse(self.X):
            return int(np.diff(self.X.indptr).max(initial=0)) + 1
        return self.X.shape[1] + 1

    def _row_of_values(self) -> np.ndarray:
        return np.repeat(np.arange(len(self)), np.diff(self.X.indptr))

    def times(self, weights: np.ndarray, row: np.ndarray | None = None) -> np.ndarray:
        """Return decision values of all rows or of some."""
        X = self.X if row is None else self.X[row]
        return _product(X, weights[:-1]) + self.constant * weights[-1]

    def combined(self, row: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return the weights for a weighted sum of rows."""
        by_row = np.bincount(row, coef, minlength=len(self))
        return np.append(_product(self.X.T, by_row), self.constant * coef.sum())


def _product(X, vector: np.ndarray) -> np.ndarray:
    """Multiply in double precision, a few dense rows at a time."""
    if sp.issparse(X) or X.dtype == np.float64:
        return np.asarray(X @ vector)
    out, step = np.zeros(X.shape[0]), max(1, _AT_ONCE // max(X.shape[1], 1))
    for begin in range(0, len(out), step):
        out[begin : begin + step] = X[begin : begin + step].astype(np.float64) @ vector
    return out


@dataclass(frozen=True)
class LinearProblem:
    """min 1/2 a'(Q + R)a + p'a over 0 <= a <= U, where w is the sum of a_i s_i x_i.

    With R = 0 this is the hinge loss with weights U, with U infinite the squared hinge loss with
    weights 1 / 2R.
    """

    rows: LinearRows
    variables: Variables
    ridge: np.ndarray

    @property
    def row(self) -> np.ndarray:
        return self.variables.row

    @cached_property
    def errors(self) -> Errors:
        """Errors of inner products in double precision."""
        diagonal = self.rows.diagonal() + self.rows.constant**2
        terms = np.full(len(diagonal), roundings(self.rows.n_terms))
        return Errors(np.sqrt(diagonal), terms)[self.row]

    def certificate(self, alpha: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
        """Return primal and dual objective."""
        v = self.variables
        losses = self._losses(-(v.linear + v.sign * self.rows.times(weights)[self.row]))
        return 0.5 * float(weights @ weights) + float(losses), self.dual(alpha, weights)

    def rounded_certificate(self, alpha: np.ndarray, weights) -> tuple[float, float, float]:
        """Return both objectives with bounds on their rounding errors."""
        decisions = self.rows.times(weights)[self.row]
        return self._objectives(alpha, decisions, weights @ weights, UNIT)

    def extended_certificate(self, alpha: np.ndarray) -> tuple[float, float, float]:
        """Return the same in extended precision, from the variables alone."""
        X, constant = self.rows.X[self.row].astype(np.longdouble), np.longdouble(self.rows.constant)
        coef = alpha.astype(np.longdouble) * self.variables.sign
        decisions = X @ (X.T @ coef) + constant**2 * coef.sum()
        return self._objectives(
            coef * self.variables.sign, decisions, coef @ decisions, EXTENDED_UNIT
        )

    def _objectives(self, alpha, decisions, squares, unit: float) -> tuple[float, float, float]:
        v, error = self.variables, unit / UNIT * self.errors.of_sums(alpha, np.sum)
        short = -(v.linear + v.sign * decisions)
        losses, most = self._losses(short), self._losses(short + error)
        dual = -0.5 * (squares + alpha @ (self.ridge * alpha)) - v.linear @ alpha
        sums = roundings(len(alpha)) * unit * (squares + losses + abs(dual) + alpha.sum())
        # The weights have the rounding error of their sum.
        hidden, primal = most - losses + 2 * (error @ alpha) + sums, 0.5 * squares + losses
        return float(primal), float(dual), float(hidden) + 4 * UNIT * float(primal + abs(dual))

    def _losses(self, short: np.ndarray) -> Any:
        short, squared = np.maximum(short, 0), self.ridge > 0
        if not squared.any():
            return short @ self.variables.upper
        losses = (short**2)[squared] @ (0.5 / self.ridge[squared])
        return losses + short[~squared] @ self.variables.upper[~squared]

    def dual(self, alpha: np.ndarray, weights: np.ndarray) -> float:
        squares = float(weights @ weights) + float(alpha @ (self.ridge * alpha))
        return -0.5 * squares - float(self.variables.linear @ alpha)


@dataclass
class LinearSolution(Solution):
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))


def solve_linear(
    problem: LinearProblem,
    start: np.ndarray,
    tol: float,
    max_iter: int,
    on_step: Callable[[float], bool],
) -> LinearSolution:
    """Minimise from ``start`` to a relative duality gap of ``tol``, in ``max_iter`` sweeps."""
    started, v = time.perf_counter(), problem.variables
    alpha, n = np.minimum(start, v.upper), len(start)
    weights = problem.rows.combined(v.row, v.sign * alpha)
    if not alpha.any() and problem.ridge.all() and n >= len(weights):
        _leap(problem, np.arange(n), alpha, weights, FAR / float(problem.ridge.min()))
    diagonal = (problem.rows.diagonal() + problem.rows.constant**2)[v.row] + problem.ridge
    terms = np.stack([v.sign, v.linear, v.upper, problem.ridge, away_from_zero(diagonal)])
    order, at = np.arange(n), (problem.rows.core, problem.rows.constant, v.row.astype(np.int64))
    core = _core.LinearVariables(*at, terms, alpha, weights, order)
    reach = FIRST_REACH / float(np.mean(terms[4]))
    limit = _Limit(problem, tol, float(v.upper.sum()), float(terms[4].max()))
    n_sweeps, most, rest, seed, history = 0, float(FIRST_SWEEPS), REST, SEED, []
    while True:
        primal, dual = problem.certificate(alpha, weights)
        relative = (primal - dual) / max(primal, TINY)
        stopped = relative > tol and (on_step(relative) or n_sweeps >= max_iter)
        primal, dual, rounding, at_limit = limit.judged(primal, dual, alpha, weights, stopped)
        dual -= 2 * rounding
        gap = primal - dual
        seconds = time.perf_counter() - started
        sums = {"step": n_sweeps, "gap": gap, "dual": dual, "active": n, "rows": n}
        history.append(sums | {"seconds": seconds})
        relative = gap / max(primal, TINY)
        if not np.isfinite(relative):
            raise RangeError("The objective of kernel='linear' overflows. Scale the features.")
        if relative <= tol or stopped or at_limit:
            return LinearSolution(
                alpha,
                primal,
                dual,
                n_sweeps,
                history=history,
                double=True,
                stopped=stopped,
                rounding=2 * rounding / max(primal, TINY),
                weights=weights,
            )
        n_active, low, high, seed = core.sweep(n, -0.0, 0.0, seed)
        n_sweeps, wide, some = n_sweeps + 1, high - low, n_active
        for _ in range(int(min(most, max_iter - n_sweeps))):
            if n_active == 0 or high - low <= rest * wide:
                break
            n_active, low, high, seed = core.sweep(n_active, -0.0, 0.0, seed)
            n_sweeps += 1
        most, rest = min(2 * most, MOST_SWEEPS), max(rest / 2, LEAST_REST)
        # Remove the rounding errors of many sweeps.
        weights[:] = problem.rows.combined(v.row, v.sign * alpha)
        if some and (relative <= NEAR or n_sweeps >= SLOW):
            reach *= _leap(problem, order[:some], alpha, weights, reach)


@dataclass
class _Limit:
    """Bounds on rounding errors of a problem's objectives, as tight as necessary."""

    problem: LinearProblem
    tol: float
    upper: float  # sum of the bounds
    largest: float  # squared norm
    least: float = np.inf  # gap at which rounding may hide it
    idle: int = 0  # checks since that halved

    def judged(
        self, primal: float, dual: float, alpha: np.ndarray, weights: np.ndarray, stopped: bool
    ) -> tuple[float, float, float, bool]:
        """Return both objectives, their possible errors, and whether the gap is at the limit of
        precision."""
        rows, gap, near = self.problem.rows, primal - dual, self.tol * max(primal, TINY)
        rounding, size = np.inf, float(alpha.sum())
        if self.upper < np.inf:
            largest = (self.largest, float(roundings(rows.n_terms)))
            terms = (self.upper + size, size + 2 * primal)
            rounding, _ = most_hidden(largest, len(alpha), size, *terms)
        if (stopped or gap <= max(near, rounding)) and rounding > UNCOUNTED * near:
            primal, dual, rounding = self.problem.rounded_certificate(alpha, weights)
            hidden, gap = rounding, primal - dual
            hides = gap <= max(near, hidden) and near < gap + 2 * hidden
            if hides and rows.X.size <= EXTENDED_VALUES:
                primal, dual, rounding = self.problem.extended_certificate(alpha)
                gap = primal - dual
            self.idle = self.idle + 1 if gap <= hidden and not gap < 0.5 * self.least else 0
            self.least = min(gap, self.least)
        return primal, dual, rounding, gap <= rounding or self.idle == PATIENCE


def _leap(problem, some: np.ndarray, alpha, weights: np.ndarray, reach: float) -> float:
    """Take a proximal step on some variables if it helps; return the factor of the next reach."""
    before = problem.dual(alpha, weights)
    found, is_minimum = _Proximal(problem, some, alpha, reach).solve(weights)
    moved = alpha.copy()
    moved[some] = found
    made_of = problem.rows.combined(problem.row, problem.variables.sign * moved)
    if not problem.dual(moved, made_of) >= before:
        return 0.1
    alpha[:], weights[:] = moved, made_of
    return 10.0 if is_minimum else 1.0


class _Proximal:
    """Minimise the problem plus |a - start|^2 / 2 reach over some variables, by Newton's method.

    Given the weights, each variable at that minimum is known in closed form; so the minimum is one
    over the weights, of a smooth sum.  A sequence of such steps with a growing reach converges to
    the minimum of the problem (the proximal point method), where sweeps would need thousands.
    """

    def __init__(self, problem: LinearProblem, some: np.ndarray, alpha: np.ndarray, reach: float):
        v, row = problem.variables, problem.row[some]
        X = problem.rows.X[row].astype(np.float64, copy=False)
        self._rows, self._row = LinearRows(X, problem.rows.constant), np.arange(len(row))
        self._sign, self._linear, self._upper = v.sign[some], v.linear[some], v.upper[some]
        self._ridge, self._start, self._reach = problem.ridge[some], alpha[some], reach
        self._damped = 1 + reach * self._ridge

    def solve(self, weights: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the variables, and whether they are at the minimum."""
        others = weights - self._made_of(self._start)
        pull, bar, largest = self._pull(weights) - self._linear, TINY, 0.0
        for _ in range(NEWTON_STEPS):
            alpha = self._at(pull)
            away = weights - others
            gradient = away - self._made_of(alpha)
            size = float(gradient @ gradient)
            bar = max(bar, 1e-18 * size, 1e-24 * float(weights @ weights))
            if size <= bar:
                return alpha, True
            largest = max(largest, size)
            left = min(ROUGHLY, (size / largest) ** 0.25)
            step = self._newton_step(alpha, gradient, left)
            change = self._pull(step)
            share = self._share(pull, change, float(away @ step), float(step @ step))
            weights, pull = weights + share * step, pull + share * change
        return self._at(pull), False

    def _made_of(self, alpha: np.ndarray) -> np.ndarray:
        return self._rows.combined(self._row, self._sign * alpha)

    def _pull(self, weights: np.ndarray) -> np.ndarray:
        return -self._sign * self._rows.times(weights)

    def _at(self, pull: np.ndarray) -> np.ndarray:
        """Return the variables for the weights, from the negative gradient there."""
        return np.clip((self._start + self._reach * pull) / self._damped, 0, self._upper)

    def _share(self, pull: np.ndarray, change: np.ndarray, linear: float, square: float) -> float:
        """Return the share of a step that leads to the minimum along it, where the slope is
        zero."""

        def slope(share: float) -> float:
            return linear + share * square + float(self._at(pull + share * change) @ change)

        end = 1.0
        while slope(end) < 0 and end < LONGEST:
            end *= 2
        return float(brentq(slope, 0.0, end)) if slope(0.0) < 0 < slope(end) else end

    def _newton_step(self, alpha: np.ndarray, gradient: np.ndarray, left: float) -> np.ndarray:
        free = np.flatnonzero((alpha > 0) & (alpha < self._upper))
        X, constant = self._rows.X[free], self._rows.constant
        scale = self._reach / self._damped[free]
        stored = X.nnz if sp.issparse(X) else X.size
        if len(free) * len(gradient) ** 2 <= 2 * CG_STEPS * stored:  # which is faster
            root = np.sqrt(scale)[:, None]
            wide = X.multiply(root).toarray() if sp.issparse(X) else X * root
            wide = np.append(wide, constant * root, axis=1)
            return np.linalg.solve(np.eye(len(gradient)) + wide.T @ wide, -gradient)

        def product(z: np.ndarray) -> np.ndarray:
            inner = scale * (X @ z[:-1] + constant * z[-1])
            return z + np.append(X.T @ inner, constant * inner.sum())

        return _conjugate_gradients(product, -gradient, left)


def _conjugate_gradients(product: Callable, target: np.ndarray, share: float) -> np.ndarray:
    """Solve product(z) = target until at most a share of the target is left."""
    z, left = np.zeros_like(target), target.copy()
    way, size = left, float(target @ target)
    first = size
    for _ in range(CG_STEPS):
        image = product(way)
        curvature = float(way @ image)
        z = z + (size / curvature) * way
        left = left - (size / curvature) * image
        last, size = size, float(left @ left)
        if size <= share**2 * first:
            break
        way = left + (size / last) * way
    return z


@dataclass(frozen=True)
class LinearModel:
    """Decision values <w_c, x> + intercept_c, and the dual variables of w_c."""

    weights: np.ndarray  # (n_outputs, n_features)
    intercept: np.ndarray
    coef: Coefficients  # of the support vectors

    def decision(
        self, X, backend: Any = None, finish: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> np.ndarray:
        """Apply ``finish`` to decision values, some rows at a time."""
        step = max(1, _AT_ONCE // max(1, max(self.weights.shape)))
        begins = range(0, max(X.shape[0], 1), step)
        return np.concatenate([finish(self._outputs(X[b : b + step], b)) for b in begins])

    def scores(self, X, coding: Coding, backend: Any) -> np.ndarray:
        return self.decision(X, backend, coding.scores)

    def classes(self, X, coding: Coding, backend: Any) -> np.ndarray:
        """Return the index of each row's class."""
        return coding.classes(self.scores(X, coding, backend))

    def in_double(self) -> LinearModel:
        return self

    def _outputs(self, X, begin: int) -> np.ndarray:
        scores = np.asarray(X @ self.weights.T) + self.intercept
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(bad):
            raise ValueError(f"Row {begin + bad[0]} is too large: its decision values overflow.")
        return scores
