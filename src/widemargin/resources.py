"""What a process may use: memory, and threads of other libraries."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path

from threadpoolctl import ThreadpoolController


def free_memory() -> float:
    """Bytes that this process could still use: what is available, or a container's limit."""
    return _least(_meminfo("MemAvailable"), _container(less_used=True))


def total_memory() -> float:
    """Bytes of this machine, or a container's limit: the same whatever else is running."""
    return _least(_meminfo("MemTotal"), _container(less_used=False))


def _least(*known: list[int]) -> float:
    found = [n for numbers in known for n in numbers]
    return float(max(min(found, default=4 << 30), 1 << 28))


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


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_openmp_thread():
    """A context in which OpenMP (scikit-learn's k-means) keeps to one thread."""
    return _controller().limit(limits=1, user_api="openmp")


class _OneBlasThread:
    """A limit that is set by the first to enter and lifted by the last to leave."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._holders += 1

    def __exit__(self, *exception) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limit.__exit__(*exception)


one_blas_thread = _OneBlasThread()
"""A context in which BLAS keeps to one thread, whoever else is in it.

For matrices of a few hundred rows a second thread saves nothing, and on a busy machine its
spinning can cost a hundred times the work."""
