"""Independent tasks through joblib, stopped together when one fails or the user interrupts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

_PATIENCE = 10.0  # seconds to wait for threads that were told to stop


class Stop:
    """A flag that tasks look at between slices of work."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        if self._event.is_set():
            raise InterruptedError("another task failed or the fit was interrupted")


def run_tasks(task: Callable, arguments: Sequence[tuple], n_jobs: int | None) -> list:
    """``[task(*a, stop) for a in arguments]`` in threads; the core releases the GIL.

    Ctrl-C reaches the main thread only: it sets the flag, so that the other threads end within
    one slice (0.1 s) instead of finishing their work unseen.
    """
    stop = Stop()
    if len(arguments) == 1:
        return [task(*arguments[0], stop)]
    under_way: set[int] = set()

    def counted(k: int):
        under_way.add(k)
        try:
            return task(*arguments[k], stop)
        finally:
            under_way.discard(k)

    try:
        # One at a time, in the order given: a batch of tasks would wait behind one thread.
        return Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem", batch_size=1)(
            delayed(counted)(k) for k in range(len(arguments))
        )
    except BaseException:
        stop.set()
        deadline = time.monotonic() + _PATIENCE
        while under_way and time.monotonic() < deadline:  # a thread in the core must not outlive
            time.sleep(0.01)  # the interpreter
        raise


def free_memory() -> float:
    """Bytes that this process could still use: what is available, or a container's limit."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    except (OSError, ValueError, IndexError):  # another system
        pass
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        found.append(limit - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # no limit
        pass
    return float(max(min(found, default=4 << 30), 1 << 28))


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
