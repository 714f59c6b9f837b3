"""What commands learn and predict: classes, numbers or one class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold, cross_val_predict

from widemargin import (
    AdditiveSVC,
    AdditiveSVR,
    KernelSVC,
    KernelSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from widemargin.cli.words import UsageError

LIBSVM_SCORES = ("mean squared error", "squared correlation coefficient")
MACHINES = {"classes": KernelSVC, "numbers": KernelSVR, "one-class": OneClassSVM}
MACHINES_OF_NU = {"classes": NuSVC, "numbers": NuSVR, "one-class": OneClassSVM}
ADDITIVE_MACHINES = {"classes": AdditiveSVC, "numbers": AdditiveSVR}


def check_task(task: str | None) -> None:
    if task is not None and task not in MACHINES:
        raise UsageError(f"--task {task}: not one of {', '.join(MACHINES)}.")


def task_of(labels: np.ndarray) -> str:
    """Return what labels ask for: numbers where some are not whole.

    >>> task_of(np.array([1.0, 2.0])), task_of(np.array([1.5, 2.0])), task_of(np.array(["a"]))
    ('classes', 'numbers', 'classes')
    """
    fractions = labels.dtype.kind == "f" and bool(np.any(labels != np.round(labels)))
    return "numbers" if fractions else "classes"


def predicts_numbers(model: Any) -> bool:
    """Whether a model predicts numbers: neither classes nor 1 and -1 for one class."""
    return not hasattr(model, "classes_") and not hasattr(model, "decision_function")


def cross_validated(model: Any, X, y: np.ndarray, folds: int, seed: int | None) -> dict[str, float]:
    """Return svm-train's scores of numbers over the folds."""
    split = KFold(folds, shuffle=True, random_state=seed)
    errors = SquaredErrors()
    errors.add(np.asarray(y, dtype=np.float64), cross_val_predict(model, X, y, cv=split))
    return errors.scores()


class SquaredErrors:
    """Sums from which svm-predict's scores of numbers follow, chunk by chunk."""

    def __init__(self) -> None:
        self.n, self._sums, self._products = 0, np.zeros(2), np.zeros((2, 2))
        self._squared = self._absolute = 0.0

    def add(self, y: np.ndarray, predicted: np.ndarray) -> None:
        pairs = np.stack([y, predicted])
        self.n += len(y)
        self._sums += pairs.sum(axis=1)
        self._products += pairs @ pairs.T
        self._squared += float(np.square(y - predicted).sum())
        self._absolute += float(np.abs(y - predicted).sum())

    def scores(self) -> dict[str, float]:
        """Mean squared and absolute error, their roots and ratios; NaN where y is constant."""
        n = max(self.n, 1)
        spread = self._products / n - np.outer(self._sums, self._sums) / n**2
        mean = self._squared / n
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = spread[0, 1] ** 2 / (spread[0, 0] * spread[1, 1])
            r2 = 1 - mean / spread[0, 0]
        return {
            "mean squared error": mean,
            "RMSE": mean**0.5,
            "MAE": self._absolute / n,
            "R2": float(r2),
            "squared correlation coefficient": float(correlation),
        }
