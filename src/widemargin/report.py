"""How well a model does, as data: accuracy, a table per class, the confusion matrix, time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support


@dataclass(frozen=True)
class ClassReport:
    label: object
    rows: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found; ``confusion[i, j]`` counts rows of class i predicted as j."""

    accuracy: float
    rows: int
    seconds: float
    classes: list[ClassReport]
    confusion: np.ndarray

    @property
    def microseconds_per_row(self) -> float:
        return 1e6 * self.seconds / max(self.rows, 1)


def evaluate(model, X, y) -> Evaluation:
    """Predict X and compare with y.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> found = evaluate(AdditiveSVC(random_state=0).fit(X, y), X, y)
    >>> found.rows, found.confusion.shape
    (150, (3, 3))
    """
    y = np.asarray(y)
    started = time.perf_counter()
    predicted = model.predict(X)
    seconds = time.perf_counter() - started
    labels = np.unique(np.concatenate([model.classes_, y]))
    precision, recall, f1, rows = precision_recall_fscore_support(
        y, predicted, labels=labels, zero_division=0.0
    )
    per_class = [
        ClassReport(
            label.item() if isinstance(label, np.generic) else label, int(n), *map(float, s)
        )
        for label, n, *s in zip(labels, rows, precision, recall, f1, strict=True)
    ]
    accuracy = float(np.mean(predicted == y)) if len(y) else float("nan")
    confusion = confusion_matrix(y, predicted, labels=labels)
    return Evaluation(accuracy, len(y), seconds, per_class, confusion)
