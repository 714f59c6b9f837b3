"""Scalar kernels: limits, stability, definiteness, kernel matrices, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from reference import SPARSE_CONTAINERS
from scipy.spatial.distance import jensenshannon
from sklearn.metrics.pairwise import additive_chi2_kernel

from widemargin import AdditiveMap, PowerMean
from widemargin.additive import resolve_kernel

POWERS = (-np.inf, -1000.0, -8.0, -3.0, -1.0, -0.5, 0.0)
HOMOGENEOUS = [*map(PowerMean, POWERS), resolve_kernel("jensen_shannon")]
ALL = [*HOMOGENEOUS, resolve_kernel("linear")]

each_homogeneous = pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=lambda k: k.name)
each_kernel = pytest.mark.parametrize("kernel", ALL, ids=lambda k: k.name)
each_container = pytest.mark.parametrize("container", SPARSE_CONTAINERS, ids=lambda c: c.__name__)

positive = st.floats(1e-3, 1.0)
unit = st.floats(0.0, 1.0, allow_subnormal=False)


def grid_pairs():
    """All pairs of some values in (0, 1], as two broadcastable arrays."""
    t = np.concatenate([np.geomspace(1e-6, 1e-2, 8), np.linspace(0.05, 1.0, 12)])
    return t[:, None], t[None, :]


def histograms(n, d=5, seed=0):
    """Rows of non-negative values, about half of them zero."""
    return np.maximum(np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d)), 0.0)


# ------------------------------------------------------------------ values


def test_power_minus_infinity_is_the_minimum():
    x, y = grid_pairs()
    assert_array_equal(PowerMean(-np.inf)(x, y), np.minimum(x, y))


def test_power_minus_one_is_the_harmonic_mean():
    x, y = grid_pairs()
    assert_allclose(PowerMean(-1.0)(x, y), 2 * x * y / (x + y), rtol=1e-15)


def test_power_zero_is_the_geometric_mean():
    x, y = grid_pairs()
    assert_allclose(PowerMean(0.0)(x, y), np.sqrt(x * y), rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "p"), [("intersection", -np.inf), ("chi2", -1.0), ("hellinger", 0.0)]
)
def test_named_kernels_are_power_means(name, p):
    assert resolve_kernel(name) == PowerMean(p)


@given(x=positive, y=positive, p=st.floats(-8.0, -0.1))
def test_power_mean_follows_its_definition(x, y, p):
    naive = ((x**p + y**p) / 2) ** (1 / p)
    assert_allclose(PowerMean(p)(x, y), naive, rtol=1e-12)


@pytest.mark.parametrize("p", [-1e-3, -1e-6, -1e-9, -1e-12, -1e-16, -1e-300])
def test_power_mean_tends_to_the_geometric_mean_as_p_tends_to_zero(p):
    x, y = grid_pairs()
    deviation = np.abs(PowerMean(p)(x, y) / np.sqrt(x * y) - 1)
    assert np.all(deviation <= -p * np.log(x / y) ** 2 + 1e-14)


@pytest.mark.parametrize("p", [-8.0, -64.0, -1e3, -1e6, -1e300])
def test_power_mean_tends_to_the_minimum_as_p_tends_to_minus_infinity(p):
    x, y = grid_pairs()
    ratio = PowerMean(p)(x, y) / np.minimum(x, y)
    assert np.all(ratio >= 1 - 1e-15)
    assert np.all(ratio <= 2 ** (-1 / p) + 1e-15)


@pytest.mark.parametrize("step", [-1e-9, 1e-9])
def test_power_mean_is_continuous_at_minus_one(step):
    x, y = grid_pairs()
    assert_allclose(PowerMean(-1 + step)(x, y), PowerMean(-1)(x, y), rtol=1e-7)


def test_power_mean_grows_with_p():
    x, y = grid_pairs()
    means = np.stack([PowerMean(p)(x, y) for p in POWERS])
    assert np.all(np.diff(means, axis=0) >= -1e-15)


@pytest.mark.parametrize("p", [-8.0, -50.0, -1000.0])
def test_power_mean_of_tiny_and_huge_values_stays_next_to_the_minimum(p):
    t = np.array([1e-308, 1e-200, 1e-30, 1.0, 1e30, 1e200, 1e308])
    low = np.minimum(t[:, None], t)
    mean = PowerMean(p)(t[:, None], t)
    assert np.all(mean >= low * (1 - 1e-15))
    assert np.all(mean <= low * (2 ** (-1 / p) * (1 + 1e-15)))


@each_homogeneous
def test_subnormal_values_give_finite_results(kernel):
    t = np.array([0.0, 5e-324, 1e-310, 1e-300, 1.0])
    assert np.all(np.isfinite(kernel(t[:, None], t)))


@each_kernel
def test_kernels_are_symmetric(kernel):
    x, y = grid_pairs()
    assert_array_equal(kernel(x, y), kernel(y, x))


@each_homogeneous
@given(x=positive, y=positive, scale=st.floats(1e-6, 1e6))
def test_kernels_are_homogeneous(kernel, x, y, scale):
    assert_allclose(kernel(scale * x, scale * y), scale * kernel(x, y), rtol=1e-12)


@each_homogeneous
@given(x=st.floats(0.0, 1e100, allow_subnormal=False))
def test_kernel_of_a_value_with_itself_is_the_value(kernel, x):
    assert_allclose(kernel(np.array([x]), np.array([x])), [x], rtol=1e-14)


@each_kernel
def test_kernels_are_zero_where_either_value_is_zero(kernel):
    t = np.array([0.0, 1e-300, 0.2, 1.0, 1e9])
    zero = np.zeros_like(t)
    assert_array_equal(kernel(zero, t), zero)
    assert_array_equal(kernel(t, zero), zero)


@pytest.mark.parametrize("p", [-1e-2, -1e-4, -1e-9, -1e-300])
def test_power_mean_with_p_next_to_zero_is_zero_where_either_value_is_zero(p):
    t = np.array([0.0, 1e-300, 0.2, 1.0, 1e9])
    assert_array_equal(PowerMean(p)(t, np.zeros_like(t)), np.zeros_like(t))


@each_kernel
@pytest.mark.parametrize(("x", "y"), [(0.0, 2.0), (0.5, 2.0), (0, 0), (3, 2)])
def test_kernels_accept_plain_numbers(kernel, x, y):
    assert kernel(x, y) == kernel(np.array([float(x)]), np.array([float(y)]))[0]


@each_kernel
@given(t=arrays(np.float64, st.integers(1, 20), elements=unit))
def test_gram_matrix_on_any_points_is_positive_semidefinite(kernel, t):
    gram = kernel(t[:, None], t)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-13 * max(np.trace(gram), 1e-300)


# ------------------------------------------------------------------ kernel matrices


def brute_force(kernel, X, Z):
    return np.array([[sum(kernel(x[[j]], z[[j]])[0] for j in range(len(x))) for z in Z] for x in X])


@each_kernel
def test_matrix_is_the_sum_over_features(kernel):
    X, Z = histograms(7), histograms(4, seed=1)
    assert_allclose(kernel.matrix(X, Z), brute_force(kernel, X, Z), rtol=1e-13)


@each_kernel
def test_matrix_of_one_argument_is_its_gram_matrix(kernel):
    X = histograms(6)
    assert_array_equal(kernel.matrix(X), kernel.matrix(X, X))


@each_kernel
@each_container
def test_matrix_of_sparse_data_is_that_of_dense_data(kernel, container):
    X, Z = histograms(7), histograms(4, seed=1)
    assert_allclose(kernel.matrix(container(X), container(Z)), kernel.matrix(X, Z), rtol=1e-15)


@each_container
def test_matrix_mixes_sparse_and_dense(container):
    kernel, X, Z = PowerMean(-1), histograms(7), histograms(4, seed=1)
    assert_allclose(kernel.matrix(container(X), Z), kernel.matrix(X, Z), rtol=1e-15)
    assert_allclose(kernel.matrix(X, container(Z)), kernel.matrix(X, Z), rtol=1e-15)


@each_container
def test_sparse_matrix_without_second_argument_is_its_gram_matrix(container):
    X = histograms(6)
    assert_allclose(PowerMean(-1).matrix(container(X)), PowerMean(-1).matrix(X), rtol=1e-15)


def test_matrix_adds_duplicate_entries_of_sparse_data():
    X = sp.csr_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    assert_allclose(PowerMean(-1).matrix(X), [[6.0]])


def test_matrix_accepts_explicit_zeros_and_unsorted_indices():
    X = sp.csr_array(([3.0, 0.0, 1.0], [2, 1, 0], [0, 3]), shape=(1, 3))
    assert_allclose(PowerMean(-1).matrix(X), [[4.0]])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("block_size", [1, 2, 7, 100])
def test_matrix_does_not_depend_on_the_block_size(block_size, container):
    X, Z = container(histograms(7)), container(histograms(4, seed=1))
    kernel = PowerMean(-1)
    assert_array_equal(kernel.matrix(X, Z, block_size=block_size), kernel.matrix(X, Z))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_blocks_are_consecutive_rows_of_the_matrix(container):
    X, kernel = container(histograms(7)), PowerMean(-1)
    rows, parts = zip(*kernel.blocks(X, block_size=3), strict=True)
    assert list(rows) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert_array_equal(np.vstack(parts), kernel.matrix(X))


@each_kernel
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.float16, np.float32])
def test_matrix_is_computed_in_double_precision(kernel, dtype):
    X = (200 * histograms(6)).astype(dtype)
    assert_array_equal(kernel.matrix(X), kernel.matrix(X.astype(np.float64)))


def test_matrix_of_no_rows_is_empty():
    assert PowerMean(-1).matrix(np.zeros((0, 3)), np.ones((2, 3))).shape == (0, 2)


@pytest.mark.parametrize("d", [2, 4])
def test_matrix_refuses_different_numbers_of_features(d):
    with pytest.raises(ValueError, match="features"):
        PowerMean(-1).matrix(np.ones((2, 3)), np.ones((2, d)))


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix], ids=lambda c: c.__name__)
def test_matrix_refuses_sparse_data_for_a_kernel_that_does_not_vanish_at_zero(container):
    with pytest.raises(ValueError, match=r"k\(0, y\)"):
        resolve_kernel(gaussian).matrix(container(histograms(3)))


def test_matrix_of_a_function_counts_zeros_of_dense_data():
    X = histograms(3)
    difference = X[:, None, :] - X[None, :, :]
    assert_allclose(resolve_kernel(gaussian).matrix(X), np.exp(-(difference**2)).sum(axis=2))


def test_intersection_matrix_is_the_sum_of_minima():
    X = histograms(6)
    expected = np.minimum(X[:, None, :], X[None, :, :]).sum(axis=2)
    assert_allclose(resolve_kernel("intersection").matrix(X), expected)


def test_hellinger_matrix_is_a_product_of_square_roots():
    X = histograms(6)
    assert_allclose(resolve_kernel("hellinger").matrix(X), np.sqrt(X) @ np.sqrt(X).T)


def test_linear_matrix_is_the_dot_product():
    X, Z = histograms(6), histograms(4, seed=1)
    assert_allclose(resolve_kernel("linear").matrix(X, Z), X @ Z.T)


def test_chi2_matrix_agrees_with_scikit_learn():
    X, Z = histograms(6), histograms(4, seed=1)
    half_sums = (X.sum(axis=1)[:, None] + Z.sum(axis=1)) / 2
    expected = half_sums + additive_chi2_kernel(X, Z) / 2
    assert_allclose(resolve_kernel("chi2").matrix(X, Z), expected, rtol=1e-12)


def test_jensen_shannon_matrix_agrees_with_scipy():
    X = histograms(6)
    X /= X.sum(axis=1, keepdims=True)
    expected = [[1 - jensenshannon(x, z, base=2) ** 2 for z in X] for x in X]
    assert_allclose(resolve_kernel("jensen_shannon").matrix(X), expected, rtol=1e-12)


# ------------------------------------------------------------------ what is refused


def gaussian(x, y):
    return np.exp(-((x - y) ** 2))


def lopsided(x, y):
    return x * y**2


def broken(x, y):
    return np.where(x * y > 0.1, np.nan, x * y)


def unvectorised(x, y):
    return float(np.sum(x * y))


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'rbf' is not known") as error:
        resolve_kernel("rbf")
    known = ("intersection", "chi2", "hellinger", "jensen_shannon", "linear", "auto")
    assert all(repr(name) in str(error.value) for name in known)


@pytest.mark.parametrize("p", [1e-9, 0.5, 1, np.inf, np.nan, 1j, None, "one"])
def test_a_power_outside_its_range_is_refused(p):
    with pytest.raises((TypeError, ValueError), match="p must be"):
        resolve_kernel(PowerMean(p))


@pytest.mark.parametrize("kernel", [3, None, ["chi2"]])
def test_what_is_neither_name_nor_function_is_refused(kernel):
    with pytest.raises(TypeError, match="kernel must be a name, PowerMean"):
        resolve_kernel(kernel)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lopsided, r"'lopsided' is not symmetric: k\(.*\) = .* but k\(.*\) = "),
        (broken, r"'broken' is not finite: k\(.*\) = nan"),
        (unvectorised, "'unvectorised' is not vectorised: .* shape"),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_bad_function_is_refused_with_the_reason(kernel, message, container):
    with pytest.raises(ValueError, match=message):
        AdditiveMap(kernel).fit(container(histograms(20)))


def test_a_function_that_does_not_vanish_at_zero_is_refused_on_sparse_data():
    with pytest.raises(ValueError, match=r"'gaussian' is not zero at k\(0, y\)"):
        AdditiveMap(gaussian).fit(sp.csr_array(histograms(20)))


def test_a_function_that_does_not_vanish_at_zero_is_used_on_dense_data():
    X = histograms(20)
    Z = AdditiveMap(gaussian, scaling=None, rank=12).fit_transform(X)
    assert_allclose(Z @ Z.T, resolve_kernel(gaussian).matrix(X), atol=1e-4)


def test_a_function_is_as_good_as_the_kernel_it_computes():
    X = histograms(20)
    by_name = AdditiveMap("intersection").fit_transform(X)
    assert_array_equal(AdditiveMap(np.minimum).fit_transform(X), by_name)
