"""Tasks on the workers of a Dask cluster, as an executor.

Dask has one (``client.get_executor()``), which asks for a task's status after its result has come:
if the worker is lost between the two, it takes the result for an error.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

RETRIES = 10  # of a task whose worker was lost


class ClusterExecutor(Executor):
    """The workers of a `dask.distributed.Client`; tasks of a worker that is lost go to another."""

    def __init__(self, client: Any):
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
    """The result of a task there, or its error, becomes that of the future here."""
    result, error = None, None
    try:
        result = await there
    except CancelledError:  # with the connection to the scheduler, or by whoever waits here
        here.cancel()
    except BaseException as raised:
        error = raised
    if not here.set_running_or_notify_cancel():
        return
    if error is None:
        here.set_result(result)
    else:
        here.set_exception(error)
