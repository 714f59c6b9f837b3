"""The exact box-constrained dual, min 1/2 a'Qa - e'a over 0 <= a <= U, by blocks.

Each step takes a block of variables (the free ones of the last block and the worst violators),
gets their kernel rows, minimises over the block with two-variable steps, and adds the change to
the gradient.  Without a bias there is no equality constraint, and the duality gap is a sum of
non-negative terms that the gradient gives for free:

    P - D = sum_i (U_i - a_i) max(0, -g_i) + a_i max(0, g_i),      g = Qa - e
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from widemargin import _core
from widemargin.engine import one_blas_thread
from widemargin.kernel.kernels import Operand

BLOCK = 512
INNER_TOL = 0.1  # of the current violation: looser needs more blocks, tighter more inner steps
_TILE, _TILE_ROWS = 2048, 256  # a tile of 2 MB stays in the second-level cache
_GRADIENT_REFRESH = 50
_FEW = 4


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
        return relative(self.primal - self.dual, self.primal)


def relative(gap: float, primal: float) -> float:
    return gap / max(primal, np.finfo(np.float64).tiny)


def gap_terms(alpha, gradient, upper) -> np.ndarray:
    """Each variable's share of primal minus dual."""
    return np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)


def projected_gradient(alpha, gradient, upper) -> np.ndarray:
    low, high = np.minimum(gradient, 0), np.maximum(gradient, 0)
    return np.where(alpha <= 0, low, np.where(alpha >= upper, high, gradient))


