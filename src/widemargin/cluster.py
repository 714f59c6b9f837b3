"""Run tasks on the workers of a Dask cluster, as an executor.

Dask's executor (``client.get_executor()``) requests a task's status after its result has arrived;
if the worker is lost in between, it mistakes the result for an error.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

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
    """Workers of a `dask.distributed.Client`; tasks of a lost worker run on another."""

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
