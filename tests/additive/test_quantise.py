"""Codes and counts in runs of values: what a search and a sum, one value at a time, say."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin import _core
from widemargin.additive.source import Scale, Values

UNIT = Scale(np.zeros(1), np.ones(1))
CORNERS = [0.0, -0.0, 5e-324, 1e-310, -1.0, 1.0, 2.0, 1e300, np.inf, -np.inf]
numbers = st.one_of(st.sampled_from(CORNERS), st.floats(allow_nan=False))


def next_to(values):
    values = np.asarray(values)
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])


@given(thresholds=st.lists(numbers, min_size=1, max_size=40), others=st.lists(numbers, max_size=9))
def test_a_code_is_the_number_of_thresholds_at_or_below(thresholds, others):
    thresholds = np.sort(thresholds)
    values = next_to([*thresholds, *others, *CORNERS])[None, :]
    codes = _core.encode_dense(Values.of(values).core, UNIT.core, thresholds)
    assert_array_equal(codes, np.searchsorted(thresholds, values, side="right"))


@pytest.mark.parametrize("spread", [0.0, 1.0, 300.0], ids=["even", "powers", "all there are"])
@pytest.mark.parametrize("n", [3, 255, 5000])
def test_many_thresholds_wherever_they_lie(n, spread):
    rng = np.random.default_rng(0)
    thresholds = np.sort(rng.random(n) * 10.0 ** rng.uniform(-spread, spread, n))
    values = next_to(thresholds)[None, :]
    codes = _core.encode_dense(Values.of(values).core, UNIT.core, thresholds)
    assert_array_equal(codes, np.searchsorted(thresholds, values, side="right"))


def long_rows(shape=(7, 1000)):
    """Rows of several runs, and some of a few values."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=shape)
    X[rng.random(shape) < 0.3] = 0
    X[1, 5:] = 0
    X[2] = 0
    X[3, ::7] = np.nan
    return X


@pytest.mark.parametrize(
    "container", [np.ascontiguousarray, np.asfortranarray, sp.csr_array], ids=["C", "F", "sparse"]
)
@pytest.mark.parametrize("shape", [(7, 1000), (1000, 7)], ids=["wide", "tall"])
def test_codes_of_rows_longer_than_a_run(shape, container):
    X, thresholds = long_rows(shape), np.array([5e-324, 0.1, 0.5, 2.0])
    scale = Scale(np.zeros(shape[1]), np.linspace(0, 3, shape[1]))
    values = Values.of(container(X))
    expected = np.searchsorted(thresholds, np.nan_to_num(X) * scale.factor, side="right")
    if values.sparse:
        start, index, codes = _core.encode_sparse(values.core, scale.core, thresholds)
        found = sp.csr_array((codes, index.astype(np.int64), start), shape=shape).toarray()
        assert np.all(codes > 0)
    else:
        found = _core.encode_dense(values.core, scale.core, thresholds)
        start, index, codes = _core.compress(found, len(thresholds) + 1)
        again = sp.csr_array((codes, index.astype(np.int64), start), shape=shape).toarray()
        assert_array_equal(again, expected)
    assert_array_equal(found, expected)


@pytest.mark.parametrize("skip_zeros", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cells_have_the_bits_of_a_sum_in_the_order_of_memory(order, skip_zeros):
    X = np.asarray(long_rows(), order=order)
    weight, top, n_cells = np.random.default_rng(1).random(len(X)), 3.0, 50
    found = _core.value_histogram(Values.of(X).core, UNIT.core, weight, top, skip_zeros, n_cells)
    expected = np.zeros((2, n_cells))
    rows = np.broadcast_to(np.arange(len(X))[:, None], X.shape).ravel(order)
    for row, value in zip(rows, X.ravel(order), strict=True):
        if np.isnan(value) or (skip_zeros and value == 0):
            continue
        t = min(value, top)
        cell = min(int(np.sqrt(t / top) * n_cells), n_cells - 1)
        expected[:, cell] += weight[row], weight[row] * t
    assert_array_equal(found, expected)
