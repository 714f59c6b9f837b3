"""Compressed rows: which data become such, and their kernel values."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import SPARSE_CONTAINERS
from scipy.spatial.distance import cdist

from widemargin import _core
from widemargin.kernel import rows as rows_module
from widemargin.kernel.kernels import DENSE_FROM, make_kernel
from widemargin.kernel.rows import CompressedRows, DenseRows, Panels

from .helpers import (
    EPS,
    RELATIVE,
    each_dot_kernel,
    each_dtype,
    each_instruction_set,
    exact,
    kernel_matrix,
    made,
    mostly_zero,
    points,
    values,
)

MANY = rows_module._MANY_FEATURES + 1000

each_container = pytest.mark.parametrize("container", SPARSE_CONTAINERS, ids=lambda c: c.__name__)


def wide(n=70, seed=0):
    """Compressed rows with more features than are laid out at once."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, MANY), density=20 / MANY, rng=rng, format="csr")
    return sp.csr_array(sp.hstack([rng.random((n, 1)), X[:, 1:]]))  # all share a feature


# ------------------------------------------------------------------ what is compressed


@each_dtype
@each_dot_kernel
@each_container
@pytest.mark.parametrize(("share", "kind"), [(0.15, CompressedRows), (0.7, DenseRows)])
def test_sparse_containers_have_the_kernel_values_of_dense_arrays(
    share, kind, container, name, dtype
):
    Z = mostly_zero(share=share)
    kernel = made(name, container(Z), dtype)
    rows = kernel.prepare(container(Z))
    assert isinstance(rows, kind)
    assert kind is CompressedRows or isinstance(rows.data, np.ndarray)
    assert_allclose(values(kernel, rows[:40], rows), exact(name, Z[:40], Z), rtol=RELATIVE[dtype])


@pytest.mark.parametrize("some", [1, 40], ids=["pair by pair", "some at once"])
def test_rows_so_far_apart_that_squared_norms_cancel(monkeypatch, some):
    monkeypatch.setattr(rows_module, "_PAIR_VALUES", 12 * some)
    Z = np.round(1e9 * mostly_zero(share=0.15))
    Z[1::2] = Z[::2] + (Z[::2] > 0)  # pairs of near rows
    kernel = made("rbf", Z, np.float64)
    rows = kernel.prepare(Z)
    assert isinstance(rows, CompressedRows)
    assert kernel.is_far(rows)
    expected = np.exp(-kernel.gamma * cdist(Z, Z, "sqeuclidean"))
    assert_allclose(values(kernel, rows[:40], rows), expected[:40], rtol=1e-12)
    assert_allclose(values(kernel, rows, rows[:40]), expected[:, :40], rtol=1e-12)


@pytest.mark.parametrize("share", [DENSE_FROM - 0.01, DENSE_FROM])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.coo_array])
def test_rows_are_compressed_below_a_share_of_nonzeros_whatever_they_came_as(container, share):
    Z = np.zeros((10, 10))
    Z.ravel()[: round(share * 100)] = 1.0
    assert made("rbf", container(Z)).compressed == (share < DENSE_FROM)
    assert isinstance(made("rbf", container(Z)).prepare(Z), CompressedRows) == (share < DENSE_FROM)


def test_a_common_large_value_keeps_mostly_zero_rows_from_being_compressed():
    Z = np.zeros((60, 10))
    Z[:, 0], Z[:, 1] = 1e4, np.random.default_rng(0).random(60)
    kernel = make_kernel("rbf", 1.0, 0.0, 3, Z)
    rows = kernel.prepare(Z)
    assert isinstance(rows, DenseRows)
    assert_allclose(values(kernel, rows, rows), kernel_matrix("rbf", Z, gamma=1.0), rtol=1e-5)


def test_stored_zeros_are_not_counted_as_values():
    Z = sp.csr_array(mostly_zero())
    full = sp.csr_array((np.zeros(Z.shape[0] * Z.shape[1]), np.tile(np.arange(12), 90),
                         np.arange(0, 12 * 91, 12)), shape=Z.shape)  # fmt: skip
    full.data[:] = Z.toarray().ravel()
    assert full.nnz == full.shape[0] * full.shape[1]
    rows = made("rbf", full).prepare(full)
    assert isinstance(rows, CompressedRows)
    assert len(rows.value) == Z.nnz


# ------------------------------------------------------------------ kernel values


@each_dtype
@each_dot_kernel
def test_compressed_rows_have_the_kernel_values_of_dense_rows(name, dtype):
    Z = mostly_zero(n=150, d=40, share=0.2)
    sparse, dense = made(name, Z, dtype), made(name, Z, dtype, compressed=False)
    pairs = [(k, k.prepare(Z)) for k in (sparse, dense)]
    assert isinstance(pairs[0][1], CompressedRows)
    assert isinstance(pairs[1][1], DenseRows)
    K, D = (values(k, r, r) for k, r in pairs)
    assert_allclose(K, D, rtol=RELATIVE[dtype])
    assert_allclose(pairs[0][1].norms, pairs[1][1].norms, rtol=RELATIVE[dtype])


