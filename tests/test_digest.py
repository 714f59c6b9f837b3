"""Digests tell data and parameters apart."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.digest import digest


def test_digests_tell_contents_apart_and_not_memory():
    a = np.arange(6.0)
    matrix = sp.csr_array(np.eye(3))
    different = [a, a.reshape(2, 3), a.astype(np.float32), a[::-1], a[:5], "a", 1, 1.0, None, True,
                 np.array(["x", "y"]), np.array(["x", "y"], dtype=object), matrix,
                 2 * matrix]  # fmt: skip
    assert len({digest(value) for value in different}) == len(different)
    assert digest(np.asfortranarray(a.reshape(2, 3))) == digest(a.reshape(2, 3))
    assert digest(a.copy()) == digest(a[::1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert digest(matrix.copy()) == digest(matrix)


@pytest.mark.parametrize(
    "value", [len, lambda X, Z: X @ Z.T, (1, np.exp)], ids=["built-in", "lambda", "inside"]
)
def test_a_function_has_no_digest(value):
    with pytest.raises(TypeError, match="only an address"):
        digest(value)


def test_values_and_matrices_are_told_apart():
    assert digest("poly", 0.1, 23) != digest("poly", 0.12, 3)
    narrow = sp.csr_array(np.eye(3))
    wide = sp.csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(3, 5))
    assert digest(narrow) != digest(wide)
