"""Additive kernel PCA: an explicit embedding learned feature by feature."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from benchmarks.competitors.liblinear import liblinear
from widemargin.additive.kernels import resolve_kernel


class AdditiveKernelPCA(TransformerMixin, BaseEstimator):
    """Perronnin, Sanchez and Liu, "Large-scale image categorization with explicit data embedding",
    CVPR 2010, section 4: kernel PCA of each feature by itself, extended by Nystroem's formula.

    z_e(x) = sum_i u_ie k(x, x_i) / sqrt(s_e), over the sampled values x_i of the feature, with
    the eigenvectors u and eigenvalues s of their kernel matrix (not centred).
    """

    def __init__(self, kernel="chi2", rank: int = 3, sample: int = 200, seed: int = 0):
        self.kernel = kernel
        self.rank = rank
        self.sample = sample
        self.seed = seed

    def fit(self, X, y=None):
        X = np.asarray(X, dtype=np.float64)
        rows = np.random.default_rng(self.seed).permutation(len(X))[: self.sample]
        self.kernel_ = resolve_kernel(self.kernel)
        self.values_ = [np.unique(column[column > 0]) for column in X[rows].T]
        self.weights_ = [self._weights(v, c) for v, c in zip(self.values_, X[rows].T, strict=True)]
        return self

    def _weights(self, values: np.ndarray, column: np.ndarray) -> np.ndarray:
        """u / sqrt(s); equal values are one, weighted by how often it occurs."""
        times = np.sqrt((column[:, None] == values).sum(axis=0))
        gram = self.kernel_(values[:, None], values[None, :]) * np.outer(times, times)
        size, vector = np.linalg.eigh(gram)
        kept = np.flatnonzero(size > 1e-12 * max(size.max(initial=0.0), 1e-300))[::-1][: self.rank]
        weights = np.zeros((len(values), self.rank))
        weights[:, : len(kept)] = times[:, None] * vector[:, kept] / np.sqrt(size[kept])
        return weights

    def transform(self, X):
        X = np.asarray(X, dtype=np.float64)
        parts = [
            self.kernel_(column[:, None], values[None, :]) @ weights
            for column, values, weights in zip(X.T, self.values_, self.weights_, strict=True)
        ]
        return np.hstack(parts)


def additive_pca(C: float = 0.01, kernel: str = "chi2", rank: int = 3, seed: int = 0):
    """The embedding of Perronnin et al., then LIBLINEAR."""
    return make_pipeline(AdditiveKernelPCA(kernel, rank, seed=seed), liblinear(C, seed=seed))
