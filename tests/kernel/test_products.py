"""Threads that share tiles, and products with blocks of the kernel matrix."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController

from widemargin.kernel.backend import Host
from widemargin.kernel.cache import TILE_ROWS
from widemargin.kernel.kernels import TILE, TILE_COMPRESSED, PrecomputedKernel, make_kernel

from .helpers import RELATIVE, each_dtype, each_layout, laid_out

# ------------------------------------------------------------------ threads


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 64, 101])
def test_tiles_cover_every_column_once(n, n_threads):
    taken, lock = [], threading.Lock()

    def task(begin, end):
        with lock:
            taken.append((begin, end))

    with Host(n_threads) as host:
        host.tiles(n, task, 8)
    assert sorted(taken) == [(b, min(b + 8, n)) for b in range(0, n, 8)]


def test_a_tile_is_as_wide_as_it_says_by_default():
    taken = []
    with Host(1) as host:
        host.tiles(2 * TILE + 5, lambda b, e: taken.append((b, e)))
    assert taken == [(0, TILE), (TILE, 2 * TILE), (2 * TILE, 2 * TILE + 5)]


def test_all_threads_and_the_calling_one_take_tiles():
    workers = set()
    together = threading.Barrier(3, timeout=10)  # passes only when three threads are in it

    def task(begin, end):
        workers.add(threading.get_ident())
        together.wait()

    with Host(3) as host:
        host.tiles(3, task, 1)
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

    with Host(2) as host:
        with pytest.raises(KeyError, match="of a tile"):
            host.tiles(2, task, 1)
        done = []
        host.tiles(4, lambda b, e: done.append(b), 1)  # and it works again
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

    with Host(2) as host, pytest.raises(KeyboardInterrupt):
        host.tiles(1000, task, 1)
    assert len(begun) == 2


def test_blas_keeps_to_one_thread_inside_and_gets_its_own_back():
    def n_threads():
        return [
            c.num_threads for c in ThreadpoolController().select(user_api="blas").lib_controllers
        ]

    before = n_threads()
    with Host(2), Host(1):
        assert set(n_threads()) == {1}
    assert n_threads() == before


# ------------------------------------------------------------------ products


@each_dtype
@each_layout
@pytest.mark.parametrize("n_outputs", [1, 4, 5, 9])
def test_products_are_those_of_the_kernel_matrix(n_outputs, layout, dtype):
    kernel, rows, K = laid_out(layout, 120, dtype)
    coef = np.random.default_rng(1).normal(size=(50, n_outputs))
    with Host(1) as host:
        product = host.product(kernel, rows, rows[70:], coef)
    # k(a, b) is filled as rows b and columns a: for an unsymmetric matrix, its transpose
    expected = K[70:].T @ coef
    scale = np.abs(K[70:]).T @ np.abs(coef)
    assert product.shape == (120, n_outputs)
    assert product.dtype == np.float64
    assert np.all(np.abs(product - expected) <= RELATIVE[dtype] * scale)


@pytest.mark.parametrize("n_outputs", [3, 6])
def test_products_of_more_than_a_tile_each_way_are_right(n_outputs):
    n, m = 2 * TILE + 100, TILE_ROWS + 30
    K = np.random.default_rng(0).normal(size=(m, n)).astype(np.float32)
    coef = np.random.default_rng(1).normal(size=(m, n_outputs))
    kernel = PrecomputedKernel()
    training = kernel.training_rows(np.zeros((m, m)), np.arange(m))
    new = kernel.prepare(np.ascontiguousarray(K.T))
    with Host(1) as host:
        vectors = kernel.vectors(training, np.arange(m))
        product = host.product(kernel, new, vectors, coef)
    scale = np.abs(K).T @ np.abs(coef)
    assert np.all(np.abs(product - K.T.astype(np.float64) @ coef) <= 2e-6 * scale)


def test_few_outputs_are_summed_in_double():
    """A float32 sum of a large term, many small ones and its negative would lose the small ones."""
    K = np.ones((3, 402), dtype=np.float32)
    K[:, 0], K[:, 401] = 2.0**26, -(2.0**26)
    kernel = PrecomputedKernel()
    vectors = kernel.vectors(
        kernel.training_rows(np.zeros((402, 402)), np.arange(402)), np.arange(402)
    )
    with Host(1) as host:
        product = host.product(kernel, kernel.prepare(K), vectors, np.ones((402, 1)))
    assert_array_equal(product, np.full((3, 1), 400.0))


@pytest.mark.parametrize("layout", ["dense", "compressed"])
@pytest.mark.parametrize("n_outputs", [2, 7])
def test_products_do_not_depend_on_the_number_of_threads(n_outputs, layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=((TILE_COMPRESSED if layout == "compressed" else 2 * TILE) + 300, 9))
    X = X if layout == "dense" else X * (rng.random(X.shape) < 0.2)
    kernel = make_kernel("rbf", 0.3, 0.0, 3, X)
    rows = kernel.prepare(X)
    assert len(rows) > kernel.tile  # or no second thread would have anything to do
    coef = rng.normal(size=(TILE_ROWS + 50, n_outputs))
    found = []
    for n_threads in (1, 2, 3):
        with Host(n_threads) as host:
            found.append(host.product(kernel, rows, rows[: len(coef)], coef))
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_products_with_no_rows_are_empty_or_zero():
    kernel, rows, _ = laid_out("dense", 10)
    with Host(1) as host:
        assert host.product(kernel, rows[:0], rows, np.ones((10, 2))).shape == (0, 2)
        nothing = host.product(kernel, rows, rows[:0], np.ones((0, 2)))
    assert_array_equal(nothing, np.zeros((10, 2)))


def test_an_error_of_a_kernel_in_a_thread_is_raised_by_the_product():
    both = threading.Barrier(2, timeout=10)  # each thread computes one of two tiles

    def broken(A, B):
        both.wait()
        own = threading.current_thread() is threading.main_thread()
        return np.full((len(A), len(B)), 1.0 if own else np.nan)

    X = np.zeros((2 * TILE, 1))
    kernel = make_kernel(broken, 1.0, 0.0, 3, X)
    rows = kernel.prepare(X)
    with Host(2) as host, pytest.raises(ValueError, match="'broken' returned nan"):
        host.product(kernel, rows, rows[:2], np.ones((2, 1)))
