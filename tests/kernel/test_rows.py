"""Kernel rows: blocked products, threads, the cache of active rows, and what the core refuses."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import ThreadpoolController

from widemargin import KernelSVC, _core
from widemargin.kernel import divide
from widemargin.kernel import rows as rows_module
from widemargin.kernel.kernels import (
    TILE,
    TILE_COMPRESSED,
    PrecomputedKernel,
    ShiftedKernel,
    make_kernel,
)
from widemargin.kernel.rows import (
    LEAST_SLOTS,
    TILE_ROWS,
    Memory,
    RowCache,
    SharedRows,
    Threads,
    kernel_product,
)

DTYPES = (np.float32, np.float64)
RELATIVE = {np.float32: 2e-6, np.float64: 1e-14}

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
each_number_of_threads = pytest.mark.parametrize("n_threads", [1, 2, 3])
each_layout = pytest.mark.parametrize("layout", ["dense", "compressed", "function", "matrix"])


@pytest.fixture
def use_instruction_set():
    default = _core.instruction_set()
    yield _core.use_instruction_set
    _core.use_instruction_set(default)


@dataclass
class Counted:
    """A kernel that notes how many rows were prepared as the first argument."""

    kernel: object
    prepared: list = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.kernel, name)

    def left(self, a):
        self.prepared.append(len(a))
        return self.kernel.left(a)


def made(layout, n, dtype=np.float32, seed=0):
    """A kernel, n rows for it, and their kernel matrix in double precision."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    if layout == "matrix":  # not symmetric, so that rows and columns cannot be confused
        K = rng.normal(size=(n, n)).astype(dtype)
        kernel = PrecomputedKernel(dtype=dtype)
        return kernel, kernel.operand(K, training=True), K.astype(np.float64)
    if layout == "compressed":
        X = sp.csr_array(X * (rng.random(X.shape) < 0.2))
    kernel = make_kernel(_dot if layout == "function" else "rbf", 0.3, 0.0, 3, X, dtype)
    X, inner = (X.toarray(), X) if sp.issparse(X) else (X, X)
    if layout == "function":
        return kernel, kernel.operand(inner), X @ X.T
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    return kernel, kernel.operand(inner), K


def _dot(A, B):
    return A @ B.T


# ------------------------------------------------------------------ threads


@each_number_of_threads
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 64, 101])
def test_tiles_cover_every_column_once(n, n_threads):
    taken, lock = [], threading.Lock()

    def task(begin, end):
        with lock:
            taken.append((begin, end))

    with Threads(n_threads) as threads:
        threads.tiles(n, task, 8)
    assert sorted(taken) == [(b, min(b + 8, n)) for b in range(0, n, 8)]


def test_a_tile_is_as_wide_as_it_says_by_default():
    taken = []
    with Threads(1) as threads:
        threads.tiles(2 * TILE + 5, lambda b, e: taken.append((b, e)))
    assert taken == [(0, TILE), (TILE, 2 * TILE), (2 * TILE, 2 * TILE + 5)]


def test_all_threads_and_the_calling_one_take_tiles():
    workers = set()
    together = threading.Barrier(3, timeout=10)  # passes only when three threads are in it

    def task(begin, end):
        workers.add(threading.get_ident())
        together.wait()

    with Threads(3) as threads:
        threads.tiles(3, task, 1)
    assert len(workers) == 3
    assert threading.get_ident() in workers


@pytest.mark.parametrize("own", [True, False], ids=["calling", "other"])
def test_an_error_in_any_thread_is_raised(own):
    """Each thread takes one of two tiles; the one that is meant to fails."""
    both = threading.Barrier(2, timeout=10)

    def task(begin, end):
        both.wait()
        if (threading.current_thread() is threading.main_thread()) == own:
            raise KeyError("of a tile")

    with Threads(2) as threads:
        with pytest.raises(KeyError, match="of a tile"):
            threads.tiles(2, task, 1)
        done = []
        threads.tiles(4, lambda b, e: done.append(b), 1)  # and it works again
        assert sorted(done) == [0, 1, 2, 3]


def test_no_tile_is_begun_after_an_error_in_the_calling_thread():
    both, begun = threading.Barrier(2, timeout=10), []
    failed = threading.Event()

    def task(begin, end):
        begun.append(begin)
        both.wait()
        if threading.current_thread() is threading.main_thread():
            failed.set()
            raise KeyboardInterrupt
        failed.wait(10)
        threading.Event().wait(0.2)  # the calling thread has taken what is left by now

    with Threads(2) as threads, pytest.raises(KeyboardInterrupt):
        threads.tiles(1000, task, 1)
    assert len(begun) == 2


def test_blas_keeps_to_one_thread_inside_and_gets_its_own_back():
    def n_threads():
        return [
            c.num_threads for c in ThreadpoolController().select(user_api="blas").lib_controllers
        ]

    before = n_threads()
    with Threads(2), Threads(1):
        assert set(n_threads()) == {1}
    assert n_threads() == before


# ------------------------------------------------------------------ products


@each_dtype
@each_layout
@pytest.mark.parametrize("n_outputs", [1, 4, 5, 9])
def test_products_are_those_of_the_kernel_matrix(n_outputs, layout, dtype):
    kernel, rows, K = made(layout, 120, dtype)
    coef = np.random.default_rng(1).normal(size=(50, n_outputs))
    with Threads(1) as threads:
        product = kernel_product(kernel, rows, rows[70:], coef, threads)
    # k(a, b) is filled as rows b and columns a: for an unsymmetric matrix, its transpose
    expected = K[70:].T @ coef
    scale = np.abs(K[70:]).T @ np.abs(coef)
    assert product.shape == (120, n_outputs)
    assert product.dtype == np.float64
    assert np.all(np.abs(product - expected) <= 8 * RELATIVE[dtype] * scale)


@pytest.mark.parametrize("n_outputs", [3, 6])
def test_products_of_more_than_a_tile_each_way_are_right(n_outputs):
    n, m = 2 * TILE + 100, TILE_ROWS + 30
    K = np.random.default_rng(0).normal(size=(m, n)).astype(np.float32)
    coef = np.random.default_rng(1).normal(size=(m, n_outputs))
    kernel = PrecomputedKernel()
    training = kernel.operand(np.zeros((m, m)), training=True)
    new = kernel.operand(np.ascontiguousarray(K.T))
    with Threads(1) as threads:
        vectors = kernel.vectors(training, np.arange(m))
        product = kernel_product(kernel, new, vectors, coef, threads)
    scale = np.abs(K).T @ np.abs(coef)
    assert np.all(np.abs(product - K.T.astype(np.float64) @ coef) <= 2e-6 * scale)


