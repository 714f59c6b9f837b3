"""Where kernel values are computed and active sets live: this process, or one day a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol, Self

import numpy as np

from widemargin import _core
from widemargin.engine import Threads
from widemargin.kernel.active_set import ActiveSet, HostActiveSet
from widemargin.kernel.cache import (
    AT_ONCE,
    SHARED_FROM,
    SHARED_MEMORY,
    TILE_ROWS,
    CachingKernel,
    RowCache,
)
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import DotKernel, Kernel
from widemargin.kernel.nearest import Nearest, nearest
from widemargin.kernel.precision import rounding
from widemargin.kernel.problem import Problem, Solution
from widemargin.kernel.tiles import COMMON, Memory, Tiles

Run = Callable[[Callable, Sequence, Threads | Executor], list]
MOST_ROWS = 2048  # of a problem that few_rows.py solves
_FEW = 4  # columns of coefficients summed in double precision; more are a matrix product


class Backend(Protocol):
    """Everything that the machine needs from the device on which it runs.

    A device is a file with such a class and an `ActiveSet`.  Rows may live there: they come from
    `rows`, and are only sliced, indexed and passed back.  Other arrays are NumPy's.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception) -> None: ...

    @property
    def memory(self) -> Memory:
        """Buffers of this process that problems reuse."""
        ...

    @property
    def n_threads(self) -> int:
        """How many tasks it can serve at once."""
        ...

    def are_few(self, n_rows: int) -> bool:
        """Whether problems on so many rows go to few_rows.py, which solves them in this process."""
        ...

    def rows(self, kernel: Kernel, X: Any, present: np.ndarray) -> Any:
        """Return the rows that take part in the fit, in the kernel's layout."""
        ...

    def solve_tasks(
        self, solve: Callable, tasks: Sequence, at_once: int, run: Run
    ) -> list[list[Solution]]:
        """Solve tasks in parallel: ``run(function, tasks, executor)`` reports each.

        ``solve(task, control, backend)`` solves one.  A device may solve many in one go.
        """
        ...

    def for_tasks(self, n_at_once: int) -> Backend:
        """Return the backend of one of ``n_at_once`` tasks, with its share of the threads."""
        ...

    def copy(self) -> Backend:
        """Return the same backend for another thread: separate threads, common buffers."""
        ...

    def share_rows(self, kernel: Kernel, rows: Any, cache_bytes: float) -> tuple[Kernel, Any]:
        """Return kernel and rows for several problems, which share kernel rows if that pays."""
        ...

    def product(
        self, kernel: Kernel, a: Any, b: Any, coef: np.ndarray | Coefficients
    ) -> np.ndarray:
        """k(a, b) @ coef, of shape (len(a), n_outputs)."""
        ...

    def bounded_product(
        self, kernel: Kernel, a: Any, b: Any, coef: Coefficients
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the product and a bound on its rounding errors, for a kernel from `in_single`."""
        ...

    def nearest(
        self, router: Any, rows: Any, known: Nearest | None = None, n_old: int = 0
    ) -> Nearest:
        """Return the cluster of each row by a `Router` (see `nearest.nearest`)."""
        ...

    def active_set(
        self,
        problem: Problem,
        ids: np.ndarray,
        alpha: np.ndarray,
        cache_bytes: float,
        offset: float = 0.0,
    ) -> ActiveSet:
        """Return the active set of the variables ``ids`` at ``alpha``; all others are zero."""
        ...


class Host(Tiles):
    """This process: threads that share its memory.

    Parameters
    ----------
    n_threads : int
        Results do not depend on it.
    memory : Memory, default=None
        Buffers of earlier problems.  Copies in another process share its buffers, so that a worker
        does not touch new memory for every task.
    """

    def __init__(self, n_threads: int = 1, memory: Memory | None = None):
        super().__init__(n_threads)
        self.memory = memory or Memory()

    def __reduce__(self):
        return _elsewhere, (self.n_threads,)

    def are_few(self, n_rows: int) -> bool:
        return n_rows <= MOST_ROWS

    def rows(self, kernel: Kernel, X: Any, present: np.ndarray) -> Any:
        return kernel.training_rows(X, present)

    def solve_tasks(
        self, solve: Callable, tasks: Sequence, at_once: int, run: Run
    ) -> list[list[Solution]]:
        share = self.for_tasks(at_once)

        def on(task: Any, control: Any) -> list[Solution]:
            return solve(task, control, backend=self if task.is_large else share)

        return run(on, tasks, Threads(at_once))

    def for_tasks(self, n_at_once: int) -> Host:
        return Host(max(1, self.n_threads // n_at_once))

    def copy(self) -> Host:
        return Host(self.n_threads, self.memory)

    def share_rows(self, kernel: Kernel, rows: Any, cache_bytes: float) -> tuple[Kernel, Any]:
        """Share kernel rows if they are expensive, and not shared already along a path of C."""
        if kernel.cost <= SHARED_FROM or isinstance(kernel, CachingKernel):
            return kernel, rows
        caching = CachingKernel(kernel, rows, SHARED_MEMORY * cache_bytes, self)
        return caching, caching.numbers

    def product(
        self, kernel: Kernel, a: Any, b: Any, coef: np.ndarray | Coefficients
    ) -> np.ndarray:
        coef = Coefficients.of(coef)
        if _are_added(kernel, b, coef):
            return self._added(kernel, a, b, coef.values)
        return self._product(kernel, a, b, coef)

    def bounded_product(
        self, kernel: Kernel, a: Any, b: Any, coef: Coefficients
    ) -> tuple[np.ndarray, np.ndarray]:
        total, reach = np.zeros(coef.n_outputs), coef.reach
        for vectors, outputs, _ in coef.runs():
            total[outputs] += reach[vectors].sum()
        if _are_added(kernel, b, coef):
            n_summed, columns = _core.PANEL, np.column_stack([coef.values, reach])
            sums = self._added(kernel, a, b, columns)
            product, sizes = sums[:, :-1], sums[:, -1:]
        else:
            n_summed, sizes = 1 if _are_few(coef) else TILE_ROWS + 2, np.zeros((len(total), len(a)))
            product, sizes = self._product(kernel, a, b, coef, sizes), sizes.T
        relative, absolute = rounding(kernel, a, b, n_summed)
        with np.errstate(all="ignore"):  # with an infinite bound no value is certain
            error = relative[:, None] * sizes + absolute[:, None] * total
        return product, np.where(np.isfinite(product), error, np.inf)

    def _added(self, kernel: Any, a: Any, b: Any, columns: np.ndarray) -> np.ndarray:
        """Return k(a, b) @ columns for compressed rows, without storing kernel values."""
        sums = np.zeros((columns.shape[1], len(a)))
        for start in range(0, len(b), TILE_ROWS):
            left = kernel.as_left(b[start : start + TILE_ROWS])
            weights = left.weights(columns[start : start + TILE_ROWS])
            for begin in range(0, len(a), AT_ONCE):
                end = min(begin + AT_ONCE, len(a))
                left.add(a[begin:end], weights, sums[:, begin:end], kernel.finish, self.team)
        return sums.T

    def _product(
        self, kernel: Kernel, a: Any, b: Any, coef: Coefficients, sizes: np.ndarray | None = None
    ) -> np.ndarray:
        """Compute the product a tile at a time, summed in double precision.

        For pairs of classes, vectors of a class are multiplied by their coefficients only.  Kernel
        values times the largest coefficient of each vector are added to ``sizes``.
        """
        sums, few = np.zeros((coef.n_outputs, len(a))), _are_few(coef)
        for start in range(0, len(b), TILE_ROWS):
            left = kernel.as_left(b[start : start + TILE_ROWS])
            runs = _laid_out(coef[start : start + TILE_ROWS], np.float64 if few else kernel.dtype)

            def tile(begin, end, left=left, runs=runs):
                block = np.empty((len(left), end - begin), dtype=kernel.dtype)
                kernel.fill(left, a[begin:end], block)
                one = np.ones(end - begin)
                for vectors, outputs, own, reach in runs:
                    if few:
                        for output, column in zip(outputs, own, strict=True):
                            total = sums[output, begin:end]
                            _core.add_rows(block, vectors, column, one, 0, len(one), total)
                    else:  # products in the kernel's precision
                        with np.errstate(all="ignore"):  # the model names the row
                            sums[outputs, begin:end] += own @ block[vectors[0] : vectors[-1] + 1]
                    if sizes is not None:
                        total = np.zeros(end - begin)
                        _core.add_rows(block, vectors, reach, one, 0, len(one), total)
                        sizes[outputs, begin:end] += total

            self.tiles(len(a), tile, kernel.tile)
        return sums.T

    def nearest(
        self, router: Any, rows: Any, known: Nearest | None = None, n_old: int = 0
    ) -> Nearest:
        return nearest(router, rows, self, known, n_old)

    def active_set(
        self,
        problem: Problem,
        ids: np.ndarray,
        alpha: np.ndarray,
        cache_bytes: float,
        offset: float = 0.0,
    ) -> HostActiveSet:
        rows = problem.rows if len(ids) == len(problem) else problem.rows[ids]
        cache = RowCache(problem.kernel, rows, len(problem), cache_bytes, self, self.memory)
        active = HostActiveSet(problem, ids, alpha, cache, offset)
        support = np.flatnonzero(active.alpha)
        if cache.keeps(len(support)):
            if len(support):
                active.start_from_rows(support)
        else:
            coef = (active.alpha * active.sign)[support, None]
            inner = self.product(problem.kernel, rows, rows[support], coef)[:, 0]
            active.gradient += active.sign * inner
        return active


def _are_few(coef: Coefficients) -> bool:
    return coef.values.shape[1] <= _FEW


def _are_added(kernel: Kernel, b: Any, coef: Coefficients) -> bool:
    """Whether the core adds up kernel values of rows b while computing them."""
    plain = isinstance(kernel, DotKernel) and kernel.compressed and not kernel.is_far(b)
    return plain and coef.owner is None and _are_few(coef)


def _laid_out(coef: Coefficients, dtype) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, Any]]:
    """Return the runs with each output's coefficients contiguous: the same bits for any layout."""
    numbers, every, reach = np.arange(len(coef)), np.arange(coef.n_outputs), coef.reach
    return [
        (numbers[vectors], every[outputs], np.ascontiguousarray(own.T, dtype), reach[vectors])
        for vectors, outputs, own in coef.runs()
    ]


def _elsewhere(n_threads: int) -> Host:
    """Return the backend in a worker's process."""
    return Host(n_threads, COMMON)
