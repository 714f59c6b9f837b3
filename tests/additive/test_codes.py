"""Codes: every dtype and layout, scalings, bins, clipping, and memory."""

import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from reference import SPARSE_CONTAINERS

from widemargin import AdditiveSVC
from widemargin.additive.codes import AUTO_BINS, ICD_LEVELS, Encoder, Values, fit_encoder

INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = (*INTEGERS, "float16", "float32", "float64")
EXOTIC_DTYPES = (">f4", ">f8", ">i2", ">u4", "longdouble")
SCALINGS = ("global", "minmax", "percentile", None)

each_scaling = pytest.mark.parametrize("scaling", SCALINGS)
each_binning = pytest.mark.parametrize(
    ("scaling", "binning"),
    [("percentile", "auto")]
    + [(s, b) for s in SCALINGS if s != "percentile" for b in ("auto", "uniform", "log")],
)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_container = pytest.mark.parametrize("container", SPARSE_CONTAINERS, ids=lambda c: c.__name__)


def fit(X, weight=None, **options):
    """An encoder learned from X, and the codes of X."""
    values = Values.of(X)
    weight = np.ones(values.n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
    encoder = fit_encoder(values, weight, **options)
    return encoder, encoder.encode(values)


def encode(encoder, X):
    return encoder.encode(Values.of(X)).toarray()


def plain_codes(encoder, X):
    """The definition of a code, in NumPy."""
    t = (np.asarray(X, dtype=np.float64) - encoder.shift) * encoder.factor
    return np.searchsorted(encoder.thresholds, t, side="right")


def counts(dtype="float64", shape=(60, 7), zeros=0.3, seed=0):
    """Whole numbers up to 100 (and fractions for floats), some of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1, 100, shape) * (rng.random(shape) > zeros)
    return X.astype(dtype)


def same(left: Encoder, right: Encoder):
    """Whether two encoders are equal up to rounding."""
    for name in ("shift", "factor", "thresholds", "representatives"):
        assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-12, atol=1e-300)


# ------------------------------------------------------------------ dense layouts and dtypes


@each_scaling
@each_dtype
def test_codes_of_every_dtype_follow_the_definition(dtype, scaling):
    X = counts(dtype)
    encoder, codes = fit(X, scaling=scaling)
    assert_array_equal(codes.toarray(), plain_codes(encoder, X))


@pytest.mark.parametrize("dtype", EXOTIC_DTYPES)
def test_codes_of_exotic_dtypes_are_those_of_double_precision(dtype):
    X = counts("uint8").astype(dtype)
    assert_array_equal(fit(X)[1].toarray(), fit(X.astype(np.float64))[1].toarray())


@pytest.mark.parametrize("scaling", ["minmax", "percentile"])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] in "if"])
def test_codes_of_signed_values_follow_the_definition(dtype, scaling):
    X = counts(dtype) - np.array(50, dtype=dtype)
    encoder, codes = fit(X, scaling=scaling)
    assert_array_equal(codes.toarray(), plain_codes(encoder, X))


@pytest.mark.parametrize("dtype", ["uint32", "int64", "uint64"])
def test_codes_of_large_integers_follow_the_definition(dtype):
    X = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (50, 3), dtype=dtype)
    encoder, codes = fit(X, scaling="global")
    assert_array_equal(codes.toarray(), plain_codes(encoder, X))


@each_scaling
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize(
    "view",
    [
        np.asfortranarray,
        lambda X: X[::2],
        lambda X: X[:, ::2],
        lambda X: X[::-1, ::-1],
        lambda X: X.T,
        lambda X: np.asfortranarray(X)[3:50:3, 1:],
    ],
    ids=["fortran", "rows", "columns", "reversed", "transposed", "fortran slice"],
)
def test_codes_do_not_depend_on_the_memory_layout(view, dtype, scaling):
    X = view(counts(dtype))
    encoder, codes = fit(X, scaling=scaling)
    contiguous, expected = fit(np.ascontiguousarray(X), scaling=scaling)
    same(encoder, contiguous)
    assert_array_equal(codes.toarray(), expected.toarray())


@each_dtype
def test_read_only_arrays_are_encoded(dtype):
    X = counts(dtype)
    expected = fit(X)[1].toarray()
    X.setflags(write=False)
    assert_array_equal(fit(X)[1].toarray(), expected)


@given(
    thresholds=st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=40, unique=True),
    zero_is_absent=st.booleans(),
)
def test_values_next_to_the_thresholds_get_the_right_code(thresholds, zero_is_absent):
    first = np.nextafter(0.0, 1.0) if zero_is_absent else -np.inf
    edges = np.array([first, *sorted(thresholds)])
    encoder = Encoder(np.zeros(1), np.ones(1), edges, np.concatenate([[0.0], edges]))
    near = [edges[1:], np.nextafter(edges[1:], 0), np.nextafter(edges[1:], np.inf), [0.0, 1e300]]
    X = np.concatenate(near)[:, None]
    assert_array_equal(encode(encoder, X), plain_codes(encoder, X))


# ------------------------------------------------------------------ sparse layouts


def with_index_dtypes(csr, index, start):
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(start)
    return csr


def with_explicit_zeros(X):
    columns = np.tile(np.arange(X.shape[1]), len(X))
    return sp.csr_array((X.ravel(), columns, np.arange(len(X) + 1) * X.shape[1]), X.shape)


def with_unsorted_indices(X):
    csr = sp.csr_array(X)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(csr.indptr)])
    return sp.csr_array((csr.data[order], csr.indices[order], csr.indptr), X.shape)


def with_duplicates(X):
    """Every value as the sum of two stored halves."""
    csr = sp.csr_array(X)
    return sp.csr_array((np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr))


MESSY = (with_explicit_zeros, with_unsorted_indices, with_duplicates)
each_mess = pytest.mark.parametrize("mess", MESSY, ids=lambda f: f.__name__)


@each_scaling
@each_dtype
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix], ids=lambda c: c.__name__)
def test_sparse_codes_are_those_of_the_dense_matrix(container, dtype, scaling):
    X = counts(dtype, zeros=0.7)
    if dtype == "float16":  # which SciPy has not
        X = X.astype(np.float32)
    dense, _ = fit(X, scaling=scaling)
    sparse, codes = fit(container(X), scaling=scaling)
    same(dense, sparse)
    assert_array_equal(codes.toarray(), plain_codes(dense, X))


@pytest.mark.parametrize(
    ("index", "start"), [("int32", "int32"), ("int64", "int64"), ("int64", "int32")]
)
def test_index_dtypes_do_not_matter(index, start):
    X = counts(zeros=0.7)
    encoder, codes = fit(with_index_dtypes(sp.csr_array(X), index, start))
    assert_array_equal(codes.toarray(), plain_codes(encoder, X))


@each_scaling
@each_mess
def test_untidy_sparse_data_is_encoded_as_its_dense_version(mess, scaling):
    X = counts(zeros=0.7)
    dense, _ = fit(X, scaling=scaling)
    sparse, codes = fit(mess(X), scaling=scaling)
    same(dense, sparse)
    assert_array_equal(codes.toarray(), plain_codes(dense, X))


@each_mess
def test_untidy_sparse_data_is_left_as_it_was(mess):
    X = mess(counts(zeros=0.7))
    before = [a.copy() for a in (X.data, X.indices, X.indptr)]
    fit(X)
    for now, then in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert_array_equal(now, then)


def test_explicit_zeros_are_not_stored():
    _, codes = fit(with_explicit_zeros(counts(zeros=0.7)))
    assert np.all(codes.codes > 0)


@each_scaling
def test_sparse_data_without_absent_entries_is_encoded_as_its_dense_version(scaling):
    X = counts(zeros=0)
    assert_array_equal(
        fit(sp.csr_array(X), scaling=scaling)[1].toarray(), fit(X, scaling=scaling)[1].toarray()
    )


@pytest.mark.parametrize("scaling", ["minmax", "percentile"])
def test_sparse_data_with_negative_columns_is_encoded_as_its_dense_version(scaling):
    X = counts(zeros=0.7)
    X[:, ::2] *= -1
    dense, expected = fit(X, scaling=scaling)
    sparse, codes = fit(sp.csr_array(X), scaling=scaling)
    same(dense, sparse)
    assert_array_equal(codes.toarray(), expected.toarray())


def labelled(signed=False):
    """Training data with two classes."""
    X = counts(zeros=0.7, shape=(80, 7))
    y = (X[:, 0] + X[:, 1] > 40).astype(int)
    if signed:
        X[:, ::2] *= -1
    return X, y


@each_container
def test_estimator_decides_on_sparse_data_as_on_dense_data(container):
    X, y = labelled()
    model = AdditiveSVC("chi2", random_state=0).fit(X, y)
    assert_allclose(model.decision_function(container(X)), model.decision_function(X), atol=1e-5)


@each_container
def test_estimator_learns_from_sparse_data_the_encoder_of_dense_data(container):
    X, y = labelled()
    dense = AdditiveSVC("chi2", random_state=0).fit(X, y)
    same(AdditiveSVC("chi2", random_state=0).fit(container(X), y).model_.encoder,
         dense.model_.encoder)  # fmt: skip


@pytest.mark.parametrize("mess", MESSY, ids=lambda f: f.__name__)
def test_estimator_decides_on_untidy_data_as_on_dense_data(mess):
    X, y = labelled()
    model = AdditiveSVC("chi2", random_state=0).fit(mess(X), y)
    assert_allclose(model.decision_function(mess(X)), model.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("approximation", ["spectral", "unary", "pmsvm"])
def test_estimator_decides_on_signed_sparse_data_as_on_dense_data(approximation):
    X, y = labelled(signed=True)
    model = AdditiveSVC("chi2", approximation=approximation, scaling="minmax", random_state=0)
    model.fit(X, y)
    assert_allclose(model.decision_function(sp.csr_array(X)), model.decision_function(X), atol=1e-5)


# ------------------------------------------------------------------ memory


def image(shape=(40, 64)):
    """Bytes that take all 256 values."""
    return np.random.default_rng(0).permutation(np.arange(np.prod(shape)) % 256).astype(
        np.uint8).reshape(shape)  # fmt: skip


def test_bytes_that_are_their_own_codes_are_not_copied():
    X = image()
    assert np.shares_memory(fit(X, scaling="global")[1].codes, X)


@pytest.mark.parametrize(
    "X",
    [np.where(image() == 7, 8, image()), np.asfortranarray(image()), image() // 2],
    ids=["one value missing", "fortran", "half"],
)
def test_bytes_that_are_not_their_own_codes_follow_the_definition(X):
    encoder, codes = fit(X, scaling="global")
    assert not np.shares_memory(codes.codes, X)
    assert_array_equal(codes.toarray(), plain_codes(encoder, X))


@each_scaling
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_encoding_makes_no_float64_copy(container, scaling):
    X = container(counts("float32", shape=(1000, 4000)))
    size = X.data.nbytes
    tracemalloc.start()
    try:
        fit(X, scaling=scaling)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # ICD's percentile needs one copy in the data's own dtype to find an order statistic.
    assert peak < size * (1.1 if scaling == "percentile" else 0.5)


def test_dense_codes_take_one_byte_per_value():
    X = counts(zeros=0)
    assert fit(X)[1].nbytes == X.size


def test_dense_codes_take_two_bytes_per_value_with_more_bins():
    X = counts(zeros=0)
    assert fit(X, n_bins=300)[1].nbytes == 2 * X.size


def test_compressed_codes_take_three_bytes_per_stored_value():
    X = counts(zeros=0.8)
    _, codes = fit(X)
    assert codes.nbytes == 3 * np.count_nonzero(X) + 8 * (len(X) + 1)


@pytest.mark.parametrize(("zeros", "compressed"), [(0.9, True), (0.7, True), (0.2, False)])
def test_dense_data_is_compressed_when_mostly_zero(zeros, compressed):
    _, codes = fit(counts(zeros=zeros), scaling="global")
    assert (codes.index is not None) is compressed


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("n_features", "n_bins", "index", "code"),
    [
        (65_536, 255, "uint16", "uint8"),
        (65_537, 255, "uint32", "uint8"),
        (1000, 256, "uint32", "uint16"),
        (1000, 5000, "uint32", "uint16"),
    ],
)
def test_compressed_rows_use_the_smallest_types(n_features, n_bins, index, code, container):
    X = counts(shape=(3, n_features), zeros=0.9)
    encoder, codes = fit(container(X), n_bins=n_bins, binning="uniform", scaling="global")
    assert (codes.index.dtype, codes.codes.dtype) == (index, code)
    assert_array_equal(codes.toarray(), plain_codes(encoder, X))


@pytest.mark.parametrize(("n_bins", "dtype"), [(255, "uint8"), (256, "uint16"), (5000, "uint16")])
def test_dense_codes_use_the_smallest_type(n_bins, dtype):
    assert fit(counts(zeros=0), n_bins=n_bins, binning="uniform")[1].codes.dtype == dtype


@pytest.mark.parametrize("zeros", [0.1, 0.9], ids=["dense", "compressed"])
def test_frequency_is_the_weight_of_the_rows_with_a_code(zeros):
    X, weight = counts(zeros=zeros), np.random.default_rng(0).random(60)
    encoder, codes = fit(X, n_bins=16, scaling="global")
    per_value = np.broadcast_to(weight[:, None], X.shape)
    expected = np.bincount(plain_codes(encoder, X).ravel(), per_value.ravel(), encoder.n_codes)
    expected[0] = 0
    assert_allclose(codes.frequency(weight), expected)


# ------------------------------------------------------------------ scalings


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
    assert not encode(encoder, X)[:, 2].any()


def icd_levels(X, levels=ICD_LEVELS):
    """ICD, eq. 13: (int) (levels (v - v_min) / (v_max - v_min)), clipped, rounding forgiven."""
    v_min, v_max = X.min(), np.percentile(X, 97.5, method="inverted_cdf")
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


def test_natural_integers_are_taken_as_they_are():
    X = np.random.default_rng(0).integers(0, 200, (100, 20))
    encoder, codes = fit(X, scaling=None)
    assert_array_equal(encoder.representatives[1:], np.unique(X[X > 0]))
    assert_array_equal(encoder.representatives[codes.toarray()], X)
    assert codes.codes.dtype == np.uint8


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_many_natural_integers_are_taken_as_they_are(container):
    X = np.random.default_rng(0).integers(0, 5000, (100, 200))
    encoder, codes = fit(container(X), scaling=None)
    assert_array_equal(encoder.representatives[codes.toarray()], X)
    assert codes.codes.dtype == np.uint16


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


# ------------------------------------------------------------------ out of range


@each_scaling
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_values_outside_the_training_range_are_clipped(container, scaling):
    X = counts(zeros=0.2)
    X[0], X[1] = 0, 100
    encoder, _ = fit(X, scaling=scaling)
    outside = np.repeat([[-1e6], [-1.0], [101.0], [1e6]], 7, axis=1)
    expected = np.repeat([[0], [0], [encoder.n_codes - 1], [encoder.n_codes - 1]], 7, axis=1)
    assert_array_equal(encode(encoder, container(outside)), expected)


EXTREMES = """
import numpy as np
from widemargin.additive.codes import Values, fit_encoder

def check(what, scaling, train, test):
    values = Values.of(np.array(train))
    encoder = fit_encoder(values, np.ones(values.n_rows), scaling=scaling)
    assert np.all(np.isfinite([*encoder.factor, *encoder.representatives])), what
    for X in (train, test):
        codes = encoder.encode(Values.of(np.array(X)))
        assert codes.toarray().max() < encoder.n_codes, what

check("subnormal data", "global", [[0.0, 1e-310], [2e-310, 3e-310]], [[1.0, 0.0]])
check("subnormal column", "minmax", [[0.0, 0.5], [1e-310, 1.0]], [[1.0, 0.0]])
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


# ------------------------------------------------------------------ bins


def crowded(shape=(2000, 4), seed=0):
    """Values that crowd near zero."""
    return np.random.default_rng(seed).exponential(0.02, shape)


def quantised(encoder, X):
    """Scaled values and the representatives they are rounded to."""
    t = (X - encoder.shift) * encoder.factor
    return t, encoder.representatives[encode(encoder, X)]


@pytest.mark.parametrize("binning", ["auto", "uniform", "log"])
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
    with pytest.raises(ValueError, match="binning='log' has no effect"):
        fit(crowded(), scaling="percentile", binning="log")
    with pytest.raises(ValueError, match="n_bins=9 has no effect"):
        fit(crowded(), binning="exact", n_bins=9)


def test_default_is_255_bins():
    assert fit(crowded())[0].n_codes == AUTO_BINS + 1


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


def test_log_bins_have_equal_ratios():
    X = np.random.default_rng(0).uniform(0.01, 1.0, (500, 4))
    encoder, _ = fit(X, binning="log", n_bins=20, scaling=None)
    edges = np.concatenate([[X.min()], encoder.thresholds[1:], [X.max()]])
    assert len(edges) == 21
    assert_allclose(edges[1:] / edges[:-1], (X.max() / X.min()) ** (1 / 20), rtol=1e-3)


def test_exact_bins_are_the_distinct_values():
    X = counts("float32")
    encoder, _ = fit(X, binning="exact")
    t, rounded = quantised(encoder, X)
    assert_array_equal(rounded, t)


def test_exact_bins_may_be_more_than_two_bytes_tell_apart():
    X = np.random.default_rng(0).random((700, 100))
    encoder, codes = fit(X, binning="exact", scaling=None)
    assert codes.codes.dtype == np.uint32
    assert_array_equal(encoder.representatives[codes.toarray()], X)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_bins", [10, "auto"])
def test_few_distinct_values_are_their_own_bins(n_bins, container):
    X = np.random.default_rng(0).integers(0, 11, (60, 7)) / 7
    encoder, codes = fit(container(X), n_bins=n_bins, scaling=None)
    assert_array_equal(encoder.representatives, np.arange(11) / 7)
    assert_array_equal(encoder.representatives[codes.toarray()], X)


@pytest.mark.parametrize("binning", ["auto", "uniform", "log", "exact"])
@pytest.mark.parametrize("seed", range(3))
def test_zeros_do_not_change_the_bins(binning, seed):
    X = crowded(seed=seed)
    with_zeros = np.vstack([np.zeros(X.shape[1]), X])
    same(fit(with_zeros, binning=binning, scaling=None)[0],
         fit(X, binning=binning, scaling=None)[0])  # fmt: skip


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
@pytest.mark.parametrize("binning", ["auto", "uniform", "log", "exact"])
def test_grid_is_encoded_as_the_codes_it_stands_for(binning, scaling):
    X = crowded() * [1, 2, 3, 4] + ([0, -1, 0, 0.5] if scaling == "minmax" else 0)
    encoder, _ = fit(X, binning=binning, scaling=scaling)
    grid = np.column_stack([encoder.grid(j) for j in range(X.shape[1])])[1:]
    expected = np.arange(1, encoder.n_codes)[:, None]
    assert_array_equal(encode(encoder, grid), np.broadcast_to(expected, grid.shape))


@each_scaling
def test_grid_is_in_the_units_of_the_feature(scaling):
    X = crowded() * [1, 2, 3, 4] + ([0, -1, 0, 0.5] if scaling == "minmax" else 0)
    encoder, codes = fit(X, scaling=scaling, n_bins=1000)
    for j in range(X.shape[1]):
        inside = X[:, j] < np.quantile(X, 0.97)
        rounded = encoder.grid(j)[codes.toarray()[:, j]]
        assert_allclose(rounded[inside], X[inside, j], atol=0.01 * np.ptp(X[:, j]))


# ------------------------------------------------------------------ weights


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
