"""SIKMA: the intersection kernel by stochastic gradients on tables."""

from __future__ import annotations

import numpy as np

from benchmarks.competitors.binary import BinaryMachine


class SIKMA(BinaryMachine):
    """Wang, Hoiem and Forsyth, "Learning image similarity from Flickr groups using stochastic
    intersection kernel machines", ICCV 2009.

    Kernel gradients of Kivinen et al. (2004) for L/2 |f|^2 + mean hinge, L = 1 / (C n): f shrinks
    by 1 - rate L and a row that violates its margin adds rate y k(x, .).  f is a sum of functions
    of one feature, kept as a table of their values at ``bins`` even places, so that a step does
    not grow with the support vectors.  The rate is 1 / (L (t + offset)); offset 1 is Pegasos'.
    The paper was not at hand: the loss and this rate are our reading of it.
    """

    def __init__(
        self, C: float = 1.0, bins: int = 50, passes: int = 2, offset: int = 1, seed: int = 0
    ):
        self.C = C
        self.bins = bins
        self.passes = passes
        self.offset = offset
        self.seed = seed

    def _fit(self, X, signs):
        self.low_, self.high_ = X.min(axis=0), X.max(axis=0)
        n, d = X.shape
        places = np.arange(self.bins + 1)
        codes = self._codes(X)
        width = np.where(self.high_ > self.low_, self.high_ - self.low_, 0.0) / self.bins
        strength = 1 / (self.C * n)
        rng = np.random.default_rng(self.seed)
        order = np.concatenate([rng.permutation(n) for _ in range(self.passes)])
        features = np.arange(d)
        table, scale = np.zeros((d, self.bins + 1)), 1.0  # f is scale times table
        for t, i in enumerate(order):
            rate = 1 / (strength * (t + self.offset))
            margin = signs[i] * scale * table[features, codes[i]].sum()
            scale *= 1 - rate * strength
            if scale == 0.0:  # the first step of offset 1 forgets all
                table[:], scale = 0.0, 1.0
            if margin < 1:
                reach = np.minimum(codes[i][:, None], places) * width[:, None]
                table += rate * signs[i] / scale * reach
        self.table_ = scale * table

    def _codes(self, X):
        span = np.where(self.high_ > self.low_, self.high_ - self.low_, 1.0)
        return np.clip(np.rint((X - self.low_) / span * self.bins), 0, self.bins).astype(int)

    def _decide(self, X):
        codes = self._codes(X)
        return self.table_[np.arange(X.shape[1]), codes].sum(axis=1)
