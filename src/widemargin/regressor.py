"""Machines whose targets are numbers."""

from __future__ import annotations

import numbers

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin

from widemargin.errors import Message, Parameter, warn_user
from widemargin.multiclass import Numbers, Targets
from widemargin.validation import sample_weights, weighted_quantile

LARGEST = 1e150  # target whose square double precision can still add up


class MarginRegressor(RegressorMixin):
    """Turns numbers into targets for a `Machine`, and its outputs into predictions.

    The machine fits targets that are centred and divided by their spread (`Numbers`), with C and
    epsilon divided by the spread too: the same model, but of dollars or millimetres a fit sees the
    same numbers.  The estimator has the parameter ``epsilon``.
    """

    epsilon: float
    coding_: Numbers

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _is_centred(self) -> bool:
        """Whether the model has an intercept, which takes up the centre of the targets."""
        return bool(self.fit_intercept)

    def _check_numbers(self, y) -> np.ndarray:
        """Check y for `check_X_y`."""
        return numeric_targets(y)

    def _targets(self, X, y, sample_weight) -> Targets:
        """Return the targets without samples of weight 0."""
        weight = sample_weights(sample_weight, X)
        present = (weight > 0).nonzero()[0]
        y = numeric_targets(y)
        if len(present) < len(weight):
            X, y, weight = X[present], y[present], weight[present]
        return self._scaled_targets(X, y, weight, present)

    def _stored_targets(self, store) -> Targets:
        """Return the targets of a store, which has no samples of weight 0."""
        y = numeric_targets(store.classes)[store.labels()]
        return self._scaled_targets(store, y, store.weights(), np.arange(0))

    def _scaled_targets(self, X, y, weight, present) -> Targets:
        several, y = y.ndim == 2, y.reshape(len(y), -1)
        centre, typical = np.zeros(y.shape[1]), np.zeros(y.shape[1])
        for k, target in enumerate(y.T):
            self._check_spread(target, k if several else None)
            if self._is_centred():
                centre[k] = weighted_quantile(target, weight, 0.5)
            typical[k] = _typical(np.abs(target - centre[k]), weight)
        coding = Numbers(centre, self._scale(typical), several)
        label = np.zeros(len(y), dtype=np.int32)
        value = (y - centre) / coding.scale
        return Targets(X, weight, present, label, coding, {"coding_": coding}, value)

    def _scale(self, typical: np.ndarray) -> np.ndarray:
        """Return what to divide the targets of each output by, given their typical sizes."""
        return powers_of_two(typical)

    def _check_spread(self, y: np.ndarray, column: int | None) -> None:
        """Warn of targets that have no spread, or less than epsilon lets pass."""
        low, high, where = y.min(), y.max(), "" if column is None else f" in column {column}"
        if max(-low, high) > LARGEST:
            row = int(np.argmax(np.abs(y)))
            raise ValueError(f"y is too large{where}: {y[row]:g} in row {row}. Scale the targets.")
        if low == high:
            warn_user(f"y is {low:g} in every row{where}, and so is every prediction.")
        middle = low / 2 + high / 2 if self._is_centred() else 0.0
        if low < high and max(high - middle, middle - low) <= self.epsilon:
            warn_user(
                Message(
                    "{epsilon} lets every error pass: all targets{where} are within it of "
                    "{middle:g}, so every prediction is the same. Decrease it.",
                    epsilon=Parameter("epsilon", self.epsilon),
                    where=where,
                    middle=middle,
                )
            )


def numeric_targets(y) -> np.ndarray:
    """Return targets as finite numbers in double precision; name the first row without one."""
    if sp.issparse(y):
        raise ValueError("y is sparse. Pass an array: y.toarray().")
    values = np.asarray(y)
    if values.dtype.kind in "US":  # which a list of numbers and texts becomes
        values = np.array(y, dtype=object)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers.")
    if values.dtype.kind in "biuf":
        targets = values.astype(np.float64)
    else:  # one by one, because NumPy's error does not say where
        targets = np.full(values.shape, np.nan)
        for index, value in np.ndenumerate(values):
            if isinstance(value, numbers.Real):
                targets[index] = value
    bad = np.argwhere(~np.isfinite(targets))
    if len(bad):
        at = tuple(bad[0])
        more = f" (and in {len(bad) - 1} more places)" if len(bad) > 1 else ""
        raise ValueError(
            f"y must hold finite numbers, but has {_shown(values[at])} in row "
            f"{at[0]}{more}. Correct such rows, or leave them out."
        )
    return targets


def _shown(value) -> str:
    return f"{value.item() if isinstance(value, np.generic) else value!r:.40}"


def _typical(distance: np.ndarray, weight: np.ndarray) -> float:
    """Return the median distance, or the mean where that is 0; 1 if all are 0."""
    median = weighted_quantile(distance, weight, 0.5)
    return median or float(np.average(distance, weights=weight)) or 1.0


def powers_of_two(sizes: np.ndarray) -> np.ndarray:
    """Return the nearest powers of 2, because dividing by them rounds nothing."""
    return 2.0 ** np.clip(np.round(np.log2(sizes)), -300, 300)
