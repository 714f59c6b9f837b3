"""scikit-learn's `SVR`, fitted and evaluated by our machine."""

from __future__ import annotations

import numpy as np
from sklearn import svm

from widemargin.kernel.regression import KernelSVR
from widemargin.sklearn.libsvm import FittedByUs, NotOursError

LARGEST = 1e10  # C that stands for infinity


class SVR(FittedByUs, svm.SVR):
    """`sklearn.svm.SVR` with its parameters, attributes and optimum, fitted by our solver.

    ``tol`` and ``shrinking`` are as for `widemargin.sklearn.SVC`, and so is what scikit-learn does
    itself, with a warning that says why.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin.sklearn import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(SVR(C=1000).fit(X, y).score(X, y) > 0.7)
    True
    """

    @property
    def _our_C(self) -> float:
        return min(float(self.C), LARGEST)

    def _machine(self, **parameters) -> KernelSVR:
        epsilon = float(self.epsilon)
        return KernelSVR(C=self._our_C, epsilon=epsilon, fit_intercept=True, **parameters)

    def _solved(self, X, y, weight) -> KernelSVR:
        """As for any C where none of the variables is at its bound."""
        found = super()._solved(X, y, weight)
        largest = abs(found.model_.coef.values).max(initial=0.0)
        if np.isinf(self.C) and largest >= LARGEST * weight[weight > 0].min():
            raise NotOursError("C=inf needs a model without errors")
        return found
