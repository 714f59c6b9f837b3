"""Rows of bin codes, dense or compressed: one or two bytes per number, and 0/1 features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from widemargin import _core
from widemargin.additive.encoder import Encoder
from widemargin.additive.source import Values, filled_in

# Rows with fewer stored values than this are faster compressed: the fused dense loop costs
# about half as much per value as the compressed one (benchmarks/results/layout.md).
_DENSE_ENOUGH = 0.4


class CodedRows(ABC):
    """Rows of codes in one or several blocks, and sums over them."""

    n_rows: int
    n_features: int
    n_codes: int

    at_once = 1  # blocks whose rows a sweep mixes

    @property
    def cuts(self) -> np.ndarray:
        """Start of each block, and the end of the last one."""
        return np.array([0, self.n_rows])

    @abstractmethod
    def groups(self, groups: Sequence[Sequence[int]]) -> Iterator[Codes]:
        """Yield groups of blocks, given by their numbers, each group as one block."""

    def blocks(self) -> Iterator[tuple[slice, Codes]]:
        """Yield all blocks in order, with their rows."""
        rows = [slice(begin, end) for begin, end in pairwise(self.cuts.tolist())]
        return zip(rows, self.groups([(k,) for k in range(len(rows))]), strict=True)

    def slices(self, n_rows: int) -> Iterator[tuple[slice, Codes]]:
        """Yield all rows in order, at most ``n_rows`` at a time."""
        for rows, block in self.blocks():
            if block.n_rows <= n_rows:
                yield rows, block
                continue
            for begin in range(0, block.n_rows, n_rows):
                end = min(begin + n_rows, block.n_rows)
                yield slice(rows.start + begin, rows.start + end), block.of_rows(begin, end)

    def frequency(self, row_weight: np.ndarray) -> np.ndarray:
        """Return the total weight of each code; 0 for code 0 (absent)."""
        count = np.zeros(self.n_codes)
        for rows, block in self.blocks():
            count += _core.count_codes(block.core, row_weight[rows])
        count[0] = 0
        return count

    def row_sums(self, table: np.ndarray) -> np.ndarray:
        """Return the sum of a table's entries over each row's codes."""
        return np.concatenate([_core.row_sums(block.core, table) for _, block in self.blocks()])

    def largest(self) -> np.ndarray:
        """Return the largest code of each feature."""
        largest = np.zeros(self.n_features, dtype=np.int64)
        for _, block in self.blocks():
            np.maximum(largest, _core.largest_codes(block.core), out=largest)
        return largest


@dataclass(frozen=True)
class Codes(CodedRows):
    """One block: ``data`` dense, or compressed with ``index`` and ``start``."""

    data: np.ndarray
    index: np.ndarray | None
    start: np.ndarray | None
    n_rows: int
    n_features: int
    n_codes: int

    @property
    def n_stored(self) -> int:
        """Number of nonzero codes."""
        return int(np.count_nonzero(self.data))

    @cached_property
    def core(self) -> _core.Rows:
        """The checked view that the core's loops take."""
        return _core.Rows(self.data, self.index, self.start, self.n_features, self.n_codes)

    def groups(self, groups: Sequence[Sequence[int]]) -> Iterator[Codes]:
        return (self for _ in groups)

    def of_rows(self, begin: int, end: int) -> Codes:
        """Return a view of some rows."""
        if self.index is None or self.start is None:
            return replace(self, data=self.data[begin:end], n_rows=end - begin)
        start = self.start[begin : end + 1]
        stored = slice(int(start[0]), int(start[-1]))
        data, index = self.data[stored], self.index[stored]
        return replace(self, data=data, index=index, start=start - start[0], n_rows=end - begin)

    def of_features(self, begin: int, end: int) -> Codes:
        """Return a copy of some features of dense rows."""
        data = np.ascontiguousarray(self.data[:, begin:end])
        return replace(self, data=data, n_features=data.shape[1])

    def __getstate__(self) -> dict:
        """Omit the core's view, which belongs to this process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def toarray(self) -> np.ndarray:
        """Return dense codes, 0 where a value is absent."""
        if self.index is None or self.start is None:
            return self.data
        out = np.zeros((self.n_rows, self.n_features), dtype=self.data.dtype)
        out[np.repeat(np.arange(self.n_rows), np.diff(self.start)), self.index] = self.data
        return out

    def compressed(self) -> Codes:
        """Return compressed rows, without zeros."""
        if self.index is not None:
            return self
        start, index, data = _core.compress(self.data, self.n_codes)
        return replace(self, data=data, index=index, start=start)

    def widened(self, n_codes: int) -> Codes:
        """Return the codes in a type with room for ``n_codes``."""
        if self.data.dtype.itemsize >= np.min_scalar_type(n_codes - 1).itemsize:
            return replace(self, n_codes=n_codes)
        index = None if self.index is None else self.index.astype(np.uint32)
        data = self.data.astype(np.min_scalar_type(n_codes - 1))
        return replace(self, data=data, index=index, n_codes=n_codes)


def encode(values: Values, encoder: Encoder, *, compressed: bool | None = None) -> Codes:
    """Encode all rows, compressed or not (None: by the number of zeros).

    Bytes that are their own codes are not copied.
    """
    values = filled_in(values, encoder.scale)
    codes = _encoded(values, encoder)
    if compressed is None:
        compressed = not values.sparse and mostly_absent(codes.n_stored, codes)
    return codes.compressed() if compressed else codes


def _encoded(block: Values, encoder: Encoder) -> Codes:
    """Return codes in the block's layout."""
    size = (block.n_rows, block.n_features, encoder.n_codes)
    how = (encoder.scale.core, encoder.thresholds)
    if block.sparse:
        start, index, data = _core.encode_sparse(block.core, *how)
        return Codes(data, index, start, *size)
    if _is_identity(block.data, encoder):
        return Codes(block.data, None, None, *size)
    return Codes(_core.encode_dense(block.core, *how), None, None, *size)


