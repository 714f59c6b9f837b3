"""scikit-learn's SVM classes, fitted by our machines: change an import, and nothing else.

>>> from widemargin.sklearn import SVC
>>> SVC(C=10)
SVC(C=10)
"""

from __future__ import annotations

from collections.abc import Mapping

import sklearn.svm

from widemargin.sklearn.linear_svc import LinearSVC
from widemargin.sklearn.nu import NuSVC, NuSVR
from widemargin.sklearn.one_class import OneClassSVM
from widemargin.sklearn.svc import SVC
from widemargin.sklearn.svr import SVR

__all__ = ["SVC", "SVR", "LinearSVC", "NuSVC", "NuSVR", "OneClassSVM", "patch", "unpatch"]

_OURS = {
    "SVC": SVC,
    "SVR": SVR,
    "LinearSVC": LinearSVC,
    "NuSVC": NuSVC,
    "NuSVR": NuSVR,
    "OneClassSVM": OneClassSVM,
}
_THEIRS = {name: getattr(sklearn.svm, name) for name in _OURS}


def patch() -> None:
    """Replace scikit-learn's classes in `sklearn.svm`, for all later imports."""
    _put(_OURS)


def unpatch() -> None:
    """Restore scikit-learn's own classes."""
    _put(_THEIRS)


def _put(classes: Mapping[str, object]) -> None:
    for name, cls in classes.items():
        setattr(sklearn.svm, name, cls)
