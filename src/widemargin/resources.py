"""What a process may use: memory, and threads of other libraries."""

from __future__ import annotations

import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Any, Self

from threadpoolctl import ThreadpoolController

LEAST_MEMORY = 1 << 28  # bytes, which every machine is taken to have


def free_memory() -> float:
    """Bytes that this process could still use: what is available, or a limit set on it."""
    return _least(_meminfo("MemAvailable"), _container(less_used=True), _address_space())


def total_memory() -> float:
    """Bytes of this machine, or a container's limit: the same whatever else is running."""
    return _least(_meminfo("MemTotal"), _container(less_used=False))


def used_memory() -> float:
    """Bytes of this process that are in memory; 0 on systems that do not tell."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * resource.getpagesize())
    except (ImportError, OSError, ValueError, IndexError):
        return 0.0


def _least(*known: list[int]) -> float:
    found = [n for numbers in known for n in numbers]
    return float(max(min(found, default=4 << 30), LEAST_MEMORY))


def _meminfo(name: str) -> list[int]:
    """A line of the system's account, in bytes; nothing on other systems."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return [1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]
    except (OSError, ValueError, IndexError):
        return []


def _container(*, less_used: bool) -> list[int]:
    """The limit of a container, less what it uses already; nothing where there is no limit."""
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        return [limit - (int((group / "memory.current").read_text()) if less_used else 0)]
    except (OSError, ValueError):
        return []


def _address_space() -> list[int]:
    """What `ulimit -v` leaves, where it is set."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return [] if limit == resource.RLIM_INFINITY else [limit - pages * resource.getpagesize()]
    except (ImportError, OSError, ValueError, IndexError):  # another system
        return []


_PATIENCE = 1.0  # seconds for a lock that is held for less than a millisecond


@cache
def _libraries(user_api: str) -> list:
    return ThreadpoolController().select(user_api=user_api).lib_controllers


def _set_threads(library: Any, n: int) -> None:
    """Whichever thread asks: threadpoolctl ignores all but the first one that has set OpenBLAS, so
    that a limit set in one thread could not be lifted in another; here a lock keeps the peace."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


class _Limit:
    """One thread for a kind of library, as long as anybody holds it; then what there was before."""

    def __init__(self, user_api: str):
        self._user_api = user_api
        # A holder may be collected, and so released, in the thread that is inside already.
        self._lock = threading.RLock()
        self._holders: set[int] = set()
        self._before: list[tuple[Any, int]] = []

    def set_holder(self, number: int, *, holds: bool) -> None:
        """Repeatable: what an interrupt has left half done is done by the next call."""
        lock = self._lock
        if not lock.acquire(timeout=_PATIENCE):  # an interrupt took its owner's chance to release
            self._lock = lock = threading.RLock()
            lock.acquire()
        try:
            (self._holders.add if holds else self._holders.discard)(number)
            if self._holders and not self._before:
                # Known before anything changes, so that it can be restored whatever happens.
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
    """A limit, from now until the end of a ``with`` block.

    Where an interrupt lets that pass (it may come before the block begins, or on the way out), the
    limit ends when the object is collected. No Python code runs then after a block that ended as
    it should: an interrupt that came in such code would be printed and forgotten.
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
    """A context in which OpenMP (scikit-learn's k-means) keeps to one thread."""
    return _Held(_OPENMP)


def one_blas_thread() -> _Held:
    """A context in which BLAS keeps to one thread, whoever else is in it.

    For matrices of a few hundred rows a second thread saves nothing, and on a busy machine its
    spinning can cost a hundred times the work.
    """
    return _Held(_BLAS)
