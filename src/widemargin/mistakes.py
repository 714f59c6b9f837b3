"""Find a model's most confident mistakes, and the columns that caused them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from widemargin.sklearn_private import safe_indexing
from widemargin.term_bins import term_values
from widemargin.terms import Explanation, explain, is_explainable

_MOST_REASONS = 5


@dataclass(frozen=True)
class Reason:
    """A column, the row's value, and its contribution to the mistake."""

    name: str
    value: object
    contribution: float


@dataclass(frozen=True)
class Mistake:
    """A row with a wrong prediction.

    Attributes
    ----------
    row : int
        Its index in the data, from 0.
    truth, predicted : object
        Labels.
    lead : float
        Decision value of the predicted class minus that of the true one; for two classes, the
        distance of the decision value from 0.
    reasons : tuple of Reason
        The columns with the largest contributions for or against the predicted class, and "others"
        (including the intercept); they add up to the lead.  None for non-additive machines.
    """

    row: int
    truth: object
    predicted: object
    lead: float
    reasons: tuple[Reason, ...]


def worst_mistakes(
    model, X, y, *, most: int = 5, names: Sequence[str] | None = None
) -> list[Mistake]:
    """Return the mistakes with the largest lead, the worst first.

    Leaves out rows with labels unknown to the model.

    Parameters
    ----------
    model : AdditiveSVC, KernelSVC or Pipeline
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    most : int, default=5
    names : sequence of str, default=None
        Names of the features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> worst = worst_mistakes(AdditiveSVC(tol=1e-6, random_state=0).fit(X, y), X, y)[0]
    >>> worst.truth, worst.predicted, [reason.name for reason in worst.reasons][:2]
    (1, 2, ['petal width (cm)', 'petal length (cm)'])
    >>> bool(abs(sum(reason.contribution for reason in worst.reasons) - worst.lead) < 1e-5)
    True
    """
    y, classes = np.asarray(y), np.asarray(model.classes_)
    scores = model.decision_function(X)
    if scores.ndim == 1:  # the distance from 0, not twice
        scores = np.column_stack([-scores, scores]) / 2
    known = np.flatnonzero(np.isin(y, classes))
    truth = np.searchsorted(classes, y[known])
    predicted = scores[known].argmax(axis=1)
    lead = scores[known, predicted] - scores[known, truth]
    wrong = np.flatnonzero(predicted != truth)
    wrong = wrong[np.argsort(-lead[wrong], kind="stable")][:most]
    if len(wrong) == 0:
        return []
    reasons = _reasons(model, safe_indexing(X, known[wrong]), predicted[wrong], truth[wrong], names)
    labels = classes.tolist()
    return [
        Mistake(int(known[k]), labels[truth[k]], labels[predicted[k]], float(lead[k]), reason)
        for k, reason in zip(wrong, reasons, strict=True)
    ]


def _reasons(model, rows, predicted, truth, names) -> list[tuple[Reason, ...]]:
    if not is_explainable(model):
        return [()] * len(predicted)
    explained = explain(model, names)
    parts = explained.contributions(rows)
    at = np.arange(len(parts))
    if parts.ndim == 2:
        lead = np.where(predicted == 1, 1.0, -1.0)[:, None] * parts
    else:
        lead = parts[at, :, predicted] - parts[at, :, truth]
    return [_largest(explained, rows, k, part) for k, part in enumerate(lead)]


def _largest(explained: Explanation, rows, k: int, lead: np.ndarray) -> tuple[Reason, ...]:
    order = np.argsort(-np.abs(lead[:-1]), kind="stable")[:_MOST_REASONS]
    reasons = [
        Reason(explained.terms[j].name, term_values(rows, explained.terms[j])[k], float(lead[j]))
        for j in order
    ]
    rest = float(lead.sum() - sum(reason.contribution for reason in reasons))
    return (*reasons, Reason("others", "", rest))
