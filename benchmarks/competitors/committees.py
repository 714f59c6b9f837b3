"""Machines of parts of the rows, put together: BCM, and a random partition."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.competitors.binary import BinaryMachine
from widemargin import KernelSVC


def bcm(C: float = 1.0, gamma: float = 1.0, clusters: int = 50, seed: int = 0):
    """Bayesian committee machine of DC-SVM's clusters (Tresp, Neural Computation 2000, eq. 13).

    The clusters' decisions are weighted by the certainty that a Gaussian process with the same
    kernel has of them.
    """
    return KernelSVC(
        C=C,
        gamma=gamma,
        branching=clusters,
        levels=1,
        early=1,
        early_prediction="bcm",
        random_state=seed,
    )


class RandomPartition(BinaryMachine):
    """DC-SVM's Figure 1: its subproblems (eq. 2) on random parts, glued and summed (eq. 10).

    What clustering is worth is the difference to this.
    """

    def __init__(self, C: float = 1.0, gamma: float = 1.0, parts: int = 50, seed: int = 0):
        self.C = C
        self.gamma = gamma
        self.parts = parts
        self.seed = seed

    def _fit(self, X, signs):
        order = np.random.default_rng(self.seed).permutation(len(X))
        self.dual_coef_ = np.zeros(len(X))
        for rows in np.array_split(order, self.parts):
            self.dual_coef_[rows] = self._part(X[rows], signs[rows])
        self.support_ = np.flatnonzero(self.dual_coef_)
        self.vectors_ = X[self.support_]

    def _part(self, X, signs) -> np.ndarray:
        if len(np.unique(signs)) < 2:
            raise ValueError(f"A random part of {len(X)} rows has one class only: use fewer parts.")
        options = {"fit_intercept": False, "levels": 0, "random_state": self.seed}
        machine = KernelSVC(C=self.C, gamma=self.gamma, **options).fit(X, signs)
        found = np.zeros(len(X))
        found[machine.support_] = machine.dual_coef_[0]
        return found

    def _decide(self, X):
        kernel = rbf_kernel(X, self.vectors_, gamma=self.gamma)
        return kernel @ self.dual_coef_[self.support_]
