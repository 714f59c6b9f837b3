"""Codes: how many bytes, dense or compressed, and how often each occurs."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.additive.codes import CodedRows, Codes

from .encoding import counts, each_scaling, fit, plain_codes


def image(shape=(40, 64)):
    """Bytes that take all 256 values."""
    values = np.arange(np.prod(shape)) % 256
    return np.random.default_rng(0).permutation(values).astype(np.uint8).reshape(shape)


def test_bytes_that_are_their_own_codes_are_not_copied():
    X = image()
    assert np.shares_memory(fit(X, scaling="global")[1].data, X)


@pytest.mark.parametrize(
    "X",
    [np.where(image() == 7, 8, image()), np.asfortranarray(image()), image() // 2],
    ids=["one value missing", "fortran", "half"],
)
def test_bytes_that_are_not_their_own_codes_follow_the_definition(X):
    encoder, codes = fit(X, scaling="global")
    assert not np.shares_memory(codes.data, X)
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
    assert fit(X)[1].data.nbytes == X.size


def test_dense_codes_take_two_bytes_per_value_with_more_bins():
    X = counts(zeros=0)
    assert fit(X, n_bins=300)[1].data.nbytes == 2 * X.size


def test_compressed_codes_take_three_bytes_per_stored_value():
    X = counts(zeros=0.8)
    _, codes = fit(X)
    assert codes.data.nbytes + codes.index.nbytes == 3 * np.count_nonzero(X)
    assert codes.start.nbytes == 8 * (len(X) + 1)


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
    assert (codes.index.dtype, codes.data.dtype) == (index, code)
    assert_array_equal(codes.toarray(), plain_codes(encoder, X))


@pytest.mark.parametrize(("n_bins", "dtype"), [(255, "uint8"), (256, "uint16"), (5000, "uint16")])
def test_dense_codes_use_the_smallest_type(n_bins, dtype):
    assert fit(counts(zeros=0), n_bins=n_bins, binning="uniform")[1].data.dtype == dtype


@pytest.mark.parametrize("zeros", [0.1, 0.9], ids=["dense", "compressed"])
def test_frequency_is_the_weight_of_the_rows_with_a_code(zeros):
    X, weight = counts(zeros=zeros), np.random.default_rng(0).random(60)
    encoder, codes = fit(X, n_bins=16, scaling="global")
    per_value = np.broadcast_to(weight[:, None], X.shape)
    expected = np.bincount(plain_codes(encoder, X).ravel(), per_value.ravel(), encoder.n_codes)
    expected[0] = 0
    assert_allclose(codes.frequency(weight), expected)


def test_rows_of_codes_without_blocks_cannot_be_made():
    """No method of theirs only raises."""
    with pytest.raises(TypeError, match=r"abstract method '?groups"):
        CodedRows()
    assert not hasattr(Codes, "of_blocks")


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_rows", [1, 7, 40, 100])
def test_slices_are_all_rows_in_the_same_memory(container, n_rows):
    codes = fit(container(counts("float32", shape=(40, 9))), scaling="global")[1]
    slices = list(codes.slices(n_rows))
    assert [rows.start for rows, _ in slices] == list(range(0, 40, n_rows))
    assert_array_equal(np.vstack([part.toarray() for _, part in slices]), codes.toarray())
    assert all(np.shares_memory(part.data, codes.data) for _, part in slices if part.data.size)
    assert all(part.core is not None for _, part in slices)  # which checks them
