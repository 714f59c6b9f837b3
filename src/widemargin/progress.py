"""scikit-learn's callback protocol (1.9, experimental), behind one small class.

The tree of tasks is fit -> batch of classes -> epoch for `AdditiveSVC`, and fit -> level ->
cluster -> epoch for `KernelSVC`.  ``n_iter_`` counts epochs: sweeps of the first, blocks of
the second.  If the protocol changes, only this file changes.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from typing import Any

from widemargin.sklearn_private import callbacks_of

logger = logging.getLogger("widemargin")


class Progress:
    """A running task; `epoch` and `end` return True if a callback or the deadline stops it.

    Without a context there are no callbacks.
    """

    def __init__(self, estimator=None, context=None, X=None, y=None, deadline: float = math.inf):
        self._estimator, self._context, self._X, self._y = estimator, context, X, y
        self._deadline = deadline

    def task(self, name: str, task_id: int | None = None, n: int | None = None, *, ordered=True):
        """Begin a subtask with n parts; ``task_id`` identifies subtasks that may overlap."""
        if self._context is None:
            return self
        context = self._context.subcontext(
            task_name=name, task_id=task_id, max_subtasks=n, sequential_subtasks=ordered
        )
        context.call_on_fit_task_begin(estimator=self._estimator, X=self._X, y=self._y)
        return Progress(self._estimator, context, self._X, self._y, self._deadline)

    def epoch(self, fitted: Callable[[], dict] | None = None, gap: float | None = None) -> bool:
        """Report an epoch; callbacks find the duality gap in ``context.gap``."""
        task = self.task("epoch", n=0)
        if self._context is not None:
            task._context.gap = gap
        return task.end(fitted)

    def end(self, fitted: Callable[[], dict] | None = None) -> bool:
        stopped = False
        if self._context is not None:
            stopped = self._context.call_on_fit_task_end(
                estimator=self._estimator, X=self._X, y=self._y, reconstruction_attributes=fitted
            )
        return stopped or time.monotonic() >= self._deadline


def progress_of(estimator, context, X, y) -> Progress:
    """Return the progress of a fit, which callbacks or a time limit may stop."""
    deadline = getattr(estimator, "_deadline", math.inf)
    return Progress(estimator, context if callbacks_of(estimator) else None, X, y, deadline)


def log(message: str, *args) -> None:
    """Log a message; print it if logging is not configured."""
    if logger.hasHandlers():
        logger.info(message, *args)
    else:
        print(message % args, file=sys.stderr)


class FitStopper:
    """A scikit-learn callback that ends fits once ``is_over`` is true.

    They keep their current solution, and warn of its gap.
    """

    is_over: Any = False

    def setup(self, estimator, context) -> None:
        pass

    def teardown(self, estimator, context) -> None:
        pass

    def on_fit_task_begin(self, estimator, context) -> None:
        pass

    def on_fit_task_end(self, estimator, context) -> bool:
        return bool(self.is_over)


def continued(before: list[dict], after: list[dict]) -> list[dict]:
    """Return the later records with their seconds shifted by those of the earlier ones.

    >>> continued([{"seconds": 1.0}, {"seconds": 2.0}], [{"seconds": 0.5}])
    [{'seconds': 2.5}]
    """
    elapsed = before[-1]["seconds"] if before else 0.0
    return [{**record, "seconds": elapsed + record["seconds"]} for record in after]
