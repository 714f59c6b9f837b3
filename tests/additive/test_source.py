"""Sources: several blocks are one matrix, in every fold, encoder and row of codes."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.additive import source
from widemargin.additive.codes import encode
from widemargin.additive.encoder import BINNINGS, SCALINGS, fit_encoder
from widemargin.additive.source import Scale, Values

from .encoding import Blocks, counts, each_container, plain_codes, same

LAYOUTS = {"dense": np.asarray, "fortran": np.asfortranarray, "sparse": sp.csr_array}
UNIT = Scale(np.zeros(1), np.ones(1))

each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
each_rule = pytest.mark.parametrize(
    ("scaling", "binning"),
    [(s, b) for s in SCALINGS for b in BINNINGS if s != "percentile" or b == "auto"],
)
cuts = st.lists(st.integers(0, 60), min_size=1, max_size=6)


def cut(X, at):
    """The rows of X in several matrices, of which some may be empty."""
    return [X[a:b] for a, b in pairwise([0, *sorted(at), X.shape[0]])]


def assert_same_codes(codes, expected):
    """To the bit, and the core takes them."""
    for name in ("data", "index", "start"):
        left, right = getattr(codes, name), getattr(expected, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert left.dtype == right.dtype
            assert_array_equal(left, right)
    assert codes.core is not None


@each_layout
@each_rule
@given(
    at=cuts,
    signed=st.booleans(),
    zeros=st.sampled_from([0.1, 0.8]),
    integer=st.booleans(),
    zero_is_absent=st.booleans(),
    seed=st.integers(0, 9),
)
def test_blocks_have_the_encoder_and_the_rows_of_codes_of_the_whole(
    layout, scaling, binning, at, signed, zeros, integer, zero_is_absent, seed
):
    X = counts("int16" if integer else "float64", zeros=zeros, seed=seed)
    if signed and scaling not in ("global", None):
        X[:, ::2] -= 3
    weight = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    whole, blocks = Values.of(layout(X)), Blocks(cut(layout(X), at))
    zero_is_absent |= layout is sp.csr_array  # others are refused by the kernel's check
    options = {"scaling": scaling, "binning": binning, "zero_is_absent": zero_is_absent}
    expected = fit_encoder(whole, weight, **options)
    encoder = fit_encoder(blocks, weight, **options)
    same(encoder, expected)
    assert_array_equal(encode(whole, encoder).toarray(), plain_codes(encoder, X))
    coded = [encode(block, encoder).toarray() for block in blocks.blocks()]
    assert_array_equal(np.vstack(coded), plain_codes(encoder, X))


@each_layout
@given(at=cuts)
def test_more_values_than_bins_are_counted_alike_in_blocks(layout, at):
    X = np.random.default_rng(0).random((60, 7)) * (np.arange(7) > 1)
    whole, blocks = Values.of(layout(X)), Blocks(cut(layout(X), at))
    for n_bins in (9, 100, "auto"):
        left, right = (fit_encoder(s, np.ones(60), n_bins=n_bins) for s in (blocks, whole))
        same(left, right)


@each_layout
@given(at=cuts)
def test_ranges_are_those_of_the_whole(layout, at):
    X = counts(zeros=0.5) - counts(zeros=0.5, seed=1) * (np.arange(7) % 2)
    low, high = source.ranges(Blocks(cut(layout(X), at)))
    assert_array_equal(low, X.min(axis=0))
    assert_array_equal(high, X.max(axis=0))


def test_a_column_that_is_absent_from_one_block_reaches_zero():
    X = np.ones((4, 2))
    X[:2, 1] = 0
    low, high = source.ranges(Blocks([sp.csr_array(X[:2]), sp.csr_array(X[2:])]))
    assert_array_equal(low, [1, 0])
    assert_array_equal(high, [1, 1])


def test_no_block_is_read_once_there_are_too_many_distinct_values():
    read = []

    class Rows:
        def __iter__(self):
            for k in range(10):
                read.append(k)
                yield np.arange(100.0 * k, 100.0 * k + 100)[:, None]

    blocks = Blocks(Rows())
    read.clear()
    assert len(source.distinct(blocks, UNIT, 150)) > 150
    assert read == [0, 1]


@given(at=cuts)
def test_histograms_are_sums_over_blocks(at):
    X, weight = counts(), np.random.default_rng(0).random(60)
    options = {"top": 100.0, "n_cells": 50, "skip_zeros": True}
    parts = source.histogram(Blocks(cut(X, at)), UNIT, weight, **options)
    whole = source.histogram(Values.of(X), UNIT, weight, **options)
    assert_allclose(parts.weight, whole.weight)
    assert_allclose(parts.total, whole.total)
    assert whole.weight.sum() == pytest.approx((weight[:, None] * (X > 0)).sum())


@each_layout
def test_the_first_value_that_is_refused_is_named_by_its_row_in_the_whole(layout):
    X = counts()
    X[37, 4] = -1
    X[50, 1] = -1
    with pytest.raises(ValueError, match="row 37, column 4"):
        fit_encoder(Blocks(cut(layout(X), [0, 20, 30])), np.ones(60), scaling="global")


@each_container
def test_a_single_block_is_gathered_without_a_copy(container):
    values = Values.of(container(counts(zeros=0.7)).tocsr())
    assert source.gathered(values) is values


def test_a_sparse_source_too_large_to_fill_in_is_refused_before_it_is_read():
    wide = sp.csr_array((np.full(2, -1.0), ([0, 1], [0, 5])), shape=(2, 2**29))
    for data in (Values.of(wide), Blocks([wide[:1], wide[1:]])):
        scale = Scale(np.full(1, -1.0), np.ones(1))
        with pytest.raises(ValueError, match="too large to fill in"):
            source.filled_in(data, scale)


@each_layout
def test_codes_travel_to_other_processes(layout):
    values = Values.of(layout(counts()))
    codes = encode(values, fit_encoder(values, np.ones(60)))
    assert codes.core is not None  # which cannot travel
    assert_same_codes(pickle.loads(pickle.dumps(codes)), codes)
