"""scikit-learn's callback protocol (1.9, experimental), behind one small class.

The tree of tasks is fit -> batch of classes -> epoch.  If the protocol changes, it changes here.
"""

from __future__ import annotations

from collections.abc import Callable


class Progress:
    """Reports the epochs of one batch; `epoch` returns True when a callback asks to stop."""

    def __init__(self, estimator, context, X, y, name: str, task_id: int, max_iter: int):
        self._estimator, self._X, self._y = estimator, X, y
        self._context = context.subcontext(task_name=name, task_id=task_id, max_subtasks=max_iter)
        self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def epoch(self, fitted: Callable[[], dict] | None = None) -> bool:
        task = self._context.subcontext(task_name="epoch")
        task.call_on_fit_task_begin(estimator=self._estimator, X=self._X, y=self._y)
        return task.call_on_fit_task_end(
            estimator=self._estimator, X=self._X, y=self._y, reconstruction_attributes=fitted
        )

    def end(self) -> None:
        self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X, y=self._y)


class Silence:
    """What `Progress` is when no callback is set."""

    def epoch(self, fitted=None) -> bool:
        return False

    def end(self) -> None:
        pass


def batch_progress(estimator, context, X, y, name, task_id, max_iter):
    """A `Progress` for one batch, or `Silence` where nobody listens."""
    if not getattr(estimator, "_skl_callbacks", None):
        return Silence()
    return Progress(estimator, context, X, y, name, task_id, max_iter)
