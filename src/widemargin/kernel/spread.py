"""A host on which workers assign rows to clusters; each reads its rows itself."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.engine import Control, run_tasks
from widemargin.kernel.backend import Host
from widemargin.kernel.lazy_rows import LazyRows
from widemargin.kernel.nearest import Nearest
from widemargin.kernel.partition import Router

VALUES = 1 << 26  # values in the rows of a task, approximately: the router is sent with each
ROWS_AT_ONCE = 1 << 14  # a task has a multiple of them


@dataclass(frozen=True)
class AssignTask:
    """Rows on disk, by index, that a router assigns to clusters."""

    router: Router
    rows: LazyRows
    known: Nearest | None
    n_old: int


def assign_rows(task: AssignTask, control: Control) -> Nearest:
    """Return the cluster of each row."""
    control.check()
    with Host() as host:
        return host.nearest(task.router, task.rows, task.known, task.n_old)


class Spread(Host):
    """This process, and an executor that assigns rows on disk to clusters.

    Rows in memory stay here, because sending them takes longer than comparing them with centres.
    """

    def __init__(self, n_threads: int, executor: Executor):
        super().__init__(n_threads)
        self._executor = executor

    def nearest(
        self, router: Router, rows: Any, known: Nearest | None = None, n_old: int = 0
    ) -> Nearest:
        if not (isinstance(rows, LazyRows) and rows.stored):
            return super().nearest(router, rows, known, n_old)
        n_rows = max(1, VALUES // (ROWS_AT_ONCE * rows.X.shape[1])) * ROWS_AT_ONCE
        parts = [slice(begin, begin + n_rows) for begin in range(0, len(rows), n_rows)]
        tasks = [
            AssignTask(router, rows.chosen(part), known and known[part], n_old) for part in parts
        ]
        found = run_tasks(assign_rows, tasks, self._executor)
        label, score, error = (
            np.concatenate([getattr(one, name) for one in found])
            for name in ("label", "score", "error")
        )
        return Nearest(label, score, error)
