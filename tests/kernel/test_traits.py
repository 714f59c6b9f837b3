"""Kernels are known by their traits, never by a name that a user's function may have as well."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelSVC, load, save
from widemargin.kernel.kernels import FUNCTION, KERNELS, make_kernel, traits_of
from widemargin.kernel.partition import KernelRouter

from .helpers import points


def named(name):
    def kernel(A, B):
        return rbf_kernel(A, B, gamma=2.0)

    kernel.__name__ = name
    return kernel


@pytest.mark.parametrize("name", [*KERNELS, "anything"])
def test_a_function_has_the_traits_of_a_function_whatever_its_name(name):
    assert traits_of(named(name)) is FUNCTION
    assert make_kernel(named(name), 1.0, 0.0, 3, np.eye(3)).traits is FUNCTION


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_objects_have_the_traits_of_their_name(name):
    assert make_kernel(name, 1.0, 0.0, 3, np.eye(3)).traits is KERNELS[name] is traits_of(name)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_function_called_rbf_is_clustered_as_any_other(sparse):
    X, y = points(200)
    X = sp.csr_array(X) if sparse else X
    settings = {"C": 5.0, "levels": 1, "early": 1, "random_state": 0}
    one, other = (KernelSVC(named(n), **settings).fit(X, y) for n in ("rbf", "my_rbf"))
    assert isinstance(one.model_.router, KernelRouter)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("name", ["precomputed", "rbf", "chi2"])
def test_a_function_with_the_name_of_a_kernel_is_saved_and_loaded(name, tmp_path):
    X, y = points(60)
    model = KernelSVC(named(name), C=5.0).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model", kernel=named(name))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_rows_are_centred_without_a_copy_in_double_precision():
    X = np.random.default_rng(0).random((4000, 100)).astype(np.float32)
    kernel = make_kernel("rbf", 1.0, 0.0, 3, X)
    assert kernel.centre is not None
    tracemalloc.start()
    rows = kernel.prepare(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.data.dtype == np.float32
    assert peak < 1.5 * X.nbytes
    np.testing.assert_array_equal(rows.data, (X - kernel.centre).astype(np.float32))
