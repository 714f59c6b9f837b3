"""From raw values to bin codes: scale, choose bins, encode.

Every value becomes a code of one or two bytes.  Code 0 means "absent": it contributes nothing,
and compressed rows leave it out.  Codes 1..b stand for the bin representatives t_1 < ... < t_b
in the kernel's own domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from widemargin import _core

SCALINGS = ("auto", "global", "minmax", "percentile", None)
BINNINGS = ("auto", "uniform", "log", "exact")
MAX_BINS = 65_535
AUTO_BINS = 255
ICD_LEVELS = 100
ICD_PERCENTILE = 97.5

_NATIVE = tuple(np.dtype(c) for c in "fdBbHhiIlLqQ")
_FINE_CELLS = 1 << 16
_SMALLEST = np.nextafter(0.0, 1.0)
# Rows with fewer stored values than this are faster compressed: the fused dense loop costs
# about half as much per value as the compressed one (benchmarks/results/layout.md).
_DENSE_ENOUGH = 0.4
_DENSIFY_BYTES = 4 << 30


@dataclass(frozen=True)
class Values:
    """A raw matrix as the core reads it: dense with any strides, or the three CSR arrays."""

    data: np.ndarray
    index: np.ndarray | None
    start: np.ndarray | None
    n_rows: int
    n_features: int

    @classmethod
    def of(cls, X) -> Values:
        """View a validated array or CSR matrix; only exotic dtypes are copied."""
        if sp.issparse(X):
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            index, start = X.indices, X.indptr
            if index.dtype != start.dtype or index.dtype not in (np.int32, np.int64):
                index, start = index.astype(np.int64), start.astype(np.int64)
            return cls(_native(X.data), index, start, *X.shape)
        return cls(_native(X), None, None, *X.shape)

    @property
    def sparse(self) -> bool:
        return self.index is not None

    @property
    def parts(self) -> tuple:
        return self.data, self.index, self.start, self.n_features

    @cached_property
    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest value of each column, absent zeros included."""
        if not self.sparse:
            return (
                self.data.min(axis=0).astype(np.float64),
                self.data.max(axis=0).astype(np.float64),
            )
        low, high, stored = np.asarray(_core.column_ranges(*self.parts))
        absent = stored < self.n_rows
        return (
            np.where(absent, np.minimum(low, 0.0), low),
            np.where(absent, np.maximum(high, 0.0), high),
        )

    def filled_in(self, shift: np.ndarray, factor: np.ndarray) -> Values:
        """These values; dense if the scale moves zero, so that absent entries have a value."""
        if not self.sparse or not np.any(shift * factor < 0):
            return self
        if self.n_rows * self.n_features * self.data.itemsize > _DENSIFY_BYTES:
            raise ValueError(
                "scaling shifts negative columns so that absent entries are no longer zero, and "
                f"the {self.n_rows} x {self.n_features} matrix is too large to fill in. "
                "Make the data non-negative, for example with MaxAbsScaler and two columns per "
                "signed feature."
            )
        csr = sp.csr_array(
            (self.data, self.index, self.start), shape=(self.n_rows, self.n_features)
        )
        return Values(csr.toarray(), None, None, self.n_rows, self.n_features)

    def first(self, condition) -> tuple[int, int]:
        """Row and column of the first stored value where ``condition(values)`` holds."""
        if self.index is not None and self.start is not None:
            at = int(np.flatnonzero(condition(self.data))[0])
            return int(np.searchsorted(self.start, at, side="right") - 1), int(self.index[at])
        for begin in range(0, self.n_rows, 1024):
            hit = np.argwhere(condition(self.data[begin : begin + 1024]))
            if len(hit):
                return begin + int(hit[0, 0]), int(hit[0, 1])
        raise AssertionError("no such value")  # pragma: no cover


def _native(a: np.ndarray) -> np.ndarray:
    if not a.flags.aligned or any(step % a.itemsize for step in a.strides):
        a = a.copy()
    if a.dtype == bool:
        return a.view(np.uint8)
    if a.dtype in _NATIVE and a.dtype.isnative:
        return a
    return a.astype(np.float32 if a.dtype == np.float16 else np.float64)