def test_few_outputs_are_summed_in_double():
    """A float32 sum of a large term, many small ones and its negative would lose the small ones."""
    K = np.ones((3, 402), dtype=np.float32)
    K[:, 0], K[:, 401] = 2.0**26, -(2.0**26)
    kernel = PrecomputedKernel()
    vectors = kernel.vectors(kernel.operand(np.zeros((402, 402)), training=True), np.arange(402))
    with Threads(1) as threads:
        product = kernel_product(kernel, kernel.operand(K), vectors, np.ones((402, 1)), threads)
    assert_array_equal(product, np.full((3, 1), 400.0))


@pytest.mark.parametrize("layout", ["dense", "compressed"])
@pytest.mark.parametrize("n_outputs", [2, 7])
def test_products_do_not_depend_on_the_number_of_threads(n_outputs, layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=((TILE_COMPRESSED if layout == "compressed" else 2 * TILE) + 300, 9))
    X = X if layout == "dense" else X * (rng.random(X.shape) < 0.2)
    kernel = make_kernel("rbf", 0.3, 0.0, 3, X)
    rows = kernel.operand(X)
    assert len(rows) > kernel.tile  # or no second thread would have anything to do
    coef = rng.normal(size=(TILE_ROWS + 50, n_outputs))
    found = []
    for n_threads in (1, 2, 3):
        with Threads(n_threads) as threads:
            found.append(kernel_product(kernel, rows, rows[: len(coef)], coef, threads))
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_products_with_no_rows_are_empty_or_zero():
    kernel, rows, _ = made("dense", 10)
    with Threads(1) as threads:
        assert kernel_product(kernel, rows[:0], rows, np.ones((10, 2)), threads).shape == (0, 2)
        nothing = kernel_product(kernel, rows, rows[:0], np.ones((0, 2)), threads)
    assert_array_equal(nothing, np.zeros((10, 2)))


def test_an_error_of_a_kernel_in_a_thread_is_raised_by_the_product():
    both = threading.Barrier(2, timeout=10)  # each thread computes one of two tiles

    def broken(A, B):
        both.wait()
        own = threading.current_thread() is threading.main_thread()
        return np.full((len(A), len(B)), 1.0 if own else np.nan)

    X = np.zeros((2 * TILE, 1))
    kernel = make_kernel(broken, 1.0, 0.0, 3, X)
    rows = kernel.operand(X)
    with Threads(2) as threads, pytest.raises(ValueError, match="'broken' returned nan"):
        kernel_product(kernel, rows, rows[:2], np.ones((2, 1)), threads)


# ------------------------------------------------------------------ the cache of rows


class Checked:
    """A cache under random operations, compared to the matrix after each of them."""

    def __init__(self, layout, n, most, max_bytes, threads, dtype=np.float32, seed=0):
        self.rng = np.random.default_rng(seed)
        kernel, self.all, self.K = made(layout, most, dtype)
        self.rtol = RELATIVE[dtype] * (0 if layout == "matrix" else 8)
        self.ids = np.sort(self.rng.choice(most, n, replace=False))
        self.cache = RowCache(kernel, self.all[self.ids], most, max_bytes, threads, Memory())
        self.held: set = set()  # the rows that a cache without limits would hold
        self.n_needed = 0

    @property
    def active(self):
        return self.K[np.ix_(self.ids, self.ids)]

    def some(self, least=1, most=None):
        n = len(self.ids)
        size = self.rng.integers(least, min(n, most or n) + 1)
        return self.rng.permutation(n)[:size]

    def want(self, wanted=None):
        wanted = self.some(most=self.cache.n_slots) if wanted is None else wanted
        slots = self.cache.slots(wanted)
        assert len(np.unique(slots)) == len(wanted)
        found = self.cache.pool[slots, : len(self.ids)]
        assert_allclose(found, self.active[wanted], rtol=self.rtol, atol=self.rtol)
        ids = set(self.ids[wanted])
        self.n_needed += len(ids - self.held)
        self.held |= ids
        return slots

    def add(self):
        wanted = self.some(most=self.cache.n_slots)
        coef = self.rng.normal(size=len(wanted)) * (self.rng.random(len(wanted)) < 0.8)
        sign = self.rng.choice([-1.0, 1.0], len(self.ids))
        out = self.rng.normal(size=len(self.ids))
        expected = out + sign * (coef @ self.active[wanted])
        self.cache.add(self.want(wanted), coef, sign, out)
        scale = 1 + np.abs(coef) @ np.abs(self.active[wanted]) + np.abs(coef).sum()
        assert np.all(np.abs(out - expected) <= (self.rtol + 1e-14) * scale)

    def block(self):
        numbers = np.sort(self.some(most=self.cache.n_slots))
        sign = self.rng.choice([-1.0, 1.0], len(numbers))
        out = np.full((len(numbers) + 2,) * 2, np.nan, dtype=self.cache.kernel.dtype)
        self.cache.block(self.want(numbers), numbers, sign, out[:-2, :-2])
        expected = sign[:, None] * self.active[np.ix_(numbers, numbers)] * sign
        assert_allclose(out[:-2, :-2], expected, rtol=self.rtol, atol=self.rtol)
        assert np.all(np.isnan(out[-2:]))
        assert np.all(np.isnan(out[:, -2:]))

    def shrink(self):
        keep = np.sort(self.some())
        self.cache.shrink(keep)
        self.ids = self.ids[keep]
        self.held &= set(self.ids)

    def extend(self):
        out = np.setdiff1d(np.arange(len(self.K)), self.ids)
        if len(out):
            new = self.rng.permutation(out)[: self.rng.integers(1, len(out) + 1)]
            self.ids = np.concatenate([self.ids, new])
            self.cache.extend(self.all[self.ids], self.all[new])

    def run(self, n_operations):
        operations = (self.want, self.add, self.block, self.shrink, self.extend)
        for which in self.rng.choice(5, n_operations, p=[0.35, 0.15, 0.15, 0.15, 0.2]):
            operations[which]()
            assert len(self.cache.rows) == len(self.ids)
            self.check_what_is_held()

    def check_what_is_held(self):
        """Whatever the cache would answer with without computing is right."""
        slot = self.cache._slot_of
        numbers = np.flatnonzero(slot >= 0)
        found = self.cache.pool[slot[numbers], : len(self.ids)]
        assert_allclose(found, self.active[numbers], rtol=self.rtol, atol=self.rtol)
        assert_array_equal(self.cache._row_in[slot[numbers]], numbers)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("least", [1, 4, 13])
