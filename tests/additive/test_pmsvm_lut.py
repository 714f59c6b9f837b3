"""What the PmSVM-LUT paper says of its nodes and tables, held against the code."""

import math

import numpy as np
import pytest

from widemargin import PowerMean, papers

from .encoding import codes_of, fit

X = np.linspace(-1, 1, 20_001)


def nodes(degree):
    """PmSVM-LUT, eq. 13, on [-1, 1]."""
    return np.cos((2 * np.arange(1, degree + 2) - 1) / (2 * (degree + 1)) * np.pi)


def placed(s):
    """From [-1, 1] to [0, 1], evenly in ln(t + 0.05)."""
    low, high = np.log(0.05), np.log(1.05)
    return np.exp((low + high) / 2 + s * (high - low) / 2) - 0.05


def cardinals(at, x):
    """(len(x), len(at)): the polynomials that are 1 at one node and 0 at the others."""
    away = np.where(np.eye(len(at), dtype=bool), 1.0, at[:, None] - at[None, :]).prod(axis=1)
    ratios = [np.prod(np.delete(x[:, None] - at, i, axis=1), axis=1) for i in range(len(at))]
    return np.stack(ratios, axis=1) / away


@pytest.mark.parametrize("degree", range(1, 9))
def test_no_nodes_have_a_smaller_product_than_chebyshevs(degree):
    """Theorem 4, eq. 14: max |(x - x_1) ... (x - x_m+1)| is 2^-m, and larger for all others."""

    def largest(at):
        return np.abs(np.prod(X[:, None] - at, axis=1)).max()

    assert largest(nodes(degree)) == pytest.approx(2.0**-degree, rel=1e-6)
    rng = np.random.default_rng(degree)
    for _ in range(20):
        moved = nodes(degree) + rng.normal(scale=0.02, size=degree + 1)
        assert largest(moved) > 2.0**-degree


@pytest.mark.parametrize("degree", range(1, 9))
def test_interpolation_keeps_within_its_bound(degree):
    """Eq. 15, for f = exp(2x), whose derivative of order m + 1 is at most 2^(m+1) e^2."""

    def f(x):
        return np.exp(2 * x)

    error = np.abs(cardinals(nodes(degree), X) @ f(nodes(degree)) - f(X)).max()
    bound = 2.0 ** (degree + 1) * math.e**2 / (2.0**degree * math.factorial(degree + 1))
    assert 0.1 * bound < error <= bound


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 10, 20])
def test_lebesgue_constant_grows_with_the_logarithm(degree):
    """Eq. 17; that of even nodes grows without measure."""
    constant = np.abs(cardinals(nodes(degree), X)).sum(axis=1).max()
    logarithm = 2 / np.pi * np.log(degree + 1)
    assert logarithm + 0.9625 < constant <= logarithm + 1
    if degree >= 10:
        even = cardinals(np.linspace(-1, 1, degree + 1), X)
        assert np.abs(even).sum(axis=1).max() > 10 * constant


@pytest.mark.parametrize("b", [10, 100, 1000])
def test_floored_bins_are_the_papers_tables(b):
    """Eq. 18: T_1,i = ln(i / b + .05), and h(x) = floor(b x), 0 for what has no entry."""
    values = np.append(np.random.default_rng(0).random(500), [0.0, 0.5, 0.29, 1.0])[:, None]
    encoder, codes = fit(values, scaling="global", binning="floor", n_bins=b)
    np.testing.assert_allclose(encoder.representatives, np.arange(b + 1) / b)
    expected = np.floor(b * values + 1e-9)
    np.testing.assert_array_equal(codes.toarray(), expected)
    np.testing.assert_array_equal(codes_of(encoder, values), expected)


def test_rounded_bins_lose_no_small_value():
    small = np.array([[0.0], [1e-4], [9e-4], [1.0]])
    _, floored = fit(small, scaling="global", binning="floor", n_bins=1000)
    _, rounded = fit(small, scaling="global", binning="uniform", n_bins=1000)
    np.testing.assert_array_equal(floored.toarray().ravel(), [0, 0, 0, 1000])
    np.testing.assert_array_equal(rounded.toarray().ravel(), [0, 1, 1, 1000])


def test_floored_bins_keep_zeros_of_a_kernel_that_does_not_vanish_there():
    values = np.array([[0.0], [0.3], [1.0]])
    encoder, codes = fit(values, binning="floor", n_bins=10, zero_is_absent=False, scaling="global")
    np.testing.assert_allclose(encoder.representatives[codes.toarray()], values)


def test_the_papers_bound_of_the_logarithms_error_is_not_that_of_its_tables():
    """Sec. 5.1 says E_1 < .001 with b = 1000.  That is so above x = .95; near 0 it is .02."""
    x = np.linspace(0.001, 0.999999, 100_001)
    error = np.log(x + 0.05) - np.log(np.floor(1000 * x) / 1000 + 0.05)
    assert error.max() == pytest.approx(np.log(0.052 / 0.051), rel=1e-3)
    assert error[x > 0.95].max() <= 0.001


@pytest.mark.parametrize(("p", "largest"), [(-1.0, 0.0026), (-8.0, 0.0029)])
def test_floored_updates_are_a_few_thousandths_off(p, largest):
    """E_2 of sec. 5.1, X^-1 M_p(c, .) at x and at its entry, which the paper says is < .001."""
    c, x, kernel = placed(nodes(2)), np.linspace(0.001, 0.999999, 100_001), PowerMean(p)
    change = kernel(c[:, None], x) - kernel(c[:, None], np.floor(1000 * x) / 1000)
    powers = np.log(c + 0.05)[:, None] ** np.arange(3)
    error = np.abs(np.linalg.solve(powers, change)).sum(axis=0)
    assert error.max() == pytest.approx(largest, rel=0.02)


@pytest.mark.parametrize("change", [{}, {"binning": "uniform"}, {"loss": "squared_hinge"}])
def test_the_preset_learns_however_it_is_read(change, digits):
    model = papers.pmsvm_lut(random_state=0, C=0.1, **change).fit(*digits)
    assert model.score(*digits) > 0.9


def test_errors_of_a_feature_are_relative_to_its_peak_and_mean(two):
    """As in Tables 1 and 2."""
    X, y = two
    model = papers.pmsvm_lut(random_state=0, warm_start=True).fit(X, y)
    (error,) = model.approximation_error(X, features=[20])
    t = model.model_.encoder.representatives[1:]
    codes = np.floor(1000 * X[:, 20] / X.max() + 1e-9) / 1000
    true = PowerMean(-1.0)(t[:, None], codes) @ model._dual.coef
    learned = model.model_.feature_function(20)[1:]
    off = np.abs(learned - true)
    assert error.relative_max == pytest.approx(off.max() / np.abs(true).max(), rel=1e-3)
    assert error.relative_mean == pytest.approx(off.mean() / np.abs(true).mean(), rel=1e-3)
