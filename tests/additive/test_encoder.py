"""Encoders: scalings, and values outside of the training range."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from .encoding import codes_of, counts, each_scaling, fit, same


def test_global_scaling_divides_by_the_largest_value():
    X = counts()
    encoder, _ = fit(X, scaling="global")
    assert encoder.shift == [0.0]
    assert encoder.factor == [1 / X.max()]


def test_minmax_scaling_maps_each_column_to_the_unit_interval():
    X = counts() * [1, 10, 100, -1, 1, 1, 1] + [0, 5, 0, 0, -3, 0, 0]
    encoder, _ = fit(X, scaling="minmax")
    assert_array_equal(encoder.shift, X.min(axis=0))
    assert_allclose(encoder.factor, 1 / (X.max(axis=0) - X.min(axis=0)))
    assert encoder.representatives[-1] == pytest.approx(1)


@pytest.mark.parametrize("constant", [-3.0, 0.0, 5.0])
def test_minmax_scaling_ignores_a_constant_column(constant):
    X = counts()
    X[:, 2] = constant
    encoder, codes = fit(X, scaling="minmax")
    assert not codes.toarray()[:, 2].any()
    assert_array_equal(encoder.grid(2), np.full(encoder.n_codes, constant))
    X[:, 2] = constant + 1
    assert not codes_of(encoder, X)[:, 2].any()


ICD_LEVELS = 100  # of the paper


def icd_levels(X, levels=ICD_LEVELS):
    """ICD, eq. 13: (int) (levels (v - v_min) / (v_max - v_min)), clipped, rounding forgiven.

    Zeros count only where there are values below them.
    """
    v_min = X.min()
    v_max = np.percentile(X if v_min < 0 else X[X > 0], 97.5, method="inverted_cdf")
    return np.clip(np.floor(levels * (X - v_min) / (v_max - v_min) + 1e-10), 0, levels)


@pytest.mark.parametrize("options", [{}, {"levels": 30}], ids=["default", "30 levels"])
def test_percentile_scaling_is_icds_rule(options):
    X = np.random.default_rng(0).normal(size=(50, 6))
    n_bins = options.get("levels", "auto")
    encoder, codes = fit(X, scaling="percentile", n_bins=n_bins)
    assert_array_equal(codes.toarray(), icd_levels(X, **options))
    assert_array_equal(encoder.representatives, np.arange(codes.n_codes))


@pytest.mark.parametrize("n", [40, 49, 58, 97, 100, 107, 255])
def test_percentile_scaling_is_icds_rule_on_integers(n):
    X = np.arange(n)[:, None]
    assert_array_equal(fit(X, scaling="percentile")[1].toarray(), icd_levels(X))


@pytest.mark.parametrize("order", ["C", "F"])
def test_percentile_scaling_counts_weights(order):
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 9.0]], order=order)
    weight = [1000.0, 1000.0, 1.0]
    encoder, _ = fit(X, weight, scaling="percentile")
    assert_allclose(encoder.factor, [ICD_LEVELS / 1.0])


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_percentile_scaling_does_not_count_the_zeros_that_sparse_data_leaves_out(
    container, weighted
):
    X = sp.random_array((500, 400), density=0.02, rng=np.random.default_rng(0)).toarray()
    X[X > 0] = np.random.default_rng(1).lognormal(sigma=1.0, size=np.count_nonzero(X))
    weight = np.where(np.arange(500) < 499, 2.0, 1.0) if weighted else None
    encoder, codes = fit(container(X), weight, scaling="percentile")
    assert ICD_LEVELS / encoder.factor[0] == pytest.approx(np.percentile(X[X > 0], 97.5), rel=0.02)
    if not weighted:
        assert_array_equal(codes.toarray(), icd_levels(X))


def test_percentile_scaling_counts_zeros_above_the_least_value():
    X = np.array([[-1.0], [0.0], [9.0]]).repeat([1, 98, 1], axis=0)
    for container in (np.asarray, sp.csr_array):
        assert_allclose(fit(container(X), scaling="percentile")[0].factor, [ICD_LEVELS])


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_histogram_has_a_bin_for_every_count_seen_or_not(container, dtype):
    X = np.array([[0, 1], [2, 5], [399, 0]], dtype=dtype)
    encoder, codes = fit(container(X), scaling=None)
    assert_array_equal(encoder.representatives, np.arange(400))
    assert_array_equal(codes.toarray(), X)
    assert_array_equal(codes_of(encoder, container(X + 7)), np.minimum(X + 7, 399))


@pytest.mark.parametrize("largest", [4095, 4096])
def test_histograms_of_large_counts_have_bins_for_those_that_occur(largest):
    X = np.array([[0.0, 1.0], [7.0, float(largest)]])
    encoder, _ = fit(X, scaling=None)
    assert encoder.n_codes == (4096 if largest == 4095 else 4)


def test_fractions_are_no_counts():
    X = np.arange(1.0, 401.0)[:, None]
    assert fit(X, scaling=None)[0].n_codes == 401
    assert fit(X + 0.5, scaling=None)[0].n_codes == 256


def test_natural_integers_are_taken_as_they_are():
    X = np.random.default_rng(0).integers(0, 200, (100, 20))
    encoder, codes = fit(X, scaling=None)
    assert_array_equal(encoder.representatives[1:], np.unique(X[X > 0]))
    assert_array_equal(encoder.representatives[codes.toarray()], X)
    assert codes.data.dtype == np.uint8


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_many_natural_integers_are_taken_as_they_are(container):
    X = np.random.default_rng(0).integers(0, 5000, (100, 200))
    encoder, codes = fit(container(X), scaling=None)
    assert_array_equal(encoder.representatives[codes.toarray()], X)
    assert codes.data.dtype == np.uint16


def test_no_scaling_leaves_real_values_as_they_are():
    encoder, _ = fit(counts(), scaling=None, binning="exact")
    assert_array_equal(encoder.representatives[1:], np.unique(counts()[counts() > 0]))


@pytest.mark.parametrize(
    ("X", "rule"),
    [
        (counts(), "global"),
        (counts() / 1e6, "global"),
        (counts() - 1, "minmax"),
        (counts() + 1, "minmax"),
        (counts() * [1, 1, 1, 1, 1, 1, 99], "global"),
        (counts() * [1, 1, 1, 1, 1, 1, 120], "minmax"),
        (counts() + 5 * (np.arange(7) > 3), "global"),
        (counts() + 5 * (np.arange(7) > 2), "minmax"),
        (np.full((5, 3), 2.0), "minmax"),
        (sp.csr_array(counts()), "global"),
        (sp.csr_array(-counts()), "minmax"),
    ],
    ids=[
        "histograms",
        "small histograms",
        "negative",
        "no column reaches zero",
        "one maximum 99 times larger",
        "one maximum 120 times larger",
        "most columns reach zero",
        "most columns do not reach zero",
        "constant",
        "sparse histograms",
        "sparse negative",
    ],
)
def test_automatic_scaling_is_global_for_histograms_and_minmax_for_tables(X, rule):
    automatic, chosen = fit(X, scaling="auto")[0], fit(X, scaling=rule)[0]
    assert automatic.shift.shape == chosen.shift.shape
    same(automatic, chosen)


@pytest.mark.parametrize("scaling", ["global", None])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_negative_values_are_refused_by_place_and_with_the_way_out(container, scaling):
    X = counts(shape=(3000, 7))
    X[2000, 4] = -1
    X[2500, 1] = -1
    with pytest.raises(ValueError, match=r'row 2000, column 4.*scaling="minmax"'):
        fit(container(X), scaling=scaling)


def test_percentile_scaling_survives_a_constant_bulk():
    X = np.zeros((100, 4))
    X[0, 0] = 5.0
    assert fit(X, scaling="percentile")[1].toarray()[0, 0] == ICD_LEVELS


@each_scaling
def test_data_of_zeros_only_has_no_codes(scaling):
    assert not fit(np.zeros((4, 3)), scaling=scaling)[1].toarray().any()


@each_scaling
def test_no_value_is_absent_when_the_kernel_does_not_vanish_at_zero(scaling):
    _, codes = fit(counts(), scaling=scaling, zero_is_absent=False)
    assert codes.toarray().min() >= 1


@each_scaling
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_values_outside_the_training_range_are_clipped(container, scaling):
    X = counts(zeros=0.2)
    X[0], X[1] = 0, 100
    encoder, _ = fit(X, scaling=scaling)
    outside = np.repeat([[-1e6], [-1.0], [101.0], [1e6]], 7, axis=1)
    expected = np.repeat([[0], [0], [encoder.n_codes - 1], [encoder.n_codes - 1]], 7, axis=1)
    assert_array_equal(codes_of(encoder, container(outside)), expected)


EXTREMES = """
import numpy as np
from widemargin.additive.codes import encode
from widemargin.additive.encoder import fit_encoder
from widemargin.additive.source import Values

def check(what, scaling, train, test):
    values = Values.of(np.array(train))
    encoder = fit_encoder(values, np.ones(values.n_rows), scaling=scaling)
    assert np.all(np.isfinite([*encoder.factor, *encoder.representatives])), what
    for X in (train, test):
        codes = encode(Values.of(np.array(X)), encoder)
        assert codes.toarray().max() < encoder.n_codes, what

check("small data", "global", [[0.0, 1e-308], [2e-308, 3e-308]], [[1.0, 0.0]])
check("small column", "minmax", [[0.0, 0.5], [1e-308, 1.0]], [[1.0, 0.0]])
check("constant, then far away", "minmax", [[-1e308, 0.5], [-1e308, 1.0]], [[1e308, 0.0]])
"""


def test_extreme_values_are_encoded():
    """In a process of its own, so that a crash is a failure."""
    command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", EXTREMES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_range_beyond_float64_is_refused_by_column():
    X = np.array([[0.5, -1e308], [1.0, 1e308]])
    with pytest.raises(ValueError, match="Column 1 ranges from -1e\\+308 to 1e\\+308"):
        fit(X, scaling="minmax")
