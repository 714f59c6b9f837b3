"""Convert between the data's units and a scaler's output: one affine map per feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin.table_encoder import TableEncoder

SCALERS = (MinMaxScaler, MaxAbsScaler, StandardScaler)
"""Invertible scalers that act on each column separately."""


@dataclass(frozen=True)
class Units:
    """A machine's input for a value of feature j is ``factor[j] * value + offset[j]``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), AdditiveSVC(random_state=0)).fit(X, y)
    >>> round(float(Units.of(pipeline).raw(0, 0.0)), 2), round(float(X[:, 0].mean()), 2)
    (5.84, 5.84)
    """

    factor: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, model) -> Units:
        """Return the units of a fitted machine or pipeline."""
        steps = model.steps if isinstance(model, Pipeline) else [("", model)]
        n_features = steps[-1][1].n_features_in_
        factor, offset = np.ones(n_features), np.zeros(n_features)
        for _, step in steps[:-1]:
            if step in (None, "passthrough"):
                continue
            own_factor, own_offset = _affine(step)
            factor, offset = factor * own_factor, offset * own_factor + own_offset
        return cls(factor, offset)

    def raw(self, feature: int, scaled):
        """Convert to the data's units."""
        return (scaled - self.offset[feature]) / self.factor[feature]

    def scaled(self, feature: int, raw):
        """Convert to the machine's units."""
        return self.factor[feature] * raw + self.offset[feature]


def _affine(scaler) -> tuple:
    """Return factor and offset of a scaler, or of a `TableEncoder` on numbers."""
    if isinstance(scaler, TableEncoder):
        ones = np.ones(scaler.columns_.n_features - len(scaler.factor_))
        shift = -scaler.shift_ * scaler.factor_
        return np.append(scaler.factor_, ones), np.append(shift, 0 * ones)
    if isinstance(scaler, MinMaxScaler):
        return scaler.scale_, scaler.min_
    if isinstance(scaler, MaxAbsScaler):
        return 1 / scaler.scale_, 0.0
    if isinstance(scaler, StandardScaler):
        scale = scaler.scale_ if scaler.with_std else 1.0
        return 1 / scale, -scaler.mean_ / scale if scaler.with_mean else 0.0
    raise ValueError(
        f"{type(scaler).__name__} cannot be converted back to the data's units: before the "
        "machine a pipeline may have a TableEncoder, MinMaxScaler, MaxAbsScaler and "
        "StandardScaler. Explain the last step alone, in its own units."
    )
