"""Pegasos: projected stochastic gradients for the linear SVM."""

from __future__ import annotations

import numpy as np

from benchmarks.competitors.binary import BinaryMachine


class Pegasos(BinaryMachine):
    """Shalev-Shwartz, Singer and Srebro (ICML 2007), Figure 1.

    min L/2 |w|^2 + mean hinge, with L = 1 / (C n); steps of 1 / (L t) on ``batch`` random rows,
    each followed by the projection onto the ball of radius 1 / sqrt(L).
    """

    def __init__(self, C: float = 1.0, passes: int = 5, batch: int = 1, seed: int = 0):
        self.C = C
        self.passes = passes
        self.batch = batch
        self.seed = seed

    def _fit(self, X, signs):
        n, d = X.shape
        strength = 1 / (self.C * n)
        rng = np.random.default_rng(self.seed)
        w = np.zeros(d)
        signed = X * signs[:, None]
        for t in range(1, self.passes * n // self.batch + 1):
            rows = signed[rng.integers(n, size=self.batch)]
            violating = rows[rows @ w < 1]
            w *= 1 - 1 / t
            w += violating.sum(axis=0) / (strength * t * self.batch)
            norm = np.linalg.norm(w)
            w *= min(1.0, 1 / (np.sqrt(strength) * norm)) if norm else 1.0
        self.coef_ = w

    def _decide(self, X):
        return X @ self.coef_
