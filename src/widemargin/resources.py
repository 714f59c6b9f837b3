"""Resources of the process: memory, and threads of other libraries."""

from __future__ import annotations

import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Any, Self

from threadpoolctl import ThreadpoolController

LEAST_MEMORY = 1 << 28  # bytes that every machine is assumed to have


def free_memory() -> float:
    """Return the bytes that this process can still use: available memory, or its limit."""
    return _least(_meminfo("MemAvailable"), _container(less_used=True), _address_space())


def total_memory() -> float:
    """Return the machine's memory in bytes, or a container's limit; independent of load."""
    return _least(_meminfo("MemTotal"), _container(less_used=False))


def used_memory() -> float:
    """Return the resident bytes of this process; 0 if the system does not report them."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * resource.getpagesize())
    except (ImportError, OSError, ValueError, IndexError):
        return 0.0


def _least(*known: list[int]) -> float:
    limits = [n for numbers in known for n in numbers]
    return float(max(min(limits, default=4 << 30), LEAST_MEMORY))


def _meminfo(name: str) -> list[int]:
    """Return a line of /proc/meminfo in bytes, if there is one."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return [1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]
    except (OSError, ValueError, IndexError):
        return []


def _container(*, less_used: bool) -> list[int]:
    """Return a container's limit, perhaps minus its use, if there is one."""
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        return [limit - (int((group / "memory.current").read_text()) if less_used else 0)]
    except (OSError, ValueError):
        return []


def _address_space() -> list[int]:
    """Return what `ulimit -v` leaves, if it is set."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return [] if limit == resource.RLIM_INFINITY else [limit - pages * resource.getpagesize()]
    except (ImportError, OSError, ValueError, IndexError):  # not Linux
        return []


_PATIENCE = 1.0  # seconds to wait for a lock that is held for under a millisecond


@cache
def _libraries(user_api: str) -> list:
    return ThreadpoolController().select(user_api=user_api).lib_controllers


def _set_threads(library: Any, n: int) -> None:
    """Set the number of threads, from any thread; callers hold a lock.

    threadpoolctl obeys only the first thread that sets OpenBLAS, so a limit set in one thread
    could not be lifted in another."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


class _Limit:
    """Limits a kind of library to one thread while it has holders; then restores the number."""

    def __init__(self, user_api: str):
        self._user_api = user_api
        # Garbage collection may release a holder in the thread that holds the lock.
        self._lock = threading.RLock()
        self._holders: set[int] = set()
        self._before: list[tuple[Any, int]] = []

    def set_holder(self, number: int, *, holds: bool) -> None:
        """Set the number of holders; after an interrupt the next call completes the change."""
        lock = self._lock
        if not lock.acquire(timeout=_PATIENCE):  # an interrupt kept the owner from releasing it
            self._lock = lock = threading.RLock()
            lock.acquire()
        try:
            (self._holders.add if holds else self._holders.discard)(number)
            if self._holders and not self._before:
                # Saved before any change, so that it can always be restored.
                libraries = _libraries(self._user_api)
                self._before = [(library, library.get_num_threads()) for library in libraries]
                for library, _ in self._before:
                    _set_threads(library, 1)
            elif not self._holders and self._before:
                for library, n_threads in self._before:
                    _set_threads(library, n_threads)
                self._before = []
        finally:
            lock.release()


class _Held:
    """A limit until the end of a ``with`` block.

    An interrupt may skip the end (it may come before the block begins, or on the way out); then the
    limit ends when this object is collected.  After a block that ended as it should, no Python code
    runs at that time: an interrupt in such code would be printed and forgotten.
    """

    def __init__(self, limit: _Limit):
        self._limit = limit
        self._forgotten = weakref.finalize(self, limit.set_holder, id(self), holds=False)
        self._forgotten.atexit = False
        limit.set_holder(id(self), holds=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self._limit.set_holder(id(self), holds=False)
        self._forgotten.detach()


_BLAS, _OPENMP = _Limit("blas"), _Limit("openmp")


def one_openmp_thread() -> _Held:
    """Return a context that limits OpenMP (scikit-learn's k-means) to one thread."""
    return _Held(_OPENMP)


def one_blas_thread() -> _Held:
    """Return a context that limits BLAS to one thread; several threads may enter it.

    For matrices of a few hundred rows a second thread saves nothing, and on a busy machine its
    spinning can cost a hundred times the work.
    """
    return _Held(_BLAS)
