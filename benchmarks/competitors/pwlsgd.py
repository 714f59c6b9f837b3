"""PWLSGD: piecewise linear additive classifiers by stochastic gradients."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from benchmarks.competitors.binary import BinaryMachine


class PiecewiseLinearCode(TransformerMixin, BaseEstimator):
    """Maji and Berg (2009), the encoding phi_2: two weights at the ends of a value's bin.

    Bins are even between the least and the largest value of each feature.  The lowest end has no
    column: a function of the intersection kernel is 0 there.
    """

    def __init__(self, bins: int = 20):
        self.bins = bins

    def fit(self, X, y=None):
        X = np.asarray(X, dtype=np.float64)
        self.low_ = X.min(axis=0)
        self.width_ = (X.max(axis=0) - self.low_) / self.bins
        self.width_[self.width_ == 0] = 1.0
        return self

    def transform(self, X) -> sp.csr_matrix:
        X = np.asarray(X, dtype=np.float64)
        place = np.clip((X - self.low_) / self.width_, 0, self.bins)
        below = np.minimum(place.astype(int), self.bins - 1)
        share = place - below
        n, d = X.shape
        first = np.arange(d) * self.bins
        columns = np.stack([first + below - 1, first + below], axis=2)
        values = np.stack([np.where(below > 0, 1 - share, 0.0), share], axis=2)
        columns[..., 0] = np.maximum(columns[..., 0], first)  # of a weight that is 0
        pointer = np.arange(n + 1) * 2 * d
        code = sp.csr_matrix((values.ravel(), columns.ravel(), pointer), (n, d * self.bins))
        code.sum_duplicates()
        return code


def roughness(bins: int) -> np.ndarray:
    """H: w'Hw is the sum of squared steps of a function with values w at the ends of its bins.

    Its inverse is min(s, t), so that with it the code has the intersection kernel.

    >>> np.linalg.inv(roughness(3)).round()
    array([[1., 1., 1.],
           [1., 2., 2.],
           [1., 2., 3.]])
    """
    H = 2 * np.eye(bins) - np.eye(bins, k=1) - np.eye(bins, k=-1)
    H[-1, -1] = 1.0
    return H


class PWLSGD(BinaryMachine):
    """Maji and Berg, "Max-margin additive classifiers for detection", ICCV 2009.

    min L/2 w'Hw + mean hinge on the piecewise linear code, by Pegasos with w'Hw in the place of
    |w|^2: steps of 1 / (L t) along L H w minus the mean of the violating rows, L = 1 / (C n).
    The paper was not at hand: the rule of steps is our reading of it.
    """

    def __init__(
        self, C: float = 1.0, bins: int = 20, passes: int = 20, batch: int = 32, seed: int = 0
    ):
        self.C = C
        self.bins = bins
        self.passes = passes
        self.batch = batch
        self.seed = seed

    def _fit(self, X, signs):
        self.code_ = PiecewiseLinearCode(self.bins).fit(X)
        signed = sp.diags(signs).tocsr() @ self.code_.transform(X)
        n, d = X.shape
        strength = 1 / (self.C * n)
        rng = np.random.default_rng(self.seed)
        w = np.zeros((d, self.bins))
        for t in range(2, self.passes * n // self.batch + 2):  # H reaches 4: a first step diverges
            rows = signed[rng.integers(n, size=self.batch)]
            violating = (rows @ w.ravel() < 1).astype(float)
            w -= _times_roughness(w) / t
            w += (violating @ rows).reshape(w.shape) / (strength * t * self.batch)
        self.coef_ = w.ravel()

    def _decide(self, X):
        return self.code_.transform(X) @ self.coef_


def _times_roughness(w: np.ndarray) -> np.ndarray:
    """w H for each row of w, in as many steps as w has numbers."""
    steps = np.diff(w, axis=1, prepend=0.0)
    return steps - np.append(steps[:, 1:], np.zeros((len(w), 1)), axis=1)
