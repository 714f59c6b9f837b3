"""Random features of the RBF kernel, then LIBLINEAR: plain ones, and Fastfood."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import validate_data

from benchmarks.competitors.liblinear import liblinear

FEATURES = 3000  # DC-SVM, section 5


def hadamard(Z: np.ndarray) -> np.ndarray:
    """Rows of Z times the Hadamard matrix, in d log d steps; d is a power of 2.

    >>> hadamard(np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    array([[ 1.,  1.,  1.,  1.],
           [ 1., -1.,  1., -1.]])
    """
    n, d = Z.shape
    half = 1
    while half < d:
        pairs = Z.reshape(n, -1, 2, half)
        Z = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    return Z.reshape(n, d)


class Fastfood(TransformerMixin, BaseEstimator):
    """Le, Sarlos and Smola (ICML 2013), eq. 7: V = S H G P H B in the place of a Gaussian matrix.

    B has random signs, P permutes, G is Gaussian, H is Hadamard's matrix and S gives the rows of
    V the lengths of Gaussian ones.  Features are cosine and sine of Vx, as many blocks of d as it
    takes for about ``number`` of them.
    """

    def __init__(self, gamma: float = 1.0, number: int = FEATURES, seed: int = 0):
        self.gamma = gamma
        self.number = number
        self.seed = seed

    def fit(self, X, y=None):
        X = validate_data(self, X, dtype=np.float64)
        rng = np.random.default_rng(self.seed)
        d = 1 << max(X.shape[1] - 1, 0).bit_length()
        blocks = max(1, round(self.number / (2 * d)))
        self.signs_ = rng.choice([-1.0, 1.0], (blocks, d))
        self.orders_ = np.stack([rng.permutation(d) for _ in range(blocks)])
        self.gaussian_ = rng.standard_normal((blocks, d))
        # Rows of H G P H B have the length sqrt(d) |G|; chi with d degrees is a Gaussian row's.
        lengths = np.sqrt(rng.chisquare(d, (blocks, d)))
        self.scale_ = lengths / np.linalg.norm(self.gaussian_, axis=1, keepdims=True)
        return self

    def project(self, X: np.ndarray) -> np.ndarray:
        """Vx for each block, one after the other."""
        d = self.signs_.shape[1]
        Z = np.zeros((len(X), d))
        Z[:, : X.shape[1]] = X
        parts = [
            hadamard(hadamard(Z * sign)[:, order] * gaussian) * scale / np.sqrt(d)
            for sign, order, gaussian, scale in zip(
                self.signs_, self.orders_, self.gaussian_, self.scale_, strict=True
            )
        ]
        return np.hstack(parts)

    def transform(self, X):
        X = validate_data(self, X, dtype=np.float64, reset=False)
        angle = np.sqrt(2 * self.gamma) * self.project(X)
        return np.hstack([np.cos(angle), np.sin(angle)]) / np.sqrt(angle.shape[1])


def fastfood(C: float = 1.0, gamma: float = 1.0, number: int = FEATURES, seed: int = 0):
    """Fastfood as DC-SVM ran it: about 3,000 features and LIBLINEAR."""
    return make_pipeline(Fastfood(gamma, number, seed), liblinear(C, seed=seed))


def fourier_features(C: float = 1.0, gamma: float = 1.0, number: int = FEATURES, seed: int = 0):
    """Rahimi and Recht (2007), scikit-learn's RBFSampler, then LIBLINEAR."""
    sampler = RBFSampler(gamma=gamma, n_components=number, random_state=seed)
    return make_pipeline(sampler, liblinear(C, seed=seed))