def test_a_small_cache_returns_the_rows_of_the_matrix_after_any_operations(
    least, seed, monkeypatch
):
    monkeypatch.setattr(rows_module, "LEAST_SLOTS", least)
    monkeypatch.setattr(rows_module, "TILE_ROWS", 5)
    with Threads(1) as threads:
        checked = Checked("matrix", 25, 60, 1.0, threads, seed=seed)
        checked.run(60)
    assert checked.cache.n_computed >= checked.n_needed > 0


@pytest.mark.parametrize("seed", range(8))
def test_a_cache_of_the_whole_matrix_never_computes_a_row_twice(seed, monkeypatch):
    monkeypatch.setattr(rows_module, "TILE_ROWS", 5)
    with Threads(1) as threads:
        checked = Checked("matrix", 25, 60, 1e9, threads, seed=seed)
        checked.run(60)
    assert checked.cache.n_computed == checked.n_needed > 0


@each_dtype
@each_layout
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_cache_works_for_every_layout_of_rows(share, layout, dtype, monkeypatch):
    monkeypatch.setattr(rows_module, "LEAST_SLOTS", 3)
    with Threads(1) as threads:
        n_bytes = share * 60**2 * np.dtype(dtype).itemsize
        Checked(layout, 40, 60, n_bytes, threads, dtype).run(40)


def test_the_cache_fills_tiles_in_several_threads(monkeypatch):
    monkeypatch.setattr(rows_module, "LEAST_SLOTS", 40)
    most = TILE + 300
    with Threads(2) as threads:
        checked = Checked("matrix", TILE + 100, most, 1.0, threads)
        for operation in (checked.want, checked.add, checked.block, checked.extend, checked.want,
                          checked.block, checked.shrink, checked.add):  # fmt: skip
            operation()
            checked.check_what_is_held()


@given(requests=st.lists(st.integers(0, 11), min_size=1, max_size=60), slots=st.integers(1, 12))
def test_the_row_unused_for_longest_makes_room(requests, slots):
    with pytest.MonkeyPatch.context() as patch, Threads(1) as threads:
        patch.setattr(rows_module, "LEAST_SLOTS", slots)
        kernel, rows, _ = made("matrix", 12)
        cache = RowCache(kernel, rows, 12, 1.0, threads, Memory())
        assert cache.n_slots == slots
        held, n_missed = OrderedDict(), 0
        for row in requests:
            n_missed += row not in held
            held[row] = True
            held.move_to_end(row)
            if len(held) > slots:
                held.popitem(last=False)
            cache.slots(np.array([row]))
            assert cache.n_computed == n_missed


def test_rows_wanted_together_do_not_push_each_other_out(monkeypatch):
    monkeypatch.setattr(rows_module, "LEAST_SLOTS", 6)
    with Threads(1) as threads:
        checked = Checked("matrix", 30, 30, 1.0, threads)
        for _ in range(50):
            before = checked.rng.permutation(30)[:6]
            checked.want(before)
            half = np.concatenate([before[:3], np.setdiff1d(np.arange(30), before)[:3]])
            checked.want(half)  # values of all six are checked
            computed = checked.cache.n_computed
            checked.want(half[::-1])
            assert checked.cache.n_computed == computed


def test_rows_that_no_longer_fit_after_an_extension_are_the_oldest(monkeypatch):
    monkeypatch.setattr(rows_module, "LEAST_SLOTS", 4)
    with Threads(1) as threads:
        kernel, rows, K = made("matrix", 100)
        cache = RowCache(kernel, rows[:20], 100, 1.0, threads, Memory())
        n_slots = cache.n_slots
        assert n_slots > 4
        order = np.random.default_rng(0).permutation(20)[:n_slots]
        for row in order:
            cache.slots(np.array([row]))
        cache.extend(rows, rows[20:])
        assert cache.n_slots == 4
        assert cache.n_computed == n_slots
        slots = cache.slots(order[-4:])
        assert cache.n_computed == n_slots
        assert_array_equal(cache.pool[slots], K[order[-4:]])
        cache.slots(order[-5:-4])
        assert cache.n_computed == n_slots + 1


def test_a_smaller_active_set_has_more_slots(monkeypatch):
    monkeypatch.setattr(rows_module, "LEAST_SLOTS", 4)
    with Threads(1) as threads:
        kernel, rows, _ = made("matrix", 100)
        cache = RowCache(kernel, rows, 100, 1.0, threads, Memory())
        assert cache.n_slots == 4
        cache.shrink(np.arange(0, 100, 4))
        assert 400 // 27 <= cache.n_slots <= 400 // 25
        cache.shrink(np.arange(3))
        assert cache.n_slots == 3


