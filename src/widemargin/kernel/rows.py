"""Kernel rows: blocked products that never form the matrix, and the cache of the active rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin import _core
from widemargin.kernel.kernels import TILE, Kernel, Rows, WrappedKernel
from widemargin.resources import one_blas_thread
from widemargin.warning import warn_user

TILE_ROWS = 512  # with kernels.TILE columns a block of float32 stays in the second-level cache
LEAST_SLOTS = 128  # rows that the cache holds however little memory it may use
SHARED_MEMORY = 0.5  # of the cache for rows that several problems share
SHARED_FROM = 4.0  # kernel cost from which a row is better kept than computed again
_FEW = 4


class Threads:
    """Tiles of columns, taken in turn by a few threads; sums do not depend on who takes which.

    The calling thread works too, so that Ctrl-C ends it between two tiles.
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None

    def __enter__(self) -> Threads:
        one_blas_thread.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        one_blas_thread.__exit__(*exception)

    def tiles(self, n: int, task: Callable[[int, int], None], size: int = TILE) -> None:
        """``task(begin, end)`` for every tile of ``size`` columns of n."""
        starts = iter(range(0, n, size))

        def work() -> None:
            for begin in starts:
                task(begin, min(begin + size, n))

        if self._pool is None or n <= size:
            work()
            return
        others = [self._pool.submit(work) for _ in range(self.n_threads - 1)]
        try:
            work()
        except BaseException:
            for _ in starts:  # nothing is left for the others
                pass
            raise
        finally:
            for other in others:
                other.result()


def kernel_product(kernel: Kernel, a: Rows, b: Rows, coef: np.ndarray, threads: Threads):
    """k(a, b) @ coef, of shape (len(a), n_outputs), a tile at a time and summed in double."""
    sums = np.zeros((coef.shape[1], len(a)))
    for start in range(0, len(b), TILE_ROWS):
        rows = kernel.left(b[start : start + TILE_ROWS])
        part = np.asarray(coef[start : start + TILE_ROWS])
        slots = np.arange(len(rows))

        def tile(begin, end, rows=rows, part=part, slots=slots):
            block = np.empty((len(rows), end - begin), dtype=kernel.dtype)
            kernel.fill(rows, a[begin:end], block)
            if coef.shape[1] > _FEW:  # many outputs: a product in the kernel's precision
                sums[:, begin:end] += part.astype(kernel.dtype).T @ block
                return
            one = np.ones(end - begin)
            for k, total in enumerate(sums):
                column = np.ascontiguousarray(part[:, k])
                _core.add_rows(block, slots, column, one, 0, len(one), total[begin:end])

        threads.tiles(len(a), tile, kernel.tile)
    return sums.T


