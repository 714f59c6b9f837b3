"""Digests tell data, parameters and functions apart."""

import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.digest import digest


def test_digests_tell_contents_apart_and_not_memory():
    a = np.arange(6.0)
    matrix = sp.csr_array(np.eye(3))
    different = [a, a.reshape(2, 3), a.astype(np.float32), a[::-1], a[:5], "a", 1, 1.0, None, True,
                 np.array(["x", "y"]), np.array(["x", "y"], dtype=object), matrix, 2 * matrix,
                 rbf_kernel, lambda X, Z: X @ Z.T, lambda X, Z: X + Z.T]  # fmt: skip
    assert len({digest(value) for value in different}) == len(different)
    assert digest(np.asfortranarray(a.reshape(2, 3))) == digest(a.reshape(2, 3))
    assert digest(a.copy()) == digest(a[::1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert digest(matrix.copy()) == digest(matrix)


def closed_over(gamma):
    return lambda A, B: rbf_kernel(A, B, gamma=gamma)


def test_functions_are_told_apart_by_what_they_close_over_and_call():
    assert digest(closed_over(1.0)) == digest(closed_over(1.0))
    assert digest(closed_over(1.0)) != digest(closed_over(20.0))
    assert digest(lambda A, B: np.exp(A)) != digest(lambda A, B: np.cos(A))
    assert digest(partial(rbf_kernel, gamma=1.0)) == digest(partial(rbf_kernel, gamma=1.0))
    assert digest(partial(rbf_kernel, gamma=1.0)) != digest(partial(rbf_kernel, gamma=2.0))


def test_values_and_matrices_are_told_apart():
    assert digest("poly", 0.1, 23) != digest("poly", 0.12, 3)
    narrow = sp.csr_array(np.eye(3))
    wide = sp.csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(3, 5))
    assert digest(narrow) != digest(wide)
