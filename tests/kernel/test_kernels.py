"""Kernel values: against scikit-learn in both precisions, distances, functions and matrices."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.kernel.kernels import (
    KERNELS,
    FunctionKernel,
    PrecomputedKernel,
    make_kernel,
)

from .helpers import (
    EPS,
    RELATIVE,
    each_dot_kernel,
    each_dtype,
    each_kernel,
    exact,
    made,
    mostly_zero,
    values,
)


@pytest.fixture
def X():
    return np.random.default_rng(0).random((150, 4))


# ------------------------------------------------------------------ against scikit-learn


@each_dtype
@each_kernel
def test_kernel_values_are_those_of_scikit_learn(name, dtype, X):
    kernel = made(name, X, dtype)
    rows, others = kernel.prepare(X), kernel.prepare(X[:50] + 0.1)
    K = values(kernel, others, rows)
    assert K.dtype == dtype
    assert_allclose(K, exact(name, X[:50] + 0.1, X), rtol=RELATIVE[dtype])


@each_dtype
@each_kernel
def test_the_diagonal_is_that_of_the_kernel_matrix_in_double(name, dtype, X):
    kernel = made(name, X, dtype)
    diagonal = kernel.diagonal(kernel.prepare(X))
    assert diagonal.dtype == np.float64
    assert_allclose(diagonal, np.diag(exact(name, X, X)), rtol=RELATIVE[dtype])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_the_diagonal_of_a_function_does_not_depend_on_its_blocks(n):
    Z = np.random.default_rng(1).random((n, 3))
    kernel = FunctionKernel("dot", lambda A, B: A @ B.T)
    assert_allclose(kernel.diagonal(kernel.prepare(Z)), (Z * Z).sum(axis=1), rtol=1e-14)


@each_dot_kernel
def test_integers_have_the_kernel_values_of_the_same_floats(name):
    Z = np.random.default_rng(2).integers(0, 3, (30, 5))
    kernel, same = made(name, Z), made(name, Z.astype(float))
    K = values(kernel, kernel.prepare(Z), kernel.prepare(Z))
    assert_array_equal(K, values(same, same.prepare(Z * 1.0), same.prepare(Z * 1.0)))


def test_the_names_of_kernels_are_those_that_can_be_made(X):
    for name in KERNELS:
        assert make_kernel(name, 1.0, 0.0, 3, X).name == name
    for name in ("quadratic", "cubic", None):
        with pytest.raises(ValueError, match=f"kernel={name!r} is not known.*chi2.*function"):
            make_kernel(name, 1.0, 0.0, 3, X)


# ------------------------------------------------------------------ distances


@each_dtype
@pytest.mark.parametrize("d", [1, 3, 17, 100, 784])
def test_equal_dense_rows_are_at_a_distance_of_rounding(d, dtype):
    Z = np.random.default_rng(d).normal(size=(100, d))
    kernel = make_kernel("rbf", 1.0, 0.0, 3, Z, dtype)
    rows, again = kernel.prepare(Z), kernel.prepare(Z.copy())
    for begin, end in [(0, 100), (0, 1), (3, 10), (17, 90)]:
        at = np.arange(begin, end)
        own = values(kernel, rows[begin:end], again)[at - begin, at]
        assert np.all(own <= 1)
        assert np.all(1 - own <= (4 + np.sqrt(d)) * EPS[dtype] * rows.norms[at])


@each_dtype
def test_centring_keeps_distances_far_from_the_origin(dtype, X):
    kernel = made("rbf", X + 1000.0, dtype)
    rows = kernel.prepare(X + 1000.0)
    expected = exact("rbf", X, X)
    assert_allclose(values(kernel, rows, rows), expected, rtol={np.float32: 5e-6}.get(dtype, 1e-12))
    plain = replace(kernel, centre=None)
    rows = plain.prepare(X + 1000.0)
    if dtype == np.float32:  # in double precision such distances are sums of differences
        assert np.abs(values(plain, rows, rows) - expected).max() > 1e3 * EPS[dtype]


def test_new_rows_are_moved_by_the_centre_of_the_training_rows(X):
    kernel = made("rbf", X + 1000.0)
    new = X[:20] * 3 + 1000.0
    K = values(
        kernel, kernel.training_rows(X + 1000.0, np.arange(len(X + 1000.0))), kernel.prepare(new)
    )
    assert_allclose(K, exact("rbf", X, X[:20] * 3), rtol=2e-5)


def test_only_dense_rows_of_the_rbf_kernel_are_centred(X):
    assert_allclose(made("rbf", X).centre, X.mean(axis=0), rtol=1e-14)
    assert_allclose(made("rbf", sp.csc_array(X)).centre, X.mean(axis=0), rtol=1e-14)
    assert made("rbf", mostly_zero()).centre is None
    assert made("poly", X).centre is None
    assert made("sigmoid", X).centre is None


# ------------------------------------------------------------------ functions


def test_a_function_is_called_with_the_selected_rows(X):
    calls = []

    def dot(A, B):
        calls.append((A, B))
        return A @ B.T

    kernel = make_kernel(dot, 1.0, 0.0, 3, X)
    assert kernel.name == "dot"
    rows = kernel.prepare(X)
    picked = np.array([7, 3, 3])
    assert_allclose(values(kernel, rows[picked], rows[10:20]), X[picked] @ X[10:20].T, rtol=1e-7)
    assert len(calls) == 1
    assert_array_equal(calls[0][0], X[picked])
    assert_array_equal(calls[0][1], X[10:20])


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix], ids=lambda c: c.__name__)
def test_a_function_gets_sparse_rows_as_they_came(container):
    Z = mostly_zero()
    kernel = make_kernel(lambda A, B: (A @ B.T).toarray(), 1.0, 0.0, 3, container(Z))
    rows = kernel.prepare(container(Z))
    assert_allclose(values(kernel, rows[5:9], rows), Z[5:9] @ Z.T, rtol=5e-6)


def test_a_function_without_a_name_is_a_user_function(X):
    class Dot:
        def __call__(self, A, B):
            return A @ B.T

    assert make_kernel(Dot(), 1.0, 0.0, 3, X).name == "user function"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones(3), r"'f' returned shape \(3,\) for 3 and 5 rows; it must return \(3, 5\)"),
        (np.ones((5, 3)), r"returned shape \(5, 3\)"),
        (np.ones((1, 5)), r"returned shape \(1, 5\)"),
        (1.0, r"returned shape \(\)"),
        (np.where(np.arange(15).reshape(3, 5) == 7, np.nan, 1.0), r"returned nan at \(1, 2\)"),
        (np.where(np.arange(15).reshape(3, 5) == 14, -np.inf, 1.0), r"returned -inf at \(2, 4\)"),
    ],
)
def test_a_function_that_returns_something_else_is_named(result, message, X):
    def f(A, B):
        return result

    kernel = make_kernel(f, 1.0, 0.0, 3, X)
    rows = kernel.prepare(X)
    with pytest.raises(ValueError, match=message):
        values(kernel, rows[:3], rows[:5])


# ------------------------------------------------------------------ precomputed


def training_and_test(n=30, m=8):
    """An unsymmetric matrix, so that a transposition cannot hide, and rows for prediction."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)), rng.normal(size=(m, n))


