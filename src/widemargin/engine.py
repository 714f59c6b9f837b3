"""Run independent tasks in threads or an executor, and stop them together.

A task is data (a frozen dataclass that pickles); the function that solves it is at module level and
returns arrays.  So threads, processes and clusters run the same code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from dataclasses import dataclass
from typing import Any, Protocol

from joblib import cpu_count, effective_n_jobs

from widemargin.progress import Progress
from widemargin.resources import one_blas_thread

_PATIENCE = 10.0  # seconds to wait for stopping threads


class Watch(Protocol):
    """Receives a task's progress."""

    def epoch(self, state: Any = None, gap: float | None = None) -> bool:
        """Report an epoch and its gap (None if unknown).

        Return True to make the task stop and return its current solution.
        """
        ...

    def end(self) -> Any: ...


class Control:
    """A running task's connection to its caller.

    The default, which tasks in other processes have, never stops them.
    """

    def __init__(self, stop: threading.Event | None = None, watch: Watch | None = None):
        self._stop, self._watch = stop, watch or Progress()

    def check(self) -> None:
        """Raise InterruptedError if another task failed or the user interrupted."""
        if self._stop is not None and self._stop.is_set():
            raise InterruptedError("another task failed or the fit was interrupted")

    def epoch(self, state: Any = None, gap: float | None = None) -> bool:
        """Report an epoch and its state; return whether to stop."""
        self.check()
        return self._watch.epoch(state, gap)

    def show(self, present: Callable[[], Any]) -> None:
        """Give the watcher a copy of the current solution, if it wants one."""
        look = getattr(self._watch, "look", None)
        if look is not None:
            look(present)

    def step(self, gap: float | None = None) -> bool:
        """Report an epoch without a state."""
        return self.epoch(gap=gap)


@dataclass(frozen=True)
class Threads:
    """Threads of this process (``n_jobs`` as in joblib); the core releases the GIL."""

    n_jobs: int | None = None

    @property
    def n_cores(self) -> int:
        """Threads that can run at once; more would slow down threads that wait for each other."""
        return min(effective_n_jobs(self.n_jobs), cpu_count())


def run_tasks(
    function: Callable[[Any, Control], Any],
    tasks: Sequence,
    executor: Threads | Executor,
    *,
    watch: Callable[[Any], Watch] = lambda task: Progress(),
    on_result: Callable[[Any, Any], None] = lambda task, result: None,
) -> list:
    """Return ``[function(task, control) for task in tasks]``; when one fails, the others stop.

    Tasks are indexed lazily, so they can be created on demand.  An executor of processes or of a
    cluster's workers pickles them and the function.  ``watch`` creates the listener of a task in
    this process; other tasks have none.  ``on_result`` is called with each task and its result as
    it finishes, from any thread.
    """
    if not isinstance(executor, Threads):
        return _elsewhere(function, tasks, executor, on_result)
    stop = threading.Event()

    def solve(k: int):
        task = tasks[k]
        listener = watch(task)
        result = function(task, Control(stop, listener))
        listener.end()
        on_result(task, result)
        return result

    n_threads = min(effective_n_jobs(executor.n_jobs), len(tasks))
    if n_threads <= 1:
        return [solve(k) for k in range(len(tasks))]
    return _in_threads(solve, len(tasks), stop, n_threads)


def _in_threads(solve: Callable, n: int, stop: threading.Event, n_threads: int) -> list:
    """Solve the tasks in threads, including this one; each takes the next task when free.

    Ctrl-C reaches the main thread only: it sets the flag, so that the other threads end within one
    slice (0.1 s) instead of finishing their work unseen.
    """
    results: list = [None] * n
    numbers, errors = iter(range(n)), []

    def work() -> None:
        try:
            for k in numbers:
                results[k] = solve(k)
        except BaseException as error:
            errors.append(error)  # the first is the cause; others follow from the stop
            stop.set()
            for _ in numbers:  # leave no task for other threads
                pass

    pool = ThreadPoolExecutor(n_threads - 1)
    others = [pool.submit(work) for _ in range(n_threads - 1)]
    try:
        work()
        wait(others, timeout=_PATIENCE if errors else None)
    except BaseException:
        stop.set()
        wait(others, timeout=_PATIENCE)  # a thread in the core must not outlive the interpreter
        raise
    finally:
        pool.shutdown(wait=False)
    if errors:
        raise errors[0]
    return results


def _by_itself(function: Callable, task: Any) -> Any:
    """Solve in another process, with one BLAS thread as here, for the same bits."""
    with one_blas_thread():
        return function(task, Control())


def _elsewhere(function: Callable, tasks: Sequence, executor: Executor, on_result) -> list:
    """Submit all tasks; cancel those not started when one fails."""
    sent = list(tasks)
    futures = {executor.submit(_by_itself, function, task): task for task in sent}
    try:
        for future in as_completed(futures):
            on_result(futures[future], future.result())
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [future.result() for future in futures]


# ------------------------------------------------------------------ Dask workers


RETRIES = 10  # retries of a task that fails or loses its worker


def bear_losses(client: Any) -> None:
    """Let a task lose its worker as often as it may fail.

    Dask's number of retries counts errors only.  By default the scheduler gives up a task whose
    fourth worker is lost, whatever the reason.
    """

    # A closure, because the scheduler may lack this package.
    def allow(most: int, dask_scheduler: Any) -> None:
        dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, most)

    client.run_on_scheduler(allow, RETRIES)


class ClusterExecutor(Executor):
    """Workers of a `dask.distributed.Client`; tasks of a lost worker run on another.

    Dask's own executor (``client.get_executor()``) requests a task's status after its result has
    arrived; if the worker is lost in between, it mistakes the result for an error.
    """

    def __init__(self, client: Any):
        bear_losses(client)
        self._client = client

    def submit(self, function: Callable, /, *arguments: Any, **named: Any) -> Future:
        there = self._client.submit(function, *arguments, pure=False, retries=RETRIES, **named)
        here: Future = Future()

        def withdraw(_: Future) -> None:
            if here.cancelled() and not there.cancelled():
                there.cancel()

        here.add_done_callback(withdraw)
        self._client.loop.add_callback(_bring, there, here)
        return here


async def _bring(there: Any, here: Future) -> None:
    """Copy the result or error of a remote task to the local future.

    Release the remote result: if its worker dies, the task need not run again.
    """
    result, error = None, None
    try:
        result = await there
    except CancelledError:  # the connection to the scheduler is lost, or the caller cancelled
        here.cancel()
    except BaseException as raised:
        error = raised
    there.release()
    if not here.set_running_or_notify_cancel():
        return
    if error is None:
        here.set_result(result)
    else:
        here.set_exception(error)
