"""Raw data for the core, in one or several blocks of rows.

The statistics that an encoder needs (`ranges`, `distinct`, `histogram`) are folds: each block is
read separately, and the results are merged.  So data larger than memory is a `Source` too.  Only
`gathered` needs all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, overload

import numpy as np
import scipy.sparse as sp

from widemargin import _core
from widemargin.validation import canonical

_NATIVE = tuple(np.dtype(c) for c in "fdBbHhiIlLqQ")
_DENSIFY_BYTES = 4 << 30
_PIECE = 1 << 16  # values per step of a search
T = TypeVar("T")
Ranges = tuple[np.ndarray, np.ndarray]
"""Smallest and largest value of each column, absent zeros included."""


class Scale(NamedTuple):
    """Maps a raw value to the kernel's domain: t = (value - shift) * factor.

    One number each, or one per feature; a constant column has a factor of 0.
    """

    shift: np.ndarray
    factor: np.ndarray

    @property
    def core(self) -> _core.Scale:
        """The checked view that the core's passes take."""
        return _core.Scale(self.shift, self.factor)

    @property
    def moves_zero(self) -> bool:
        """Whether zero, the value of absent entries, is scaled to another value."""
        return bool(np.any(self.shift * self.factor < 0))


class Source(Protocol):
    """Rows of raw values that can be read block by block, repeatedly."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def dtype(self) -> np.dtype: ...
    def blocks(self) -> Iterator[Values]:
        """Yield the rows in order, in nonempty blocks."""
        ...

    def each(self, look: Callable[[slice, Values], T]) -> Iterator[T]:
        """Call ``look`` on every block, in order, and yield the results."""
        ...

    def ranges(self) -> Ranges:
        """Return the smallest and largest value of each column, like `Values.ranges`."""
        ...


@dataclass(frozen=True)
class Values:
    """One block: dense with any strides, or the three CSR arrays."""

    data: np.ndarray
    index: np.ndarray | None
    start: np.ndarray | None
    n_rows: int
    n_features: int

    @classmethod
    def of(cls, X) -> Values:
        """View a validated array or CSR matrix; only exotic dtypes are copied."""
        if sp.issparse(X):
            X = canonical(X)
            index, start = X.indices, X.indptr
            if index.dtype != start.dtype or index.dtype not in (np.int32, np.int64):
                index, start = index.astype(np.int64), start.astype(np.int64)
            return cls(_native(X.data), index, start, *X.shape)
        return cls(_native(X), None, None, *X.shape)

    @property
    def sparse(self) -> bool:
        return self.index is not None

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def blocks(self) -> Iterator[Values]:
        yield self

    def each(self, look: Callable[[slice, Values], T]) -> Iterator[T]:
        yield look(slice(0, self.n_rows), self)

    def rows(self, begin: int, end: int) -> Values:
        """Return a view of consecutive rows."""
        size = (end - begin, self.n_features)
        if self.index is None or self.start is None:
            return Values(self.data[begin:end], None, None, *size)
        stored = slice(self.start[begin], self.start[end])
        start = self.start[begin : end + 1] - self.start[begin]
        return Values(self.data[stored], self.index[stored], start, *size)

    @property
    def core(self) -> _core.Values:
        """The checked view that the core's passes take."""
        return _core.Values(self.data, self.index, self.start, self.n_features)

    def csr(self) -> sp.csr_array:
        """Return sparse values as a SciPy array."""
        return sp.csr_array(
            (self.data, self.index, self.start), shape=(self.n_rows, self.n_features)
        )

    def filled_in(self) -> Values:
        """Return sparse values as dense ones."""
        return Values(self.csr().toarray(), None, None, self.n_rows, self.n_features)

    def ranges(self) -> Ranges:
        """Return the smallest and largest value of each column, absent zeros included.

        For a column without values they are NaN, or infinite with the smallest above the largest.
        """
        if not self.sparse:
            low, high = self.data.min(axis=0), self.data.max(axis=0)
            if low.dtype.kind == "f" and np.isnan(low).any():  # slower
                low, high = np.fmin.reduce(self.data), np.fmax.reduce(self.data)
            return low.astype(np.float64), high.astype(np.float64)
        low, high, stored = np.asarray(_core.column_ranges(self.core))
        absent = stored < self.n_rows
        return (
            np.where(absent, np.minimum(low, 0.0), low),
            np.where(absent, np.maximum(high, 0.0), high),
        )

    def first(self, condition: Callable) -> tuple[int, int] | None:
        """Row and column of the first stored value where ``condition(values)`` holds."""
        if self.index is not None and self.start is not None:
            positions = np.flatnonzero(condition(self.data))
            if len(positions) == 0:
                return None
            row = int(np.searchsorted(self.start, positions[0], side="right") - 1)
            return row, int(self.index[positions[0]])
        for begin in range(0, self.n_rows, 1024):
            hits = np.argwhere(condition(self.data[begin : begin + 1024]))
            if len(hits):
                return begin + int(hits[0, 0]), int(hits[0, 1])
        return None


