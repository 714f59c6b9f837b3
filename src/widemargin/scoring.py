"""Score models by scikit-learn's names of scores, from decision values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    log_loss,
    matthews_corrcoef,
    mean_absolute_error,
    mean_squared_error,
    precision_score,
    r2_score,
    recall_score,
    roc_auc_score,
    root_mean_squared_error,
)

from widemargin.calibration import uncalibrated
from widemargin.errors import Parameter, ParameterError

Scorer = Callable[..., float]
"""Maps model, rows, true labels and, if given, sample weights to a number; larger is better."""

_PER_CLASS = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
_AVERAGES = ("macro", "micro", "weighted")
OF_PROBABILITIES = ("neg_log_loss",)
_OTHER_NAMES = ("log_loss", "neg_brier_score", "brier_score")
OF_TWO = (*_PER_CLASS, "average_precision")
SCORINGS = (
    "accuracy",
    "balanced_accuracy",
    "roc_auc",
    "matthews_corrcoef",
    *OF_TWO,
    *(f"{name}_{average}" for name in _PER_CLASS for average in _AVERAGES),
)
OF_NUMBERS = {
    "r2": r2_score,
    "neg_mean_squared_error": mean_squared_error,
    "neg_root_mean_squared_error": root_mean_squared_error,
    "neg_mean_absolute_error": mean_absolute_error,
}


def check_scoring(
    name: str,
    classes: np.ndarray | None = None,
    *,
    probabilities: bool = False,
    numbers: bool = False,
) -> None:
    """Raise ParameterError for a score that is unknown or unsuitable for these targets."""
    if numbers or name in OF_NUMBERS:
        if numbers and name not in OF_NUMBERS:
            raise ParameterError("scoring", name, f": of numbers, use {', '.join(OF_NUMBERS)}.")
        if classes is not None:
            raise ParameterError("scoring", name, f": not one of {', '.join(SCORINGS)}.")
        return
    if name in _OTHER_NAMES or (name in OF_PROBABILITIES and not probabilities):
        raise ParameterError(
            "scoring",
            name,
            ": it needs probabilities, and these machines give decision values. Use roc_auc, which "
            "needs the order of decision values only; or neg_log_loss with models that have them "
            "({probability}).",
            probability=Parameter("probability", True),
        )
    if name not in SCORINGS + OF_PROBABILITIES:
        raise ParameterError("scoring", name, f": not one of {', '.join(SCORINGS)}.")
    if classes is not None and name in OF_TWO and len(classes) != 2:
        other = "roc_auc" if name == "average_precision" else f"{name}_macro"
        reason = f": it is for two classes, but there are {len(classes)}. Use {other}."
        raise ParameterError("scoring", name, reason)


def get_scorer(scoring: str | Scorer) -> Scorer:
    """Return a scorer by scikit-learn's name, or the given function.

    Scores of one class ("f1", "precision", "recall", "average_precision") are those of
    ``classes_[1]``, whose decision values are positive.  "roc_auc" of several classes is the mean
    of each against the rest.  Scores of numbers are "r2", "neg_mean_squared_error",
    "neg_root_mean_squared_error" and "neg_mean_absolute_error".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdditiveSVC(random_state=0).fit(X, y)
    >>> 0.99 < get_scorer("roc_auc")(model, X, y) <= 1
    True
    """
    if not isinstance(scoring, str):
        return scoring
    check_scoring(scoring, probabilities=True)
    if scoring in OF_PROBABILITIES:
        return _neg_log_loss
    if scoring in OF_NUMBERS:
        sign = -1.0 if scoring.startswith("neg_") else 1.0
        return lambda model, X, y, **w: sign * float(OF_NUMBERS[scoring](y, model.predict(X), **w))
    plain = _plain_scorer(scoring)
    return lambda model, X, y, **weights: plain(uncalibrated(model), X, y, **weights)


def _neg_log_loss(model, X, y, sample_weight=None) -> float:
    options = {"labels": model.classes_, "sample_weight": sample_weight}
    return -float(log_loss(y, model.predict_proba(X), **options))


def _accuracy(model, X, y, sample_weight=None) -> float:
    if sample_weight is None:
        return model.score(X, y)
    return float(np.average(model.predict(X) == y, weights=sample_weight))


def _plain_scorer(scoring: str) -> Scorer:
    """Return a score of decision values and labels."""
    if scoring == "accuracy":
        return _accuracy
    if scoring == "roc_auc":
        return lambda model, X, y, **w: roc_auc(y, model.decision_function(X), model.classes_, **w)
    if scoring == "average_precision":
        return _average_precision
    if scoring == "balanced_accuracy":
        return lambda model, X, y, **w: balanced_accuracy(y, model.predict(X), **w)
    if scoring == "matthews_corrcoef":
        return lambda model, X, y, **w: float(matthews_corrcoef(y, model.predict(X), **w))
    name, _, average = scoring.partition("_")
    return partial(_per_class, _PER_CLASS[name], average)


def roc_auc(y: np.ndarray, scores: np.ndarray, classes: np.ndarray, sample_weight=None) -> float:
    """Return the area under the ROC curve; for several classes, the mean of each against the rest.

    Classes of no row or of every row are left out; NaN if none is left.
    """
    columns = scores[:, None] if scores.ndim == 1 else scores
    tested = [
        (y == label, column)
        for label, column in zip(classes[-columns.shape[1] :], columns.T, strict=True)
        if 0 < np.count_nonzero(y == label) < len(y)
    ]
    if not tested:
        return float("nan")
    aucs = [
        roc_auc_score(of_class, column, sample_weight=sample_weight) for of_class, column in tested
    ]
    return float(np.mean(aucs))


def balanced_accuracy(y: np.ndarray, predicted: np.ndarray, sample_weight=None) -> float:
    """Return the mean recall of the classes in y."""
    if len(y) == 0:
        return float("nan")
    options = {"labels": np.unique(y), "average": "macro", "zero_division": 0.0}
    return float(recall_score(y, predicted, sample_weight=sample_weight, **options))


def _average_precision(model, X, y, **weights) -> float:
    check_scoring("average_precision", model.classes_)
    is_second = y == model.classes_[1]
    return float(average_precision_score(is_second, model.decision_function(X), **weights))


def _per_class(metric: Callable, average: str, model, X, y, **weights) -> float:
    predicted, options = model.predict(X), {"zero_division": 0.0, **weights}
    if average:
        return float(metric(y, predicted, average=average, **options))
    check_scoring(metric.__name__.removesuffix("_score"), model.classes_)
    positive = model.classes_[1]
    return float(metric(y == positive, predicted == positive, **options))
