"""scikit-learn's callback protocol (1.9, experimental), behind one small class.

The tree of tasks is fit -> batch of classes -> epoch for `AdditiveSVC`, and fit -> level ->
cluster -> epoch for `KernelSVC`.  An epoch is what ``n_iter_`` counts: a sweep of the first,
a block of the second.  If the protocol changes, it changes here.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from widemargin.sklearn_private import has_callbacks

logger = logging.getLogger("widemargin")


class Progress:
    """A task that is under way; `epoch` returns True when a callback asks to stop."""

    def __init__(self, estimator, context, X, y):
        self._estimator, self._context, self._X, self._y = estimator, context, X, y

    def task(self, name: str, task_id: int | None = None, n: int | None = None, *, ordered=True):
        """Begin a part of this task that has n parts itself; ``task_id`` if parts may overlap."""
        context = self._context.subcontext(
            task_name=name, task_id=task_id, max_subtasks=n, sequential_subtasks=ordered
        )
        context.call_on_fit_task_begin(estimator=self._estimator, X=self._X, y=self._y)
        return Progress(self._estimator, context, self._X, self._y)

    def epoch(self, fitted: Callable[[], dict] | None = None, gap: float | None = None) -> bool:
        """An epoch is over; callbacks find its distance from the optimum in ``context.gap``."""
        task = self.task("epoch", n=0)
        task._context.gap = gap
        return task.end(fitted)

    def end(self, fitted: Callable[[], dict] | None = None) -> bool:
        return self._context.call_on_fit_task_end(
            estimator=self._estimator, X=self._X, y=self._y, reconstruction_attributes=fitted
        )


class NoProgress:
    """What `Progress` is when no callback is set."""

    def task(self, name, task_id=None, n=None, *, ordered=True) -> NoProgress:
        return self

    def epoch(self, fitted=None, gap=None) -> bool:
        return False

    def end(self, fitted=None) -> bool:
        return False


class TimeLimit:
    """A task that asks to stop once its time is over, as a callback does."""

    def __init__(self, task: Progress | NoProgress | TimeLimit, deadline: float):
        self._task, self._deadline = task, deadline

    def task(self, name, task_id=None, n=None, *, ordered=True) -> TimeLimit:
        return TimeLimit(self._task.task(name, task_id, n, ordered=ordered), self._deadline)

    def epoch(self, fitted=None, gap=None) -> bool:
        return self._task.epoch(fitted, gap) or time.monotonic() >= self._deadline

    def end(self, fitted=None) -> bool:
        return self._task.end(fitted) or time.monotonic() >= self._deadline


Listener = Progress | NoProgress | TimeLimit


def progress_of(estimator, context, X, y) -> Listener:
    """The progress of a fit: callbacks are told of it, and they or a time limit may end it."""
    progress: Progress | NoProgress = NoProgress()
    if has_callbacks(estimator):
        progress = Progress(estimator, context, X, y)
    deadline = getattr(estimator, "_deadline", None)
    return progress if deadline is None else TimeLimit(progress, deadline)


def log(message: str, *args) -> None:
    """To the package's logger; to the terminal where nobody has set up logging."""
    if logger.hasHandlers():
        logger.info(message, *args)
    else:
        print(message % args, file=sys.stderr)


class FitStopper:
    """As a callback of scikit-learn's, ends fits once ``is_over``.

    They keep what they have, and warn of the gap that is left.
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