@overload
def filled_in(source: Values, scale: Scale) -> Values: ...
@overload
def filled_in(source: Source, scale: Scale) -> Source: ...
def filled_in(source: Source, scale: Scale) -> Source:
    """Return the source, densified if the scale moves zero."""
    if not source.sparse or not scale.moves_zero:
        return source
    if source.n_rows * source.n_features * source.dtype.itemsize > _DENSIFY_BYTES:
        raise ValueError(
            "scaling shifts negative columns so that absent entries are no longer zero, and "
            f"the {source.n_rows} x {source.n_features} matrix is too large to fill in. "
            "Make the data non-negative, for example with MaxAbsScaler and two columns per "
            "signed feature."
        )
    if isinstance(source, Values):
        return source.filled_in()
    return _FilledIn(source, source.n_rows, source.n_features, source.dtype)


@dataclass(frozen=True)
class _FilledIn:
    """A sparse source that densifies one block at a time."""

    source: Source
    n_rows: int
    n_features: int
    dtype: np.dtype
    sparse = False

    def blocks(self) -> Iterator[Values]:
        return (block.filled_in() for block in self.source.blocks())

    def each(self, look: Callable[[slice, Values], T]) -> Iterator[T]:
        return self.source.each(lambda rows, block: look(rows, block.filled_in()))

    def ranges(self) -> Ranges:
        return self.source.ranges()


def united(one: Ranges, other: Ranges) -> Ranges:
    """Merge the ranges of two blocks; columns that a block lacks are 0 in it."""
    width = max(len(one[0]), len(other[0]))
    low, high = (
        [np.pad(ranges[side], (0, width - len(ranges[side]))) for ranges in (one, other)]
        for side in (0, 1)
    )
    return np.fmin(*low), np.fmax(*high)


def ranges(source: Source) -> Ranges:
    """Return smallest and largest value of each column, zeros included; 0 if all are missing."""
    low, high = source.ranges()
    known = low <= high
    return np.where(known, low, 0.0), np.where(known, high, 0.0)


def distinct(source: Source, scale: Scale, limit: int) -> np.ndarray:
    """Return the sorted distinct scaled values; stop when they exceed ``limit``."""
    seen: np.ndarray | None = None
    for part in source.each(lambda _, b: _core.distinct_values(b.core, scale.core, limit)):
        values = np.asarray(part)
        seen = values if seen is None else np.union1d(seen, values)
        if len(seen) > limit:
            break
    return np.zeros(0) if seen is None else seen


@dataclass(frozen=True)
class Histogram:
    """Weight and sum of the scaled values in cells that are equidistant in sqrt(t / top)."""

    weight: np.ndarray
    total: np.ndarray
    top: float


def histogram(
    source: Source,
    scale: Scale,
    row_weight: np.ndarray,
    *,
    top: float,
    n_cells: int,
    skip_zeros: bool,
) -> Histogram:
    """Histogram the scaled values from 0 to ``top``, weighted by row."""

    def counted(rows: slice, block: Values) -> np.ndarray:
        how = (row_weight[rows], top, skip_zeros, n_cells)
        return _core.value_histogram(block.core, scale.core, *how)

    sums = np.zeros((2, n_cells))
    for block_sums in source.each(counted):
        sums += block_sums
    return Histogram(sums[0], sums[1], top)


def first(source: Source, condition: Callable) -> tuple[int, int]:
    """Row and column of the first stored value where ``condition(values)`` holds."""
    begin = 0
    for block in source.blocks():
        position = block.first(condition)
        if position is not None:
            return begin + position[0], position[1]
        begin += block.n_rows
    raise AssertionError("no such value")  # pragma: no cover


def any_value(source: Source, condition: Callable) -> bool:
    """Whether ``condition(values)`` holds for any stored value, without large temporaries."""
    for block in source.blocks():
        step = max(_PIECE // (1 if block.sparse else block.n_features), 1)
        pieces = (block.data[i : i + step] for i in range(0, len(block.data), step))
        if any(np.any(condition(piece)) for piece in pieces):
            return True
    return False


def gathered(source: Source) -> Values:
    """Return all rows in one block; a single block is not copied."""
    blocks = list(source.blocks())
    if len(blocks) == 1:
        return blocks[0]
    if source.sparse:
        return Values.of(sp.vstack([block.csr() for block in blocks], format="csr"))
    return Values.of(np.vstack([block.data for block in blocks]))


def _native(a: np.ndarray) -> np.ndarray:
    if not a.flags.aligned or any(step % a.itemsize for step in a.strides):
        a = a.copy()
    if a.dtype == bool:
        return a.view(np.uint8)
    if a.dtype in _NATIVE and a.dtype.isnative:
        return a
    return a.astype(np.float32 if a.dtype == np.float16 else np.float64)