@each_dtype
@each_dot_kernel
def test_the_diagonal_of_compressed_rows_is_that_of_the_kernel_matrix(name, dtype):
    Z = mostly_zero()
    kernel = made(name, Z, dtype)
    diagonal = kernel.diagonal(kernel.prepare(Z))
    assert_allclose(diagonal, np.diag(exact(name, Z, Z)), rtol=RELATIVE[dtype])


@each_dot_kernel
def test_unsorted_and_repeated_indices_are_summed(name):
    start, index = np.array([0, 3, 5, 5]), np.array([9, 2, 9, 4, 0])
    Z = sp.csr_array((np.array([0.5, 1.0, 0.25, 0.3, 0.7]), index, start), shape=(3, 10))
    kernel = made(name, Z)
    K = values(kernel, kernel.prepare(Z.copy()), kernel.prepare(Z.copy()))
    assert_allclose(K, exact(name, Z, Z), rtol=5e-6)


@each_dtype
@each_dot_kernel
def test_more_features_than_are_laid_out_give_the_same_values(name, dtype):
    Z = wide()
    kernel = made(name, Z, dtype)
    rows, others = kernel.prepare(Z), kernel.prepare(wide(n=30, seed=1))
    panels = kernel.as_left(rows)
    assert panels.place is not None
    assert panels.values.shape[1] == len(np.unique(Z.indices)) < rows_module._MANY_FEATURES
    K = values(kernel, rows, others)
    assert_allclose(K, exact(name, Z, wide(n=30, seed=1)), rtol=RELATIVE[dtype])


@each_dtype
def test_a_map_of_places_does_not_change_a_bit(dtype, monkeypatch):
    Z = mostly_zero(n=100, d=50)
    kernel = made("rbf", Z, dtype)
    plain = values(kernel, kernel.prepare(Z)[:30], kernel.prepare(Z))
    monkeypatch.setattr(rows_module, "_MANY_FEATURES", 49)
    assert kernel.as_left(kernel.prepare(Z)).place is not None
    assert_array_equal(values(kernel, kernel.prepare(Z)[:30], kernel.prepare(Z)), plain)


@pytest.mark.parametrize("n_features", [5, MANY])
def test_rows_without_any_value_are_at_the_origin(n_features):
    empty = sp.csr_array((3, n_features))
    some = sp.csr_array(([1.0, 2.0], ([0, 1], [1, 4])), shape=(2, n_features))
    kernel = made("rbf", empty)
    a, b = kernel.prepare(empty), kernel.prepare(some)
    expected = np.exp(-0.7 * np.array([1.0, 4.0]))
    assert_allclose(values(kernel, a, b), np.tile(expected, (3, 1)), rtol=3e-7)
    assert_allclose(values(kernel, b, a), np.tile(expected, (3, 1)).T, rtol=3e-7)
    assert_array_equal(values(kernel, a, a), np.ones((3, 3)))


def test_no_rows_are_rows_too():
    Z = sp.csr_array(mostly_zero())
    kernel = made("rbf", Z)
    rows = kernel.prepare(Z)
    assert len(rows[:0]) == len(kernel.prepare(Z[:0])) == 0
    assert len(kernel.as_left(rows[:0])) == 0
    assert rows[:0].matrix.shape == (0, 12)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 150])
