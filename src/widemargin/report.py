"""Evaluate a model: accuracy, scores per class, confusion matrix, time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support

from widemargin.calibration import uncalibrated
from widemargin.libsvm.predictors import ForeignClassifier
from widemargin.scoring import balanced_accuracy, roc_auc

MOST_IN_MATRIX = 25
"""Most classes of a readable confusion matrix; with more, use `Evaluation.most_confused`."""


@dataclass(frozen=True)
class ClassReport:
    label: object
    rows: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Evaluation:
    """Results of `evaluate`; ``confusion[i, j]`` counts rows of class i predicted as j.

    ``balanced_accuracy`` is the mean recall of the classes in the data, ``roc_auc`` the area under
    the ROC curve (for several classes the mean of each against the rest; NaN if only one occurs),
    ``log_loss`` the log loss of the probabilities, NaN for models without them.
    """

    accuracy: float
    rows: int
    seconds: float
    classes: list[ClassReport]
    confusion: np.ndarray
    balanced_accuracy: float = float("nan")
    roc_auc: float = float("nan")
    log_loss: float = float("nan")

    @property
    def microseconds_per_row(self) -> float:
        return 1e6 * self.seconds / max(self.rows, 1)

    @property
    def mean(self) -> ClassReport:
        """Return the unweighted mean over the classes in the data."""
        seen = [c for c in self.classes if c.rows]
        names = ("precision", "recall", "f1")
        means = (float(np.mean([getattr(c, name) for c in seen])) for name in names)
        return ClassReport("mean", self.rows, *means)

    def most_confused(self, most: int = 20) -> list[tuple[object, object, int]]:
        """Return true class, predicted class and number of rows of the most frequent errors."""
        wrong = np.where(np.eye(len(self.classes), dtype=bool), 0, self.confusion)
        largest = [k for k in np.argsort(-wrong, axis=None, kind="stable")[:most] if wrong.flat[k]]
        cells = (np.unravel_index(k, wrong.shape) for k in largest)
        return [(self.classes[i].label, self.classes[j].label, int(wrong[i, j])) for i, j in cells]


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
    >>> 0.9 < found.balanced_accuracy < found.roc_auc
    True
    """
    return evaluate_chunks(model, [(X, y)])


def evaluate_chunks(model, chunks: Iterable[tuple[Any, Any]]) -> Evaluation:
    """Evaluate data that comes in chunks (X, y)."""
    machine = uncalibrated(model)
    pieces, losses, seconds = [], [], 0.0
    for X, truth in chunks:
        truth = np.asarray(truth)
        if hasattr(model, "predict_proba"):
            losses.append(len(truth) * _log_loss(truth, model.predict_proba(X), model.classes_))
        started = time.perf_counter()
        values = machine.decision_function(X)
        best = values.argmax(axis=1) if values.ndim > 1 else (values > 0).astype(int)
        predicted = machine.classes_[best]
        seconds += time.perf_counter() - started
        if isinstance(machine, ForeignClassifier):  # its ties of votes are not broken by scores
            predicted = machine.predict(X)
        pieces.append((values, predicted, truth))
    scores, predicted, y = map(np.concatenate, zip(*pieces, strict=True))
    loss = sum(losses) / len(y) if losses else float("nan")
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
    return Evaluation(
        accuracy=float(np.mean(predicted == y)),
        rows=len(y),
        seconds=seconds,
        classes=per_class,
        confusion=confusion_matrix(y, predicted, labels=labels),
        balanced_accuracy=balanced_accuracy(y, predicted),
        roc_auc=roc_auc(y, scores, model.classes_),
        log_loss=loss,
    )


def _log_loss(y: np.ndarray, probability: np.ndarray, classes: np.ndarray) -> float:
    """Return the log loss; NaN if a label is unknown to the model."""
    known = bool(np.isin(y, classes).all())
    return float(log_loss(y, probability, labels=classes)) if known else float("nan")
