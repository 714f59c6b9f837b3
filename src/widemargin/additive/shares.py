"""How often each feature has each code in the training data: what a model remembers of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from widemargin import _core
from widemargin.additive.codes import CodedRows

ROUNDING = 1e-7
"""By how much the shares of a feature, which are float32, may miss 1."""


@dataclass(frozen=True)
class BinShares:
    """Shares of the codes of every feature in the rows, but for 0 (absent), which has the rest.

    Rows count by their weights in the fit.  Only codes that occur are held.

    Attributes
    ----------
    start : ndarray of shape (n_features + 1,), dtype int64
        Where the codes of each feature begin.
    code : ndarray of shape (n_cells,)
        Ascending within a feature; of the smallest type that holds them.
    share : ndarray of shape (n_cells,), dtype float32
    """

    start: np.ndarray
    code: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, codes: CodedRows, row_weight: np.ndarray) -> BinShares:
        """Of all rows; cells of several blocks are added up block by block."""
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
        """The feature of every cell."""
        return np.repeat(np.arange(self.n_features), np.diff(self.start))

    @cached_property
    def _by_feature(self) -> sp.csr_array:
        """(n_features, n_cells): times values of cells, their means where absent counts as 0."""
        content = (self.share.astype(np.float64), np.arange(len(self.code)), self.start)
        return sp.csr_array(content, shape=(self.n_features, len(self.code)))

    @property
    def present(self) -> np.ndarray:
        """(n_features,): the share of the rows in which a feature has another code than 0."""
        return self._by_feature @ np.ones(len(self.code))

    @cached_property
    def absent(self) -> np.ndarray:
        """(n_features,): the share of the rows in which a feature has code 0."""
        rest = 1 - self.present
        return np.where(rest > ROUNDING, rest, 0.0)

    def of_feature(self, feature: int, n_codes: int) -> np.ndarray:
        """(n_codes,): the share of every code, 0 among them."""
        own = slice(*self.start[feature : feature + 2])
        shares = np.zeros(n_codes)
        shares[self.code[own]] = self.share[own]
        shares[0] = self.absent[feature]
        return shares

    def mean(self, values: np.ndarray) -> np.ndarray:
        """(n_features, k): the mean over the rows of (n_cells, k), where absent counts as 0."""
        return self._by_feature @ values

    def mean_distance(self, values: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Likewise the mean of |value - centre of its feature|."""
        absent = self.absent[:, None] * np.abs(centre)
        return self._by_feature @ np.abs(values - centre[self.feature]) + absent

    def recoded(self, code: np.ndarray, n_codes: int) -> BinShares:
        """In the codes of a coarser table: ``code[c]`` instead of c."""
        key = self.feature * n_codes + code[self.code]
        cells, number = np.unique(key, return_inverse=True)
        share = np.bincount(number, self.share, len(cells))
        start = np.searchsorted(cells, np.arange(self.n_features + 1) * n_codes)
        return self._packed(start, cells % n_codes, share, n_codes)


def code_type(n_codes: int) -> np.dtype:
    """The smallest type for so many codes."""
    return np.min_scalar_type(max(n_codes - 1, 0))
