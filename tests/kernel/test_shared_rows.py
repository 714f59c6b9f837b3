"""Kernel rows that several problems share."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelSVC
from widemargin.kernel import tasks
from widemargin.kernel.backend import Host
from widemargin.kernel.cache import CachingKernel, RowCache
from widemargin.kernel.kernels import TILE, make_kernel
from widemargin.kernel.tiles import Memory

from .helpers import RELATIVE, each_dtype, each_layout, laid_out, values


@dataclass
class Counted:
    """A kernel that notes how many rows were prepared as the first argument."""

    kernel: object
    prepared: list = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.kernel, name)

    def as_left(self, a):
        self.prepared.append(len(a))
        return self.kernel.as_left(a)


@each_dtype
@each_layout
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_shared_rows_have_the_values_of_their_kernel(share, layout, dtype):
    kernel, rows, K = laid_out(layout, 50, dtype)
    shared = CachingKernel(kernel, rows, share * 50 * 50 * np.dtype(dtype).itemsize, Host())
    everything = shared.numbers
    assert len(everything) == 50
    rng = np.random.default_rng(0)
    for _ in range(20):
        own = rng.permutation(50)[:30]  # the rows of one problem, and some of them
        a, b = rng.permutation(30)[:8], slice(*np.sort(rng.permutation(31)[:2]))
        found = values(shared, everything[own][a], everything[own][b])
        assert_allclose(
            found, K[np.ix_(own[a], own[b])], rtol=RELATIVE[dtype], atol=RELATIVE[dtype]
        )
    assert_array_equal(shared.diagonal(everything[own]), kernel.diagonal(rows[own]))


def test_rows_of_more_than_a_tile_are_stored_whole():
    kernel, rows, K = laid_out("matrix", TILE + 70)
    shared = CachingKernel(kernel, rows, 1e9, Host())
    everything = shared.numbers
    assert_array_equal(values(shared, everything[[5, 3]], everything), K[[5, 3]])


def test_shared_rows_are_computed_once():
    kernel, rows, _ = laid_out("dense", 40)
    counted = Counted(kernel)
    shared = CachingKernel(counted, rows, 1e9, Host())
    everything = shared.numbers
    for numbers in ([3, 1, 7], [7, 3], [1, 8, 9], [9, 8, 7, 3, 1]):
        shared.as_left(everything[np.array(numbers)])
    assert counted.prepared == [3, 2]
    shared.as_left(everything)
    shared.as_left(everything)
    assert counted.prepared == [3, 2, 35]


def test_rows_without_room_are_computed_directly_and_those_held_are_not():
    kernel, rows, K = laid_out("matrix", 40)
    counted = Counted(kernel)
    shared = CachingKernel(counted, rows, 5 * 40 * 4, Host())
    everything = shared.numbers
    assert_array_equal(values(shared, everything[:3], everything), K[:3])
    for _ in range(2):  # three more do not fit, and nothing of them is kept
        assert_array_equal(values(shared, everything[2:6], everything[::3]), K[2:6, ::3])
    assert counted.prepared == [3, 4, 4]
    assert_array_equal(values(shared, everything[2:5], everything), K[2:5])
    assert_array_equal(values(shared, everything[:5], everything), K[:5])
    assert counted.prepared == [3, 4, 4, 2]


@each_layout
def test_support_vectors_of_shared_rows_are_those_of_the_kernel(layout):
    kernel, rows, K = laid_out(layout, 30)
    shared = CachingKernel(kernel, rows, 1e9, Host())
    own, support = np.array([20, 4, 9, 11]), np.array([3, 0])
    vectors = shared.vectors(shared.numbers[own], support)
    if layout == "matrix":
        assert_array_equal(vectors.column, [11, 20])
    else:
        assert_allclose(values(kernel, vectors, rows), K[[11, 20]], rtol=5e-6, atol=1e-6)


def test_shared_rows_pass_for_their_kernel():
    kernel, rows, K = laid_out("matrix", 30, np.float64)
    shared = CachingKernel(kernel, rows, 1e9, Host())
    assert (shared.name, shared.dtype, shared.cost) == ("precomputed", np.float64, kernel.cost)
    own = shared.numbers[np.array([3, 17, 5, 28, 0])]
    with Host(1) as host:
        cache = RowCache(shared, own, 5, 1e6, host, Memory())
        slots = cache.slots(np.array([4, 1]))
        assert_array_equal(cache.pool[slots, :5], K[np.ix_([0, 17], own.number)])
        product = host.product(shared, own, own, np.eye(5))
    assert_allclose(product.T, K[np.ix_(own.number, own.number)], rtol=1e-15)


def test_shared_rows_leave_the_rest_of_the_cache_to_the_problems(monkeypatch):
    seen = []
    original = tasks.solve

    def spy(problem, backend, settings, *more):
        seen.append((isinstance(problem.kernel, CachingKernel), settings.cache_bytes))
        return original(problem, backend, settings, *more)

    monkeypatch.setattr(tasks, "solve", spy)
    X = np.random.default_rng(0).random((60, 3))
    y = np.arange(60) % 3
    KernelSVC(gamma=1.0, multi_class="ovr", cache_size=1).fit(X, y)  # cheap: computed again
    KernelSVC(rbf_kernel, multi_class="ovr", cache_size=1).fit(X, y)  # dear: kept
    assert seen == [(False, 1e6)] * 3 + [(True, 0.5e6)] * 3
    seen.clear()
    KernelSVC(rbf_kernel, cache_size=1).fit(X, y)  # pairs: side by side, in a quarter of it each
    assert seen == [(False, 0.25e6)] * 3


def test_shared_rows_do_not_depend_on_threads():
    X = np.random.default_rng(0).random((3000, 5))
    kernel = make_kernel("rbf", 1.0, 0.0, 3, X)
    rows = kernel.prepare(X)
    blocks = []
    for n_threads in (1, 2):
        shared = CachingKernel(kernel, rows, 1e9, Host(n_threads))
        everything = shared.numbers
        blocks.append(values(shared, everything[:50], everything))
    assert_array_equal(*blocks)
