"""Every dtype and layout of raw data, dense and sparse, has the codes of the definition."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import AdditiveSVC
from widemargin.additive.encoder import Encoder

from .encoding import (
    DTYPES,
    EXOTIC_DTYPES,
    codes_of,
    counts,
    each_container,
    each_dtype,
    each_scaling,
    fit,
    plain_codes,
    same,
)


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
    assert_array_equal(codes_of(encoder, X), plain_codes(encoder, X))


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
    assert np.all(codes.data > 0)


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
    sparse = AdditiveSVC("chi2", random_state=0).fit(container(X), y)
    same(sparse.model_.encoder, dense.model_.encoder)


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
