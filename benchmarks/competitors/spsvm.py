"""SpSVM: a kernel SVM on few basis functions, chosen greedily."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.competitors.binary import BinaryMachine

CANDIDATES = 59  # one of them is among the best 5 % with probability 0.95
JITTER = 1e-10


class SpSVM(BinaryMachine):
    """Keerthi, Chapelle and DeCoste, "Building support vector machines with reduced classifier
    complexity", JMLR 2006.

    min 1/2 b'K_JJ b + C sum max(0, 1 - y K_J b)^2 over the coefficients b of the basis J, by
    Newton's method (section 2).  The next basis function is the best of 59 random rows by what a
    step along it alone gains (section 3); all coefficients are fitted again whenever the basis has
    grown by a tenth (section 4).
    """

    def __init__(self, C: float = 1.0, gamma: float = 1.0, basis: int = 200, seed: int = 0):
        self.C = C
        self.gamma = gamma
        self.basis = basis
        self.seed = seed

    def _fit(self, X, signs):
        n = len(X)
        size = min(self.basis, n)
        rng = np.random.default_rng(self.seed)
        chosen: list[int] = []
        columns = np.empty((n, size), order="F")
        b, fitted = np.zeros(0), 0
        left = np.ones(n, dtype=bool)
        while len(chosen) < size:
            k = len(chosen)
            tried = rng.choice(np.flatnonzero(left), min(CANDIDATES, n - k), replace=False)
            kernel = rbf_kernel(X, X[tried], gamma=self.gamma)
            outputs = columns[:, :k] @ b
            active = signs * outputs < 1
            slope = kernel[chosen].T @ b - 2 * self.C * (
                kernel[active].T @ (signs - outputs)[active]
            )
            curvature = 1.0 + 2 * self.C * (kernel[active] ** 2).sum(axis=0)
            best = int(np.argmax(slope**2 / curvature))
            columns[:, k] = kernel[:, best]
            chosen.append(int(tried[best]))
            left[chosen[-1]] = False
            b = np.append(b, -slope[best] / curvature[best])
            if k + 1 >= 1.1 * fitted or k + 1 == size:
                b, fitted = self._newton(columns[:, : k + 1], chosen, signs, b), k + 1
        self.basis_, self.coef_, self.vectors_ = np.array(chosen), b, X[chosen]

    def _newton(self, columns, chosen, signs, b):
        """Steps to the optimum of the quadratic of the rows that violate, until they stay so."""
        inner = columns[chosen]

        def value(b, outputs):
            return b @ inner @ b / 2 + self.C * (np.maximum(0, 1 - signs * outputs) ** 2).sum()

        outputs = columns @ b
        for _ in range(50):
            active = signs * outputs < 1
            part = columns[active]
            hessian = inner + 2 * self.C * (part.T @ part)
            hessian[np.diag_indices_from(hessian)] += JITTER * np.trace(hessian) / len(hessian)
            step = scipy.linalg.solve(
                hessian, 2 * self.C * (part.T @ signs[active]), assume_a="pos"
            )
            step -= b
            along, now, length = columns @ step, value(b, outputs), 1.0
            while value(b + length * step, outputs + length * along) > now and length > 1e-8:
                length /= 2
            b, outputs = b + length * step, outputs + length * along
            if length == 1.0 and np.array_equal(signs * outputs < 1, active):
                break
        return b

    def _decide(self, X):
        return rbf_kernel(X, self.vectors_, gamma=self.gamma) @ self.coef_
