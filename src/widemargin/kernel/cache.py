"""Caches of kernel rows: those of a problem's active set, and those that problems share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin import _core
from widemargin.kernel.kernels import DotKernel, Kernel
from widemargin.kernel.rows import Finish, Panels, Rows
from widemargin.kernel.tiles import Memory, Tiles, allocate
from widemargin.kernel.wrapped import WrappedKernel

TILE_ROWS = 512  # with kernels.TILE columns a float32 block fits in the second-level cache
ALIGNED = 16  # values of float32 in a cache line
AT_ONCE = 1 << 15  # columns that the core fills in one call
LEAST_SLOTS = 128  # least rows in the cache, whatever its memory limit
CACHE_SHARES = 4  # tasks that the cache serves at once, however large they are
SHARED_MEMORY = 0.5  # of the cache for rows that several problems share
SHARED_FROM = 4.0  # kernel cost from which caching a row pays
CHEAP = 10.0  # kernel cost up to which fresh memory takes longer than computing a row again
FIRST_SLOTS = 1024  # of a cheap kernel, until evicted rows come back


class RowCache:
    """Kernel rows of the active variables over the active variables.

    Rows and columns have the same local indices.  All rows are in one flat buffer, of which only
    the used part is touched: slot s begins at ``s * stride``.  ``_row_in[s]`` is the row in slot s
    (-1: none), ``_slot_of[i]`` the slot of row i (-1: none).  When the active set shrinks, rows are
    compacted in place.  The least recently used rows make room for new ones, unless all fit.  With
    a cheap kernel, the cache grows only by as many rows as were computed again after they had been
    evicted, because touching new memory takes longer than computing such a row.
    """

    def __init__(
        self, kernel: Kernel, rows: Any, most: int, max_bytes: float, tiles: Tiles, memory: Memory
    ):
        self.kernel, self.rows, self.tiles = kernel, rows, tiles
        self.n_computed = 0
        self._most = most  # most variables that the problem can have
        self._clock = self._n_used = 0
        self._stride = self._roomy(len(rows))
        longest = self._roomy(most)
        least = longest * min(LEAST_SLOTS, most)
        wanted = min(int(max_bytes // np.dtype(kernel.dtype).itemsize), most * longest)
        self._memory = memory
        self._buffer = memory.take(max(wanted, least), least, kernel.dtype)
        self._limit = FIRST_SLOTS if kernel.cost <= CHEAP else most  # slots in use, for now
        self._seen = np.zeros(len(rows), dtype=bool)  # rows that were computed before
        self._take_over(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), len(rows))

    def _roomy(self, n: int) -> int:
        """Return a stride with room for a few more columns; rows begin at cache lines."""
        return -(-min(n + n // 8, self._most) // ALIGNED) * ALIGNED

    def close(self) -> None:
        """Release the memory for the next problem."""
        self._memory.give(self._buffer)

    @property
    def pool(self) -> np.ndarray:
        """The slots, one row each; its first ``len(self.rows)`` values are valid."""
        n = len(self._row_in)
        return self._buffer[: n * self._stride].reshape(n, self._stride)

    @property
    def n_slots(self) -> int:
        """Number of rows that fit at once."""
        return len(self._row_in)

    def keeps(self, n: int) -> bool:
        """Whether so many rows would be kept now."""
        return n <= min(self._limit, self.n_slots)

    def slots(self, wanted: np.ndarray) -> np.ndarray:
        """Return the slots of the given rows; compute missing rows together."""
        self._clock += 1
        held = self._slot_of[wanted]
        # Marked as used first, so that making room for missing rows does not evict them.
        self._last_use[held[held >= 0]] = self._clock
        missing = wanted[held < 0]
        if len(missing):
            returned = int(np.count_nonzero(self._seen[missing]))
            self._limit = max(self._limit + returned, len(wanted))
            slots = self._make_room(len(missing))
            evicted = self._row_in[slots]
            self._slot_of[evicted[evicted >= 0]] = -1
            self._compute(missing, slots)
            self._row_in[slots], self._slot_of[missing] = missing, slots
            self._last_use[slots] = self._clock
            self._seen[missing] = True
        return self._slot_of[wanted]

    def _make_room(self, n: int) -> np.ndarray:
        """Return contiguous free slots while there are any, then the least recently used."""
        limit = min(self._limit, self.n_slots)
        if self._n_used + n <= limit:
            self._n_used += n
            return np.arange(self._n_used - n, self._n_used)
        # From now on these slots count as used: free ones have last use 0 and go first.
        self._n_used = max(limit, self._n_used)
        return np.sort(np.argpartition(self._last_use[: self._n_used], n - 1)[:n])

    def _compute(self, missing: np.ndarray, slots: np.ndarray) -> None:
        """Compute directly into the buffer, by the core or if the slots are contiguous."""
        self.n_computed += len(missing)
        pool, kernel = self.pool, self.kernel
        for part in np.array_split(np.arange(len(missing)), -(-len(missing) // TILE_ROWS)):
            left, target = kernel.as_left(self.rows[missing[part]]), slots[part]
            if isinstance(kernel, DotKernel) and isinstance(left, Panels):
                self._fill(left, kernel.finish, target)
                continue
            neighbours = target[-1] - target[0] == len(target) - 1

            def tile(begin, end, left=left, target=target, neighbours=neighbours):
                columns = self.rows[begin:end]
                if neighbours:
                    kernel.fill(left, columns, pool[target[0] : target[-1] + 1, begin:end])
                    return
                block = np.empty((len(target), end - begin), dtype=kernel.dtype)
                kernel.fill(left, columns, block)
                pool[target, begin:end] = block

            self.tiles.tiles(len(self.rows), tile, kernel.tile)

    def _fill(self, left: Panels, finish: Finish, slots: np.ndarray) -> None:
        """Write kernel rows to their slots, in blocks of columns that Ctrl-C can interrupt."""
        pool, n = self.pool, len(self.rows)
        for begin in range(0, n, AT_ONCE):
            end = min(begin + AT_ONCE, n)
            left.fill(self.rows[begin:end], pool[:, begin:end], finish, slots, self.tiles.team)

    def add(self, slots: np.ndarray, coef: np.ndarray, active: _core.WorkingSet) -> None:
        """gradient += sign * sum_k coef_k row_k, over the active variables."""
        active.add_rows(self.pool, slots, coef, self.tiles.team)

    def shrink(self, keep: np.ndarray) -> None:
        """Keep some variables (ascending indices), renumbered from 0."""
        kept = np.zeros(len(self.rows), dtype=bool)
        kept[keep] = True
        slots = np.flatnonzero((self._row_in >= 0) & kept[np.maximum(self._row_in, 0)])
        # Shorter rows move towards the front, so each is read before it is overwritten.
        stride = min(self._roomy(len(keep)), self._stride)
        _core.compact_rows(self._buffer, slots, keep, self._stride, stride)
        self._stride = stride
        numbers = (np.cumsum(kept) - 1)[self._row_in[slots]]
        self._take_over(numbers, self._last_use[slots], len(keep))
        self.rows, self._seen = self.rows[keep], self._seen[keep]

    def extend(self, all_rows: Any, new: Any) -> None:
        """Append variables: ``all_rows`` are the current rows followed by the ``new`` ones."""
        old, stride = len(self.rows), self._stride
        if len(all_rows) > stride:
            stride = self._roomy(len(all_rows))
        # Fewer of the longer rows fit: the most recently used stay, in the order of their slots.
        recent = np.argsort(-self._last_use, kind="stable")
        used = np.sort(recent[self._row_in[recent] >= 0][: len(self._buffer) // stride])
        if (used.size and used[-1] >= len(used)) or stride > self._stride:
            # Close the gaps at the old length, then spread out from the last row backwards.
            _core.compact_rows(self._buffer, used, np.arange(old), self._stride, self._stride)
            _core.widen_rows(self._buffer, len(used), self._stride, stride)
            self._stride = stride
        self._take_over(self._row_in[used], self._last_use[used], len(all_rows))
        self._compute_columns(new, old, len(used))
        self.rows = all_rows
        self._seen = np.concatenate([self._seen, np.zeros(len(new), dtype=bool)])

    def _compute_columns(self, new: Any, first: int, n_used: int) -> None:
        """Compute the rows in the first slots at new columns, from index ``first`` on."""
        pool = self.pool
        for start in range(0, n_used, TILE_ROWS):
            slots = slice(start, min(start + TILE_ROWS, n_used))
            left = self.kernel.as_left(self.rows[self._row_in[slots]])

            def tile(begin, end, left=left, slots=slots):
                self.kernel.fill(left, new[begin:end], pool[slots, first + begin : first + end])

            self.tiles.tiles(len(new), tile, self.kernel.tile)

    def _take_over(self, numbers: np.ndarray, last_use: np.ndarray, n: int) -> None:
        """Record that the first slots hold these rows, out of n; the others are free."""
        n_slots = min(len(self._buffer) // self._stride, n)
        self._row_in = np.full(n_slots, -1)
        self._row_in[: len(numbers)] = numbers
        self._last_use = np.zeros(n_slots, dtype=np.int64)
        self._last_use[: len(numbers)] = last_use
        self._slot_of = np.full(n, -1)
        self._slot_of[numbers] = np.arange(len(numbers))
        self._n_used = len(numbers)


@dataclass(frozen=True)
class RowNumbers:
    """Rows given by their indices only."""

    number: np.ndarray

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, which) -> RowNumbers:
        return RowNumbers(self.number[which])


@dataclass(frozen=True)
class StoredBlock:
    """Rows with slots in a shared cache, or else prepared for their kernel."""

    slots: np.ndarray | None
    left: Any
    n: int

    def __len__(self) -> int:
        return self.n


class CachingKernel(WrappedKernel):
    """A kernel on given rows that keeps whole kernel rows for the next problem on the same data.

    Binary problems of one fit, and fits for several C, differ only in labels and bounds.
    """

    def __init__(self, kernel: Kernel, rows: Any, max_bytes: float, tiles: Tiles):
        self.kernel, self._rows, self._tiles = kernel, rows, tiles
        n = len(rows)
        n_slots = int(min(max_bytes // (np.dtype(self.dtype).itemsize * max(n, 1)), n))
        buffer = allocate(n_slots * n, 0, self.dtype)
        n_slots = len(buffer) // max(n, 1)
        self._pool = buffer[: n_slots * n].reshape(n_slots, n)
        self._slot_of = np.full(n, -1)
        self._n_used = 0

    @property
    def numbers(self) -> RowNumbers:
        """All rows."""
        return RowNumbers(np.arange(len(self._rows)))

    def as_left(self, a: RowNumbers) -> StoredBlock:
        missing = a.number[self._slot_of[a.number] < 0]
        if self._n_used + len(missing) > len(self._pool):
            return StoredBlock(None, self.kernel.as_left(self._rows[a.number]), len(a))
        if len(missing):
            self._store(missing)
        return StoredBlock(self._slot_of[a.number], None, len(a))

    def _store(self, missing: np.ndarray) -> None:
        first, self._n_used = self._n_used, self._n_used + len(missing)
        new, left = self._pool[first : self._n_used], self.kernel.as_left(self._rows[missing])

        def tile(begin, end):
            self.kernel.fill(left, self._rows[begin:end], new[:, begin:end])

        with self._tiles:
            self._tiles.tiles(len(self._rows), tile, self.tile)
        self._slot_of[missing] = np.arange(first, self._n_used)

    def in_core(self, a: RowNumbers) -> None:
        return None

    def fill(self, a: StoredBlock, b: RowNumbers, out: np.ndarray) -> None:
        if a.slots is None:
            self.kernel.fill(a.left, self._rows[b.number], out)
        else:
            _core.gather(self._pool, a.slots, b.number, out)

    def diagonal(self, a: RowNumbers) -> np.ndarray:
        return self.kernel.diagonal(self._rows[a.number])

    def vectors(self, a: RowNumbers, support: np.ndarray) -> Rows:
        return self.kernel.vectors(self._rows, a.number[support])


def tasks_at_once(n_threads: int, needed: Sequence[float], cache_bytes: float) -> int:
    """Return how many tasks may run at once, given the cache bytes of each in descending order."""
    fit = int(np.searchsorted(np.cumsum(needed), cache_bytes, side="right"))
    return max(1, min(n_threads, fit))


def cache_left(kernel: Kernel, cache_bytes: float) -> float:
    """Return the bytes of the cache that shared rows leave to each problem."""
    return (1 - SHARED_MEMORY) * cache_bytes if isinstance(kernel, CachingKernel) else cache_bytes
