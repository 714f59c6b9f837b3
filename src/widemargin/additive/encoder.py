"""Learn the bins from training data: scale, representatives and thresholds.

Code 0 means "absent": it contributes nothing, and compressed rows omit it; NaN has code 0 with
every kernel.  Codes 1..b are the bin representatives t_1 < ... < t_b in the kernel's
domain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from widemargin.additive.source import (
    Histogram,
    Scale,
    Source,
    Values,
    any_value,
    distinct,
    filled_in,
    first,
    gathered,
    histogram,
    ranges,
)
from widemargin.errors import ParameterError

SCALINGS = ("auto", "global", "minmax", "percentile", None)
BINNINGS = ("auto", "uniform", "floor", "exact")
MAX_BINS = 65_535
AUTO_BINS = 255
MOST_COUNTS = 4095
"""Histograms up to this count have a bin per integer, seen in training or not: the size of a unary
table."""
ICD_LEVELS = 100
ICD_PERCENTILE = 97.5

_FINE_CELLS = 1 << 16
_NO_LIMIT: int = np.iinfo(np.uint32).max
_SMALLEST = np.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class Encoder:
    """Maps raw values to codes.

    ``t = (value - shift) * factor``, then ``code = #{k : thresholds[k] <= t}``: values outside
    the training range fall into the first or last bin.
    """

    shift: np.ndarray
    factor: np.ndarray
    thresholds: np.ndarray
    representatives: np.ndarray

    @property
    def n_codes(self) -> int:
        return len(self.representatives)

    @property
    def scale(self) -> Scale:
        return Scale(self.shift, self.factor)

    @property
    def zero_is_absent(self) -> bool:
        """Whether zeros have code 0 (otherwise no value is absent)."""
        return bool(self.thresholds[0] > -np.inf)

    def is_constant(self, feature: int) -> bool:
        """Whether all values of a feature are equal for the kernel."""
        return bool(self.factor[feature if len(self.factor) > 1 else 0] == 0)

    def grid(self, feature: int) -> np.ndarray:
        """Return the bin representatives in the raw units of a feature."""
        j = feature if len(self.shift) > 1 else 0
        factor = self.factor[j] if self.factor[j] != 0 else np.inf
        return self.representatives / factor + self.shift[j]

    def codes_of(self, t: np.ndarray) -> np.ndarray:
        """Return the codes of values in the kernel's domain."""
        return np.searchsorted(self.thresholds, t, side="right")

    def thinned(self, codes: np.ndarray) -> Encoder:
        """Return the encoder with these bins only (code 0 among them); values go to the nearest."""
        t = self.representatives[codes]
        thresholds = np.append(self.thresholds[0], _middles(t[1:]))
        return replace(self, representatives=t, thresholds=thresholds)


def fit_encoder(
    source: Source,
    row_weight: np.ndarray,
    *,
    scaling: str | None = "auto",
    n_bins: int | str = "auto",
    binning: str = "auto",
    zero_is_absent: bool = True,
) -> Encoder:
    """Choose scale and bins for training data, by the parameters of `AdditiveSVC`.

    A weight of 2 counts as two copies of a row.  ``zero_is_absent`` tells that the kernel vanishes
    at zero, so that zeros need no code.
    """
    if scaling == "percentile" and binning != "auto":
        raise ParameterError("binning", binning, 'has no effect with scaling="percentile".')
    if binning == "exact" and n_bins != "auto":
        raise ParameterError("n_bins", n_bins, 'has no effect with binning="exact".')
    if source.n_features == 0:  # indicators only
        return _exact(Scale(np.zeros(1), np.ones(1)), np.ones(1), zero_is_absent=True)
    low, high = ranges(source)
    if scaling == "percentile":
        return _icd_encoder(source, row_weight, (low, high), n_bins, zero_is_absent)
    scale = _fit_scale(source, low, high, scaling)
    limit = AUTO_BINS if n_bins == "auto" else int(n_bins)
    if binning == "exact":
        limit = _NO_LIMIT
    elif n_bins == "auto" and scaling is None and not any_value(source, _is_fraction):
        limit = MAX_BINS  # natural histograms keep their counts
        if binning == "auto" and high.max() <= MOST_COUNTS:
            t = np.arange(1 if zero_is_absent else 0, max(high.max(), 1) + 1)
            return _exact(scale, t, zero_is_absent)
    source = filled_in(source, scale)
    if binning in ("auto", "exact"):
        t = _distinct(source, scale, limit, zero_is_absent)
        if len(t) <= limit:
            return _exact(scale, t, zero_is_absent)
    top = float(np.max((high - scale.shift) * scale.factor, initial=0.0))
    top = top if top > 0 else 1.0
    if binning in ("uniform", "floor"):
        t = top * np.arange(1, limit + 1) / limit
        if binning == "floor":
            return _floored(scale, t, zero_is_absent)
        return _encoder(scale, t, _middles(t), zero_is_absent)
    fine = histogram(
        source, scale, row_weight, top=top, n_cells=_FINE_CELLS, skip_zeros=zero_is_absent
    )
    edges = _mixed_edges(fine, limit)
    inner = top * (edges[1:-1] / _FINE_CELLS) ** 2
    return _encoder(scale, _centres(fine, edges), inner, zero_is_absent)