@dataclass(frozen=True)
class Codes:
    """Rows of bin codes: dense ``codes``, or compressed ``codes`` with ``index`` and ``start``."""

    codes: np.ndarray
    index: np.ndarray | None
    start: np.ndarray | None
    n_rows: int
    n_features: int
    n_codes: int

    @cached_property
    def rows(self) -> _core.Rows:
        """The checked view that the core's loops take."""
        return _core.Rows(self.codes, self.index, self.start, self.n_features, self.n_codes)

    @property
    def nbytes(self) -> int:
        parts = (self.codes, self.index, self.start)
        return sum(a.nbytes for a in parts if a is not None)

    def toarray(self) -> np.ndarray:
        """Dense codes, 0 where a value is absent."""
        if self.index is None or self.start is None:
            return self.codes
        out = np.zeros((self.n_rows, self.n_features), dtype=self.codes.dtype)
        out[np.repeat(np.arange(self.n_rows), np.diff(self.start)), self.index] = self.codes
        return out

    def frequency(self, row_weight: np.ndarray) -> np.ndarray:
        """Total weight of the rows that hold each code, with code 0 (absent) counted as none."""
        count = np.asarray(_core.count_codes(self.rows, row_weight))
        count[0] = 0
        return count


@dataclass(frozen=True)
class Encoder:
    """How a raw value reaches its code, learned from training data.

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

    def encode(self, values: Values) -> Codes:
        values = values.filled_in(self.shift, self.factor)
        shape = (values.n_rows, values.n_features, self.n_codes)
        scale = (self.shift, self.factor, self.thresholds)
        if values.sparse:
            start, index, codes = _core.encode_sparse(*values.parts, *scale)
            return Codes(codes, index, start, *shape)
        if self._is_identity(values.data):
            codes = values.data
        else:
            codes = _core.encode_dense(values.data, values.n_features, *scale)
        if np.count_nonzero(codes) < _DENSE_ENOUGH * codes.size:
            start, index, codes = _core.compress(codes, self.n_codes)
            return Codes(codes, index, start, *shape)
        return Codes(codes, None, None, *shape)

    def grid(self, feature: int) -> np.ndarray:
        """The bin representatives in the raw units of one feature."""
        j = feature if len(self.shift) > 1 else 0
        factor = self.factor[j] if self.factor[j] != 0 else np.inf
        return self.representatives / factor + self.shift[j]

    def _is_identity(self, data: np.ndarray) -> bool:
        """Bytes that are their own codes need no copy."""
        if data.dtype != np.uint8 or not data.flags.c_contiguous or len(self.shift) > 1:
            return False
        every = np.arange(256, dtype=np.uint8)[None, :]
        codes = _core.encode_dense(every, 256, self.shift, self.factor, self.thresholds)
        return codes.dtype == np.uint8 and np.array_equal(codes, every)


def fit_encoder(
    values: Values,
    row_weight: np.ndarray,
    *,
    scaling: str | None = "auto",
    n_bins: int | str = "auto",
    binning: str = "auto",
    zero_is_absent: bool = True,
) -> Encoder:
    """Choose scale and bins for training data.

    Parameters
    ----------
    values : Values
        The training matrix.
    row_weight : ndarray of shape (n_rows,), dtype float64
        Positive sample weights; a weight of 2 counts as two copies.
    scaling : {"auto", "global", "minmax", "percentile", None}
        See `AdditiveSVC`.
    n_bins : int or "auto"
        Number of bins, at most 65,535.
    binning : {"auto", "uniform", "log", "exact"}
        See `AdditiveSVC`.
    zero_is_absent : bool
        Whether the kernel vanishes at zero, so that zeros need no code.
    """
    if scaling == "percentile" and binning != "auto":
        raise ValueError(f'binning={binning!r} has no effect with scaling="percentile".')
    if binning == "exact" and n_bins != "auto":
        raise ValueError(f'n_bins={n_bins!r} has no effect with binning="exact".')
    shift, factor = _fit_scale(values, row_weight, scaling, n_bins)
    if scaling == "percentile":
        levels = np.arange(1.0, (ICD_LEVELS if n_bins == "auto" else int(n_bins)) + 1)
        floors = levels * (1 - 1e-12)  # eq. 13 divides last: forgive the rounding of our factor
        if zero_is_absent:
            return _encoder(shift, factor, levels, floors, zero_is_absent)
        return _encoder(shift, factor, np.append(0.0, levels), floors, zero_is_absent)

    limit = AUTO_BINS if n_bins == "auto" else int(n_bins)
    if binning == "exact":
        limit = np.iinfo(np.uint32).max
    elif n_bins == "auto" and scaling is None and values.data.dtype.kind in "iu":
        limit = MAX_BINS  # a natural histogram keeps its counts
    scaled = values.filled_in(shift, factor)
    lowest = _SMALLEST if zero_is_absent else 0.0

    if binning in ("auto", "exact"):
        t = _distinct(scaled, shift, factor, limit, lowest)
        if len(t) <= limit:
            return _exact(shift, factor, t, zero_is_absent)

    top = _largest(scaled, shift, factor)
    if binning == "uniform":
        t = top * np.arange(1, limit + 1) / limit
        return _encoder(shift, factor, t, _middles(t), zero_is_absent)
    weight, total = np.asarray(
        _core.value_histogram(
            *scaled.parts, shift, factor, row_weight, top, zero_is_absent, _FINE_CELLS
        )
    )
    edges = _log_edges(weight, limit) if binning == "log" else _mixed_edges(weight, limit)
    inner = top * (edges[1:-1] / _FINE_CELLS) ** 2
    return _encoder(shift, factor, _centres(weight, total, edges, top), inner, zero_is_absent)


def exact_encoder(values: Values, trained: Encoder) -> Encoder:
    """One code per distinct value of this very data, under the scale of a trained encoder."""
    zero_is_absent = trained.thresholds[0] > -np.inf
    values = values.filled_in(trained.shift, trained.factor)
    lowest = _SMALLEST if zero_is_absent else 0.0
    t = _distinct(values, trained.shift, trained.factor, np.iinfo(np.uint32).max, lowest)
    return _exact(trained.shift, trained.factor, t, zero_is_absent)


def _exact(shift, factor, t, zero_is_absent) -> Encoder:
    """Every value goes to the nearest of the distinct ones, zero included."""
    middles = _middles(np.append(0.0, t)) if zero_is_absent else _middles(t)
    return _encoder(shift, factor, t, middles, zero_is_absent)


def _middles(t: np.ndarray) -> np.ndarray:
    return t[1:] / 2 + t[:-1] / 2


def _distinct(values, shift, factor, limit, lowest) -> np.ndarray:
    """Distinct scaled values from ``lowest`` up, or more than ``limit`` of them."""
    # One more than the limit: a zero may be among those found and does not count.
    t = np.asarray(_core.distinct_values(*values.parts, shift, factor, limit + 1))
    t = np.unique(np.maximum(t, 0.0))
    t = t[t >= lowest]
    return t if len(t) else np.ones(1)


def _encoder(shift, factor, t, thresholds, zero_is_absent) -> Encoder:
    """Thresholds between the bins, plus the one below which a value counts as absent."""
    if len(thresholds) < len(t):
        thresholds = np.concatenate([[_SMALLEST if zero_is_absent else -np.inf], thresholds])
    return Encoder(
        np.ascontiguousarray(shift, dtype=np.float64),
        np.ascontiguousarray(factor, dtype=np.float64),
        np.ascontiguousarray(thresholds, dtype=np.float64),
        np.concatenate([[0.0], t]),
    )


def _mixed_edges(weight: np.ndarray, n_bins: int) -> np.ndarray:
    """Half of the bins follow the data's quantiles, half are even in sqrt(t).

    Even steps in sqrt(t) are even steps in the feature space of Hellinger's kernel and nearly
    so for chi2: fine near zero, where data crowds.  The quantiles add resolution where the
    data is.
    """
    even = np.arange(1, len(weight) + 1) / len(weight)
    mixed = (np.cumsum(weight) / max(weight.sum(), np.finfo(float).tiny) + even) / 2
    inner = np.searchsorted(mixed, np.arange(1, n_bins) / n_bins * mixed[-1]) + 1
    return np.unique(np.concatenate([[0], np.minimum(inner, len(weight)), [len(weight)]]))


def _log_edges(weight: np.ndarray, n_bins: int) -> np.ndarray:
    """Bins of equal ratio between the smallest value seen and the largest."""
    first = max(int(np.flatnonzero(weight)[0]), 1) if weight.any() else 1
    inner = np.geomspace(first, len(weight), n_bins + 1)[1:-1]
    return np.unique(np.concatenate([[0], np.round(inner).astype(np.int64), [len(weight)]]))


def _centres(weight, total, edges, top) -> np.ndarray:
    """The mean of the data in each bin; the middle (in sqrt t) of a bin without any."""
    w, s = np.add.reduceat(weight, edges[:-1]), np.add.reduceat(total, edges[:-1])
    middle = top * ((edges[1:] + edges[:-1]) / (2 * len(weight))) ** 2
    return np.where(w > 0, s / np.where(w > 0, w, 1.0), middle)


def _largest(values: Values, shift, factor) -> float:
    _, high = values.ranges
    top = float(np.max((high - shift) * factor, initial=0.0))
    return top if top > 0 else 1.0


def _fit_scale(values, row_weight, scaling, n_bins) -> tuple[np.ndarray, np.ndarray]:
    low, high = values.ranges
    if scaling == "auto":
        scaling = _automatic(low, high)
    if scaling == "minmax":
        return low, _inverse(high, low)
    if scaling == "percentile":
        levels = ICD_LEVELS if n_bins == "auto" else int(n_bins)
        v_min, v_max = low.min(), _percentile(values, row_weight, ICD_PERCENTILE)
        v_max = v_max if v_max > v_min else high.max()
        return np.array([v_min]), levels * _inverse(np.array([v_max]), np.array([v_min]))
    if low.min() < 0:
        i, j = values.first(lambda v: v < 0)
        raise ValueError(
            f"Negative values in data: row {i}, column {j}. The kernel needs non-negative values; "
            'scaling="minmax" shifts and scales every feature to [0, 1].'
        )
    if scaling is None:
        return np.zeros(1), np.ones(1)
    return np.zeros(1), _inverse(high.max(keepdims=True), np.zeros(1))


def _inverse(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """1 / (high - low), and 0 for a column without any spread."""
    with np.errstate(divide="ignore", over="ignore"):
        spread = high - low
        if not np.all(np.isfinite(spread)):
            j = int(np.argmin(np.isfinite(spread)))
            raise ValueError(
                f"Column {j} ranges from {low[j]:g} to {high[j]:g}, more than float64 can express; "
                "scale it first."
            )
        factor = 1 / spread
    return np.where(np.isfinite(factor), factor, 0.0)


def _automatic(low: np.ndarray, high: np.ndarray) -> str:
    """Non-negative data whose columns reach zero and have like maxima share one factor."""
    used = high[high > low]
    histogram = low.min() >= 0 and len(used) and np.median(low) == 0
    return "global" if histogram and used.max() <= 100 * np.median(used) else "minmax"


def _percentile(values: Values, row_weight: np.ndarray, percent: float) -> float:
    """Percentile of all values, absent zeros counted, each row by its weight."""
    n, d = values.n_rows, values.n_features
    if np.ptp(row_weight) == 0:
        return _order_statistic(values, max(int(np.ceil(percent / 100 * n * d)) - 1, 0))
    if values.start is not None:
        weight = np.repeat(row_weight, np.diff(values.start))
        data = np.append(values.data, values.data.dtype.type(0))
        weight = np.append(weight, max(row_weight.sum() * d - weight.sum(), 0.0))
    else:
        data, weight = values.data.ravel(), np.repeat(row_weight, d)
    order = np.argsort(data, kind="stable")
    cumulative = np.cumsum(weight[order])
    # A hair below: weights are sums of rounded numbers, copies are not.
    at = np.searchsorted(cumulative, percent / 100 * cumulative[-1] * (1 - 1e-12))
    return float(data[order[min(at, len(order) - 1)]])


def _order_statistic(values: Values, k: int) -> float:
    """The k-th smallest value of the matrix, without a sorted or widened copy."""
    absent = values.n_rows * values.n_features - values.data.size
    negative = int(np.count_nonzero(values.data < 0)) if values.sparse else 0
    if values.sparse and negative <= k < negative + absent:
        return 0.0
    k = k - absent if k >= negative else k
    return float(np.partition(values.data, k, axis=None)[k])
