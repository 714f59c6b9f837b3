"""LIBSVM with the kernels of ICD's tables, and its fast twin."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import manhattan_distances, rbf_kernel
from sklearn.svm import SVC

from benchmarks.competitors.optional import needed
from benchmarks.competitors.quantisation import UnaryCode

CACHE = 2000  # megabytes
MATRIX_ROWS = 10_000
PREDICTED = 2000  # rows at a time


def libsvm_linear(C: float = 1.0, tol: float = 1e-3):
    """LIBSVM ``-t 0``: SMO on the linear kernel, classes in pairs, with a bias."""
    return SVC(kernel="linear", C=C, tol=tol, cache_size=CACHE)


def libsvm_rbf(C: float = 1.0, gamma: float | str = "auto", tol: float = 1e-3):
    """LIBSVM ``-t 2``, with gamma = 1/d where none is said, as svm-train has it.

    With a bias; DC-SVM's LIBSVM had none, as `LibsvmUnbiased`.
    """
    return SVC(kernel="rbf", C=C, gamma=gamma, tol=tol, cache_size=CACHE)


def libsvm_poly(C: float = 1.0, gamma: float | str = "auto", degree: int = 3, tol: float = 1e-3):
    """LIBSVM ``-t 1``: (gamma x'y)^degree, eta = 0 as in DC-SVM's Figure 4; with a bias."""
    return SVC(kernel="poly", C=C, gamma=gamma, degree=degree, tol=tol, cache_size=CACHE)


class LibsvmHIK(ClassifierMixin, BaseEstimator):
    """LIBSVM with the intersection kernel on the integers of ICD's eq. 13.

    Up to ``MATRIX_ROWS`` rows LIBSVM gets the kernel matrix.  Beyond it gets a linear kernel on
    unary codes, which is the same kernel (eq. 4) and needs no matrix: ijcnn1's would take 20 GB.
    """

    def __init__(self, C: float = 1e-3, levels: int = 100, tol: float = 1e-3):
        self.C, self.levels, self.tol = C, levels, tol

    def fit(self, X, y):
        self.code_ = UnaryCode(self.levels).fit(X)
        self.rows_ = self.code_.quantise(X) if X.shape[0] <= MATRIX_ROWS else None
        kernel = "linear" if self.rows_ is None else "precomputed"
        self.svc_ = SVC(kernel=kernel, C=self.C, tol=self.tol, cache_size=CACHE)
        self.svc_.fit(self._for_libsvm(X), y)
        self.classes_ = self.svc_.classes_
        return self

    def _for_libsvm(self, X):
        if self.rows_ is None:
            return self.code_.transform(X)
        codes = self.code_.quantise(X).astype(float)
        return intersection(codes, self.rows_.astype(float))

    def decision_function(self, X):
        return self.svc_.decision_function(self._for_libsvm(X))

    def predict(self, X):
        return self.svc_.predict(self._for_libsvm(X))


class LibsvmUnbiased(ClassifierMixin, BaseEstimator):
    """LIBSVM with the RBF kernel and without a bias, for two classes.

    Every row x with label y has a mirror image, -phi(x) with label -y, and both have half of C: the
    bias of this problem is 0, and its solution that of the problem without a bias.  LIBSVM gets the
    kernel matrix of rows and images.
    """

    def __init__(self, C: float = 1.0, gamma: float = 1.0, tol: float = 1e-3):
        self.C, self.gamma, self.tol = C, gamma, tol

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        sign, n = np.where(y == self.classes_[1], 1, -1), X.shape[0]
        K = np.empty((2 * n, 2 * n))
        K[:n, :n] = K[n:, n:] = rbf_kernel(X, gamma=self.gamma)
        K[:n, n:] = K[n:, :n] = -K[:n, :n]
        svc = SVC(kernel="precomputed", C=self.C / 2, tol=self.tol, cache_size=CACHE)
        svc.fit(K, np.append(sign, -sign))
        coef = np.zeros(2 * n)
        coef[svc.support_] = svc.dual_coef_[0]
        coef = coef[:n] - coef[n:]
        self.rows_, self.coef_ = X[coef != 0], coef[coef != 0]
        return self

    def decision_function(self, X):
        parts = (X[i : i + PREDICTED] for i in range(0, X.shape[0], PREDICTED))
        return np.concatenate([
            rbf_kernel(part, self.rows_, gamma=self.gamma) @ self.coef_ for part in parts
        ])  # fmt: skip

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def intersection(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return sum_j min(a_j, b_j) of all pairs of rows of two non-negative matrices."""
    sums = A.sum(axis=1)[:, None] + B.sum(axis=1)
    return (sums - manhattan_distances(A, B)) / 2


def intelex_rbf(C: float = 1.0, gamma: float | str = "auto", tol: float = 1e-3):
    """scikit-learn-intelex: the same problem as `libsvm_rbf` by oneDAL's solver."""
    svm = needed("sklearnex.svm", "scikit-learn-intelex")
    return svm.SVC(kernel="rbf", C=C, gamma=gamma, tol=tol, cache_size=CACHE)
