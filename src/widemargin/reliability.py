"""Compare predicted probabilities or decision values with observed frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_NORMAL = 1.96  # two-sided 95 %


@dataclass(frozen=True)
class Reliability:
    """Observed frequencies of an event in bins of the predicted value.

    Attributes
    ----------
    of : {"probability", "decision value", "lead"}
        The predicted value.  For two classes: probability or decision value of the second.  For
        several: probability of the predicted class, or the lead of its decision value.
    event : str
        The event that is counted.
    said, share, low, high : ndarray of shape (n_bins,)
        Mean predicted value, observed frequency, and the ends of its 95 % interval (Wilson).
    rows : ndarray of shape (n_bins,)
    """

    of: str
    event: str
    said: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: np.ndarray

    @property
    def error(self) -> float:
        """Mean distance of probabilities from observed frequencies; NaN for decision values."""
        if self.of != "probability":
            return float("nan")
        return float(np.average(np.abs(self.said - self.share), weights=self.rows))


def reliability(model, X, y, *, n_bins: int = 10) -> Reliability:
    """Compare predicted values with observed frequencies, in bins of equally many rows.

    Parameters
    ----------
    model : classifier
        Uses ``predict_proba`` if it has it, else ``decision_function``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_bins : int, default=10
        Most bins.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> found = reliability(AdditiveSVC(random_state=0).fit(X, y), X, y, n_bins=3)
    >>> found.of, found.event, found.rows.tolist()
    ('lead', 'the prediction is right', [50, 50, 50])
    >>> bool(found.share[0] < found.share[-1])  # the surer, the more often right
    True
    """
    y = np.asarray(y)
    of, said, true = _claims(model, X, y)
    event = "the prediction is right" if len(model.classes_) > 2 else f"class {model.classes_[1]}"
    order = np.argsort(said, kind="stable")
    parts = [part for part in np.array_split(order, min(n_bins, max(len(y), 1))) if len(part)]
    rows = np.array([len(part) for part in parts])
    share = np.array([true[part].mean() for part in parts])
    low, high = _wilson(share, rows)
    means = np.array([said[part].mean() for part in parts])
    return Reliability(of, event, means, share, low, high, rows)


def _claims(model, X, y: np.ndarray) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the predicted value's name, its value in every row, and whether the event occurred."""
    probable = hasattr(model, "predict_proba")
    scores = model.predict_proba(X) if probable else model.decision_function(X)
    classes = model.classes_
    if len(classes) == 2:
        said = scores[:, 1] if probable else scores
        return "probability" if probable else "decision value", said, y == classes[1]
    right = classes[scores.argmax(axis=1)] == y
    ranked = np.sort(scores, axis=1)
    if probable:
        return "probability", ranked[:, -1], right
    return "lead", ranked[:, -1] - ranked[:, -2], right


def _wilson(share: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z2 = _NORMAL**2 / rows
    middle = (share + z2 / 2) / (1 + z2)
    half = np.sqrt(share * (1 - share) * z2 + z2**2 / 4) / (1 + z2)
    return middle - half, middle + half
