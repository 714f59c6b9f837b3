"""Whether decision values, or probabilities, mean what they say: how often it is so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_NORMAL = 1.96  # for 95 %


@dataclass(frozen=True)
class Reliability:
    """Rows in bins of what a model says, and how often it is so in each.

    Attributes
    ----------
    of : {"probability", "decision value", "lead"}
        Two classes have a probability or a decision value of the second. Several have the
        probability of the class predicted, or by how much its decision value leads the next.
    event : str
        What is counted.
    said, share, low, high : ndarray of shape (n_bins,)
        The mean of what the model says, the share of rows of which it is true, and the ends of its
        interval of 95 % (Wilson).
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
        """Of probabilities: how far they are from the shares, on average over rows; else NaN."""
        if self.of != "probability":
            return float("nan")
        return float(np.average(np.abs(self.said - self.share), weights=self.rows))


def reliability(model, X, y, *, n_bins: int = 10) -> Reliability:
    """Compare what a model says with what is, in bins of equally many rows.

    Parameters
    ----------
    model : classifier
        With ``predict_proba`` where it has it, else ``decision_function``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_bins : int, default=10
        At most so many.

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
    """What is measured, its value in every row, and whether it is so."""
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