@each_dtype
def test_panels_hold_any_number_of_rows(dtype, n):
    Z = mostly_zero(n=150).astype(dtype)
    rows = made("poly", Z, dtype).prepare(Z)
    panels = Panels.of(rows[:n])
    assert panels.values.shape == (-(-n // _core.PANEL), 12, _core.PANEL)
    wider = np.full((n + 2, 170), np.nan, dtype=dtype)  # rows apart, and room on every side
    panels.fill(rows, wider[1:-1, 10:160])
    dots = Z[:n].astype(np.float64) @ Z.T.astype(np.float64)
    assert_allclose(wider[1:-1, 10:160], dots, rtol=RELATIVE[dtype])
    assert np.count_nonzero(np.isnan(wider)) == wider.size - n * 150


@each_dtype
@each_dot_kernel
@each_instruction_set
@pytest.mark.parametrize("n", [1, 64, 65, 150])
def test_weighted_sums_are_those_of_the_kernel_values(
    n, instructions, name, dtype, use_instruction_set
):
    use_instruction_set(instructions)
    Z = mostly_zero(n=150)
    kernel = made(name, Z, dtype)
    rows = kernel.prepare(Z)
    columns = np.random.default_rng(n).normal(size=(n, 3))
    before = np.random.default_rng(0).normal(size=(3, 150))
    wider = np.full((5, 170), np.nan)
    wider[1:-1, 10:160] = before
    left = kernel.as_left(rows[:n])
    left.add(rows, left.weights(columns), wider[1:-1, 10:160], kernel.finish)
    K = values(kernel, rows[:n], rows).astype(np.float64)
    found = wider[1:-1, 10:160] - before
    most = 12 * EPS[dtype] * (np.abs(columns).T @ np.abs(K) + 1)
    assert np.all(np.abs(found - columns.T @ K) <= most)
    assert np.count_nonzero(np.isnan(wider)) == wider.size - 3 * 150


@each_dtype
@each_instruction_set
@pytest.mark.parametrize("features", ["few", "many"])
def test_equal_compressed_rows_have_kernel_value_one(
    features, instructions, dtype, use_instruction_set
):
    use_instruction_set(instructions)
    Z = sp.csr_array(mostly_zero(n=100, d=200)) if features == "few" else wide(100)
    kernel = make_kernel("rbf", 1e3, 0.0, 3, Z * 100, dtype)
    rows, again = kernel.prepare(Z * 100), kernel.prepare((Z * 100)[::-1])
    backwards = np.arange(99, -1, -1)
    for begin, end in [(0, 100), (0, 1), (3, 10), (17, 90)]:
        at = np.arange(begin, end)
        part = rows[begin:end]
        assert_array_equal(values(kernel, part, again)[at - begin, backwards[at]], 1)
        assert_array_equal(values(kernel, again, part)[backwards[at], at - begin], 1)
    assert np.median(values(kernel, rows, rows)) < 1e-30


@each_dtype
@each_dot_kernel
@pytest.mark.parametrize("layout", ["dense", "compressed", "wide"])
def test_instruction_sets_agree_within_rounding(name, layout, dtype, use_instruction_set):
    Z = {"dense": points(150)[0], "compressed": mostly_zero(150), "wide": wide()}[layout]
    found = []
    for instructions in _core.instruction_sets():
        use_instruction_set(instructions)
        assert _core.instruction_set() == instructions
        kernel = made(name, Z, dtype)
        rows = kernel.prepare(Z)
        found.append(values(kernel, rows[:45], rows))
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=50 * EPS[dtype])


# ------------------------------------------------------------------ selected rows


def row_numbers(n):
    """Indices that NumPy takes: negative ones, repeated ones, masks, slices of step 1."""
    bound = st.none() | st.integers(-n - 3, n + 3)
    return st.one_of(
        st.builds(slice, bound, bound),
        st.lists(st.integers(-n, n - 1)).map(lambda k: np.array(k, dtype=np.int64)),
        st.lists(st.booleans(), min_size=n, max_size=n).map(lambda k: np.array(k, dtype=bool)),
    )


def some_row_numbers(n):
    return row_numbers(n).filter(lambda k: len(np.arange(n)[k]))


@given(first=some_row_numbers(9), data=st.data())
def test_selected_compressed_rows_are_those_of_scipy(first, data):
    Z = sp.csr_array(mostly_zero(n=9, d=6, share=0.4).astype(np.float32))
    rows = CompressedRows.of(Z.copy())
    for which in (first, data.draw(row_numbers(len(rows[first])), label="second")):
        norms = rows.norms[which]
        Z, rows = Z[which], rows[which]
        assert len(rows) == Z.shape[0]
        assert (rows.start.dtype, rows.index.dtype) == (np.int64, np.int32)
        assert rows.matrix.shape == Z.shape
        assert_array_equal(rows.matrix.toarray(), Z.toarray())
        assert_array_equal(rows.norms, norms)


@given(a=some_row_numbers(20), b=some_row_numbers(20))
def test_kernel_values_of_selected_rows_are_entries_of_the_whole_matrix(a, b):
    Z = mostly_zero(n=20, d=30)
    kernel = made("rbf", Z)
    rows = kernel.prepare(Z)
    assert_array_equal(values(kernel, rows[a], rows[b]), values(kernel, rows, rows)[a][:, b])


def test_a_slice_with_a_step_selects_whole_compressed_rows():
    Z = mostly_zero()
    rows = make_kernel("poly", 1.0, 0.0, 1, Z).prepare(Z)
    assert_array_equal(rows[1::3].matrix.toarray(), Z[1::3].astype(np.float32))


def test_slices_of_compressed_rows_share_their_memory():
    Z = mostly_zero()
    rows = made("rbf", Z).prepare(Z)
    part = rows[10:50][5:20]
    for name in ("start", "index", "value", "norms"):
        assert np.shares_memory(getattr(part, name), getattr(rows, name))


@each_dtype
@pytest.mark.parametrize("source", [np.uint8, np.float32, np.float64])
def test_dense_rows_are_compressed_as_scipy_does_it(source, dtype):
    rng = np.random.default_rng(7)
    X = (255 * rng.random((57, 33)) * (rng.random((57, 33)) < 0.2)).astype(source)
    X[3] = 0
    if source == np.float64:
        X[5, 5] = 1e-60  # zero in single precision
    expected = sp.csr_array(X.astype(dtype))
    expected.eliminate_zeros()
    found, expected = CompressedRows.of_dense(X, dtype), CompressedRows.of(expected)
    for name in ("start", "index", "value", "norms"):
        assert_array_equal(getattr(found, name), getattr(expected, name), strict=True)
