"""Tasks on the workers of a Dask cluster, as an executor.

Dask has one (``client.get_executor()``), which asks for a task's status after its result has come:
if the worker is lost between the two, it takes the result for an error.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

RETRIES = 10  # of a task that fails, or whose worker is lost


def bear_losses(client: Any) -> None:
    """Have a task done again when its worker was lost as often as when it fails.

    Dask's number of retries is for errors only.  Lost workers are counted by the scheduler, which
    gives a task up with the fourth, whoever is to blame.
    """

    def allow(most: int, dask_scheduler: Any) -> None:  # not by name: a scheduler may not have us
        dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, most)

    client.run_on_scheduler(allow, RETRIES)


class ClusterExecutor(Executor):
    """The workers of a `dask.distributed.Client`; tasks of a worker that is lost go to another."""

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
    """The result of a task there, or its error, becomes that of the future here.

    It is let go there: what is wanted when its worker is lost is done again, and nobody needs it.
    """
    result, error = None, None
    try:
        result = await there
    except CancelledError:  # with the connection to the scheduler, or by whoever waits here
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
