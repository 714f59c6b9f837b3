"""Contributions of a column of the data at each of its values, across its features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.additive.columns import Columns
from widemargin.additive.model import AdditiveModel


@dataclass(frozen=True)
class ColumnShape:
    """Contributions of a column, centred over the training data.

    Attributes
    ----------
    values : ndarray of shape (n_values,)
        Numbers, ascending, as the model sees them; or categories.
    scores : ndarray of shape (n_values, n_outputs)
    share : ndarray of shape (n_values,)
        Share of each value in the training data.
    missing : ndarray of shape (n_outputs,) or None
        Contribution of a missing value, if the training data had any.
    missing_share : float
    """

    values: np.ndarray
    scores: np.ndarray
    share: np.ndarray
    missing: np.ndarray | None = None
    missing_share: float = 0.0

    def importance(self, readout: np.ndarray) -> float:
        """Mean |contribution| over the training data and the scores."""
        total = self.share @ np.abs(self.scores @ readout)
        if self.missing is not None:
            total = total + self.missing_share * np.abs(self.missing @ readout)
        return float(total.mean())


def column_shape(model: AdditiveModel, columns: Columns, column: int) -> ColumnShape:
    """Return the shape of a column; the coding's ``readout`` turns outputs into scores."""
    own = columns.features(column)
    present = [j for j in (own.number, own.missing, *own.categories) if j is not None]
    centre = model.centre[present].sum(axis=0)
    missing, missing_share = None, 0.0
    if own.missing is not None:
        missing = model.feature_function(own.missing)[-1] - centre
        missing_share = float(_shares(model, own.missing)[-1])
    if own.number is None:
        # Absent indicators add nothing.
        on = [model.feature_function(j)[-1] for j in own.categories]
        scores = np.array(on).reshape(-1, model.n_outputs) - centre
        share = np.array([_shares(model, j)[-1] for j in own.categories])
        values = np.array(columns.categories[column], dtype=object)
        return ColumnShape(values, scores, share, missing, missing_share)
    codes, scores = model.shape(own.number)
    share = _shares(model, own.number)
    share[0] = max(share[0] - missing_share, 0.0)  # missing numbers are absent
    scores = scores + model.centre[own.number] - centre
    values = model.encoder.grid(own.number)[codes]
    return ColumnShape(values, scores, share[codes], missing, missing_share)


def _shares(model: AdditiveModel, feature: int) -> np.ndarray:
    return model.shares.of_feature(feature, model.encoder.n_codes)