@pytest.mark.parametrize("most", [1, 50, LEAST_SLOTS, 300])
@pytest.mark.parametrize("max_bytes", [0.0, 1.0, 4 * 200 * 300, 1e12])
@each_dtype
def test_a_cache_has_slots_for_its_least_number_of_rows_and_never_more_than_rows(
    dtype, max_bytes, most
):
    kernel, rows, _ = made("function", most, dtype)
    fitting = int(max_bytes // np.dtype(dtype).itemsize) // most
    with Threads(1) as threads:
        n_slots = RowCache(kernel, rows, most, max_bytes, threads, Memory()).n_slots
    assert n_slots == min(max(LEAST_SLOTS, fitting), most)


# ------------------------------------------------------------------ memory


def test_a_buffer_that_was_given_back_is_taken_again():
    memory = Memory()
    first, second = (memory.take(100, 0, np.float32) for _ in range(2))
    assert not np.shares_memory(first, second)
    memory.give(first)
    third = memory.take(60, 0, np.float32)
    assert np.shares_memory(third, first)
    assert third.shape == (60,)
    memory.give(third)
    assert len(memory.take(100, 0, np.float32)) == 100  # the whole buffer came back, not a part


@pytest.mark.parametrize(("size", "dtype"), [(101, np.float32), (50, np.float64)])
def test_a_buffer_that_is_too_small_or_of_another_type_is_not_taken(size, dtype):
    memory = Memory()
    given = memory.take(100, 0, np.float32)
    memory.give(given)
    taken = memory.take(size, 0, dtype)
    assert not np.shares_memory(taken, given)
    assert (len(taken), taken.dtype) == (size, dtype)


def test_two_takers_never_share_a_buffer():
    memory = Memory()
    memory.give(memory.take(100, 0, np.float32))
    assert not np.shares_memory(memory.take(10, 0, np.float32), memory.take(10, 0, np.float32))


def test_a_cache_on_memory_that_another_one_used_returns_the_right_rows():
    memory = Memory()
    kernel, rows, K = made("matrix", 60)
    with Threads(1) as threads:
        buffers = []
        for begin, end in [(0, 60), (20, 50), (0, 60)]:
            some = rows[begin:end]
            cache = RowCache(kernel, some, len(some), 1e6, threads, memory)
            buffers.append(cache.pool)
            slots = cache.slots(np.arange(end - begin)[::-1])
            assert_array_equal(cache.pool[slots[::-1]], K[begin:end, begin:end])
            cache.close()
    assert np.shares_memory(buffers[0], buffers[1])
    assert np.shares_memory(buffers[0], buffers[2])


# ------------------------------------------------------------------ rows shared by problems


def fill(kernel, a, b):
    out = np.full((len(a), len(b)), np.nan, dtype=kernel.dtype)
    kernel.fill(kernel.left(a), b, out)
    return out


@each_dtype
@each_layout
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_shared_rows_have_the_values_of_their_kernel(share, layout, dtype):
    kernel, rows, K = made(layout, 50, dtype)
    shared = SharedRows(kernel, rows, share * 50 * 50 * np.dtype(dtype).itemsize)
    everything = shared.operand(None)
    assert len(everything) == 50
    rtol = 8 * RELATIVE[dtype]
    rng = np.random.default_rng(0)
    for _ in range(20):
        own = rng.permutation(50)[:30]  # the rows of one problem, and some of them
        a, b = rng.permutation(30)[:8], slice(*np.sort(rng.permutation(31)[:2]))
        found = fill(shared, everything[own][a], everything[own][b])
        assert_allclose(found, K[np.ix_(own[a], own[b])], rtol=rtol, atol=rtol)
    assert_array_equal(shared.diagonal(everything[own]), kernel.diagonal(rows[own]))


def test_rows_of_more_than_a_tile_are_stored_whole():
    kernel, rows, K = made("matrix", TILE + 70)
    shared = SharedRows(kernel, rows, 1e9)
    everything = shared.operand(None)
    assert_array_equal(fill(shared, everything[[5, 3]], everything), K[[5, 3]])


def test_shared_rows_are_computed_once():
    kernel, rows, _ = made("dense", 40)
    counted = Counted(kernel)
    shared = SharedRows(counted, rows, 1e9)
    everything = shared.operand(None)
    for numbers in ([3, 1, 7], [7, 3], [1, 8, 9], [9, 8, 7, 3, 1]):
        shared.left(everything[np.array(numbers)])
    assert counted.prepared == [3, 2]
    shared.left(everything)
    shared.left(everything)
    assert counted.prepared == [3, 2, 35]


def test_rows_without_room_are_computed_directly_and_those_held_are_not():
    kernel, rows, K = made("matrix", 40)
    counted = Counted(kernel)
    shared = SharedRows(counted, rows, 5 * 40 * 4)
    everything = shared.operand(None)
    assert_array_equal(fill(shared, everything[:3], everything), K[:3])
    for _ in range(2):  # three more do not fit, and nothing of them is kept
        assert_array_equal(fill(shared, everything[2:6], everything[::3]), K[2:6, ::3])
    assert counted.prepared == [3, 4, 4]
    assert_array_equal(fill(shared, everything[2:5], everything), K[2:5])
    assert_array_equal(fill(shared, everything[:5], everything), K[:5])
    assert counted.prepared == [3, 4, 4, 2]


@each_layout
def test_support_vectors_of_shared_rows_are_those_of_the_kernel(layout):
    kernel, rows, K = made(layout, 30)
    shared = SharedRows(kernel, rows, 1e9)
    own, support = np.array([20, 4, 9, 11]), np.array([3, 0])
    vectors = shared.vectors(shared.operand(None)[own], support)
    if layout == "matrix":
        assert_array_equal(vectors.column, [11, 20])
    else:
        assert_allclose(fill(kernel, vectors, rows), K[[11, 20]], rtol=2e-5, atol=1e-6)


def test_shared_rows_pass_for_their_kernel():
    kernel, rows, K = made("matrix", 30, np.float64)
    shared = SharedRows(ShiftedKernel(kernel, 0.5), rows, 1e9)
    assert (shared.name, shared.dtype, shared.cost) == ("precomputed", np.float64, kernel.cost)
    own = shared.operand(None)[np.array([3, 17, 5, 28, 0])]
    with Threads(1) as threads:
        cache = RowCache(shared, own, 5, 1e6, threads, Memory())
        slots = cache.slots(np.array([4, 1]))
        assert_array_equal(cache.pool[slots, :5], K[np.ix_([0, 17], own.at)] + 0.5)
        product = kernel_product(shared, own, own, np.eye(5), threads)
    assert_allclose(product.T, K[np.ix_(own.at, own.at)] + 0.5, rtol=1e-15)


# ------------------------------------------------------------------ too little memory


@pytest.fixture
def limit_memory(monkeypatch):
    """A function that makes `np.empty` refuse more than some values."""

    def limit(most):
        empty = np.empty

        def limited(shape, *arguments, **options):
            if np.prod(shape) > most:
                raise MemoryError(f"no room for {shape}")
            return empty(shape, *arguments, **options)

        monkeypatch.setattr(np, "empty", limited)

    return limit


def test_a_cache_that_cannot_be_allocated_is_halved_with_a_warning(limit_memory):
    kernel, rows, K = made("matrix", 400)
    limit_memory(100_000)
    message = r"cache of 1 MB .* using 0 MB. Set cache_size"
    with Threads(1) as threads:
        with pytest.warns(UserWarning, match=message):
            cache = RowCache(kernel, rows, 400, 1e9, threads, Memory())
        assert cache.n_slots == 80_000 // 400
        wanted = np.arange(150, 350)
        assert_array_equal(cache.pool[cache.slots(wanted)], K[wanted])


def test_a_cache_is_halved_no_further_than_its_least_size(limit_memory):
    kernel, rows, _ = made("matrix", 400)
    limit_memory(LEAST_SLOTS * 400)
    with Threads(1) as threads, pytest.warns(UserWarning, match="could not be allocated"):
        assert RowCache(kernel, rows, 400, 1e9, threads, Memory()).n_slots == LEAST_SLOTS


def test_a_cache_that_cannot_have_its_least_size_is_an_error(limit_memory):
    kernel, rows, _ = made("matrix", 400)
    limit_memory(LEAST_SLOTS * 400 - 1)
    with Threads(1) as threads, pytest.raises(MemoryError, match="no room for 51200"):
        RowCache(kernel, rows, 400, 1e9, threads, Memory())


@pytest.mark.parametrize(("most", "got"), [(100, 61), (5_000_000, 4_000_000)])
def test_an_allocation_says_what_it_wanted_and_what_it_got(most, got, limit_memory):
    limit_memory(most)
    message = f"A cache of 128 MB .* using {got * 8 / 1e6:.0f} MB"
    with pytest.warns(UserWarning, match=message):
        buffer = rows_module._allocate(16_000_000, 0, np.float64)
    assert len(buffer) == got


# ------------------------------------------------------------------ loops of the core


@each_dtype
@given(n_rows=st.integers(0, 9), width=st.integers(0, 40), data=st.data())
def test_signed_rows_are_added_in_double_to_some_columns(dtype, n_rows, width, data):
    rng = np.random.default_rng(n_rows)
    pool = rng.normal(size=(5, width)).astype(dtype)
    slots, coef = rng.integers(0, 5, n_rows), rng.normal(size=n_rows)
    coef[rng.random(n_rows) < 0.3] = 0
    sign = rng.choice([-1.0, 1.0], width)
    begin = data.draw(st.integers(0, width))
    end = data.draw(st.integers(begin, width))
    out = rng.normal(size=width)
    expected, at = out.copy(), slice(begin, end)
    expected[at] += sign[at] * (coef @ pool[slots, at].astype(np.float64))
    _core.add_rows(pool, slots, coef, sign, begin, end, out)
    assert_allclose(out, expected, rtol=0, atol=1e-14)
    untouched = np.r_[0:begin, end:width]
    assert_array_equal(out[untouched], expected[untouched])


def test_a_sum_over_more_than_a_tile_of_columns_is_that_of_numpy():
    rng = np.random.default_rng(0)
    pool, coef = rng.normal(size=(7, 3003)).astype(np.float32), rng.normal(size=7)
    out, sign = np.zeros(3003), rng.choice([-1.0, 1.0], 3003)
    _core.add_rows(pool, np.arange(7), coef, sign, 5, 3001, out)
    assert_allclose(sign[5:3001] * out[5:3001], coef @ pool[:, 5:3001].astype(float), atol=1e-14)
    assert not np.any(np.r_[out[:5], out[3001:]])


@each_dtype
def test_gathering_takes_signed_entries_and_writes_nothing_beside_them(dtype):
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(6, 11)).astype(dtype)
    slots, columns = np.array([5, 0, 5]), np.array([10, 3, 3, 0])
    by_row, by_column = rng.choice([-1.0, 1.0], 3), rng.choice([-1.0, 1.0], 4)
    out = np.full((5, 9), np.nan, dtype)
    _core.gather(pool, slots, columns, by_row, by_column, out[1:4, 2:6])
    assert_array_equal(out[1:4, 2:6], by_row[:, None] * pool[np.ix_(slots, columns)] * by_column)
    assert np.count_nonzero(np.isnan(out)) == out.size - 12


