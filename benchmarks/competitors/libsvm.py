"""LIBSVM with the kernels of ICD's tables, and its fast twin."""

from __future__ import annotations

from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.competitors.optional import needed
from benchmarks.competitors.quantisation import UnaryCode

CACHE = 2000  # megabytes


def libsvm_linear(C: float = 1.0, tol: float = 1e-3):
    """LIBSVM ``-t 0``: SMO on the linear kernel, classes in pairs, with a bias."""
    return SVC(kernel="linear", C=C, tol=tol, cache_size=CACHE)


def libsvm_rbf(C: float = 1.0, gamma: float | str = "auto", tol: float = 1e-3):
    """LIBSVM ``-t 2``, with gamma = 1/d where none is said, as svm-train has it.

    With a bias; DC-SVM's LIBSVM had none, and its authors saw no difference.
    """
    return SVC(kernel="rbf", C=C, gamma=gamma, tol=tol, cache_size=CACHE)


def libsvm_poly(C: float = 1.0, gamma: float | str = "auto", degree: int = 3, tol: float = 1e-3):
    """LIBSVM ``-t 1``: (gamma x'y)^degree, eta = 0 as in DC-SVM's Figure 4; with a bias."""
    return SVC(kernel="poly", C=C, gamma=gamma, degree=degree, tol=tol, cache_size=CACHE)


def libsvm_hik(C: float = 1e-3, levels: int = 100, tol: float = 1e-3):
    """LIBSVM with the intersection kernel on the integers of ICD's eq. 13.

    A linear kernel on unary codes is that kernel (eq. 4), and needs no matrix of all pairs of rows:
    ijcnn1's would take 20 GB.
    """
    return make_pipeline(UnaryCode(levels), libsvm_linear(C, tol))


def intelex_rbf(C: float = 1.0, gamma: float | str = "auto", tol: float = 1e-3):
    """scikit-learn-intelex: the same problem as `libsvm_rbf` by oneDAL's solver."""
    svm = needed("sklearnex.svm", "scikit-learn-intelex")
    return svm.SVC(kernel="rbf", C=C, gamma=gamma, tol=tol, cache_size=CACHE)