class RowCache:
    """Kernel rows of the active variables over the active variables.

    Rows and columns carry the same local numbers.  All rows lie in one buffer, which is touched
    only as far as it is used; when the active set shrinks they are compacted in place.  The rows
    unused for longest make room for new ones; if the whole matrix fits, none ever has to.
    """

    def __init__(
        self, kernel: Kernel, rows: Rows, most: int, max_bytes: float, threads: Threads, memory
    ):
        self.kernel, self.rows, self.threads = kernel, rows, threads
        self.n_computed = 0
        self._most = most  # variables there can ever be
        self._clock = self._n_used = 0
        self._stride = self._roomy(len(rows))
        least = most * min(LEAST_SLOTS, most)
        wanted = min(int(max_bytes // np.dtype(kernel.dtype).itemsize), most**2)
        self._memory = memory
        self._buffer = memory.take(max(wanted, least), least, kernel.dtype)
        self._take_over(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), len(rows))

    def _roomy(self, n: int) -> int:
        """A stride that leaves room for a few more columns."""
        return min(n + n // 8, self._most)

    def close(self) -> None:
        """Hand the memory back for the next problem."""
        self._memory.give(self._buffer)

    @property
    def pool(self) -> np.ndarray:
        """The slots: a row each, of which the first ``len(self.rows)`` values count."""
        n = len(self._row_in)
        return self._buffer[: n * self._stride].reshape(n, self._stride)

    def slots(self, wanted: np.ndarray) -> np.ndarray:
        """Slots of the wanted rows, computed together where they are missing."""
        self._clock += 1
        held = self._slot_of[wanted]
        self._last_use[held[held >= 0]] = self._clock
        missing = wanted[held < 0]
        if len(missing):
            slots = self._make_room(len(missing))
            evicted = self._row_in[slots]
            self._slot_of[evicted[evicted >= 0]] = -1
            self._compute(missing, slots)
            self._row_in[slots], self._slot_of[missing] = missing, slots
            self._last_use[slots] = self._clock
        return self._slot_of[wanted]

    def _make_room(self, n: int) -> np.ndarray:
        """Neighbouring free slots while there are any, then those unused for longest."""
        if self._n_used + n <= len(self._row_in):
            self._n_used += n
            return np.arange(self._n_used - n, self._n_used)
        self._n_used = len(self._row_in)
        return np.sort(np.argpartition(self._last_use, n - 1)[:n])

    def _compute(self, missing: np.ndarray, slots: np.ndarray) -> None:
        """Straight into the buffer where the slots are neighbours."""
        self.n_computed += len(missing)
        pool = self.pool
        for part in np.array_split(np.arange(len(missing)), -(-len(missing) // TILE_ROWS)):
            left = self.kernel.left(self.rows[missing[part]])
            at = slots[part]
            neighbours = at[-1] - at[0] == len(at) - 1

            def tile(begin, end, left=left, at=at, neighbours=neighbours):
                columns = self.rows[begin:end]
                if neighbours:
                    self.kernel.fill(left, columns, pool[at[0] : at[-1] + 1, begin:end])
                    return
                block = np.empty((len(at), end - begin), dtype=self.kernel.dtype)
                self.kernel.fill(left, columns, block)
                pool[at, begin:end] = block

            self.threads.tiles(len(self.rows), tile, self.kernel.tile)

    def add(self, slots: np.ndarray, coef: np.ndarray, sign: np.ndarray, out: np.ndarray) -> None:
        """out += sign * sum_k coef_k row_k, over the active columns."""
        pool = self.pool

        def tile(begin, end):
            _core.add_rows(pool, slots, coef, sign, begin, end, out)

        self.threads.tiles(len(out), tile, self._part(len(out), TILE))

    def _part(self, n: int, multiple: int) -> int:
        """Columns or rows for one thread: what is done at once is done without Python."""
        return -(-n // (self.threads.n_threads * multiple)) * multiple

    def block(self, slots, numbers: np.ndarray, sign: np.ndarray, out: np.ndarray) -> None:
        """Write sign_i sign_j k_ij of some variables, which have these slots, to ``out``."""
        pool = self.pool

        def tile(begin, end):
            at = slice(begin, end)
            _core.gather(pool, slots[at], numbers, sign[at], sign, out[at])

        self.threads.tiles(len(slots), tile, self._part(len(slots), 1))

    def shrink(self, keep: np.ndarray) -> None:
        """Keep some variables (their numbers, ascending), renumbered from 0."""
        kept = np.zeros(len(self.rows), dtype=bool)
        kept[keep] = True
        slots = np.flatnonzero((self._row_in >= 0) & kept[np.maximum(self._row_in, 0)])
        stride = min(self._roomy(len(keep)), self._stride)
        _core.compact_rows(self._buffer, slots, keep, self._stride, stride)
        self._stride = stride
        numbers = (np.cumsum(kept) - 1)[self._row_in[slots]]
        self._take_over(numbers, self._last_use[slots], len(keep))
        self.rows = self.rows[keep]

    def extend(self, all_rows: Rows, new: Rows) -> None:
        """Append variables: ``all_rows`` are the rows held so far and then the ``new`` ones."""
        old, stride = len(self.rows), self._stride
        if len(all_rows) > stride:
            stride = self._roomy(len(all_rows))
        recent = np.argsort(-self._last_use, kind="stable")
        used = np.sort(recent[self._row_in[recent] >= 0][: len(self._buffer) // stride])
        if (used.size and used[-1] >= len(used)) or stride > self._stride:
            _core.compact_rows(self._buffer, used, np.arange(old), self._stride, self._stride)
            _core.widen_rows(self._buffer, len(used), self._stride, stride)
            self._stride = stride
        self._take_over(self._row_in[used], self._last_use[used], len(all_rows))
        pool = self.pool
        for start in range(0, len(used), TILE_ROWS):
            at = slice(start, min(start + TILE_ROWS, len(used)))
            left = self.kernel.left(self.rows[self._row_in[at]])

            def tile(begin, end, left=left, at=at):
                self.kernel.fill(left, new[begin:end], pool[at, old + begin : old + end])

            self.threads.tiles(len(new), tile, self.kernel.tile)
        self.rows = all_rows

    def _take_over(self, numbers: np.ndarray, last_use: np.ndarray, n: int) -> None:
        """The first slots hold the rows of these numbers, out of n; the rest are free."""
        n_slots = min(len(self._buffer) // self._stride, n)
        self._row_in = np.full(n_slots, -1)
        self._row_in[: len(numbers)] = numbers
        self._last_use = np.zeros(n_slots, dtype=np.int64)
        self._last_use[: len(numbers)] = last_use
        self._slot_of = np.full(n, -1)
        self._slot_of[numbers] = np.arange(len(numbers))
        self._n_used = len(numbers)

    @property
    def n_slots(self) -> int:
        """How many rows fit at once."""
        return len(self._row_in)


class Memory:
    """Buffers that one problem leaves to the next.

    Memory is slow the first time it is touched (page by page, from the system) and fast after
    that, so a level's clusters take turns with as many buffers as there are threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[np.ndarray] = []

    def take(self, size: int, least: int, dtype) -> np.ndarray:
        """``size`` values, from a buffer that is free if one is large enough."""
        with self._lock:
            for k, buffer in enumerate(self._free):
                if buffer.dtype == dtype and len(buffer) >= size:
                    return self._free.pop(k)[:size]
        return _allocate(size, least, dtype)

    def give(self, buffer: np.ndarray) -> None:
        with self._lock:
            self._free.append(buffer if buffer.base is None else buffer.base)


@dataclass(frozen=True)
class Numbered:
    """Rows named by their numbers only."""

    at: np.ndarray

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows) -> Numbered:
        return Numbered(self.at[rows])


@dataclass(frozen=True)
class Held:
    """Rows that have slots in the shared store, or else are prepared for their kernel."""

    slots: np.ndarray | None
    left: Any
    n: int

    def __len__(self) -> int:
        return self.n


class SharedRows(WrappedKernel):
    """A kernel on given rows that keeps whole kernel rows for the next problem on the same data.

    Binary problems of one fit, and fits for several C, differ in their labels and bounds only.
    """

    def __init__(self, kernel: Kernel, rows: Rows, max_bytes: float, n_threads: int = 1):
        self.kernel, self._rows, self._n_threads = kernel, rows, n_threads
        n = len(rows)
        n_slots = int(min(max_bytes // (np.dtype(self.dtype).itemsize * max(n, 1)), n))
        buffer = _allocate(n_slots * n, 0, self.dtype)
        n_slots = len(buffer) // max(n, 1)
        self._pool = buffer[: n_slots * n].reshape(n_slots, n)
        self._slot_of = np.full(n, -1)
        self._n_used = 0

    def operand(self, X, *, training: bool = True) -> Numbered:
        return Numbered(np.arange(len(self._rows)))

    def left(self, a: Numbered) -> Held:
        missing = a.at[self._slot_of[a.at] < 0]
        if self._n_used + len(missing) > len(self._pool):
            return Held(None, self.kernel.left(self._rows[a.at]), len(a))
        if len(missing):
            first, self._n_used = self._n_used, self._n_used + len(missing)
            new, left = self._pool[first : self._n_used], self.kernel.left(self._rows[missing])

            def tile(begin, end):
                self.kernel.fill(left, self._rows[begin:end], new[:, begin:end])

            with Threads(self._n_threads) as threads:
                threads.tiles(len(self._rows), tile, self.tile)
            self._slot_of[missing] = np.arange(first, self._n_used)
        return Held(self._slot_of[a.at], None, len(a))

    def fill(self, a: Held, b: Numbered, out: np.ndarray) -> None:
        if a.slots is None:
            self.kernel.fill(a.left, self._rows[b.at], out)
        else:
            one, many = np.ones(len(a)), np.ones(len(b))
            _core.gather(self._pool, a.slots, b.at, one, many, out)

    def diagonal(self, a: Numbered) -> np.ndarray:
        return self.kernel.diagonal(self._rows[a.at])

    def vectors(self, a: Numbered, support: np.ndarray) -> Rows:
        return self.kernel.vectors(self._rows, a.at[support])


def share_rows(kernel: Kernel, rows: Rows, cache_bytes: float, n_threads: int):
    """A kernel and rows for several problems: kernel rows are kept where they are dear."""
    if kernel.cost <= SHARED_FROM or isinstance(kernel, SharedRows):
        return kernel, rows
    shared = SharedRows(kernel, rows, SHARED_MEMORY * cache_bytes, n_threads)
    return shared, shared.operand(None)


def _allocate(size: int, least: int, dtype) -> np.ndarray:
    """A buffer of ``size`` values, or of as many as the system grants."""
    wanted = size
    while True:
        try:
            buffer = np.empty(size, dtype=dtype)
        except MemoryError:
            if size <= least:
                raise
            size = max(size // 2, least)
            continue
        if size < wanted:
            mega = np.dtype(dtype).itemsize / 1e6
            warn_user(
                f"A cache of {wanted * mega:.0f} MB for kernel rows could not be allocated; using "
                f"{size * mega:.0f} MB. Set cache_size to ask for less."
            )
        return buffer