def test_a_pool_that_is_not_contiguous_is_read_all_the_same():
    pool = np.random.default_rng(0).normal(size=(8, 6))
    out, total = np.zeros((2, 2)), np.zeros(4)
    _core.gather(pool.T, np.array([5, 0]), np.array([7, 1]), np.ones(2), np.ones(2), out)
    assert_array_equal(out, pool[np.ix_([7, 1], [5, 0])].T)
    _core.add_rows(pool[:, ::2][:4], np.array([3]), np.ones(1), np.ones(4), 0, 3, total)
    assert_array_equal(total, [*pool[3, ::2], 0])


@each_dtype
@given(data=st.data())
def test_compacted_and_widened_rows_are_those_of_numpy_or_refused(dtype, data):
    size = data.draw(st.integers(0, 40))
    number = st.integers(-2, 12)
    slots, columns = (data.draw(st.lists(number, max_size=5)) for _ in range(2))
    old, new, n_rows = (data.draw(number) for _ in range(3))
    buffer = np.arange(size, dtype=dtype)

    legal = 0 < new <= old and len(columns) <= new
    legal = legal and all(0 <= k < size // old for k in slots) and ascends(slots)
    legal = legal and all(0 <= j < old for j in columns) and ascends(columns)
    moved = buffer.copy()
    call = (moved, np.array(slots, np.int64), np.array(columns, np.int64), old, new)
    if legal:
        _core.compact_rows(*call)
        for k, slot in enumerate(slots):
            expected = buffer[slot * old :][columns] if columns else []
            assert_array_equal(moved[k * new :][: len(columns)], expected)
    else:
        with pytest.raises(ValueError):
            _core.compact_rows(*call)
        assert_array_equal(moved, buffer)

    moved = buffer.copy()
    if 0 < old <= new and 0 <= n_rows <= size // new:
        _core.widen_rows(moved, n_rows, old, new)
        for k in range(n_rows):
            assert_array_equal(moved[k * new :][:old], buffer[k * old :][:old])
        assert_array_equal(moved[n_rows * new :], buffer[n_rows * new :])
    else:
        with pytest.raises(ValueError):
            _core.widen_rows(moved, n_rows, old, new)
        assert_array_equal(moved, buffer)


def ascends(numbers):
    return all(a < b for a, b in pairwise(numbers))


def test_rows_compacted_and_widened_again_are_where_they_were():
    matrix = np.random.default_rng(0).normal(size=(9, 13))
    buffer = matrix.ravel().copy()
    keep, columns = np.array([0, 2, 3, 7, 8]), np.array([1, 2, 6, 9, 11, 12])
    _core.compact_rows(buffer, keep, columns, 13, 7)
    _core.widen_rows(buffer, 5, 7, 13)
    assert_array_equal(buffer.reshape(9, 13)[:5, :6], matrix[np.ix_(keep, columns)])


def block_problem(n, n_all, dtype=np.float64, seed=0):
    """n of a problem's variables, in a padded block, and the gradient of all at a start."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_all, n_all + 2))
    sign = rng.choice([-1.0, 1.0], n_all)
    Q = sign[:, None] * (A @ A.T / n_all).astype(dtype) * sign
    block = np.sort(rng.permutation(n_all)[:n])
    size = -(-n // 8) * 8
    q = np.full((size, size), 99, dtype)  # the padding is the core's business
    q[:n, :n] = Q[np.ix_(block, block)]
    upper = rng.uniform(0.1, 2.0, n_all)
    alpha = upper * rng.choice([0.0, 0.5, 1.0], n_all)
    call = {"q": q, "block": block, "sign": sign, "alpha": alpha, "gradient": Q @ alpha - 1,
            "upper": upper, "diagonal": np.diag(Q).copy(), "tol": 1e-10,
            "coef": np.full(n, np.nan)}  # fmt: skip
    return Q.astype(np.float64), call


def objective(Q, alpha):
    return 0.5 * alpha @ Q @ alpha - alpha.sum()


@each_dtype
@pytest.mark.parametrize("instructions", _core.instruction_sets())
@pytest.mark.parametrize(("n", "n_all"), [(1, 3), (8, 8), (21, 50), (40, 40)])
def test_a_block_is_minimised_to_the_optimum_of_its_quadratic_programme(
    n, n_all, instructions, dtype, use_instruction_set
):
    use_instruction_set(instructions)
    Q, call = block_problem(n, n_all, dtype)
    block, before, gradient = call["block"], call["alpha"].copy(), call["gradient"].copy()
    gain = _core.minimise_block(**call)
    after, upper = call["alpha"], call["upper"]
    others = np.setdiff1d(np.arange(n_all), block)
    assert_array_equal(after[others], before[others])
    assert_array_equal(call["gradient"], gradient)
    assert np.all((after >= 0) & (after <= upper))
    assert_allclose(call["coef"], (call["sign"] * (after - before))[block], rtol=1e-15)
    assert gain == pytest.approx(objective(Q, before) - objective(Q, after), rel=1e-6)
    slope = np.clip(after - (Q @ after - 1), 0, upper) - after
    assert np.abs(slope[block]).max() <= 1e-9  # nothing in the block wants to move
    if n == n_all:
        best = reference.box_qp((Q + Q.T) / 2, upper)
        assert objective(Q, after) == pytest.approx(objective(Q, best), rel=1e-9)


def test_a_block_within_its_tolerance_stays_as_it_is():
    _, call = block_problem(12, 20)
    before = call["alpha"].copy()
    call["tol"] = np.abs(call["gradient"]).max()
    assert _core.minimise_block(**call) == 0
    assert_array_equal(call["alpha"], before)
    assert_array_equal(call["coef"], np.zeros(12))


def test_an_empty_block_gains_nothing():
    _, call = block_problem(0, 5)
    before = call["alpha"].copy()
    assert _core.minimise_block(**call) == 0
    assert_array_equal(call["alpha"], before)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["q", "diagonal", "upper", "alpha", "gradient"])
def test_blocks_of_no_numbers_end_and_stay_within_bounds_of_memory(name, poison):
    """Such values are refused far above; here it matters that the core returns."""
    _, call = block_problem(30, 40)
    call[name].ravel()[3::7] = poison
    _core.minimise_block(**call)
    last = np.arange(0, 40, 3)
    parts = [call[k] for k in ("alpha", "gradient", "upper", "diagonal")]
    block, _, _ = _core.select_block(*parts, last, 20)
    assert len(block) <= 20
    assert np.all((block >= 0) & (block < 40))


@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), size=st.integers(1, 35))
def test_the_chosen_block_is_half_free_variables_and_then_the_worst_violators(seed, n, size):
    rng = np.random.default_rng(seed)
    upper, diagonal = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n)
    alpha = upper * rng.choice([0.0, 0.3, 1.0], n)
    gradient = rng.integers(-2, 3, n) * rng.choice([1.0, 0.5], n)
    last = np.sort(rng.permutation(n)[: rng.integers(0, n + 1)])
    block, violation, gap = _core.select_block(alpha, gradient, upper, diagonal, last, size)

    projected = np.where(alpha <= 0, np.minimum(gradient, 0), gradient)
    projected = np.where(alpha >= upper, np.maximum(gradient, 0), projected)
    score = projected**2 / diagonal
    steepest = sorted(range(n), key=lambda i: (-score[i], i))
    free = (alpha > 0) & (alpha < upper)
    kept = [i for i in steepest if free[i] and i in last][: size // 2]
    rest = [i for i in steepest if score[i] > 0 and i not in kept][: size - len(kept)]
    assert_array_equal(block, sorted(kept + rest))
    assert violation == np.abs(projected).max()
    slack = np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)
    assert gap == pytest.approx(slack.sum(), abs=1e-12)


@each_dtype
def test_instruction_sets_add_rows_alike(dtype, use_instruction_set):
    rng = np.random.default_rng(0)
    pool, coef = rng.normal(size=(50, 1500)).astype(dtype), rng.normal(size=50)
    found = []
    for instructions in _core.instruction_sets():
        use_instruction_set(instructions)
        found.append(np.zeros(1500))
        _core.add_rows(pool, np.arange(50), coef, np.ones(1500), 0, 1500, found[-1])
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=0, atol=1e-13)


# ------------------------------------------------------------------ what the core refuses


def read_only(array):
    array.flags.writeable = False
    return array


def overlapping(shape, strides):
    base = np.zeros(shape[0] * shape[1])
    return np.lib.stride_tricks.as_strided(base, shape, strides)


def good_call(name):
    if name == "minimise_block":
        return block_problem(7, 9)[1]
    return {
        "add_rows": {"pool": np.ones((3, 5)), "slots": np.array([0, 2]), "coef": np.ones(2),
                     "sign": np.ones(5), "begin": 1, "end": 4, "out": np.zeros(5)},
        "select_block": {"alpha": np.zeros(4), "gradient": -np.ones(4), "upper": np.ones(4),
                         "diagonal": np.ones(4), "last": np.array([0, 3]), "size": 2},
        "gather": {"pool": np.ones((3, 5)), "slots": np.array([0, 2]),
                   "columns": np.array([4, 0, 1]), "row_sign": np.ones(2),
                   "column_sign": np.ones(3), "out": np.zeros((2, 3))},
        "compact_rows": {"buffer": np.arange(20.0), "slots": np.array([1, 3]),
                         "columns": np.array([0, 2, 4]), "old_stride": 5, "new_stride": 4},
        "widen_rows": {"buffer": np.arange(20.0), "n_rows": 3, "old_stride": 4, "new_stride": 6},
    }[name]  # fmt: skip


WRITTEN = {"add_rows": ["out"], "gather": ["out"], "compact_rows": ["buffer"],
           "widen_rows": ["buffer"], "minimise_block": ["alpha", "coef"],
           "select_block": []}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_the_calls_that_the_refused_ones_differ_from_are_answered(name):
    call = good_call(name)
    getattr(_core, name)(**call)
    for output in WRITTEN[name]:
        assert np.any(call[output] != good_call(name)[output])
    if name == "select_block":
        assert_array_equal(_core.select_block(**call)[0], [0, 1])


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("add_rows", {"pool": np.ones(15)}, ValueError, "pool must be a matrix"),
        ("add_rows", {"pool": np.ones((3, 5), int)}, ValueError, "float32 or float64"),
        ("add_rows", {"pool": None}, TypeError, "incompatible"),
        ("add_rows", {"slots": np.array([0, 3])}, ValueError, "a slot is out of range"),
        ("add_rows", {"slots": np.array([-1, 2])}, ValueError, "a slot is out of range"),
        ("add_rows", {"slots": np.array([0, 2], np.int32)}, ValueError, "slots must be int64"),
        ("add_rows", {"slots": np.array([0.0, 2.0])}, ValueError, "slots must be int64"),
        ("add_rows", {"coef": np.ones(3)}, ValueError, "coef: one per slot"),
        ("add_rows", {"coef": np.ones(2, np.float32)}, ValueError, "coef: one per slot"),
        ("add_rows", {"sign": np.ones(4)}, ValueError, "sign must be float64, as long as out"),
        ("add_rows", {"sign": np.ones(5, int)}, ValueError, "sign must be float64"),
        ("add_rows", {"begin": -1}, ValueError, "columns out of range"),
        ("add_rows", {"begin": 5}, ValueError, "columns out of range"),
        ("add_rows", {"end": 6}, ValueError, "columns out of range"),
        ("add_rows", {"end": 6, "out": np.zeros(9), "sign": np.ones(9)}, ValueError, "columns out"),
        ("add_rows", {"end": 2**70}, TypeError, "incompatible"),
        ("add_rows", {"begin": 0.5}, TypeError, "incompatible"),
        ("add_rows", {"out": np.zeros(3), "sign": np.ones(3)}, ValueError, "columns out of range"),
        ("add_rows", {"out": np.zeros(5, np.float32)}, ValueError, "out must be float64"),
        ("add_rows", {"out": np.zeros(10)[::2]}, TypeError, "incompatible"),
        ("add_rows", {"out": read_only(np.zeros(5))}, TypeError, "incompatible"),
        ("gather", {"pool": np.ones((3, 5), np.float32)}, ValueError, "the type of the pool"),
        ("gather", {"pool": np.ones((3, 5, 1))}, ValueError, "pool must be a matrix"),
        ("gather", {"slots": np.array([0, 3])}, ValueError, "a slot is out of range"),
        ("gather", {"slots": np.array([0, -1])}, ValueError, "a slot is out of range"),
        ("gather", {"slots": np.array([0, 1], np.int32)}, ValueError, "slots must be int64"),
        ("gather", {"slots": np.array([0])}, ValueError, "row_sign: float64, one per slot"),
        ("gather", {"columns": np.array([4, 5, 1])}, ValueError, "a column is out of range"),
        ("gather", {"columns": np.array([4, -1, 1])}, ValueError, "a column is out of range"),
        ("gather", {"columns": np.array([4, 0])}, ValueError, "column_sign: one per column"),
        ("gather", {"columns": np.zeros(3, np.uint64)}, ValueError, "columns must be int64"),
        ("gather", {"row_sign": np.ones(2, int)}, ValueError, "row_sign: float64"),
        ("gather", {"column_sign": np.ones(3, np.float32)}, ValueError, "column_sign"),
        ("gather", {"out": np.zeros((3, 3))}, ValueError, "a row per slot"),
        ("gather", {"out": np.zeros((2, 2))}, ValueError, "a row per slot"),
        ("gather", {"out": np.zeros((3, 2)).T}, ValueError, "contiguous rows"),
        ("gather", {"out": np.zeros((2, 6))[:, ::2]}, ValueError, "contiguous rows"),
        ("gather", {"out": np.zeros((2, 3))[::-1]}, ValueError, "do not overlap"),
        ("gather", {"out": overlapping((2, 3), (16, 8))}, ValueError, "do not overlap"),
        ("gather", {"out": read_only(np.zeros((2, 3)))}, TypeError, "incompatible"),
        ("gather", {"out": np.zeros(6)}, TypeError, "incompatible"),
        ("compact_rows", {"buffer": np.arange(20)}, ValueError, "float32 or float64"),
        ("compact_rows", {"buffer": np.arange(40.0)[::2]}, TypeError, "incompatible"),
        ("compact_rows", {"buffer": read_only(np.zeros(20))}, TypeError, "incompatible"),
        ("compact_rows", {"slots": np.array([1, 4])}, ValueError, "slots must ascend"),
        ("compact_rows", {"slots": np.array([-1, 1])}, ValueError, "slots must ascend"),
        ("compact_rows", {"slots": np.array([1, 1])}, ValueError, "slots must ascend"),
        ("compact_rows", {"slots": np.array([3, 1])}, ValueError, "slots must ascend"),
        ("compact_rows", {"slots": np.array([1], np.int32)}, ValueError, "slots must be int64"),
        ("compact_rows", {"columns": np.array([0, 5])}, ValueError, "columns must ascend"),
        ("compact_rows", {"columns": np.array([2, 0])}, ValueError, "columns must ascend"),
        ("compact_rows", {"columns": np.array([-1, 0])}, ValueError, "columns must ascend"),
        ("compact_rows", {"columns": np.arange(5)}, ValueError, "only become shorter"),
        ("compact_rows", {"columns": np.ones(1)}, ValueError, "columns must be int64"),
        ("compact_rows", {"new_stride": 6}, ValueError, "only become shorter"),
        ("compact_rows", {"new_stride": 0}, ValueError, "only become shorter"),
        ("compact_rows", {"old_stride": 2**62}, ValueError, "slots must ascend"),
        ("compact_rows", {"old_stride": -5}, ValueError, "only become shorter"),
        ("widen_rows", {"buffer": np.arange(20)}, ValueError, "float32 or float64"),
        ("widen_rows", {"buffer": np.arange(40.0)[::2]}, TypeError, "incompatible"),
        ("widen_rows", {"buffer": read_only(np.zeros(20))}, TypeError, "incompatible"),
        ("widen_rows", {"n_rows": 4}, ValueError, "the buffer is too small"),
        ("widen_rows", {"n_rows": -1}, ValueError, "the buffer is too small"),
        ("widen_rows", {"n_rows": 2**62}, ValueError, "the buffer is too small"),
        ("widen_rows", {"new_stride": 3}, ValueError, "only become longer"),
        ("widen_rows", {"old_stride": 0}, ValueError, "only become longer"),
        ("widen_rows", {"new_stride": 2**62}, ValueError, "the buffer is too small"),
        ("minimise_block", {"q": np.ones((8, 7))}, ValueError, "q must be square"),
        ("minimise_block", {"q": np.ones((7, 7))}, ValueError, "q must be square"),
        ("minimise_block", {"q": np.ones((8, 8), int)}, ValueError, "float32 or float64"),
        ("minimise_block", {"q": np.ones((8, 16))[:, ::2]}, TypeError, "incompatible"),
        ("minimise_block", {"q": read_only(np.ones((8, 8)))}, TypeError, "incompatible"),
        ("minimise_block", {"block": np.arange(3, 10)}, ValueError, "a variable is out of range"),
        ("minimise_block", {"block": np.arange(-1, 6)}, ValueError, "a variable is out of range"),
        ("minimise_block", {"block": np.arange(7.0)}, ValueError, "block must be int64"),
        ("minimise_block", {"block": np.arange(9)}, ValueError, "q must be square"),
        ("minimise_block", {"block": np.arange(6)}, ValueError, "coef must be float64"),
        ("minimise_block", {"sign": np.ones(7)}, ValueError, "sign must be float64"),
        ("minimise_block", {"diagonal": np.ones(7)}, ValueError, "diagonal must be float64"),
        ("minimise_block", {"diagonal": np.ones(9, np.float32)}, ValueError, "diagonal must be"),
        ("minimise_block", {"upper": np.ones(16)}, ValueError, "upper must be float64"),
        ("minimise_block", {"gradient": np.zeros(7)}, ValueError, "gradient must be float64"),
        ("minimise_block", {"alpha": np.zeros(16)}, ValueError, "sign must be float64"),
        ("minimise_block", {"alpha": np.zeros(9, np.float32)}, ValueError, "alpha must be"),
        ("minimise_block", {"alpha": np.zeros(18)[::2]}, TypeError, "incompatible"),
        ("minimise_block", {"alpha": read_only(np.zeros(9))}, TypeError, "incompatible"),
        ("minimise_block", {"coef": np.zeros(8)}, ValueError, "coef must be float64"),
        ("minimise_block", {"coef": np.zeros(7, np.float32)}, ValueError, "coef must be"),
        ("minimise_block", {"coef": np.zeros(14)[::2]}, TypeError, "incompatible"),
        ("minimise_block", {"tol": None}, TypeError, "incompatible"),
        ("select_block", {"alpha": np.zeros(3)}, ValueError, "gradient must be float64"),
        ("select_block", {"alpha": np.zeros(4, int)}, ValueError, "alpha must be float64"),
        ("select_block", {"gradient": np.zeros(5)}, ValueError, "gradient must be float64"),
        ("select_block", {"upper": np.ones(4, np.float32)}, ValueError, "upper must be float64"),
        ("select_block", {"diagonal": np.ones(3)}, ValueError, "diagonal must be float64"),
        ("select_block", {"last": np.array([4])}, ValueError, "last block is out of range"),
        ("select_block", {"last": np.array([-1])}, ValueError, "last block is out of range"),
        ("select_block", {"last": np.zeros(2)}, ValueError, "last must be int64"),
        ("select_block", {"size": 0}, ValueError, "at least one variable"),
        ("select_block", {"size": -3}, ValueError, "at least one variable"),
        ("select_block", {"size": 1.5}, TypeError, "incompatible"),
    ],
)
def test_the_core_refuses_bad_arguments_and_writes_nothing(name, change, error, message):
    call = good_call(name) | change
    before = {output: np.array(call[output]) for output in WRITTEN[name]}
    with pytest.raises(error, match=message):
        getattr(_core, name)(**call)
    for output, kept in before.items():
        assert_array_equal(call[output], kept)


def test_shared_rows_leave_the_rest_of_the_cache_to_the_problems(monkeypatch):
    seen = []
    original = divide.solve

    def spy(kernel, *args, **settings):
        seen.append((isinstance(kernel, SharedRows), settings["cache_bytes"]))
        return original(kernel, *args, **settings)

    monkeypatch.setattr(divide, "solve", spy)
    X = np.random.default_rng(0).random((60, 3))
    y = np.arange(60) % 3
    KernelSVC(gamma=1.0, cache_size=1).fit(X, y)  # cheap: computed again
    KernelSVC(rbf_kernel, cache_size=1).fit(X, y)  # dear: kept
    assert seen == [(False, 1e6)] * 3 + [(True, 0.5e6)] * 3


def test_shared_rows_do_not_depend_on_threads():
    X = np.random.default_rng(0).random((3000, 5))
    kernel = make_kernel("rbf", 1.0, 0.0, 3, X)
    rows = kernel.operand(X)
    blocks = []
    for n_threads in (1, 2):
        shared = SharedRows(kernel, rows, 1e9, n_threads)
        out = np.empty((50, 3000), dtype=np.float32)
        every = shared.operand(None)
        shared.fill(shared.left(every[:50]), every, out)
        blocks.append(out)
    np.testing.assert_array_equal(*blocks)
