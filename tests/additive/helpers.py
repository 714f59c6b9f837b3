"""Estimators and data that several of these tests share."""

import numpy as np

from widemargin import AdditiveSVC


def svc(kernel="chi2", **changes):
    return AdditiveSVC(kernel, **{"random_state": 0, **changes})


X4 = np.array([[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.5, 0.6, 0.0], [0.7, 0.0, 0.8]])

Y4 = np.array([0, 1, 0, 1])
