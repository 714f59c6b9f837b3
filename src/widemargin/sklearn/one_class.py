"""scikit-learn's `OneClassSVM`, fitted and evaluated by our machine."""

from __future__ import annotations

import numpy as np
from sklearn import svm

from widemargin.kernel import one_class
from widemargin.sklearn.libsvm import FittedByUs


class OneClassSVM(FittedByUs, svm.OneClassSVM):
    """`sklearn.svm.OneClassSVM` with its parameters, attributes and optimum, fitted by our solver.

    ``tol`` and ``shrinking`` are as for `widemargin.sklearn.SVC`, and so is what scikit-learn does
    itself, with a warning that says why.

    Examples
    --------
    >>> from widemargin.sklearn import OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> OneClassSVM(gamma="auto").fit(X).predict(X)
    array([-1,  1,  1,  1, -1])
    """

    @property
    def _our_C(self) -> float:
        return 1.0

    def _machine(self, **parameters) -> one_class.OneClassSVM:
        return one_class.OneClassSVM(nu=float(self.nu), **parameters)

    def _predicted(self, values: np.ndarray) -> np.ndarray:
        return np.where(values[:, 0] >= 0, 1, -1)
