"""Our classes in the place of scikit-learn's, for programs that are not to be changed."""

from __future__ import annotations

from collections.abc import Mapping

import sklearn.svm

from widemargin.sklearn.linear_svc import LinearSVC
from widemargin.sklearn.one_class import OneClassSVM
from widemargin.sklearn.svc import SVC
from widemargin.sklearn.svr import SVR

_OURS = {"SVC": SVC, "SVR": SVR, "LinearSVC": LinearSVC, "OneClassSVM": OneClassSVM}
_THEIRS = {name: getattr(sklearn.svm, name) for name in _OURS}


def patch() -> None:
    """Put our classes under `sklearn.svm`, for all imports from there that follow."""
    _put(_OURS)


def unpatch() -> None:
    """Put scikit-learn's own classes back."""
    _put(_THEIRS)


def _put(classes: Mapping[str, object]) -> None:
    for name, found in classes.items():
        setattr(sklearn.svm, name, found)
