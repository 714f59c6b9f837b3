"""ICD's quantisation and unary code, by the letter of the paper and without our own tables."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin


class UnaryCode(TransformerMixin, BaseEstimator):
    """Values to integers 0..levels (ICD eq. 13), and integers to as many ones (eq. 4).

    The dot product of two codes is the intersection kernel of the integers, so that any linear
    program has that kernel.  One factor for all features; values above the percentile are cut.
    Where the least value is zero, zeros do not count for the percentile, as in `papers.icd`.
    """

    def __init__(self, levels: int = 100, percentile: float = 97.5):
        self.levels = levels
        self.percentile = percentile

    def fit(self, X, y=None):
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        self.low_ = X.min()
        counted = X[X > 0] if self.low_ == 0 and X.any() else X
        self.high_ = np.percentile(counted, self.percentile, method="inverted_cdf")
        if self.high_ <= self.low_:
            self.high_ = X.max()
        return self

    def quantise(self, X) -> np.ndarray:
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        # The last bits of a product decide which side of an integer it falls on: they are rounded.
        scaled = self.levels * (X - self.low_) / (self.high_ - self.low_)
        return np.clip(np.round(scaled, 9), 0, self.levels).astype(np.int32)

    def transform(self, X) -> sp.csr_matrix:
        counts = self.quantise(X)
        n, d = counts.shape
        flat = counts.ravel()
        starts = np.repeat(np.tile(np.arange(d, dtype=np.int32) * self.levels, n), flat)
        ends = np.cumsum(flat)
        within = np.arange(ends[-1], dtype=np.int32) - np.repeat(ends - flat, flat)
        ones = np.ones(len(starts), dtype=np.float64)
        index = (starts + within).astype(np.int32)
        pointer = np.concatenate([[0], ends.reshape(n, d)[:, -1]]).astype(np.int32)
        return sp.csr_matrix((ones, index, pointer), shape=(n, d * self.levels))
