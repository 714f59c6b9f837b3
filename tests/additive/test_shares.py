"""What a model remembers of its training data: how often each feature has each code."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from widemargin import _core
from widemargin.additive.codes import Codes
from widemargin.additive.model import BinShares, code_type

from .helpers import svc


def codes_of(dense: np.ndarray, n_codes: int, *, compressed: bool) -> Codes:
    size = (*dense.shape, n_codes)
    if not compressed:
        return Codes(np.ascontiguousarray(dense), None, None, *size)
    rows = sp.csr_array(dense)
    index = rows.indices.astype(np.uint16 if dense.dtype == np.uint8 else np.uint32)
    return Codes(rows.data.astype(dense.dtype), index, rows.indptr.astype(np.int64), *size)


@given(
    st.integers(0, 40),
    st.integers(1, 6),
    st.sampled_from([2, 5, 200, 300, 70_000]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_counts_are_those_of_a_loop(n, d, n_codes, compressed, seed):
    """Few codes are counted in books, many are sorted; the bits are the same."""
    rng = np.random.default_rng(seed)
    kind = np.uint8 if n_codes <= 256 else np.uint16 if n_codes <= 65_536 else np.uint32
    dense = (rng.integers(0, n_codes, (n, d)) * (rng.random((n, d)) < 0.6)).astype(kind)
    weight = rng.random(n) + 0.1
    codes = codes_of(dense, n_codes, compressed=compressed)
    start, code, total = _core.count_cells(codes.core, weight)
    assert len(start) == d + 1
    for j in range(d):
        expected = np.zeros(n_codes)
        np.add.at(expected, dense[:, j], weight)
        own = slice(start[j], start[j + 1])
        assert code[own].tolist() == (np.flatnonzero(expected[1:]) + 1).tolist()
        np.testing.assert_array_equal(total[own], expected[code[own]])


@pytest.fixture
def shares():
    dense = np.array([[1, 0, 3], [1, 2, 3], [2, 2, 0], [4, 0, 3]], dtype=np.uint8)
    return BinShares.of(codes_of(dense, 5, compressed=False), np.array([1.0, 1.0, 1.0, 5.0]))


def test_shares_add_up_to_one(shares):
    assert shares.of_feature(0, 5).tolist() == [0, 0.25, 0.125, 0, 0.625]
    assert shares.of_feature(1, 5).tolist() == [0.75, 0, 0.25, 0, 0]
    assert shares.of_feature(2, 5).tolist() == [0.125, 0, 0, 0.875, 0]
    assert shares.absent.tolist() == [0, 0.75, 0.125]
    assert shares.code.dtype == np.uint8


def test_means_over_rows_need_no_rows(shares):
    values = np.arange(5.0)[:, None]  # of every code; absent counts as 0
    mean = shares.mean(values[shares.code])
    np.testing.assert_allclose(mean.ravel(), [3, 0.5, 2.625])
    distance = shares.mean_distance(values[shares.code], mean)
    np.testing.assert_allclose(distance.ravel(), [1.25, 0.75, 0.65625])


def test_codes_of_a_coarser_table(shares):
    coarse = shares.recoded(np.array([0, 1, 1, 2, 2]), 3)
    assert coarse.of_feature(0, 3).tolist() == [0, 0.375, 0.625]
    assert coarse.of_feature(1, 3).tolist() == [0.75, 0.25, 0]


@pytest.mark.parametrize(
    ("n_codes", "kind"), [(2, "u1"), (256, "u1"), (257, "u2"), (65_536, "u2"), (65_537, "u4")]
)
def test_codes_have_the_smallest_type(n_codes, kind):
    assert code_type(n_codes) == kind


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("approximation", ["spectral", "unary", "pmsvm"])
def test_models_know_the_shares_of_their_training_data(two, layout, approximation):
    X, y = two
    model = svc(approximation=approximation).fit(layout(X), y).model_
    codes = model.encoder.codes_of((X - model.encoder.shift) * model.encoder.factor)
    for j in (0, 20, 43):
        expected = np.bincount(codes[:, j], minlength=model.encoder.n_codes) / len(X)
        found = model.shares.of_feature(j, model.encoder.n_codes)
        np.testing.assert_allclose(found, expected, atol=1e-7)
