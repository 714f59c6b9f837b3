"""scikit-learn's `NuSVC` and `NuSVR`, fitted and evaluated by our machines."""

from __future__ import annotations

from sklearn import svm

from widemargin.kernel import nu
from widemargin.sklearn.libsvm import FittedByUs
from widemargin.sklearn.svc import OfClasses


class NuSVC(OfClasses, svm.NuSVC):
    """`sklearn.svm.NuSVC` with its parameters, attributes and optimum, fitted by our solver.

    ``tol`` and ``shrinking`` are as for `widemargin.sklearn.SVC`, and so is what scikit-learn does
    itself, with a warning that says why.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.sklearn import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(NuSVC(nu=0.1).fit(X, y).score(X, y) > 0.95)
    True
    """

    _one_class_left = "specified nu is infeasible"

    @property
    def _our_C(self) -> float:
        return 1.0

    def _machine(self, **parameters) -> nu.NuSVC:
        return nu.NuSVC(nu=float(self.nu), **parameters)


class NuSVR(FittedByUs, svm.NuSVR):
    """`sklearn.svm.NuSVR` with its parameters, attributes and optimum, fitted by our solver.

    ``tol`` and ``shrinking`` are as for `widemargin.sklearn.SVC`, and so is what scikit-learn does
    itself, with a warning that says why.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin.sklearn import NuSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(NuSVR(C=1000).fit(X, y).score(X, y) > 0.7)
    True
    """

    def _machine(self, **parameters) -> nu.NuSVR:
        return nu.NuSVR(nu=float(self.nu), C=self._our_C, **parameters)
