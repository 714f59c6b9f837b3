"""Independent tasks through joblib, stopped together when one fails or the user interrupts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import cache

from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController


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
    try:
        return Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(
            delayed(task)(*a, stop) for a in arguments
        )
    except BaseException:
        stop.set()
        raise


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_blas_lock = threading.Lock()


@contextmanager
def one_blas_thread():
    """A context in which BLAS keeps to one thread; one such context at a time.

    For matrices of a few hundred rows a second thread saves nothing, and on a busy machine its
    spinning can cost a hundred times the work.
    """
    with _blas_lock, _controller().limit(limits=1, user_api="blas"):
        yield