@each_dtype
def test_training_rows_of_a_matrix_are_its_entries(dtype):
    K, _ = training_and_test()
    kernel = make_kernel("precomputed", 1.0, 0.0, 3, K, dtype)
    rows = kernel.training_rows(K, np.arange(len(K)))
    a, b = np.array([4, 1, 20]), np.array([0, 29, 4, 4])
    assert_array_equal(values(kernel, rows[a], rows[b]), K[np.ix_(a, b)].astype(dtype))
    assert_array_equal(values(kernel, rows[5:][a], rows[:7]), K[5:][a][:, :7].astype(dtype))
    assert_array_equal(kernel.diagonal(rows[a]), np.diag(K)[a])


def test_new_rows_of_a_matrix_meet_support_vectors_in_both_orders():
    K, new = training_and_test()
    kernel = PrecomputedKernel()
    training, test = kernel.training_rows(K, np.arange(len(K))), kernel.prepare(new)
    support = np.array([3, 17, 28])
    expected = new[:, support].astype(np.float32)
    vectors = kernel.vectors(training, support)
    assert len(vectors) == 3
    assert vectors.values is None
    assert_array_equal(values(kernel, vectors, test), expected.T)
    assert_array_equal(values(kernel, test, vectors), expected)
    assert_array_equal(values(kernel, vectors[1:], test[2:5]), expected[2:5, 1:].T)
    assert_array_equal(values(kernel, test, training[support]), expected)


def test_support_vectors_of_selected_training_rows_keep_their_columns():
    K, new = training_and_test()
    kernel = PrecomputedKernel()
    some = kernel.training_rows(K, np.arange(len(K)))[np.array([29, 5, 11, 0])]
    vectors = kernel.vectors(some, np.array([1, 3]))
    expected = new[:, [5, 0]].astype(np.float32)
    assert_array_equal(values(kernel, kernel.prepare(new), vectors), expected)


@pytest.mark.parametrize("Z", [np.eye(6) + 0.5, mostly_zero(6)], ids=["dense", "compressed"])
def test_support_vectors_are_the_selected_rows(Z):
    support = np.array([4, 1])
    for name in ("poly", "laplacian"):
        kernel = made(name, Z)
        rows = kernel.prepare(Z)
        K = values(kernel, kernel.vectors(rows, support), rows)
        assert_allclose(K, exact(name, Z[support], Z), rtol=5e-6)
