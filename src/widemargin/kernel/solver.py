"""The exact box-constrained dual, min 1/2 a'Qa - e'a over 0 <= a <= U, by blocks.

Each step takes a block of variables (the free ones of the last block and the worst violators),
gets their kernel rows, minimises over the block with two-variable steps, and adds the change to
the gradient.  Variables that rest at a bound leave the active set, whose rows are then shorter;
no stop is believed before the gradient of all variables is known.  Without a bias there is no
equality constraint, and the duality gap is a sum of non-negative terms that the gradient gives
for free:

    P - D = sum_i (U_i - a_i) max(0, -g_i) + a_i max(0, g_i),      g = Qa - e
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from widemargin import _core
from widemargin.kernel.kernels import Kernel, Rows
from widemargin.kernel.rows import Memory, RowCache, Threads, kernel_product

BLOCK = 1024
INNER_TOL = 0.1  # of the current violation: looser needs more blocks, tighter more inner steps
SHRINK_SHARE = 0.25  # of the active variables that must be able to leave before they do
LOOSE = 10.0  # multiple of tol at which all variables are looked at for the first time
_PATIENCE = 1000  # steps in which neither objective nor gap gain: rounding can hide a little
_REFRESH_EVERY = 1000  # blocks after which the gradient is computed afresh before a stop


@dataclass
class Solution:
    """The dual variables, their gradient, and how far they are from the optimum."""

    alpha: np.ndarray
    gradient: np.ndarray
    primal: float
    dual: float
    n_iter: int
    n_rows_computed: int
    converged: bool
    history: list[dict] = field(default_factory=list)

    @property
    def relative_gap(self) -> float:
        return (self.primal - self.dual) / max(self.primal, np.finfo(np.float64).tiny)


class Part(NamedTuple):
    """What a cluster found for one binary problem: its variables by number in the problem."""

    at: np.ndarray
    alpha: np.ndarray
    dual: float
    gap: float
    n_iter: int


def gap_terms(alpha, gradient, upper) -> np.ndarray:
    """Each variable's share of primal minus dual."""
    return np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)


def dual_value(alpha, gradient) -> float:
    return float(alpha.sum() - 0.5 * alpha @ (gradient + 1))


