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

import numpy as np

from widemargin import _core
from widemargin.kernel.kernels import Kernel, Rows
from widemargin.kernel.rows import RowCache, Threads, kernel_product

BLOCK = 1024
INNER_TOL = 0.1  # of the current violation: looser needs more blocks, tighter more inner steps
SHRINK_SHARE = 0.25  # of the active variables that must be able to leave before they do
LOOSE = 10.0
_SHRINK_EVERY = 8
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


def gap_terms(alpha, gradient, upper) -> np.ndarray:
    """Each variable's share of primal minus dual."""
    return np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)


def projected_gradient(alpha, gradient, upper) -> np.ndarray:
    low, high = np.minimum(gradient, 0), np.maximum(gradient, 0)
    return np.where(alpha <= 0, low, np.where(alpha >= upper, high, gradient))


def dual_value(alpha, gradient) -> float:
    return float(alpha.sum() - 0.5 * alpha @ (gradient + 1))


class ActiveSet:
    """The variables that may move, with their kernel rows, all renumbered from 0."""

    def __init__(self, ids, y, upper, diagonal, alpha, gradient, cache: RowCache):
        self.ids, self.cache = ids, cache
        self.y, self.upper, self.diagonal = y[ids], upper[ids], diagonal[ids]
        self.alpha, self.gradient = alpha[ids], gradient[ids]
        self._last = np.empty(0, dtype=np.int64)
        self._scratch = np.empty((min(BLOCK, len(y)) + 8) ** 2, dtype=cache.kernel.dtype)

    def __len__(self) -> int:
        return len(self.ids)

    def gap(self) -> float:
        return float(gap_terms(self.alpha, self.gradient, self.upper).sum())

    def add(self, numbers: np.ndarray, change: np.ndarray) -> None:
        """The gradient after the variables of these numbers changed."""
        slots = self.cache.slots(numbers)
        self.gradient += self.y * self.cache.add(slots, change * self.y[numbers])

    def step(self) -> float:
        """Minimise over one block; returns by how much the dual objective grew."""
        pg = projected_gradient(self.alpha, self.gradient, self.upper)
        self.violation = float(np.abs(pg).max())
        block = select_block(self.alpha, pg, self.upper, self.diagonal, self._last)
        before, slope = self.alpha[block], self.gradient[block]
        after = self._minimise(block)
        moved = np.flatnonzero(after != before)
        change = (after - before)[moved]
        self.alpha[block] = after
        self.add(block[moved], change)
        self._last = block
        # f(a + d) - f(a) = d'(g_before + g_after) / 2, exactly, for a quadratic function
        return -0.5 * float(change @ (slope[moved] + self.gradient[block[moved]]))

    def _minimise(self, block: np.ndarray) -> np.ndarray:
        n = len(block)
        size = -(-n // 8) * 8
        q = self._scratch[: size * size].reshape(size, size)
        self.cache.block(block, self.y[block], q[:n, :n])
        q[n:], q[:, n:] = 0, 0
        alpha, gradient = np.zeros(size), np.ones(size)
        upper, diagonal = np.zeros(size), np.ones(size)
        alpha[:n], gradient[:n] = self.alpha[block], self.gradient[block]
        upper[:n], diagonal[:n] = self.upper[block], self.diagonal[block]
        _core.solve_block(q, diagonal, upper, alpha, gradient, INNER_TOL * self.violation, 100 * n)
        return alpha[:n]

    def resting(self, margin: float) -> np.ndarray:
        """Which variables are held at a bound by a gradient above ``margin``."""
        low = (self.alpha <= 0) & (self.gradient > margin)
        return low | ((self.alpha >= self.upper) & (self.gradient < -margin))

    def keep(self, numbers: np.ndarray) -> None:
        """Shrink to the variables of these numbers."""
        kept = np.zeros(len(self), dtype=bool)
        kept[numbers] = True
        self._last = (np.cumsum(kept) - 1)[self._last[kept[self._last]]]
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


def select_block(alpha, pg, upper, diagonal, last) -> np.ndarray:
    """Up to half of the block: free variables of the last one; the rest: the worst violators.

    Without the retained half the method need not converge.
    """
    size = min(BLOCK, len(alpha))
    score = pg * pg / diagonal
    free = last[(alpha[last] > 0) & (alpha[last] < upper[last])]
    kept = free[np.argsort(-score[free], kind="stable")[: size // 2]]
    score[kept] = -1.0
    room = size - len(kept)
    worst = np.argpartition(-score, room - 1)[:room] if room < len(score) else np.arange(size)
    worst = worst[score[worst] > 0]
    return np.sort(np.concatenate([kept, worst]))


def solve(
    kernel: Kernel,
    rows: Rows,
    y: np.ndarray,
    upper: np.ndarray,
    *,
    alpha: np.ndarray | None = None,
    support_first: bool = False,
    tol: float = 1e-3,
    max_iter: int = 100_000,
    cache_bytes: float = 1 << 30,
    n_threads: int = 1,
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
        A feasible start.
    support_first : bool, default=False
        Begin with the support vectors of ``alpha`` alone (DC-SVM's refinement).
    on_step : callable
        Called once per block; a true result ends the fit.
    """
    n = len(y)
    alpha = np.zeros(n) if alpha is None else np.clip(alpha, 0, upper)
    diagonal = np.maximum(kernel.diagonal(rows), 1e-12)
    support = np.flatnonzero(alpha)
    ids = support if support_first and len(support) else np.arange(n)
    with Threads(n_threads) as threads:
        return _solve(kernel, rows, y, upper, diagonal, alpha, ids, tol, max_iter, cache_bytes,
                      threads, on_step)  # fmt: skip


def _solve(kernel, rows, y, upper, diagonal, alpha, ids, tol, max_iter, cache_bytes, threads,
           on_step) -> Solution:  # fmt: skip
    n = len(y)
    # Of every variable, active or not, the gradient at `known`.
    known, gradient = np.zeros(n), -np.ones(n)
    own = rows if len(ids) == n else rows[ids]
    active = ActiveSet(
        ids, y, upper, diagonal, alpha, gradient, RowCache(kernel, own, n, cache_bytes, BLOCK, threads)
    )
    support = np.flatnonzero(active.alpha)
    if len(support) and active.cache.holds(len(support)):
        active.add(support, active.alpha[support])
    elif len(support):
        coef = (active.alpha * active.y)[support, None]
        active.gradient += active.y * kernel_product(kernel, own, own[support], coef, threads)[:, 0]
    dual = dual_value(active.alpha, active.gradient)
    history: list[dict] = []
    step = shrunk_at = refreshed_at = 0
    caution = 1.0  # grows whenever a variable left too early
    loose = LOOSE  # before all variables were seen once at this multiple of tol
    stopped, gain = False, 1.0

    def enough(gap: float, factor: float = 1.0) -> bool:
        return gap <= factor * tol * max(dual + gap, np.finfo(np.float64).tiny)

    while True:
        while not stopped:
            gap = active.gap()
            history.append(
                {"step": step, "gap": gap, "dual": dual, "rows": active.cache.n_computed,
                 "active": len(active)}
            )  # fmt: skip
            if enough(gap, loose if len(active) < n else 1.0):
                break
            if step >= max_iter:
                stopped = True
                break
            gain = active.step()
            dual += gain
            step += 1
            stopped = on_step()
            if gain <= 0:  # at the limit of the arithmetic; the caller warns with the gap
                break
            if step - shrunk_at >= _SHRINK_EVERY:
                rest = active.resting(caution * active.violation)
                if rest.sum() > SHRINK_SHARE * len(active):
                    if len(active) == n:
                        gradient[active.ids], known[active.ids] = active.gradient, active.alpha
                    alpha[active.ids] = active.alpha
                    active.keep(np.flatnonzero(~rest))
                    shrunk_at = step
        loose = 1.0
        alpha[active.ids] = active.alpha
        inactive = np.setdiff1d(np.arange(n), active.ids, assume_unique=True)
        _catch_up(kernel, rows, y, alpha, known, gradient, inactive, threads)
        gradient[active.ids], known[:] = active.gradient, alpha
        dual = dual_value(alpha, gradient)
        terms = gap_terms(alpha, gradient, upper)
        gap = float(terms.sum())
        violators = inactive[terms[inactive] > 0]
        if stopped or enough(gap) or (len(violators) == 0 and gain <= 0):
            if step - refreshed_at < _REFRESH_EVERY:
                break
            # Many sums later: the gradient from the support vectors alone.
            refreshed_at = step
            known[:], gradient[:] = 0.0, -1.0
            _catch_up(kernel, rows, y, alpha, known, gradient, np.arange(n), threads)
            active.gradient, known[:] = gradient[active.ids], alpha
            continue
        if len(violators):
            active.extend(violators, rows, y, upper, diagonal, alpha, gradient)
            caution *= 2
            shrunk_at = step
    return Solution(
        alpha, gradient, dual + gap, dual, step, active.cache.n_computed, enough(gap), history
    )


def _catch_up(kernel, rows, y, alpha, known, gradient, which, threads) -> None:
    """Bring the gradient of some variables from ``known`` to ``alpha``."""
    if len(which) == 0:
        return
    change, support = alpha - known, np.flatnonzero(alpha)
    changed = np.flatnonzero(change)
    if len(support) < len(changed):
        gradient[which], changed, change = -1.0, support, alpha
    if len(changed):
        coef = (change * y)[changed, None]
        moved = kernel_product(kernel, rows[which], rows[changed], coef, threads)[:, 0]
        gradient[which] += y[which] * moved
