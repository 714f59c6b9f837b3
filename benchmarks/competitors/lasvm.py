"""LaSVM: the kernel SVM as an online machine."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.competitors.binary import BinaryMachine

SEEDS = 5  # rows of each class to begin with


class LaSVM(BinaryMachine):
    """Bordes, Ertekin, Weston and Bottou, "Fast kernel classifiers with online and active
    learning", JMLR 2005, section 3.2.

    Each row is PROCESSed (it enters the expansion, with one step along the most violating pair that
    has it) and followed by a REPROCESS (a step along the most violating pair of all, and the
    removal of rows that have no reason to stay); ``finish`` goes on with REPROCESS until no pair
    violates by more than ``tol``.  The dual variables a have the signs of their rows' labels.
    """

    def __init__(
        self, C: float = 1.0, gamma: float = 1.0, passes: int = 1, tol: float = 1e-3, seed: int = 0
    ):
        self.C = C
        self.gamma = gamma
        self.passes = passes
        self.tol = tol
        self.seed = seed

    def _fit(self, X, signs):
        rng = np.random.default_rng(self.seed)
        state = _Expansion(X, signs, self.C, self.gamma, self.tol)
        for sign in (-1.0, 1.0):
            for k in rng.permutation(np.flatnonzero(signs == sign))[:SEEDS]:
                state.process(int(k))
        for _ in range(self.passes):
            for k in rng.permutation(len(X)):
                state.process(int(k))
                state.reprocess()
        while state.reprocess():
            pass
        self.intercept_ = state.bias()
        held = state.a[: state.size] != 0
        self.support_ = state.rows[: state.size][held]
        self.dual_coef_ = state.a[: state.size][held]
        self.vectors_ = X[self.support_]

    def _decide(self, X):
        kernel = rbf_kernel(X, self.vectors_, gamma=self.gamma)
        return kernel @ self.dual_coef_ + self.intercept_


class _Expansion:
    """The rows of the expansion, their variables, gradients and kernel values."""

    def __init__(self, X, signs, C, gamma, tol):
        self.X, self.signs, self.C, self.gamma, self.tol = X, signs, C, gamma, tol
        self.norms = np.einsum("ij,ij->i", X, X)
        self.size, self.inside = 0, np.zeros(len(X), dtype=bool)
        room = min(len(X), 256)
        self.rows = np.zeros(room, dtype=int)
        self.a, self.g = np.zeros(room), np.zeros(room)
        self.low, self.high = np.zeros(room), np.zeros(room)
        self.K = np.zeros((room, room))

    def process(self, k: int) -> None:
        if self.inside[k]:
            return
        m = self._add(k)
        if self.signs[k] > 0:
            i, j = m, self._least()
        else:
            i, j = self._most(), m
        self._step(i, j)

    def reprocess(self) -> bool:
        """Whether there was a violating pair."""
        moved = self._step(self._most(), self._least())
        if moved:
            self._drop(self.g[self._most()], self.g[self._least()])
        return moved

    def bias(self) -> float:
        return float((self.g[self._most()] + self.g[self._least()]) / 2)

    def _most(self) -> int:
        s = slice(0, self.size)
        return int(np.where(self.a[s] < self.high[s], self.g[s], -np.inf).argmax())

    def _least(self) -> int:
        s = slice(0, self.size)
        return int(np.where(self.a[s] > self.low[s], self.g[s], np.inf).argmin())

    def _step(self, i: int, j: int) -> bool:
        a, g, K = self.a, self.g, self.K
        able = a[i] < self.high[i] and a[j] > self.low[j]
        if not (able and g[i] - g[j] > self.tol):
            return False
        curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        room_i, room_j = self.high[i] - a[i], a[j] - self.low[j]
        length = min((g[i] - g[j]) / curvature, room_i, room_j)
        # A bound that is reached is reached exactly.
        a[i] = self.high[i] if length == room_i else a[i] + length
        a[j] = self.low[j] if length == room_j else a[j] - length
        s = slice(0, self.size)
        g[s] -= length * (K[i, s] - K[j, s])
        return True

    def _add(self, k: int) -> int:
        if self.size == len(self.rows):
            self._grow()
        m, s = self.size, slice(0, self.size + 1)
        self.rows[m], self.a[m], self.inside[k] = k, 0.0, True
        self.low[m], self.high[m] = min(0, self.C * self.signs[k]), max(0, self.C * self.signs[k])
        others = self.rows[s]
        squared = self.norms[others] + self.norms[k] - 2 * self.X[others] @ self.X[k]
        self.K[m, s] = np.exp(-self.gamma * np.maximum(squared, 0.0))
        self.K[s, m] = self.K[m, s]
        self.g[m] = self.signs[k] - self.a[:m] @ self.K[m, :m]
        self.size += 1
        return m

    def _grow(self) -> None:
        room = len(self.rows)
        for name in ("rows", "a", "g", "low", "high"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.K = np.pad(self.K, ((0, room), (0, room)))

    def _drop(self, most: float, least: float) -> None:
        """Rows without a part in the expansion whose gradient says that they will get none."""
        s = slice(0, self.size)
        sign = self.signs[self.rows[s]]
        idle = (self.a[s] == 0) & np.where(sign < 0, self.g[s] >= most, self.g[s] <= least)
        if not idle.any():
            return
        kept = np.flatnonzero(~idle)
        self.inside[self.rows[: self.size][idle]] = False
        for name in ("rows", "a", "g", "low", "high"):
            values = getattr(self, name)
            values[: len(kept)] = values[kept]
        self.K[: len(kept), : len(kept)] = self.K[np.ix_(kept, kept)]
        self.size = len(kept)