def exact_encoder(values: Values, trained: Encoder) -> Encoder:
    """Return an encoder with a code per distinct value, on a trained encoder's scale."""
    source = filled_in(values, trained.scale)
    t = _distinct(source, trained.scale, _NO_LIMIT, trained.zero_is_absent)
    return _exact(trained.scale, t, trained.zero_is_absent)


# ------------------------------------------------------------------ bins


def _encoder(scale: Scale, t, thresholds, zero_is_absent: bool) -> Encoder:
    """Return thresholds between the bins, and the one below which a value is absent."""
    if len(thresholds) < len(t):
        thresholds = np.concatenate([[_SMALLEST if zero_is_absent else -np.inf], thresholds])
    return Encoder(
        np.ascontiguousarray(scale.shift, dtype=np.float64),
        np.ascontiguousarray(scale.factor, dtype=np.float64),
        np.ascontiguousarray(thresholds, dtype=np.float64),
        np.concatenate([[0.0], t]),
    )


def _exact(scale: Scale, t, zero_is_absent: bool) -> Encoder:
    """Map every value to the nearest distinct value, zero included."""
    middles = _middles(np.append(0.0, t)) if zero_is_absent else _middles(t)
    return _encoder(scale, t, middles, zero_is_absent)


def _floored(scale: Scale, t, zero_is_absent: bool) -> Encoder:
    """Map every value to the bin at or below it; values below the first are zero."""
    floors = t * (1 - 1e-12)  # the papers divide last: tolerate our factor's rounding
    return _encoder(scale, t if zero_is_absent else np.append(0.0, t), floors, zero_is_absent)


def _is_fraction(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "iub":
        return np.zeros(values.shape, dtype=bool)
    return values != np.floor(values)


def _middles(t: np.ndarray) -> np.ndarray:
    return t[1:] / 2 + t[:-1] / 2


def _distinct(source: Source, scale: Scale, limit: int, zero_is_absent: bool) -> np.ndarray:
    """Return the distinct scaled values that need a code, or more than ``limit``."""
    # One more than the limit, because a zero may be among them and does not count.
    t = np.unique(np.maximum(distinct(source, scale, limit + 1), 0.0))
    if zero_is_absent:
        t = t[t >= _SMALLEST]
    return t if len(t) else np.ones(1)


def _mixed_edges(fine: Histogram, n_bins: int) -> np.ndarray:
    """Place half of the edges at the data's quantiles, half evenly in sqrt(t).

    Even steps in sqrt(t) are even in the feature space of Hellinger's kernel and nearly so for
    chi2: fine near zero, where data is dense.  Quantiles add resolution where the data is.
    """
    weight = fine.weight
    even = np.arange(1, len(weight) + 1) / len(weight)
    mixed = (np.cumsum(weight) / max(weight.sum(), np.finfo(float).tiny) + even) / 2
    inner = np.searchsorted(mixed, np.arange(1, n_bins) / n_bins * mixed[-1]) + 1
    return np.unique(np.concatenate([[0], np.minimum(inner, len(weight)), [len(weight)]]))


def _centres(fine: Histogram, edges: np.ndarray) -> np.ndarray:
    """Return the mean of the data in each bin; the middle (in sqrt t) of an empty bin."""
    weight, total = (np.add.reduceat(a, edges[:-1]) for a in (fine.weight, fine.total))
    middle = fine.top * ((edges[1:] + edges[:-1]) / (2 * len(fine.weight))) ** 2
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), middle)


# ------------------------------------------------------------------ scales


