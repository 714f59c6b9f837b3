"""Share of each code of each feature in the training data, kept in the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from widemargin import _core
from widemargin.additive.codes import CodedRows

ROUNDING = 1e-7
"""Rounding tolerance for the sum of a feature's float32 shares."""


@dataclass(frozen=True)
class BinShares:
    """Shares of the codes of every feature; code 0 (absent) has the remainder.

    Rows count with their sample weights.  Only codes that occur are stored.

    Attributes
    ----------
    start : ndarray of shape (n_features + 1,), dtype int64
        Start of each feature's codes.
    code : ndarray of shape (n_cells,)
        Ascending within a feature, in the smallest sufficient type.
    share : ndarray of shape (n_cells,), dtype float32
    """

    start: np.ndarray
    code: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, codes: CodedRows, row_weight: np.ndarray) -> BinShares:
        """Count the codes of all rows, block by block."""
        n, key = codes.n_codes, np.zeros(0, np.int64)
        total: np.ndarray = np.zeros(0)
        for rows, block in codes.blocks():
            start, code, weight = map(np.asarray, _core.count_cells(block.core, row_weight[rows]))
            if block.n_rows == codes.n_rows:
                return cls._packed(start, code, weight / row_weight.sum(), n)
            own = np.repeat(np.arange(codes.n_features), np.diff(start)) * n + code
            key, number = np.unique(np.append(key, own), return_inverse=True)
            total = np.bincount(number, np.append(total, weight), len(key))
        start = np.searchsorted(key, np.arange(codes.n_features + 1) * n)
        return cls._packed(start, key % n, total / row_weight.sum(), n)

    @classmethod
    def _packed(cls, start, code, share, n_codes: int) -> BinShares:
        return cls(start, code.astype(code_type(n_codes)), share.astype(np.float32))

    @property
    def n_features(self) -> int:
        return len(self.start) - 1

    @cached_property
    def feature(self) -> np.ndarray:
        """Feature of every cell."""
        return np.repeat(np.arange(self.n_features), np.diff(self.start))

    @cached_property
    def _by_feature(self) -> sp.csr_array:
        """Matrix (n_features, n_cells) that maps cell values to means, counting absent as 0."""
        content = (self.share.astype(np.float64), np.arange(len(self.code)), self.start)
        return sp.csr_array(content, shape=(self.n_features, len(self.code)))

    @property
    def present(self) -> np.ndarray:
        """Share of rows with a code other than 0, (n_features,)."""
        return self._by_feature @ np.ones(len(self.code))

    @cached_property
    def absent(self) -> np.ndarray:
        """Share of rows with code 0, (n_features,)."""
        rest = 1 - self.present
        return np.where(rest > ROUNDING, rest, 0.0)

    def of_feature(self, feature: int, n_codes: int) -> np.ndarray:
        """Return the share of every code, 0 included, (n_codes,)."""
        own = slice(*self.start[feature : feature + 2])
        shares = np.zeros(n_codes)
        shares[self.code[own]] = self.share[own]
        shares[0] = self.absent[feature]
        return shares

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over rows of (n_cells, k) values, absent as 0: (n_features, k)."""
        return self._by_feature @ values

    def mean_distance(self, values: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Return the mean of |value - centre of its feature| in the same way."""
        absent = self.absent[:, None] * np.abs(centre)
        return self._by_feature @ np.abs(values - centre[self.feature]) + absent

    def recoded(self, code: np.ndarray, n_codes: int) -> BinShares:
        """Return the shares with code c replaced by ``code[c]`` of a coarser table."""
        key = self.feature * n_codes + code[self.code]
        cells, number = np.unique(key, return_inverse=True)
        share = np.bincount(number, self.share, len(cells))
        start = np.searchsorted(cells, np.arange(self.n_features + 1) * n_codes)
        return self._packed(start, cells % n_codes, share, n_codes)


def code_type(n_codes: int) -> np.dtype:
    """Return the smallest integer type for n_codes codes."""
    return np.min_scalar_type(max(n_codes - 1, 0))
