"""CascadeSVM: support vectors of parts, passed up a tree."""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC

from benchmarks.competitors.binary import BinaryMachine
from benchmarks.competitors.libsvm import CACHE


class CascadeSVM(BinaryMachine):
    """Graf, Cosatto, Bottou, Durdanovic and Vapnik, "Parallel support vector machines: the cascade
    SVM", NIPS 2004, section 2.

    Random parts are solved by LIBSVM; the support vectors of two parts are the rows of the next
    layer's, until one is left.  Its support vectors join every part of the next round, which
    ends at the optimum of the whole (their section 3); one round is what DC-SVM compared with.
    """

    def __init__(
        self, C: float = 1.0, gamma: float = 1.0, parts: int = 16, rounds: int = 1, seed: int = 0
    ):
        self.C = C
        self.gamma = gamma
        self.parts = parts
        self.rounds = rounds
        self.seed = seed

    def _fit(self, X, signs):
        order = np.random.default_rng(self.seed).permutation(len(X))
        first = np.array_split(order, self.parts)
        last = np.empty(0, dtype=int)
        self.layers_ = []  # the support vectors that each layer of each round has found
        for _ in range(self.rounds):
            layer = [np.union1d(part, last) for part in first]
            while len(layer) > 1:
                held = [self._solve(X, signs, rows)[1] for rows in layer]
                self.layers_.append(np.unique(np.concatenate(held)))
                pairs = [held[i : i + 2] for i in range(0, len(held), 2)]
                layer = [np.unique(np.concatenate(pair)) for pair in pairs]
            self.machine_, found = self._solve(X, signs, layer[0])
            self.support_ = layer[0][self.machine_.support_]
            self.layers_.append(found)
            self.dual_coef_ = self.machine_.dual_coef_[0]
            if np.array_equal(found, last):
                break
            last = found

    def _solve(self, X, signs, rows):
        """LIBSVM's solution on these rows and those of them that are its support vectors."""
        if len(np.unique(signs[rows])) < 2:  # nothing to separate: all are passed on
            return None, rows
        machine = SVC(C=self.C, gamma=self.gamma, cache_size=CACHE).fit(X[rows], signs[rows])
        return machine, np.sort(rows[machine.support_])

    def _decide(self, X):
        return self.machine_.decision_function(X)
