"""fm-chi2 and fm-HI: homogeneous kernel maps, then LIBLINEAR."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from benchmarks.competitors.liblinear import liblinear


def _chi2_spectrum(frequency):
    return 1 / np.cosh(np.pi * frequency)


def _intersection_spectrum(frequency):
    return 2 / np.pi / (1 + 4 * frequency**2)


def _jensen_shannon_spectrum(frequency):
    return 2 / np.log(4) / np.cosh(np.pi * frequency) / (1 + 4 * frequency**2)


# Spectrum, and VLFeat's period for 2n + 1 numbers with the uniform window.
KERNELS = {
    "chi2": (_chi2_spectrum, lambda n: 5.86 * np.sqrt(n) + 3.65),
    "intersection": (_intersection_spectrum, lambda n: 2.38 * np.log(n + 0.8) + 5.6),
    "jensen_shannon": (_jensen_shannon_spectrum, lambda n: 6.64 * np.sqrt(n) + 7.24),
}


class HomogeneousMap(TransformerMixin, BaseEstimator):
    """Vedaldi and Zisserman (2012), eq. 11: each value x becomes 2n + 1 numbers.

    sqrt(x L s(0)) and sqrt(2 x L s(jL)) times cosine and sine of jL ln x for j = 1..n, where s is
    the kernel's spectrum and L = 2 pi / period.  With ``bins``, values in [0, 1] are first cut to
    multiples of 1/bins, which is PmSVM's look-up table (its section 5.1).
    """

    def __init__(self, kernel="chi2", n: int = 1, step: float | None = None, bins: int = 0):
        self.kernel = kernel
        self.n = n
        self.step = step
        self.bins = bins

    def fit(self, X, y=None):
        spectrum, period = KERNELS[self.kernel]
        self.step_ = 2 * np.pi / period(self.n) if self.step is None else self.step
        frequencies = self.step_ * np.arange(self.n + 1)
        self.amplitudes_ = np.sqrt(self.step_ * spectrum(frequencies))
        self.amplitudes_[1:] *= np.sqrt(2)
        return self

    def _numbers(self, x: np.ndarray) -> np.ndarray:
        if self.bins:
            x = np.floor(x * self.bins) / self.bins
        angle = np.outer(np.log(np.where(x > 0, x, 1.0)), self.step_ * np.arange(1, self.n + 1))
        waves = np.stack([np.cos(angle), np.sin(angle)], axis=2) * self.amplitudes_[1:, None]
        constant = np.full((len(x), 1), self.amplitudes_[0])
        return np.sqrt(x)[:, None] * np.hstack([constant, waves.reshape(len(x), -1)])

    def transform(self, X):
        X = sp.csr_matrix(X, dtype=np.float64)
        if X.nnz and X.data.min() < 0:
            raise ValueError("HomogeneousMap takes values of at least 0: scale X to [0, 1].")
        r = 2 * self.n + 1
        index = X.indices[:, None] * r + np.arange(r)
        parts = (self._numbers(X.data).ravel(), index.ravel().astype(np.int32), X.indptr * r)
        return sp.csr_matrix(parts, shape=(X.shape[0], X.shape[1] * r))


def fm_chi2(C: float = 0.01, n: int = 1, bins: int = 1000, seed: int = 0):
    """fm-chi2 of PmSVM's tables: three numbers a value, a look-up table, C = 0.01."""
    return make_pipeline(HomogeneousMap("chi2", n, bins=bins), liblinear(C, seed=seed))


def fm_hi(C: float = 0.01, n: int = 1, bins: int = 1000, seed: int = 0):
    """fm-HI of PmSVM's tables."""
    return make_pipeline(HomogeneousMap("intersection", n, bins=bins), liblinear(C, seed=seed))
