"""Encoders: where the bins lie, and what sample weights do to them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from .encoding import codes_of, counts, crowded, each_binning, each_scaling, fit, same


def quantised(encoder, X):
    """Scaled values and the representatives they are rounded to."""
    t = (X - encoder.shift) * encoder.factor
    return t, encoder.representatives[codes_of(encoder, X)]


@pytest.mark.parametrize("binning", ["auto", "uniform", "floor"])
@pytest.mark.parametrize("n_bins", [1, 2, 7, 255, 1000])
def test_there_are_at_most_n_bins_bins(binning, n_bins):
    encoder, codes = fit(crowded(), binning=binning, n_bins=n_bins)
    assert 1 <= len(encoder.representatives) - 1 <= n_bins
    assert codes.toarray().max() < encoder.n_codes


@pytest.mark.parametrize("n_bins", [7, 255, 1000])
def test_automatic_bins_use_what_they_are_given(n_bins):
    encoder, _ = fit(crowded(), n_bins=n_bins)
    assert len(encoder.representatives) - 1 >= 0.9 * n_bins


def test_bins_that_would_be_ignored_are_refused():
    with pytest.raises(ValueError, match="binning='floor' has no effect"):
        fit(crowded(), scaling="percentile", binning="floor")
    with pytest.raises(ValueError, match="n_bins=9 has no effect"):
        fit(crowded(), binning="exact", n_bins=9)


def test_default_is_255_bins():
    assert fit(crowded())[0].n_codes == 255 + 1


@each_binning
def test_bins_ascend(binning, scaling):
    encoder, _ = fit(crowded(), binning=binning, scaling=scaling)
    assert np.all(np.diff(encoder.representatives) > 0)
    assert np.all(np.diff(encoder.thresholds) > 0)


def test_uniform_bins_are_even_and_rounded_to():
    X = crowded()
    encoder, _ = fit(X, binning="uniform", n_bins=50, scaling="global")
    assert_allclose(encoder.representatives, np.arange(51) / 50)
    t, rounded = quantised(encoder, X)
    assert np.all(np.abs(t - rounded)[t > 1 / 50] <= 0.5 / 50 + 1e-12)


def test_exact_bins_are_the_distinct_values():
    X = counts("float32")
    encoder, _ = fit(X, binning="exact")
    t, rounded = quantised(encoder, X)
    assert_array_equal(rounded, t)


def test_exact_bins_may_be_more_than_two_bytes_tell_apart():
    X = np.random.default_rng(0).random((700, 100))
    encoder, codes = fit(X, binning="exact", scaling=None)
    assert codes.data.dtype == np.uint32
    assert_array_equal(encoder.representatives[codes.toarray()], X)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_bins", [10, "auto"])
def test_few_distinct_values_are_their_own_bins(n_bins, container):
    X = np.random.default_rng(0).integers(0, 11, (60, 7)) / 7
    encoder, codes = fit(container(X), n_bins=n_bins, scaling=None)
    assert_array_equal(encoder.representatives, np.arange(11) / 7)
    assert_array_equal(encoder.representatives[codes.toarray()], X)


@pytest.mark.parametrize("binning", ["auto", "uniform", "floor", "exact"])
@pytest.mark.parametrize("seed", range(3))
def test_zeros_do_not_change_the_bins(binning, seed):
    X = crowded(seed=seed)
    with_zeros = np.vstack([np.zeros(X.shape[1]), X])
    more, _ = fit(with_zeros, binning=binning, scaling=None)
    same(more, fit(X, binning=binning, scaling=None)[0])


@pytest.mark.parametrize("scaling", ["global", "minmax"])
def test_the_order_of_the_rows_does_not_change_the_bins(scaling):
    X = np.sort(crowded(), axis=0)
    X[0] = 0
    same(fit(X, scaling=scaling)[0], fit(X[::-1], scaling=scaling)[0])


def test_bins_are_fine_where_data_crowds_near_zero():
    X = crowded()
    encoder, _ = fit(X, scaling=None)
    t, rounded = quantised(encoder, X)
    error = np.abs(t - rounded)[X > 1e-3] / t[X > 1e-3]
    assert np.median(error) < 0.01
    assert error.max() < 0.15


@pytest.mark.parametrize("scaling", ["global", "minmax"])
def test_bins_are_fine_near_zero_after_scaling(scaling):
    X = crowded()
    X[0] = 0
    encoder, _ = fit(X, scaling=scaling)
    t, rounded = quantised(encoder, X)
    error = np.abs(t - rounded)[X > 1e-3] / t[X > 1e-3]
    assert np.median(error) < 0.02


def test_automatic_bins_lose_less_than_uniform_ones_near_zero():
    X = crowded()
    error = {}
    for binning in ("auto", "uniform"):
        t, rounded = quantised(fit(X, binning=binning, scaling="global")[0], X)
        error[binning] = np.quantile(np.abs(t - rounded) / t, 0.9)
    assert error["auto"] < error["uniform"] / 2


@pytest.mark.parametrize("scaling", ["global", "minmax", None])
@pytest.mark.parametrize("binning", ["auto", "uniform", "floor", "exact"])
def test_grid_is_encoded_as_the_codes_it_stands_for(binning, scaling):
    X = crowded() * [1, 2, 3, 4] + ([0, -1, 0, 0.5] if scaling == "minmax" else 0)
    encoder, _ = fit(X, binning=binning, scaling=scaling)
    grid = np.column_stack([encoder.grid(j) for j in range(X.shape[1])])[1:]
    expected = np.arange(1, encoder.n_codes)[:, None]
    assert_array_equal(codes_of(encoder, grid), np.broadcast_to(expected, grid.shape))


@each_scaling
def test_grid_is_in_the_units_of_the_feature(scaling):
    X = crowded() * [1, 2, 3, 4] + ([0, -1, 0, 0.5] if scaling == "minmax" else 0)
    encoder, codes = fit(X, scaling=scaling, n_bins=1000)
    for j in range(X.shape[1]):
        inside = X[:, j] < np.quantile(X, 0.97)
        rounded = encoder.grid(j)[codes.toarray()[:, j]]
        assert_allclose(rounded[inside], X[inside, j], atol=0.01 * np.ptp(X[:, j]))


@each_binning
@given(
    X=arrays(np.float64, (12, 3), elements=st.floats(0.0, 50.0, allow_subnormal=False, width=32)),
    weight=arrays(np.int64, 12, elements=st.integers(1, 4)),
)
def test_a_weight_is_as_many_copies(binning, scaling, X, weight):
    options = {"binning": binning, "scaling": scaling, "n_bins": 5}
    same(fit(X, weight, **options)[0], fit(np.repeat(X, weight, axis=0), **options)[0])


@each_scaling
@given(weight=arrays(np.int64, 60, elements=st.integers(1, 4)))
def test_a_weight_is_as_many_copies_in_sparse_data(scaling, weight):
    X = counts(zeros=0.7)
    weighted, _ = fit(sp.csr_array(X), weight, scaling=scaling, n_bins=9)
    same(weighted, fit(sp.csr_array(np.repeat(X, weight, axis=0)), scaling=scaling, n_bins=9)[0])


def test_weights_move_the_bins():
    X, weight = crowded(), np.ones(2000)
    weight[X[:, 0] > 0.05] = 1000
    plain, weighted = (fit(X, w, scaling=None)[0] for w in (None, weight))
    assert weighted.representatives[128] > 1.05 * plain.representatives[128]
