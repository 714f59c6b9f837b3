"""Kernel values: against scikit-learn, dense and compressed, in both precisions; and refusals."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import SPARSE_CONTAINERS
from sklearn.metrics.pairwise import pairwise_kernels

from widemargin import _core
from widemargin.kernel import kernels
from widemargin.kernel.kernels import (
    DENSE_FROM,
    KERNELS,
    CompressedRows,
    FunctionKernel,
    Operand,
    Panels,
    PrecomputedKernel,
    ShiftedKernel,
    make_kernel,
)

# gamma, coef0, degree
PARAMETERS = {"rbf": (0.7, 0.0, 3), "poly": (0.5, 1.0, 2), "sigmoid": (0.1, 0.3, 3),
              "laplacian": (0.4, 0.0, 3), "chi2": (0.6, 0.0, 3)}  # fmt: skip
DOT_KERNELS = ("rbf", "poly", "sigmoid")
RELATIVE = {np.float32: 5e-6, np.float64: 1e-13}  # error of kernel values for rows of norm 1 or so
EPS = {dtype: float(np.finfo(dtype).eps) for dtype in RELATIVE}
MANY = kernels._MANY_FEATURES + 1000

each_kernel = pytest.mark.parametrize("name", PARAMETERS)
each_dot_kernel = pytest.mark.parametrize("name", DOT_KERNELS)
each_dtype = pytest.mark.parametrize("dtype", RELATIVE, ids=lambda t: t.__name__)
each_container = pytest.mark.parametrize("container", SPARSE_CONTAINERS, ids=lambda c: c.__name__)
each_instruction_set = pytest.mark.parametrize("instructions", _core.instruction_sets())


@pytest.fixture
def use_instruction_set():
    default = _core.instruction_set()
    yield _core.use_instruction_set
    _core.use_instruction_set(default)


@pytest.fixture
def X():
    return np.random.default_rng(0).random((150, 4))


def mostly_zero(n=90, d=12, share=0.15, seed=0):
    """Values in [0, 1), most of them zero; one row has none."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < share)
    X[n // 2] = 0
    return X


def wide(n=70, seed=0):
    """Compressed rows with more features than are laid out at once."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, MANY), density=20 / MANY, rng=rng, format="csr")
    return sp.csr_array(sp.hstack([rng.random((n, 1)), X[:, 1:]]))  # all share a feature


def made(name, X, dtype=np.float32, **changes):
    kernel = make_kernel(name, *PARAMETERS[name], X, dtype)
    return replace(kernel, **changes) if changes else kernel


def exact(name, X, Z):
    gamma, coef0, degree = PARAMETERS[name]
    extra = {"sigmoid": {"coef0": coef0}, "poly": {"coef0": coef0, "degree": degree}}
    X, Z = (A.toarray() if sp.issparse(A) else A for A in (X, Z))
    return pairwise_kernels(X, Z, metric=name, gamma=gamma, **extra.get(name, {}))


def values(kernel, a, b):
    """k(a, b), with NaN where nothing was written."""
    out = np.full((len(a), len(b)), np.nan, dtype=kernel.dtype)
    kernel.fill(kernel.left(a), b, out)
    return out


def finished(dots, row_norms, column_norms, name, gamma=1.0, coef0=0.0, degree=3):
    out = np.array(dots)
    row_norms, column_norms = (np.asarray(n, out.dtype) for n in (row_norms, column_norms))
    _core.finish_block(out, row_norms, column_norms, name, gamma, coef0, degree)
    return out


# ------------------------------------------------------------------ against scikit-learn


@each_dtype
@each_kernel
def test_kernel_values_are_those_of_scikit_learn(name, dtype, X):
    kernel = made(name, X, dtype)
    rows, others = kernel.operand(X), kernel.operand(X[:50] + 0.1)
    K = values(kernel, others, rows)
    assert K.dtype == dtype
    assert_allclose(K, exact(name, X[:50] + 0.1, X), rtol=RELATIVE[dtype])


@each_dtype
@each_kernel
def test_the_diagonal_is_that_of_the_kernel_matrix_in_double(name, dtype, X):
    kernel = made(name, X, dtype)
    diagonal = kernel.diagonal(kernel.operand(X))
    assert diagonal.dtype == np.float64
    assert_allclose(diagonal, np.diag(exact(name, X, X)), rtol=RELATIVE[dtype])


@each_dtype
@each_dot_kernel
def test_the_diagonal_of_compressed_rows_is_that_of_the_kernel_matrix(name, dtype):
    Z = mostly_zero()
    kernel = made(name, Z, dtype)
    diagonal = kernel.diagonal(kernel.operand(Z))
    assert_allclose(diagonal, np.diag(exact(name, Z, Z)), rtol=RELATIVE[dtype])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_the_diagonal_of_a_function_does_not_depend_on_its_blocks(n):
    Z = np.random.default_rng(1).random((n, 3))
    kernel = FunctionKernel("dot", lambda A, B: A @ B.T)
    assert_allclose(kernel.diagonal(kernel.operand(Z)), (Z * Z).sum(axis=1), rtol=1e-14)


@each_dtype
@each_dot_kernel
@each_container
def test_sparse_containers_have_the_kernel_values_of_dense_arrays(container, name, dtype):
    Z = mostly_zero()
    kernel = made(name, container(Z), dtype)
    rows = kernel.operand(container(Z))
    assert isinstance(rows, CompressedRows)
    assert_allclose(values(kernel, rows[:40], rows), exact(name, Z[:40], Z), rtol=RELATIVE[dtype])


@each_dtype
@each_dot_kernel
@each_container
def test_sparse_containers_with_few_zeros_become_dense_rows(container, name, dtype, X):
    Z = np.where(X > 0.3, X, 0)
    kernel = made(name, container(Z), dtype)
    rows = kernel.operand(container(Z))
    assert isinstance(rows, Operand)
    assert isinstance(rows.data, np.ndarray)
    assert_allclose(values(kernel, rows[:40], rows), exact(name, Z[:40], Z), rtol=RELATIVE[dtype])


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix], ids=lambda c: c.__name__)
def test_a_function_gets_sparse_rows_as_they_came(container):
    Z = mostly_zero()
    kernel = make_kernel(lambda A, B: (A @ B.T).toarray(), 1.0, 0.0, 3, container(Z))
    rows = kernel.operand(container(Z))
    assert_allclose(values(kernel, rows[5:9], rows), Z[5:9] @ Z.T, rtol=5e-6)


@each_dot_kernel
def test_integers_have_the_kernel_values_of_the_same_floats(name):
    Z = np.random.default_rng(2).integers(0, 3, (30, 5))
    kernel, same = made(name, Z), made(name, Z.astype(float))
    K = values(kernel, kernel.operand(Z), kernel.operand(Z))
    assert_array_equal(K, values(same, same.operand(Z * 1.0), same.operand(Z * 1.0)))


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 7, 10])
@each_dtype
def test_every_degree_of_the_polynomial_is_the_power(dtype, degree):
    dots = np.random.default_rng(0).normal(size=(3, 37)).astype(dtype)
    zeros = np.zeros(37, dtype)
    K = finished(dots, zeros[:3], zeros, "poly", 0.5, -0.25, degree)
    inner = 0.5 * dots.astype(np.float64) - 0.25
    rounding = (degree + 2) * EPS[dtype] * (np.abs(inner) + 0.5) ** max(degree - 1, 0)
    assert np.all(np.abs(K - inner**degree) <= rounding * (np.abs(inner) + 0.5))
    assert degree or np.all(K == 1)


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 3e-7), (np.float64, 5e-16)])
def test_the_sigmoid_is_tanh_up_to_an_absolute_error(dtype, error):
    dots = np.linspace(-60, 60, 20_001, dtype=dtype)[None]
    K = finished(dots, np.zeros(1), np.zeros(dots.size), "sigmoid", 1.0, 0.5)
    assert np.abs(K - np.tanh(dots.astype(np.float64) + 0.5)).max() <= error
    assert np.all(np.abs(K) <= 1)
    assert K[0, 0] == -1
    assert K[0, -1] == 1


def test_the_names_of_kernels_are_those_that_can_be_made(X):
    for name in KERNELS:
        assert make_kernel(name, 1.0, 0.0, 3, X).name == name
    for name in ("linear", "cubic", None):
        with pytest.raises(ValueError, match=f"kernel={name!r} is not known.*chi2.*function"):
            make_kernel(name, 1.0, 0.0, 3, X)


# ------------------------------------------------------------------ the vector exponential


@each_instruction_set
def test_the_vector_exponential_is_right_to_three_units_in_the_last_place(
    instructions, use_instruction_set
):
    use_instruction_set(instructions)
    x = np.linspace(0, 79.9, 1_000_001, dtype=np.float32)
    K = finished(np.zeros((1, len(x)), np.float32), np.zeros(1), x, "rbf")
    assert_allclose(K[0], np.exp(-x.astype(np.float64)), rtol=3e-7)


def test_the_exponential_of_a_small_distance_is_right_to_the_last_place():
    x = np.geomspace(1e-30, 1e-2, 10_001).astype(np.float32)
    K = finished(np.zeros((1, len(x)), np.float32), np.zeros(1), x, "rbf")
    assert_allclose(K[0], np.exp(-x.astype(np.float64)), rtol=1.2e-7)
    assert np.all(K <= 1)


def test_the_exponential_in_double_precision_is_that_of_numpy():
    x = np.linspace(0, 699, 100_001)
    K = finished(np.zeros((1, len(x))), np.zeros(1), x, "rbf")
    assert_allclose(K[0], np.exp(-x), rtol=1e-15)


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, 80.0), (np.float64, 700.0)])
def test_the_exponential_of_large_distances_is_tiny_and_normal(dtype, largest):
    far = np.array([largest, largest + 10, 1e4, 1e30, np.inf], dtype=dtype)
    K = finished(np.zeros((1, 5), dtype), np.zeros(1), far, "rbf")
    assert np.all(np.finfo(dtype).tiny < K)
    assert_allclose(K, np.exp(-largest), rtol=3e-7)


@each_dtype
def test_a_negative_distance_counts_as_zero(dtype):
    dots = np.array([[1.0, 1.0 + EPS[dtype], 2.0, 1e30]], dtype=dtype)
    assert_array_equal(finished(dots, np.ones(1), np.ones(4), "rbf"), np.ones((1, 4)))


@each_dtype
@pytest.mark.parametrize("name", DOT_KERNELS)
def test_widths_that_fill_no_vector_are_finished_and_nothing_beside_them(name, dtype):
    rng = np.random.default_rng(0)
    dots, norms = rng.random((3, 40)).astype(dtype), 2 + rng.random(40).astype(dtype)
    full = finished(dots, norms[:3], norms, name, 0.3, 0.2)
    assert np.all(full != dots)
    for width in range(40):
        out = np.array(dots)
        _core.finish_block(out[:, :width], norms[:3], norms[:width], name, 0.3, 0.2, 3)
        assert_allclose(out[:, :width], full[:, :width], rtol=4 * EPS[dtype])
        assert_array_equal(out[:, width:], dots[:, width:])


# ------------------------------------------------------------------ compressed rows


@each_dtype
@each_dot_kernel
def test_compressed_rows_have_the_kernel_values_of_dense_rows(name, dtype):
    Z = mostly_zero(n=150, d=40, share=0.2)
    sparse, dense = made(name, Z, dtype), made(name, Z, dtype, compressed=False)
    pairs = [(k, k.operand(Z)) for k in (sparse, dense)]
    assert isinstance(pairs[0][1], CompressedRows)
    assert isinstance(pairs[1][1], Operand)
    K, D = (values(k, r, r) for k, r in pairs)
    assert_allclose(K, D, rtol=RELATIVE[dtype])
    assert_allclose(pairs[0][1].norms, pairs[1][1].norms, rtol=RELATIVE[dtype])


@pytest.mark.parametrize("share", [DENSE_FROM - 0.01, DENSE_FROM])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.coo_array])
def test_rows_are_compressed_below_a_share_of_nonzeros_whatever_they_came_as(container, share):
    Z = np.zeros((10, 10))
    Z.ravel()[: round(share * 100)] = 1.0
    assert made("rbf", container(Z)).compressed == (share < DENSE_FROM)
    assert isinstance(made("rbf", container(Z)).operand(Z), CompressedRows) == (share < DENSE_FROM)


def test_stored_zeros_are_not_counted_as_values():
    Z = sp.csr_array(mostly_zero())
    full = sp.csr_array((np.zeros(Z.shape[0] * Z.shape[1]), np.tile(np.arange(12), 90),
                         np.arange(0, 12 * 91, 12)), shape=Z.shape)  # fmt: skip
    full.data[:] = Z.toarray().ravel()
    assert full.nnz == full.shape[0] * full.shape[1]
    rows = made("rbf", full).operand(full)
    assert isinstance(rows, CompressedRows)
    assert len(rows.value) == Z.nnz


@each_dot_kernel
def test_unsorted_and_repeated_indices_are_summed(name):
    start, index = np.array([0, 3, 5, 5]), np.array([9, 2, 9, 4, 0])
    Z = sp.csr_array((np.array([0.5, 1.0, 0.25, 0.3, 0.7]), index, start), shape=(3, 10))
    kernel = made(name, Z)
    K = values(kernel, kernel.operand(Z.copy()), kernel.operand(Z.copy()))
    assert_allclose(K, exact(name, Z, Z), rtol=5e-6)


@each_dtype
@each_dot_kernel
def test_more_features_than_are_laid_out_give_the_same_values(name, dtype):
    Z = wide()
    kernel = made(name, Z, dtype)
    rows, others = kernel.operand(Z), kernel.operand(wide(n=30, seed=1))
    panels = kernel.left(rows)
    assert panels.place is not None
    assert panels.values.shape[1] == len(np.unique(Z.indices)) < kernels._MANY_FEATURES
    K = values(kernel, rows, others)
    assert_allclose(K, exact(name, Z, wide(n=30, seed=1)), rtol=RELATIVE[dtype])


@each_dtype
def test_a_map_of_places_does_not_change_a_bit(dtype, monkeypatch):
    Z = mostly_zero(n=100, d=50)
    kernel = made("rbf", Z, dtype)
    plain = values(kernel, kernel.operand(Z)[:30], kernel.operand(Z))
    monkeypatch.setattr(kernels, "_MANY_FEATURES", 49)
    assert kernel.left(kernel.operand(Z)).place is not None
    assert_array_equal(values(kernel, kernel.operand(Z)[:30], kernel.operand(Z)), plain)


@pytest.mark.parametrize("n_features", [5, MANY])
def test_rows_without_any_value_are_at_the_origin(n_features):
    empty = sp.csr_array((3, n_features))
    some = sp.csr_array(([1.0, 2.0], ([0, 1], [1, 4])), shape=(2, n_features))
    kernel = made("rbf", empty)
    a, b = kernel.operand(empty), kernel.operand(some)
    expected = np.exp(-0.7 * np.array([1.0, 4.0]))
    assert_allclose(values(kernel, a, b), np.tile(expected, (3, 1)), rtol=3e-7)
    assert_allclose(values(kernel, b, a), np.tile(expected, (3, 1)).T, rtol=3e-7)
    assert_array_equal(values(kernel, a, a), np.ones((3, 3)))


def test_no_rows_are_rows_too():
    Z = sp.csr_array(mostly_zero())
    kernel = made("rbf", Z)
    rows = kernel.operand(Z)
    assert len(rows[:0]) == len(kernel.operand(Z[:0])) == 0
    assert len(kernel.left(rows[:0])) == 0
    assert rows[:0].tocsr().shape == (0, 12)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 150])
@each_dtype
def test_panels_hold_any_number_of_rows(dtype, n):
    Z = mostly_zero(n=150).astype(dtype)
    rows = made("poly", Z, dtype).operand(Z)
    panels = Panels.of(rows[:n])
    assert panels.values.shape == (-(-n // _core.PANEL), 12, _core.PANEL)
    wider = np.full((n + 2, 170), np.nan, dtype=dtype)  # rows apart, and room on every side
    panels.fill(rows, wider[1:-1, 10:160])
    dots = Z[:n].astype(np.float64) @ Z.T.astype(np.float64)
    assert_allclose(wider[1:-1, 10:160], dots, rtol=RELATIVE[dtype])
    assert np.count_nonzero(np.isnan(wider)) == wider.size - n * 150


@each_dtype
@each_dot_kernel
def test_finishing_on_the_way_is_finishing_afterwards(name, dtype):
    Z = mostly_zero(n=150)
    kernel = made(name, Z, dtype)
    rows = kernel.operand(Z)
    dots = np.empty((70, 150), dtype)
    kernel.left(rows[:70]).fill(rows, dots)
    assert_allclose(dots, Z[:70] @ Z.T, rtol=RELATIVE[dtype])
    afterwards = finished(dots, rows.norms[:70], rows.norms, name, *PARAMETERS[name])
    assert_allclose(values(kernel, rows[:70], rows), afterwards, rtol=4 * EPS[dtype])


@each_dtype
def test_the_linear_finish_leaves_inner_products_as_they_are(dtype):
    dots = np.random.default_rng(0).normal(size=(3, 37)).astype(dtype)
    assert_array_equal(finished(dots, np.ones(3), np.ones(37), "linear"), dots)


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
        assert rows.tocsr().shape == Z.shape
        assert_array_equal(rows.tocsr().toarray(), Z.toarray())
        assert_array_equal(rows.norms, norms)


@given(a=some_row_numbers(20), b=some_row_numbers(20))
def test_kernel_values_of_selected_rows_are_entries_of_the_whole_matrix(a, b):
    Z = mostly_zero(n=20, d=30)
    kernel = made("rbf", Z)
    rows = kernel.operand(Z)
    assert_array_equal(values(kernel, rows[a], rows[b]), values(kernel, rows, rows)[a][:, b])


def test_slices_of_compressed_rows_share_their_memory():
    Z = mostly_zero()
    rows = made("rbf", Z).operand(Z)
    part = rows[10:50][5:20]
    for name in ("start", "index", "value", "norms"):
        assert np.shares_memory(getattr(part, name), getattr(rows, name))


# ------------------------------------------------------------------ distances


@each_dtype
@each_instruction_set
@pytest.mark.parametrize("features", ["few", "many"])
def test_equal_compressed_rows_have_kernel_value_one(
    features, instructions, dtype, use_instruction_set
):
    use_instruction_set(instructions)
    Z = sp.csr_array(mostly_zero(n=100, d=200)) if features == "few" else wide(100)
    kernel = make_kernel("rbf", 1e3, 0.0, 3, Z * 100, dtype)
    rows, again = kernel.operand(Z * 100), kernel.operand((Z * 100)[::-1])
    backwards = np.arange(99, -1, -1)
    for begin, end in [(0, 100), (0, 1), (3, 10), (17, 90)]:
        at = np.arange(begin, end)
        part = rows[begin:end]
        assert_array_equal(values(kernel, part, again)[at - begin, backwards[at]], 1)
        assert_array_equal(values(kernel, again, part)[backwards[at], at - begin], 1)
    assert np.median(values(kernel, rows, rows)) < 1e-30


@each_dtype
@pytest.mark.parametrize("d", [1, 3, 17, 100, 784])
def test_equal_dense_rows_are_at_a_distance_of_rounding(d, dtype):
    Z = np.random.default_rng(d).normal(size=(100, d))
    kernel = make_kernel("rbf", 1.0, 0.0, 3, Z, dtype)
    rows, again = kernel.operand(Z), kernel.operand(Z.copy())
    for begin, end in [(0, 100), (0, 1), (3, 10), (17, 90)]:
        at = np.arange(begin, end)
        own = values(kernel, rows[begin:end], again)[at - begin, at]
        assert np.all(own <= 1)
        assert np.all(1 - own <= (4 + np.sqrt(d)) * EPS[dtype] * rows.norms[at])


@each_dtype
def test_centring_keeps_distances_far_from_the_origin(dtype, X):
    kernel = made("rbf", X + 1000.0, dtype)
    rows = kernel.operand(X + 1000.0)
    expected = exact("rbf", X, X)
    assert_allclose(values(kernel, rows, rows), expected, rtol={np.float32: 5e-6}.get(dtype, 1e-12))
    plain = replace(kernel, centre=None)
    rows = plain.operand(X + 1000.0)
    assert np.abs(values(plain, rows, rows) - expected).max() > 1e3 * EPS[dtype]


def test_new_rows_are_moved_by_the_centre_of_the_training_rows(X):
    kernel = made("rbf", X + 1000.0)
    new = X[:20] * 3 + 1000.0
    K = values(kernel, kernel.operand(X + 1000.0, training=True), kernel.operand(new))
    assert_allclose(K, exact("rbf", X, X[:20] * 3), rtol=2e-5)


def test_only_dense_rows_of_the_rbf_kernel_are_centred(X):
    assert_allclose(made("rbf", X).centre, X.mean(axis=0), rtol=1e-14)
    assert_allclose(made("rbf", sp.csc_array(X)).centre, X.mean(axis=0), rtol=1e-14)
    assert made("rbf", mostly_zero()).centre is None
    assert made("poly", X).centre is None
    assert made("sigmoid", X).centre is None


# ------------------------------------------------------------------ instruction sets


@each_dtype
@each_dot_kernel
@pytest.mark.parametrize("layout", ["dense", "compressed", "wide"])
def test_instruction_sets_agree_within_rounding(name, layout, dtype, use_instruction_set, X):
    Z = {"dense": X, "compressed": mostly_zero(150), "wide": wide()}[layout]
    found = []
    for instructions in _core.instruction_sets():
        use_instruction_set(instructions)
        assert _core.instruction_set() == instructions
        kernel = made(name, Z, dtype)
        rows = kernel.operand(Z)
        found.append(values(kernel, rows[:45], rows))
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=50 * EPS[dtype])


# ------------------------------------------------------------------ functions


def test_a_function_is_called_with_the_selected_rows(X):
    calls = []

    def dot(A, B):
        calls.append((A, B))
        return A @ B.T

    kernel = make_kernel(dot, 1.0, 0.0, 3, X)
    assert kernel.name == "dot"
    rows = kernel.operand(X)
    picked = np.array([7, 3, 3])
    assert_allclose(values(kernel, rows[picked], rows[10:20]), X[picked] @ X[10:20].T, rtol=1e-7)
    assert len(calls) == 1
    assert_array_equal(calls[0][0], X[picked])
    assert_array_equal(calls[0][1], X[10:20])


def test_a_function_without_a_name_is_a_user_function(X):
    class Dot:
        def __call__(self, A, B):
            return A @ B.T

    assert make_kernel(Dot(), 1.0, 0.0, 3, X).name == "user function"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones(3), r"'f' returned shape \(3,\) for 3 and 5 rows; it must return \(3, 5\)"),
        (np.ones((5, 3)), r"returned shape \(5, 3\)"),
        (np.ones((1, 5)), r"returned shape \(1, 5\)"),
        (1.0, r"returned shape \(\)"),
        (np.where(np.arange(15).reshape(3, 5) == 7, np.nan, 1.0), r"returned nan at \(1, 2\)"),
        (np.where(np.arange(15).reshape(3, 5) == 14, -np.inf, 1.0), r"returned -inf at \(2, 4\)"),
    ],
)
def test_a_function_that_returns_something_else_is_named(result, message, X):
    def f(A, B):
        return result

    kernel = make_kernel(f, 1.0, 0.0, 3, X)
    rows = kernel.operand(X)
    with pytest.raises(ValueError, match=message):
        values(kernel, rows[:3], rows[:5])


# ------------------------------------------------------------------ precomputed


def training_and_test(n=30, m=8):
    """An unsymmetric matrix, so that a transposition cannot hide, and rows for prediction."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)), rng.normal(size=(m, n))


@each_dtype
def test_training_rows_of_a_matrix_are_its_entries(dtype):
    K, _ = training_and_test()
    kernel = make_kernel("precomputed", 1.0, 0.0, 3, K, dtype)
    rows = kernel.operand(K, training=True)
    a, b = np.array([4, 1, 20]), np.array([0, 29, 4, 4])
    assert_array_equal(values(kernel, rows[a], rows[b]), K[np.ix_(a, b)].astype(dtype))
    assert_array_equal(values(kernel, rows[5:][a], rows[:7]), K[5:][a][:, :7].astype(dtype))
    assert_array_equal(kernel.diagonal(rows[a]), np.diag(K)[a])


def test_new_rows_of_a_matrix_meet_support_vectors_in_both_orders():
    K, new = training_and_test()
    kernel = PrecomputedKernel()
    training, test = kernel.operand(K, training=True), kernel.operand(new)
    support = np.array([3, 17, 28])
    expected = new[:, support].astype(np.float32)
    vectors = kernel.vectors(training, support)
    assert len(vectors) == 3
    assert vectors.matrix is None
    assert_array_equal(values(kernel, vectors, test), expected.T)
    assert_array_equal(values(kernel, test, vectors), expected)
    assert_array_equal(values(kernel, vectors[1:], test[2:5]), expected[2:5, 1:].T)
    assert_array_equal(values(kernel, test, training[support]), expected)


def test_support_vectors_of_selected_training_rows_keep_their_columns():
    K, new = training_and_test()
    kernel = PrecomputedKernel()
    some = kernel.operand(K, training=True)[np.array([29, 5, 11, 0])]
    vectors = kernel.vectors(some, np.array([1, 3]))
    expected = new[:, [5, 0]].astype(np.float32)
    assert_array_equal(values(kernel, kernel.operand(new), vectors), expected)


@pytest.mark.parametrize("Z", [np.eye(6) + 0.5, mostly_zero(6)], ids=["dense", "compressed"])
def test_support_vectors_are_the_selected_rows(Z):
    support = np.array([4, 1])
    for name in ("poly", "laplacian"):
        kernel = made(name, Z)
        rows = kernel.operand(Z)
        K = values(kernel, kernel.vectors(rows, support), rows)
        assert_allclose(K, exact(name, Z[support], Z), rtol=5e-6)


# ------------------------------------------------------------------ shifted


@each_dtype
@each_kernel
def test_a_shifted_kernel_is_its_kernel_plus_a_constant(name, dtype, X):
    kernel = made(name, X, dtype)
    shifted = ShiftedKernel(kernel, 0.25)
    rows = shifted.operand(X, training=True)
    K = values(kernel, rows[:9], rows)
    assert_array_equal(values(shifted, rows[:9], rows), K + dtype(0.25))
    assert_array_equal(shifted.diagonal(rows), kernel.diagonal(rows) + 0.25)
    assert (shifted.name, shifted.dtype, shifted.cost) == (name, dtype, kernel.cost)
    support = np.array([3, 0])
    assert_array_equal(values(shifted, shifted.vectors(rows, support), rows)[1], K[0] + dtype(0.25))


def test_a_shifted_matrix_keeps_training_rows_and_support_vectors():
    K, new = training_and_test()
    shifted = ShiftedKernel(PrecomputedKernel(dtype=np.float64), 2.0)
    training = shifted.operand(K, training=True)
    assert_array_equal(values(shifted, training, training), K + 2)
    vectors = shifted.vectors(training, np.array([6, 2]))
    assert_array_equal(values(shifted, vectors, shifted.operand(new)), new[:, [6, 2]].T + 2)


# ------------------------------------------------------------------ what the core refuses


def finish_call(dtype=np.float32):
    return {"values": np.ones((3, 5), dtype), "row_norms": np.ones(3, dtype),
            "column_norms": np.ones(5, dtype), "name": "rbf", "gamma": 1.0, "coef0": 0.0,
            "degree": 3}  # fmt: skip


def sparse_call(dtype=np.float32):
    """Three dense rows of four features and two compressed rows."""
    return {"start": np.array([0, 2, 3]), "index": np.array([0, 3, 1], np.int32),
            "value": np.ones(3, dtype), "column_norms": np.ones(2, dtype), "place": None,
            "panels": np.ones((1, 4, 64), dtype), "row_norms": np.ones(64, dtype),
            "name": "linear", "gamma": 1.0, "coef0": 0.0, "degree": 3,
            "out": np.zeros((3, 2), dtype)}  # fmt: skip


def read_only(array):
    array.flags.writeable = False
    return array


def overlapping(shape, strides):
    base = np.zeros(shape[0] * shape[1], np.float32)
    return np.lib.stride_tricks.as_strided(base, shape, strides)


@each_dtype
def test_the_calls_that_the_refused_ones_differ_from_are_answered(dtype):
    call = finish_call(dtype)
    _core.finish_block(**call)
    assert_array_equal(call["values"], 1)
    call = sparse_call(dtype)
    _core.sparse_block(**call)
    assert_array_equal(call["out"], [[2, 1]] * 3)
    call = sparse_call(dtype) | {"place": np.array([-1, 0, 0, 3], np.int32)}
    _core.sparse_block(**call)
    assert_array_equal(call["out"], [[1, 1]] * 3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"values": np.ones((3, 5))}, ValueError, "row_norms: one per row, of the values' type"),
        ({"values": np.ones((3, 5), np.float16)}, ValueError, "float32 or float64"),
        ({"values": np.ones((3, 5), np.int32)}, ValueError, "float32 or float64"),
        ({"values": np.ones((5, 3), np.float32).T}, ValueError, "contiguous rows"),
        ({"values": np.ones((3, 10), np.float32)[:, ::2]}, ValueError, "contiguous rows"),
        ({"values": np.ones((3, 5), np.float32)[::-1]}, ValueError, "do not overlap"),
        ({"values": overlapping((3, 5), (4, 4))}, ValueError, "do not overlap"),
        ({"values": overlapping((3, 5), (0, 4))}, ValueError, "do not overlap"),
        ({"values": read_only(np.ones((3, 5), np.float32))}, TypeError, "incompatible"),
        ({"values": np.ones(5, np.float32)}, TypeError, "incompatible"),
        ({"values": [[1.0]]}, TypeError, "incompatible"),
        ({"values": None}, TypeError, "incompatible"),
        ({"row_norms": np.ones(2, np.float32)}, ValueError, "row_norms"),
        ({"row_norms": np.ones(3)}, ValueError, "row_norms"),
        ({"column_norms": np.ones(6, np.float32)}, ValueError, "column_norms"),
        ({"column_norms": np.ones(5, np.int32)}, ValueError, "column_norms"),
        ({"name": "cubic"}, ValueError, "'rbf', 'poly', 'sigmoid' or 'linear'"),
        ({"name": None}, TypeError, "incompatible"),
        ({"degree": -1}, ValueError, "degree must not be negative"),
        ({"degree": 2.5}, TypeError, "incompatible"),
        ({"degree": 2**40}, TypeError, "incompatible"),
        ({"gamma": "scale"}, TypeError, "incompatible"),
    ],
)
def test_finishing_refuses_bad_arguments_and_writes_nothing(change, error, message):
    call = finish_call() | change
    before = np.array(call["values"])
    with pytest.raises(error, match=message):
        _core.finish_block(**call)
    assert_array_equal(call["values"], before)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"start": np.array([0, 2])}, ValueError, "a column per row"),
        ({"start": np.array([], np.int64)}, ValueError, "a column per row"),
        ({"start": np.array([0, 2, 3], np.int32)}, ValueError, "start must be int64"),
        ({"start": np.array([0, 2, 3.0])}, ValueError, "start must be int64"),
        ({"start": np.array([0, 3, 2])}, ValueError, "start must not descend"),
        ({"start": np.array([0, 9, 3])}, ValueError, "start must not descend"),
        ({"start": np.array([2, -9, 3])}, ValueError, "start must not descend"),
        ({"start": np.array([0, 2, 4])}, ValueError, "start is out of range"),
        ({"start": np.array([-1, 2, 3])}, ValueError, "start is out of range"),
        ({"start": np.array([3, 2, 0])}, ValueError, "start is out of range"),
        ({"index": np.array([0, 4, 1], np.int32)}, ValueError, "a feature is out of range"),
        ({"index": np.array([0, -1, 1], np.int32)}, ValueError, "a feature is out of range"),
        ({"index": np.array([0, 3, 1])}, ValueError, "index must be int32"),
        ({"index": np.array([0, 3], np.int32)}, ValueError, "value must have the type of out"),
        ({"value": np.ones(3)}, ValueError, "value must have the type of out"),
        ({"place": np.array([0, 1, 2, 4], np.int32)}, ValueError, "a place is out of range"),
        ({"place": np.array([0, 1, 2], np.int32)}, ValueError, "a feature is out of range"),
        ({"place": np.array([0, 1, 2, 3])}, ValueError, "place must be int32"),
        ({"column_norms": np.ones(3, np.float32)}, ValueError, "column_norms: one per"),
        ({"column_norms": np.ones(2)}, ValueError, "column_norms: one per"),
        ({"row_norms": np.ones(3, np.float32)}, ValueError, "row_norms: one per row of the panels"),
        ({"row_norms": np.ones(64)}, ValueError, "row_norms: one per row of the panels"),
        ({"name": "cubic"}, ValueError, "the kernel must be"),
        ({"degree": -1}, ValueError, "degree must not be negative"),
        ({"panels": np.ones((1, 4, 64))}, ValueError, "panels must have the type of out"),
        ({"panels": np.ones((1, 4, 63), np.float32)}, ValueError, "panels must be"),
        ({"panels": np.ones((4, 64), np.float32)}, ValueError, "panels must be"),
        ({"panels": np.ones((1, 3, 64), np.float32)}, ValueError, "a feature is out of range"),
        ({"panels": np.ones((0, 4, 64), np.float32)}, ValueError, "more rows than the panels"),
        ({"out": np.zeros((65, 2), np.float32)}, ValueError, "more rows than the panels"),
        ({"out": np.zeros((3, 3), np.float32)}, ValueError, "a column per row"),
        ({"out": np.zeros((3, 2))}, ValueError, "must have the type of out"),
        ({"out": np.zeros((3, 2), np.int32)}, ValueError, "float32 or float64"),
        ({"out": np.zeros((2, 3), np.float32).T}, ValueError, "contiguous rows"),
        ({"out": overlapping((3, 2), (4, 4))}, ValueError, "do not overlap"),
        ({"out": read_only(np.zeros((3, 2), np.float32))}, TypeError, "incompatible"),
        ({"out": np.zeros(6, np.float32)}, TypeError, "incompatible"),
    ],
)
def test_sparse_blocks_refuse_bad_arguments_and_write_nothing(change, error, message):
    call = sparse_call() | change
    with pytest.raises(error, match=message):
        _core.sparse_block(**call)
    assert not np.any(call["out"])