def _is_identity(values: np.ndarray, encoder: Encoder) -> bool:
    """Whether the values are bytes equal to their codes, so that no copy is needed."""
    if values.dtype != np.uint8 or not values.flags.c_contiguous or len(encoder.shift) > 1:
        return False
    every = Values.of(np.arange(256, dtype=np.uint8)[None, :])
    codes = _core.encode_dense(every.core, encoder.scale.core, encoder.thresholds)
    return codes.dtype == np.uint8 and np.array_equal(codes, every.data)


def mostly_absent(n_stored: int, shape: Values | Codes) -> bool:
    """Whether few enough codes are nonzero to compress the rows."""
    return n_stored < _DENSE_ENOUGH * shape.n_rows * shape.n_features


# ------------------------------------------------------------------ indicators


@dataclass(frozen=True)
class Indicators:
    """0/1 features of every row (categories, missing values), in compressed form.

    They need no bins: the code of a 1 is the last one, which represents the largest value of
    numbers.  So k of two rows that share a category is k(top, top).
    """

    start: np.ndarray  # start of each row's features, (n_rows + 1,), int64
    index: np.ndarray  # (n_stored,), int64, ascending within a row
    n_features: int

    @classmethod
    def of(cls, columns: Sequence[np.ndarray], n_rows: int, n_features: int) -> Indicators:
        """Build from arrays with one feature per row, or -1; features ascend across arrays.

        Examples
        --------
        >>> Indicators.of([np.array([0, 1]), np.array([-1, 2])], 2, 3).index.tolist()
        [0, 1, 2]
        """
        stacked = np.full((n_rows, len(columns)), -1, dtype=np.int64)
        for k, column in enumerate(columns):
            stacked[:, k] = column
        has = stacked >= 0
        start = np.concatenate([[0], np.cumsum(has.sum(axis=1))]).astype(np.int64)
        return cls(start, stacked[has], n_features)

    @property
    def rows(self) -> np.ndarray:
        """Return the row of every stored feature."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def with_indicators(
    codes: Codes, marks: Indicators, code: int, *, compressed: bool | None = None
) -> Codes:
    """Append codes of indicators (``code`` or 0) to the codes of numbers.

    ``compressed=None`` chooses the layout by the number of zeros.
    """
    p, size = codes.n_features, (codes.n_rows, codes.n_features + marks.n_features)
    joined = replace(codes, n_features=size[1])
    if compressed is None:
        n_stored = codes.n_stored + len(marks.index)
        compressed = codes.index is not None or mostly_absent(n_stored, joined)
    if not compressed and codes.index is None:
        data = np.zeros(size, dtype=codes.data.dtype)
        data[:, :p] = codes.data
        data[marks.rows, p + marks.index] = code
        return replace(joined, data=data)
    numbers = codes.compressed()
    assert numbers.index is not None
    assert numbers.start is not None
    # Numbers come first in every row.
    of_numbers = np.arange(len(numbers.data))
    of_numbers += np.repeat(marks.start[:-1], np.diff(numbers.start))
    of_marks = np.arange(len(marks.index)) + np.repeat(numbers.start[1:], np.diff(marks.start))
    n = len(of_numbers) + len(of_marks)
    data = np.empty(n, dtype=numbers.data.dtype)
    index = np.empty(n, dtype=_index_type(size[1], codes.n_codes))
    data[of_numbers], index[of_numbers] = numbers.data, numbers.index
    data[of_marks], index[of_marks] = code, p + marks.index
    return replace(joined, data=data, index=index, start=numbers.start + marks.start)


def _index_type(n_features: int, n_codes: int) -> np.dtype:
    """Return the core's index type: few features go with small codes."""
    return np.dtype(np.uint16 if n_codes <= 0x100 and n_features <= 0x10000 else np.uint32)
