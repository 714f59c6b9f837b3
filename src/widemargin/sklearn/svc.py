"""scikit-learn's `SVC`, fitted and evaluated by our machine."""

from __future__ import annotations

import numpy as np
from sklearn import svm

from widemargin.kernel.estimator import KernelSVC
from widemargin.sklearn.libsvm import FittedByUs, NotOursError


class ByKernelValues(KernelSVC):
    """`KernelSVC` with a free intercept for a linear kernel too, which is not solved on weights."""

    def _is_linear(self) -> bool:
        return False


class OfClasses(FittedByUs):
    """What our versions of SVC and NuSVC share: weights of classes, signs and votes."""

    _one_class_left = "Invalid input - all samples with positive weights belong to the same class"

    @property
    def _sign(self) -> float:
        """Of two classes, LIBSVM has the first one positive."""
        return -1.0 if len(self.classes_) == 2 else 1.0

    def _check_ours(self) -> None:
        if self._effective_probability:
            raise NotOursError("probability=True needs LIBSVM's cross-validation")
        super()._check_ours()

    def _checked_weights(self, y, weight: np.ndarray) -> np.ndarray:
        weight = weight * self.class_weight_[y.astype(np.intp)]
        present = np.unique(y[weight > 0])
        if len(present) == 1:
            raise ValueError(self._one_class_left)
        if len(present) < len(self.classes_):
            raise NotOursError("a class has no samples of positive weight")
        return weight

    def _solved(self, X, y, weight) -> KernelSVC:
        return super()._solved(X, y.astype(np.int64), weight)

    def _values(self, X, owner: np.ndarray | None = None) -> np.ndarray:
        if len(self.classes_) > 2:
            owner = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        return super()._values(X, owner)

    def _predicted(self, values: np.ndarray) -> np.ndarray:
        """The number of the class with most votes, the first of several."""
        first, second = np.triu_indices(len(self.classes_), 1)
        votes = np.zeros((len(values), len(self.classes_)), dtype=np.int64)
        for pair, won in enumerate(values.T > 0):
            votes[:, first[pair]] += won
            votes[:, second[pair]] += ~won
        return votes.argmax(axis=1)


class SVC(OfClasses, svm.SVC):
    """`sklearn.svm.SVC` with its parameters, attributes and optimum, fitted by our solver.

    ``tol`` is the accuracy of decision values: a fit ends at a relative duality gap of its square.
    ``shrinking`` changes nothing.  What only LIBSVM does is done by scikit-learn, with a warning
    that says why: ``probability=True``, a limit of iterations, ``C=inf``, ``gamma=0``, and kernels
    that are not positive semi-definite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.sklearn import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(SVC(kernel="linear").fit(X, y).score(X, y) > 0.98)
    True
    """

    def _check_ours(self) -> None:
        if np.isinf(self.C):
            raise NotOursError("C=inf has no dual with bounds")
        super()._check_ours()

    def _machine(self, **parameters) -> KernelSVC:
        return ByKernelValues(C=self._our_C, fit_intercept=True, **parameters)