class ActiveSet:
    """The variables that may move, with their kernel rows, all renumbered from 0."""

    def __init__(self, ids, y, upper, diagonal, alpha, gradient, cache: RowCache):
        self.ids, self.cache = ids, cache
        self.y, self.upper, self.diagonal = y[ids], upper[ids], diagonal[ids]
        self.alpha, self.gradient = alpha[ids], gradient[ids]
        self.n_added = 0  # kernel rows added to the gradient since the last change of the set
        self.violation = 0.0
        self._block = np.empty(0, dtype=np.int64)
        self._scratch: np.ndarray = np.empty(
            (min(BLOCK, len(y)) + 8) ** 2, dtype=cache.kernel.dtype
        )

    def __len__(self) -> int:
        return len(self.ids)

    def select(self) -> float:
        """Choose the next block; returns the duality gap."""
        size = min(BLOCK, len(self), -(-self.cache.n_slots // 2))
        self._block, self.violation, gap = _core.select_block(
            self.alpha, self.gradient, self.upper, self.diagonal, self._block, size
        )
        return gap

    def step(self) -> float:
        """Minimise over the chosen block; returns by how much the dual objective grew."""
        block = self._block
        size = -(-len(block) // 8) * 8
        q = self._scratch[: size * size].reshape(size, size)
        slots = self.cache.slots(block)
        self.cache.block(slots, block, self.y[block], q[: len(block), : len(block)])
        coef = np.empty(len(block))
        gain = _core.minimise_block(
            q, block, self.y, self.alpha, self.gradient, self.upper, self.diagonal,
            INNER_TOL * self.violation, coef,
        )  # fmt: skip
        self.n_added += int(np.count_nonzero(coef))
        self.cache.add(slots, coef, self.y, self.gradient)
        return gain

    def resting(self, margin: float) -> np.ndarray:
        """Which variables are held at a bound by a gradient above ``margin``."""
        low = (self.alpha <= 0) & (self.gradient > margin)
        return low | ((self.alpha >= self.upper) & (self.gradient < -margin))

    def keep(self, numbers: np.ndarray) -> None:
        """Shrink to the variables of these numbers."""
        kept = np.zeros(len(self), dtype=bool)
        kept[numbers] = True
        self._block = (np.cumsum(kept) - 1)[self._block[kept[self._block]]]
        self.cache.shrink(numbers)
        for name in ("ids", "y", "upper", "diagonal", "alpha", "gradient"):
            setattr(self, name, getattr(self, name)[numbers])

    def extend(self, ids, rows: Rows, y, upper, diagonal, alpha, gradient) -> None:
        """Append variables."""
        together = np.concatenate([self.ids, ids])
        self.cache.extend(rows[together], rows[ids])
        self.ids = together
        self.y, self.upper, self.diagonal = y[together], upper[together], diagonal[together]
        self.alpha = np.concatenate([self.alpha, alpha[ids]])
        self.gradient = np.concatenate([self.gradient, gradient[ids]])


def solve(
    kernel: Kernel,
    rows: Rows,
    y: np.ndarray,
    upper: np.ndarray,
    *,
    alpha: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 100_000,
    cache_bytes: float = 1 << 30,
    n_threads: int = 1,
    memory: Memory | None = None,
    on_step: Callable[[], bool] = lambda: False,
) -> Solution:
    """Minimise to a relative duality gap of ``tol``.

    Parameters
    ----------
    kernel, rows
        The kernel and the training rows prepared for it.
    y : ndarray of -1.0 and 1.0
    upper : ndarray
        Upper bound of each variable.
    alpha : ndarray, default=None
        A feasible start.  Its support vectors alone are active at first (DC-SVM's refinement).
    memory : Memory, default=None
        Buffers of earlier problems.
    on_step : callable
        Called once per block; a true result ends the fit.
    """
    alpha = np.zeros(len(y)) if alpha is None else np.clip(alpha, 0, upper)
    with Threads(n_threads) as threads:
        memory = memory or Memory()
        descent = Descent(kernel, rows, y, upper, alpha, tol, cache_bytes, threads, memory)
        try:
            return descent.run(max_iter, on_step)
        finally:
            descent.active.cache.close()


def first_active(alpha: np.ndarray) -> np.ndarray:
    """The support vectors of a start; all variables without one."""
    support = np.flatnonzero(alpha)
    return support if len(support) else np.arange(len(alpha))


class Descent:
    """Descend on the active variables, look at all of them, take violators in, and again.

    At every look ``gradient`` is exact for active variables, and for the others exact or a bound
    on the safe side: when w moves by |dw|, g_i moves by no more than |dw| sqrt(k_ii), so a
    variable held at its bound by more than that needs no kernel values.
    """

    def __init__(self, kernel, rows, y, upper, alpha, tol, cache_bytes, threads, memory):
        self.kernel, self.rows, self.y, self.upper, self.alpha = kernel, rows, y, upper, alpha
        self.tol, self.threads = tol, threads
        self.diagonal = np.maximum(kernel.diagonal(rows), 1e-12)
        ids = first_active(alpha)
        self.gradient = -np.ones(len(y))
        self.is_bound = np.zeros(len(y), dtype=bool)  # where ``gradient`` is a bound only
        self.known = np.zeros(len(y))  # the variables that ``gradient`` belongs to
        self.inactive = np.setdiff1d(np.arange(len(y)), ids, assume_unique=True)
        self.seen = len(self.inactive) == 0
        self.caution = 1.0  # grows whenever a variable left too early
        own = rows if self.seen else rows[ids]
        cache = RowCache(kernel, own, len(y), cache_bytes, threads, memory)
        self.active = ActiveSet(ids, y, upper, self.diagonal, alpha, self.gradient, cache)
        self._start(own)
        self.dual = dual_value(self.active.alpha, self.active.gradient)

    def _start(self, own: Rows) -> None:
        """The gradient of the first active variables."""
        a = self.active
        support = np.flatnonzero(a.alpha)
        if len(support) and len(support) <= a.cache.n_slots:
            slots = a.cache.slots(support)
            a.cache.add(slots, (a.alpha * a.y)[support], a.y, a.gradient)
        elif len(support):
            coef = (a.alpha * a.y)[support, None]
            product = kernel_product(self.kernel, own, own[support], coef, self.threads)
            a.gradient += a.y * product[:, 0]

    def run(self, max_iter: int, on_step: Callable[[], bool]) -> Solution:
        active, history = self.active, []
        step = refreshed_at = 0
        stopped, idle, least = False, 0, np.inf
        while True:
            while not stopped:
                gap = active.select()
                history.append(
                    {"step": step, "gap": gap, "dual": self.dual, "active": len(active),
                     "rows": active.cache.n_computed}
                )  # fmt: skip
                if self.enough(gap, 1.0 if self.seen else LOOSE):
                    break
                if step >= max_iter:
                    stopped = True
                    break
                gain = active.step()
                better = self.dual + gain > self.dual or gap < 0.9 * least
                idle, least = (0, min(gap, least)) if better else (idle + 1, least)
                self.dual += gain
                step += 1
                stopped = on_step()
                if idle > _PATIENCE:  # at the limit of the arithmetic; the caller warns
                    break
                self.shrink()
            gap = self.look()
            violators = self.violators()
            if not stopped and not self.enough(gap) and (len(violators) or idle <= _PATIENCE):
                self.take_in(violators)
                least = np.inf
            elif step - refreshed_at >= _REFRESH_EVERY:
                refreshed_at = step  # many sums later: once more from the support vectors alone
                self._exact(np.arange(len(self.y)))
                active.gradient = self.gradient[active.ids]
            else:
                break
        return Solution(self.alpha, self.gradient, self.dual + gap, self.dual, step,
                        active.cache.n_computed, self.enough(gap), history)  # fmt: skip

    def enough(self, gap: float, factor: float = 1.0) -> bool:
        return gap <= factor * self.tol * max(self.dual + gap, np.finfo(np.float64).tiny)

    def shrink(self) -> None:
        """Let variables go that rest at a bound, if they are many and have cost enough.

        To look at a variable again takes a kernel value per support vector; to keep it, one
        addition per changed variable and step.  As in renting skis, the cheapest policy without
        knowing the future is to let it go when keeping it has cost as much as looking again.
        """
        active = self.active
        look_again = self.kernel.cost * np.count_nonzero(active.alpha)
        if active.n_added < look_again:
            return
        rest = active.resting(self.caution * active.violation)
        if rest.sum() <= SHRINK_SHARE * len(active):
            return
        active.n_added = 0
        self._advance()
        self.inactive = np.concatenate([self.inactive, active.ids[rest]])
        active.keep(np.flatnonzero(~rest))

    def look(self) -> float:
        """Gradients of all variables, as far as needed; returns the gap."""
        self._advance()
        far = self.inactive
        self._exact(far[self._held(far) <= 0] if self.seen else far)
        self.seen = True
        return float(gap_terms(self.alpha, self.gradient, self.upper).sum())

    def _held(self, which: np.ndarray) -> np.ndarray:
        """How firmly a gradient holds variables at their bounds."""
        return np.where(self.alpha[which] <= 0, self.gradient[which], -self.gradient[which])

    def _advance(self) -> None:
        """Gradients at the present variables: exact for active ones, a bound for the others."""
        active, far = self.active, self.inactive
        change = active.alpha - self.known[active.ids]
        squared = max(change @ (active.gradient - self.gradient[active.ids]), 0.0)
        moved = np.sqrt(squared * self.diagonal[far]) * (1 + 1e-6) + 1e-9
        self.gradient[far] -= np.where(self.alpha[far] <= 0, moved, -moved)
        self.is_bound[far] = True
        self.gradient[active.ids] = active.gradient
        self.known[active.ids] = self.alpha[active.ids] = active.alpha

    def _exact(self, which: np.ndarray) -> None:
        """The gradient of some variables from all support vectors."""
        support = np.flatnonzero(self.alpha)
        self.gradient[which] = -1.0
        self.is_bound[which] = False
        if len(which) and len(support):
            coef = (self.alpha * self.y)[support, None]
            rows, vectors = self.rows[which], self.rows[support]
            product = kernel_product(self.kernel, rows, vectors, coef, self.threads)[:, 0]
            self.gradient[which] += self.y[which] * product

    def violators(self) -> np.ndarray:
        """Inactive variables that should move, and those held so loosely that they soon might."""
        held = self._held(self.inactive)
        if len(held) == 0 or held.min() >= 0:
            return self.inactive[:0]
        return self.inactive[held < self.active.violation]

    def take_in(self, violators: np.ndarray) -> None:
        if len(violators) == 0:
            return
        self._exact(violators[self.is_bound[violators]])
        self.caution *= 2
        self.active.n_added = 0
        self.inactive = np.setdiff1d(self.inactive, violators, assume_unique=True)
        self.active.extend(violators, self.rows, self.y, self.upper, self.diagonal, self.alpha,
                           self.gradient)  # fmt: skip
