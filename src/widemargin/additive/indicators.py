"""Indicator features: categories and missing values.

They need no bins.  An indicator's code is the last one, which represents the largest value of
numbers, or 0 (absent).  So k of two rows that share a category is k(top, top).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from widemargin.additive.codes import Codes, mostly_absent


@dataclass(frozen=True)
class Indicators:
    """The indicators of every row, in compressed form.

    Attributes
    ----------
    start : ndarray of shape (n_rows + 1,), dtype int64
        Start of each row's features.
    index : ndarray of shape (n_stored,), dtype int64
        Ascending within a row.
    n_features : int
    """

    start: np.ndarray
    index: np.ndarray
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


def beside(codes: Codes, marks: Indicators, code: int, *, compressed: bool | None = None) -> Codes:
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
