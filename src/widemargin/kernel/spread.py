"""A host whose clusters are found by others too: workers, each of which reads rows of its own."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.engine import Control, run_tasks
from widemargin.kernel.backend import Host
from widemargin.kernel.lazy_rows import LazyRows
from widemargin.kernel.partition import ROWS_AT_ONCE, Router

VALUES = 1 << 26  # of the rows of a task, about: the router travels with each


@dataclass(frozen=True)
class AssignTask:
    """Rows on disk, by number, that a router is to send to their clusters."""

    router: Router
    rows: LazyRows


def assign_rows(task: AssignTask, control: Control) -> np.ndarray:
    """The cluster of each row."""
    control.check()
    with Host() as host:
        return task.router.assign(task.rows, host)


class Spread(Host):
    """This process, and an executor that is asked where rows on disk belong.

    Rows in memory stay here: to send them takes longer than to compare them with centres.
    """

    def __init__(self, n_threads: int, executor: Executor):
        super().__init__(n_threads)
        self._executor = executor

    def assign(self, router: Router, rows: Any) -> np.ndarray:
        if not (isinstance(rows, LazyRows) and rows.stored):
            return super().assign(router, rows)
        n_rows = max(1, VALUES // (ROWS_AT_ONCE * rows.X.shape[1])) * ROWS_AT_ONCE
        parts = [slice(begin, begin + n_rows) for begin in range(0, len(rows), n_rows)]
        tasks = [AssignTask(router, rows.chosen(part)) for part in parts]
        return np.concatenate(run_tasks(assign_rows, tasks, self._executor))
