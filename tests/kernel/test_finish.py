"""From inner products to kernel values: the vector exponential and the other finishes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import _core

from .helpers import (
    EPS,
    PARAMETERS,
    RELATIVE,
    each_dot_kernel,
    each_dtype,
    each_instruction_set,
    made,
    mostly_zero,
    values,
)


def finished(dots, row_norms, column_norms, name, gamma=1.0, coef0=0.0, degree=3):
    out = np.array(dots)
    row_norms, column_norms = (np.asarray(n, out.dtype) for n in (row_norms, column_norms))
    _core.Finish(name, gamma, coef0, degree).apply(out, row_norms, column_norms)
    return out


# ------------------------------------------------------------------ the vector exponential


@each_instruction_set
def test_the_vector_exponential_is_right_to_three_units_in_the_last_place(
    instructions, use_instruction_set
):
    use_instruction_set(instructions)
    x = np.linspace(0, 79.9, 1_000_001, dtype=np.float32)
    K = finished(np.zeros((1, len(x)), np.float32), np.zeros(1), x, "rbf")
    assert_allclose(K[0], np.exp(-x.astype(np.float64)), rtol=3e-7)


def test_the_exponential_of_a_small_distance_is_right_to_the_last_place():
    x = np.geomspace(1e-30, 1e-2, 10_001).astype(np.float32)
    K = finished(np.zeros((1, len(x)), np.float32), np.zeros(1), x, "rbf")
    assert_allclose(K[0], np.exp(-x.astype(np.float64)), rtol=1.2e-7)
    assert np.all(K <= 1)


def test_the_exponential_in_double_precision_is_that_of_numpy():
    x = np.linspace(0, 699, 100_001)
    K = finished(np.zeros((1, len(x))), np.zeros(1), x, "rbf")
    assert_allclose(K[0], np.exp(-x), rtol=1e-15)


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, 80.0), (np.float64, 700.0)])
def test_the_exponential_of_large_distances_is_tiny_and_normal(dtype, largest):
    far = np.array([largest, largest + 10, 1e4, 1e30, np.inf], dtype=dtype)
    K = finished(np.zeros((1, 5), dtype), np.zeros(1), far, "rbf")
    assert np.all(np.finfo(dtype).tiny < K)
    assert_allclose(K, np.exp(-largest), rtol=3e-7)


@each_dtype
def test_a_negative_distance_counts_as_zero(dtype):
    dots = np.array([[1.0, 1.0 + EPS[dtype], 2.0, 1e30]], dtype=dtype)
    assert_array_equal(finished(dots, np.ones(1), np.ones(4), "rbf"), np.ones((1, 4)))


# ------------------------------------------------------------------ other finishes


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 7, 10])
@each_dtype
def test_every_degree_of_the_polynomial_is_the_power(dtype, degree):
    dots = np.random.default_rng(0).normal(size=(3, 37)).astype(dtype)
    zeros = np.zeros(37, dtype)
    K = finished(dots, zeros[:3], zeros, "poly", 0.5, -0.25, degree)
    inner = 0.5 * dots.astype(np.float64) - 0.25
    rounding = (degree + 2) * EPS[dtype] * (np.abs(inner) + 0.5) ** max(degree - 1, 0)
    assert np.all(np.abs(K - inner**degree) <= rounding * (np.abs(inner) + 0.5))
    assert degree or np.all(K == 1)


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 4e-7), (np.float64, 1e-15)])
def test_the_sigmoid_is_tanh_up_to_a_relative_error(dtype, error):
    """Also where it is tiny: the coefficients of such a model are as large."""
    small = np.geomspace(1e-30, 1, 10_000)
    dots = np.concatenate([np.linspace(-60, 60, 20_001), small, -small]).astype(dtype)
    dots = np.sort(dots)[None]
    K = finished(dots, np.zeros(1), np.zeros(dots.size), "sigmoid", 1.0, 0.0)
    assert_allclose(K, np.tanh(dots.astype(np.float64)), rtol=error)
    shifted = finished(dots, np.zeros(1), np.zeros(dots.size), "sigmoid", 1.0, 0.5)
    assert_allclose(shifted, np.tanh(dots.astype(np.float64) + 0.5), atol=error)
    assert np.all(np.abs(K) <= 1)
    assert K[0, 0] == -1
    assert K[0, -1] == 1


@each_dtype
def test_the_linear_finish_leaves_inner_products_as_they_are(dtype):
    dots = np.random.default_rng(0).normal(size=(3, 37)).astype(dtype)
    assert_array_equal(finished(dots, np.ones(3), np.ones(37), "linear"), dots)


@each_dtype
@each_dot_kernel
def test_widths_that_fill_no_vector_are_finished_and_nothing_beside_them(name, dtype):
    rng = np.random.default_rng(0)
    dots, norms = rng.random((3, 40)).astype(dtype), 2 + rng.random(40).astype(dtype)
    full = finished(dots, norms[:3], norms, name, 0.3, 0.2)
    assert np.all(full != dots)
    for width in range(40):
        out = np.array(dots)
        _core.Finish(name, 0.3, 0.2, 3).apply(out[:, :width], norms[:3], norms[:width])
        assert_allclose(out[:, :width], full[:, :width], rtol=4 * EPS[dtype])
        assert_array_equal(out[:, width:], dots[:, width:])


@each_dtype
@each_dot_kernel
def test_finishing_on_the_way_is_finishing_afterwards(name, dtype):
    Z = mostly_zero(n=150)
    kernel = made(name, Z, dtype)
    rows = kernel.prepare(Z)
    dots = np.empty((70, 150), dtype)
    kernel.as_left(rows[:70]).fill(rows, dots)
    assert_allclose(dots, Z[:70] @ Z.T, rtol=RELATIVE[dtype])
    afterwards = finished(dots, rows.norms[:70], rows.norms, name, **PARAMETERS[name])
    assert_allclose(values(kernel, rows[:70], rows), afterwards, rtol=4 * EPS[dtype])