def _fit_scale(source: Source, low, high, scaling: str | None) -> Scale:
    if scaling == "auto":
        scaling = _automatic(low, high)
    if scaling == "minmax":
        return Scale(low, _inverse(high, low))
    if low.min() < 0:
        row, column = first(source, lambda values: values < 0)
        raise ValueError(
            f"Negative values in data: row {row}, column {column}. The kernel needs non-negative "
            'values; scaling="minmax" shifts and scales every feature to [0, 1].'
        )
    if scaling is None:
        return Scale(np.zeros(1), np.ones(1))
    return Scale(np.zeros(1), _inverse(high.max(keepdims=True), np.zeros(1)))


def _inverse(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return 1 / (high - low), and 0 for a constant column."""
    with np.errstate(divide="ignore", over="ignore"):
        spread = high - low
        if not np.all(np.isfinite(spread)):
            j = int(np.argmin(np.isfinite(spread)))
            raise ValueError(
                f"Column {j} ranges from {low[j]:g} to {high[j]:g}, more than float64 can express; "
                "scale it first."
            )
        factor = 1 / spread
        if np.any(np.isinf(factor) & (spread > 0)):
            j = int(np.argmax(np.isinf(factor) & (spread > 0)))
            raise ValueError(
                f"Column {j} ranges from {low[j]:g} to {high[j]:g}, less than float64 can divide "
                "by; multiply it first."
            )
    return np.where(np.isfinite(factor), factor, 0.0)


def _automatic(low: np.ndarray, high: np.ndarray) -> str:
    """Return one factor for non-negative columns with zeros and similar maxima, else minmax."""
    used = high[high > low]
    like_histograms = low.min() >= 0 and len(used) and np.median(low) == 0
    return "global" if like_histograms and used.max() <= 100 * np.median(used) else "minmax"


def _icd_encoder(source: Source, row_weight, extremes, n_bins, zero_is_absent: bool) -> Encoder:
    """Return ICD's levels (eq. 13): even steps from the minimum to the 97.5th percentile.

    If the minimum is zero, zeros do not count for the percentile: sparse files omit them, and in
    texts they exceed 97.5 % of all values, so that eq. 13 would have no v_max.  Dense and sparse
    data have the same levels.
    """
    n_levels = ICD_LEVELS if n_bins == "auto" else int(n_bins)
    low, high = (extremes[0].min(keepdims=True), extremes[1].max(keepdims=True))
    bulk = np.array([_percentile(gathered(source), row_weight, zeros_count=bool(low < 0))])
    scale = Scale(low, n_levels * _inverse(bulk if bulk > low else high, low))
    return _floored(scale, np.arange(1.0, n_levels + 1), zero_is_absent)


def _percentile(values: Values, row_weight: np.ndarray, *, zeros_count: bool) -> float:
    """Return ICD's percentile of values, weighted by row."""
    n, d = values.n_rows, values.n_features
    share = ICD_PERCENTILE / 100
    # The minimum is NaN if any value is, and needs no memory.
    missing = values.data.size > 0 and bool(np.isnan(values.data.min()))
    if np.ptp(row_weight) == 0 and not missing:
        left_out = 0 if zeros_count else n * d - int(np.count_nonzero(values.data))
        rank = int(np.ceil(share * (n * d - left_out))) - 1
        return _order_statistic(values, min(left_out + max(rank, 0), n * d - 1))
    if values.start is not None:
        weight = np.repeat(row_weight, np.diff(values.start))
        data = np.append(values.data, values.data.dtype.type(0))
        weight = np.append(weight, max(row_weight.sum() * d - weight.sum(), 0.0))
    else:
        data, weight = values.data.ravel(), np.repeat(row_weight, d)
    if missing:
        data, weight = data[~np.isnan(data)], weight[~np.isnan(data)]
    if not len(data):
        return 0.0
    if not zeros_count:
        weight = np.where(data == 0, 0.0, weight)
    order = np.argsort(data, kind="stable")
    cumulative = np.cumsum(weight[order])
    # Slightly below, because sums of weights are rounded.
    rank = np.searchsorted(cumulative, share * cumulative[-1] * (1 - 1e-12))
    return float(data[order[min(rank, len(order) - 1)]])


def _order_statistic(values: Values, k: int) -> float:
    """Return the k-th smallest value of the matrix, without a sorted or widened copy."""
    absent = values.n_rows * values.n_features - values.data.size
    negative = int(np.count_nonzero(values.data < 0)) if values.sparse else 0
    if values.sparse and negative <= k < negative + absent:
        return 0.0
    k = k - absent if k >= negative else k
    return float(np.partition(values.data, k, axis=None)[k])
