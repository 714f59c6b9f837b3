"""Columns of a block taken in turn by a few threads, and the buffers that problems hand on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np

from widemargin import _core
from widemargin.errors import warn_user
from widemargin.kernel.kernels import TILE
from widemargin.resources import one_blas_thread

IDLE = 5.0  # seconds after which a worker without tasks gives its buffers back
LINE = 64  # bytes of a cache line
RESERVE = 64 << 20  # bytes that a cache leaves free: blocks of kernel values, variables, copies


class Tiles:
    """Tiles of columns, taken in turn by a few threads; sums do not depend on who takes which.

    The calling thread works too, so that Ctrl-C ends it between two tiles.  The threads live, and
    BLAS keeps to one of its own, as long as anybody is inside (``with tiles:``).
    """

    def __init__(self, n_threads: int = 1):
        self.n_threads = n_threads
        self._inside: list = []  # a hold on BLAS for everybody who is
        self._pool: ThreadPoolExecutor | None = None
        self.team: _core.Team | None = None  # threads of the core, which take tiles without Python

    def __enter__(self) -> Self:
        self._inside.append(one_blas_thread())
        if len(self._inside) == 1 and self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads - 1)
            self.team = _core.Team(self.n_threads)
        return self

    def __exit__(self, *exception) -> None:
        with self._inside.pop():
            if not self._inside and self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = self.team = None

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


class Memory:
    """Buffers that one problem leaves to the next.

    Memory is slow the first time it is touched (page by page, from the system) and fast after
    that, so a level's clusters take turns with as many buffers as there are threads.
    """

    # Without a lock, which an interrupt could leave behind: a dict's own operations are atomic.
    def __init__(self) -> None:
        self._free: dict[int, np.ndarray] = {}  # by id
        self._granted: float = np.inf  # bytes of the last buffer that the system has cut down

    def take(self, size: int, least: int, dtype) -> np.ndarray:
        """``size`` values, from a buffer that is free if one is large enough.

        What the system has refused once is not asked for again, so that the next problem makes do
        with the buffer of the last; one that is too small is let go, to make room for a larger.
        """
        size = int(max(min(size, self._granted // np.dtype(dtype).itemsize), least))
        for key, buffer in list(self._free.items()):
            fits = buffer.dtype == dtype and len(buffer) >= size
            if fits and self._free.pop(key, None) is not None:  # no other thread was faster
                return buffer[:size]
        self._free.clear()
        buffer = allocate(size, least, dtype)
        if len(buffer) < size:
            self._granted = buffer.nbytes
        return buffer

    def give(self, buffer: np.ndarray) -> None:
        whole = buffer if buffer.base is None else buffer.base
        self._free[id(whole)] = _aligned(whole)


def _aligned(buffer: np.ndarray) -> np.ndarray:
    """All but a line of the buffer, from where a line begins: then vectors never touch two."""
    begin = -buffer.__array_interface__["data"][0] % LINE // buffer.itemsize
    return buffer[begin:][: len(buffer) - LINE // buffer.itemsize]


class CommonMemory(Memory):
    """That of all tasks that come to this process from elsewhere, while they come."""

    def __init__(self) -> None:
        super().__init__()
        self._end = threading.Timer(IDLE, self._forget)

    def give(self, buffer: np.ndarray) -> None:
        super().give(buffer)
        self._end.cancel()
        self._end = threading.Timer(IDLE, self._forget)
        self._end.daemon = True
        self._end.start()

    def _forget(self) -> None:
        self._free.clear()
        self._granted = np.inf


COMMON = CommonMemory()


def allocate(size: int, least: int, dtype) -> np.ndarray:
    """A buffer of ``size`` values, or of as many as leave some memory for the rest of the fit."""
    granted = size
    while granted > least and not _leaves_some(granted, dtype):
        granted = max(granted // 2, least)
    buffer = _aligned(np.empty(granted + LINE // np.dtype(dtype).itemsize, dtype=dtype))
    if granted < size:
        mega = np.dtype(dtype).itemsize / 1e6
        warn_user(
            f"A cache of {size * mega:.0f} MB for kernel rows could not be allocated; using "
            f"{granted * mega:.0f} MB. Set cache_size to ask for less."
        )
    return buffer


def _leaves_some(size: int, dtype) -> bool:
    """Whether the system would grant as much again, or `RESERVE`."""
    try:
        np.empty(size + min(size, RESERVE // np.dtype(dtype).itemsize), dtype=dtype)
    except MemoryError:
        return False
    return True