@given(
    start=st.lists(st.integers(-2, 8), min_size=1, max_size=5),
    index=st.lists(st.integers(-2, 5), max_size=6),
    place=st.none() | st.lists(st.integers(-2, 4), max_size=5),
)
def test_sparse_products_of_any_numbers_are_right_or_refused(start, index, place):
    rng = np.random.default_rng(0)
    dense, stored = rng.normal(size=(3, 4)), rng.normal(size=len(index))
    panels = Panels.of(CompressedRows.of(sp.csr_array(dense))).values
    out = np.zeros((3, len(start) - 1))
    arrays = [None if a is None else np.array(a, np.int32) for a in (index, place)]
    norms = np.zeros(len(start) - 1), np.zeros(64)
    call = (np.array(start), arrays[0], stored, norms[0], arrays[1], panels, norms[1],
            "linear", 0.0, 0.0, 0, out)  # fmt: skip
    used = index[start[0] : start[-1]]
    known = 4 if place is None else len(place)
    legal = 0 <= start[0] <= start[-1] <= len(index) and start == sorted(start)
    legal = legal and all(0 <= i < known for i in used)
    if not (legal and (place is None or all(place[i] < 4 for i in used))):
        with pytest.raises(ValueError):
            _core.sparse_block(*call)
        assert not out.any()
        return
    _core.sparse_block(*call)
    expected = np.zeros_like(out)
    for column, (begin, end) in enumerate(pairwise(start)):
        for p in range(begin, end):
            at = index[p] if place is None else place[index[p]]
            if at >= 0:
                expected[:, column] += stored[p] * dense[:, at]
    assert_allclose(out, expected, atol=1e-14)


def test_a_common_large_value_keeps_mostly_zero_rows_from_being_compressed():
    Z = np.zeros((60, 10))
    Z[:, 0], Z[:, 1] = 1e4, np.random.default_rng(0).random(60)
    kernel = make_kernel("rbf", 1.0, 0.0, 3, Z)
    rows = kernel.operand(Z)
    assert_allclose(
        values(kernel, rows, rows), pairwise_kernels(Z, metric="rbf", gamma=1.0), rtol=1e-5
    )


def test_a_slice_with_a_step_selects_whole_compressed_rows():
    Z = mostly_zero()
    rows = make_kernel("poly", 1.0, 0.0, 1, Z).operand(Z)
    np.testing.assert_allclose(rows[1::3].tocsr().toarray(), Z[1::3].astype(np.float32))
