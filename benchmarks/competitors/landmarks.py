"""LLSVM and LTPU: k-means centres as landmarks of the RBF kernel, then LIBLINEAR."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from benchmarks.competitors.liblinear import liblinear

RANK = 3000  # DC-SVM, section 5


def centres(X, number: int, seed: int) -> np.ndarray:
    """k-means centres; the rows themselves where there are no more of them."""
    if X.shape[0] <= number:
        return np.asarray(X, dtype=np.float64)
    return MiniBatchKMeans(number, n_init=1, random_state=seed).fit(X).cluster_centers_


class KMeansNystroem(Nystroem):
    """Zhang, Tsang and Kwok (2008): Nystroem's method with k-means centres as landmarks."""

    def fit(self, X, y=None):
        landmarks = centres(X, self.n_components, self.random_state)
        wanted, self.n_components = self.n_components, len(landmarks)
        try:
            return super().fit(landmarks)
        finally:
            self.n_components = wanted


class RadialUnits(TransformerMixin, BaseEstimator):
    """Moody and Darken (1989): exp(-gamma |x - c|^2) for each of the centres c."""

    def __init__(self, gamma: float = 1.0, number: int = RANK, seed: int = 0):
        self.gamma = gamma
        self.number = number
        self.seed = seed

    def fit(self, X, y=None):
        self.centres_ = centres(X, self.number, self.seed)
        return self

    def transform(self, X):
        return rbf_kernel(X, self.centres_, gamma=self.gamma)


def llsvm(C: float = 1.0, gamma: float = 1.0, rank: int = RANK, seed: int = 0):
    """LLSVM (Zhang et al., AISTATS 2012): low-rank linearisation, then a linear SVM."""
    linearised = KMeansNystroem(gamma=gamma, n_components=rank, random_state=seed)
    return make_pipeline(linearised, liblinear(C, seed=seed))


def ltpu(C: float = 1.0, gamma: float = 1.0, number: int = RANK, seed: int = 0):
    """LTPU as DC-SVM ran it: gamma of the best kernel SVM, output weights by LIBLINEAR."""
    return make_pipeline(RadialUnits(gamma, number, seed), liblinear(C, seed=seed))