class Threads:
    """Tiles of columns spread over a few threads; the order of sums does not depend on them."""

    def __init__(self, n_threads: int):
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def tiles(self, n: int, task: Callable[[int, int], None]) -> None:
        spans = [(b, min(b + _TILE, n)) for b in range(0, n, _TILE)]
        if self._pool is None:
            for span in spans:
                task(*span)
        else:
            list(self._pool.map(lambda span: task(*span), spans))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class RowCache:
    """Kernel rows of the active samples, as many as the memory allowed; least used go first."""

    def __init__(self, kernel, operand: Operand, max_bytes: float, threads: Threads):
        self.kernel, self.operand, self.threads = kernel, operand, threads
        n = len(operand)
        slots = int(min(max(max_bytes // (4 * n), 2 * BLOCK), n))
        self.pool = np.empty((slots, n), dtype=np.float32)  # touched only when used
        self.slot_of = np.full(n, -1, dtype=np.int64)
        self.row_in = np.full(slots, -1, dtype=np.int64)
        self.last_use = np.zeros(slots, dtype=np.int64)
        self.clock = 0
        self.n_computed = 0

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        """Slots of the wanted rows, computed together where they are missing."""
        self.clock += 1
        missing = wanted[self.slot_of[wanted] < 0]
        if len(missing):
            held = self.slot_of[wanted]
            self.last_use[held[held >= 0]] = self.clock
            slots = np.argsort(self.last_use, kind="stable")[: len(missing)]
            evicted = self.row_in[slots]
            self.slot_of[evicted[evicted >= 0]] = -1
            self._compute(missing, slots)
            self.row_in[slots], self.slot_of[missing] = missing, slots
        slots = self.slot_of[wanted]
        self.last_use[slots] = self.clock
        return slots

    def _compute(self, missing, slots) -> None:
        rows = self.operand[missing]
        self.n_computed += len(missing)

        def tile(begin, end):
            block = np.empty((len(missing), end - begin), dtype=np.float32)
            self.kernel.fill(rows, self.operand[begin:end], block)
            self.pool[slots, begin:end] = block

        self.threads.tiles(len(self.operand), tile)


def kernel_product(kernel, a: Operand, b: Operand, coef: np.ndarray, threads: Threads):
    """k(a, b) @ coef, of shape (len(a), n_outputs), a tile at a time and summed in double."""
    out = np.zeros((coef.shape[1], len(a)))

    def tile(begin, end):
        columns, sums = a[begin:end], np.zeros((coef.shape[1], end - begin))
        for start in range(0, len(b), _TILE_ROWS):
            rows = b[start : start + _TILE_ROWS]
            block = np.empty((len(rows), end - begin), dtype=np.float32)
            kernel.fill(rows, columns, block)
            part = coef[start : start + _TILE_ROWS]
            if coef.shape[1] > _FEW:  # many outputs: a product in single, their sum in double
                sums += part.astype(np.float32).T @ block
                continue
            for k, total in enumerate(sums):
                column = np.ascontiguousarray(part[:, k])
                _core.add_rows(block, np.arange(len(rows)), column, 0, end - begin, total)
        out[:, begin:end] = sums

    threads.tiles(len(a), tile)
    return out.T


def full_gradient(kernel, operand, y, alpha, threads) -> np.ndarray:
    support = np.flatnonzero(alpha)
    if len(support) == 0:
        return -np.ones(len(y))
    coef = (alpha * y)[support, None]
    return y * kernel_product(kernel, operand, operand[support], coef, threads)[:, 0] - 1


def solve(
    kernel,
    operand: Operand,
    y: np.ndarray,
    upper: np.ndarray,
    *,
    alpha: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 100_000,
    cache_bytes: float = 1 << 30,
    n_threads: int = 1,
    on_step: Callable[[], bool] = lambda: False,
) -> Solution:
    """Minimise to a relative duality gap of ``tol``.

    Parameters
    ----------
    kernel, operand
        The kernel and the training rows prepared for it.
    y : ndarray of -1.0 and 1.0
    upper : ndarray
        Upper bound of each variable.
    alpha : ndarray, default=None
        A feasible start.
    on_step : callable
        Called once per block; a true result ends the fit.
    """
    threads = Threads(n_threads)
    try:
        with one_blas_thread:
            return _solve(
                kernel, operand, y, upper, alpha, tol, max_iter, cache_bytes, threads, on_step
            )
    finally:
        threads.close()


def _solve(kernel, operand, y, upper, alpha, tol, max_iter, cache_bytes, threads, on_step):
    n = len(y)
    alpha = np.zeros(n) if alpha is None else np.clip(alpha, 0, upper)
    gradient = full_gradient(kernel, operand, y, alpha, threads)
    diagonal = np.maximum(kernel.diagonal(operand), 1e-12)
    cache = RowCache(kernel, operand, cache_bytes, threads)
    history: list[dict] = []
    last = np.empty(0, dtype=np.int64)
    converged = False
    step = 0
    fresh = True  # the gradient was just computed from all support vectors

    while True:
        gap = float(gap_terms(alpha, gradient, upper).sum())
        dual = float(alpha.sum() - 0.5 * alpha @ (gradient + 1))
        done = gap <= tol * max(dual + gap, np.finfo(np.float64).tiny)
        if done and not fresh:
            gradient = full_gradient(kernel, operand, y, alpha, threads)
            fresh = True
            continue
        if done or step >= max_iter:
            converged = done
            break
        history.append({"step": step, "gap": gap, "dual": dual, "rows": cache.n_computed})
        block = select_block(alpha, gradient, upper, diagonal, last)
        violation = np.abs(projected_gradient(alpha, gradient, upper)).max()
        before = alpha[block].copy()
        slots = cache.rows(block)
        _solve_on(block, slots, cache.pool, y, upper, diagonal, alpha, gradient, violation)
        change = alpha[block] - before
        moved = np.flatnonzero(change)
        if len(moved) == 0:
            break  # at the limit of the arithmetic; the caller warns with the gap
        coef = (change * y[block])[moved]
        delta = np.zeros(n)
        threads.tiles(
            n,
            lambda b, e: _core.add_rows(cache.pool, slots[moved], coef, b, e, delta),  # noqa: B023
        )
        gradient += y * delta
        last, fresh = block, False
        step += 1
        if step % _GRADIENT_REFRESH == 0 and tol < 1e-5:
            gradient = full_gradient(kernel, operand, y, alpha, threads)
            fresh = True
        if on_step():
            break
    return Solution(alpha, gradient, dual + gap, dual, step, cache.n_computed, converged, history)


def select_block(alpha, gradient, upper, diagonal, last) -> np.ndarray:
    """Up to half of the block: free variables of the last one; the rest: the worst violators.

    Without the retained half the method need not converge.
    """
    pg = projected_gradient(alpha, gradient, upper)
    score = pg * pg / diagonal
    free = last[(alpha[last] > 0) & (alpha[last] < upper[last])]
    kept = free[np.argsort(-score[free], kind="stable")[: BLOCK // 2]]
    score[kept] = -1.0
    room = BLOCK - len(kept)
    worst = np.argpartition(-score, min(room, len(score) - 1))[:room] if room < len(score) else (
        np.arange(len(score)))  # fmt: skip
    worst = worst[score[worst] > 0]
    return np.sort(np.concatenate([kept, worst]))


def _solve_on(block, slots, pool, y, upper, diagonal, alpha, gradient, violation) -> None:
    """Minimise over the block's variables; ``alpha`` changes, ``gradient`` does not."""
    size = -(-len(block) // 8) * 8
    q = np.zeros((size, size), dtype=np.float32)
    signs = y[block].astype(np.float32)
    q[: len(block), : len(block)] = pool[np.ix_(slots, block)] * signs[:, None] * signs
    a, g, u, d = np.zeros(size), np.ones(size), np.zeros(size), np.ones(size)
    a[: len(block)], g[: len(block)] = alpha[block], gradient[block]
    u[: len(block)], d[: len(block)] = upper[block], diagonal[block]
    _core.solve_block(q, d, u, a, g, INNER_TOL * violation, 100 * size)
    alpha[block] = a[: len(block)]
