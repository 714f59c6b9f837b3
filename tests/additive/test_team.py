"""Several threads on one batch of classes: the same bits, whatever the machine has to give."""

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from reference import timeless

from widemargin import AdditiveSVC, _core
from widemargin.additive import batches
from widemargin.losses import N_SUMS

from .problems import LOSSES, noisy, unconverged
from .test_callbacks import ctrl_c_after

THREADS = [2, 3, 5]
TASKS = Path("/proc/self/task")


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("many_cores")]


def wide(n_classes=5, n_rows=1500, n_features=500):
    """Rows long enough to be shared, and enough of them to be worth four threads."""
    X, y = noisy(n_classes, n_rows, n_features)
    X[np.arange(n_rows), y] += 6
    return X, y


def assert_same(one: AdditiveSVC, other: AdditiveSVC) -> None:
    assert_array_equal(other.model_.weights, one.model_.weights)
    assert_array_equal(other.intercept_, one.intercept_)
    assert_array_equal(other._dual.coef, one._dual.coef)
    assert timeless(other.history_) == timeless(one.history_)
    assert_array_equal(other.duality_gap_, one.duality_gap_)  # NaN without an objective


def assert_threads_agree(X, y, sample_weight=None, **changes) -> AdditiveSVC:
    settings = {"kernel": "chi2", "max_iter": 4, "random_state": 0, "warm_start": True} | changes
    one = AdditiveSVC(n_jobs=1, **settings).fit(X, y, sample_weight)
    for n_jobs in THREADS:
        assert_same(one, AdditiveSVC(n_jobs=n_jobs, **settings).fit(X, y, sample_weight))
    return one


@unconverged
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "changes",
    [
        {"rank": 1},
        {"rank": 2},
        {"rank": 3},
        {"rank": 5},
        {"rank": 8},
        {"approximation": "unary"},
        {"approximation": "chebyshev", "C": 0.01},
        {"tol": 1e-6},
        {"multi_class": "crammer_singer", "max_iter": 2},
    ],
    ids=str,
)
def test_threads_leave_the_same_bits(loss, changes):
    assert_threads_agree(*wide(), loss=loss, **changes)


@unconverged
@pytest.mark.parametrize(
    ("n_classes", "layout"), [(2, np.asarray), (5, sp.csr_array), (20, np.asarray)]
)
def test_so_they_do_with_one_class_sparse_rows_and_two_batches(n_classes, layout):
    X, y = wide(n_classes)
    assert_threads_agree(layout(X), y)


@unconverged
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_so_they_do_with_rows_that_one_thread_sweeps_and_all_certify(n_classes, layout):
    X, y = wide(n_classes, n_rows=20_000, n_features=12)
    X[np.random.default_rng(2).uniform(size=X.shape) < 0.3] = 0
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y))
    assert_threads_agree(layout(X), y, weight)


@unconverged
def test_so_they_do_with_codes_of_two_bytes():
    X, y = wide(3)
    X = np.random.default_rng(0).integers(0, 1000, X.shape) + 100 * (X > 8)
    fitted = assert_threads_agree(X, y, n_bins=400, max_iter=2)
    assert fitted.model_.encoder.n_codes > 256


@unconverged
def test_so_they_do_with_weights_and_a_warm_start():
    X, y = wide()
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y))
    assert_threads_agree(X, y, weight)
    fits = [AdditiveSVC("chi2", random_state=0, warm_start=True, n_jobs=n) for n in (1, 4)]
    for model in fits:
        model.fit(X, y).set_params(C=2.0, max_iter=3).fit(X, y)
    assert_same(*fits)


def test_so_they_do_while_samples_are_shrunk():
    fitted = assert_threads_agree(*wide(), loss="hinge", max_iter=1000, tol=1e-2)
    assert min(epoch["active"] for epoch in fitted.history_[0]) < 1500
    assert fitted.duality_gap_ <= 1e-2


class Sampler(threading.Thread):
    """The largest number of threads that this process has had at once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self._done = 0, threading.Event()

    def run(self):
        while not self._done.wait(0.0005):
            self.most = max(self.most, len(os.listdir(TASKS)))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self._done.set()
        self.join()


def assert_soon(condition, seconds=5.0):
    """The system lists a thread that has ended for a moment longer."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.skipif(not TASKS.exists(), reason="threads are counted on Linux only")
def test_threads_are_started_as_n_jobs_says_and_end_with_the_fit():
    X, y = wide(n_rows=6000)
    most = []
    for n_jobs in (1, 2, 4):
        before = len(os.listdir(TASKS))
        with Sampler() as seen:
            AdditiveSVC("chi2", n_jobs=n_jobs, tol=0.1, random_state=0).fit(X, y)
        most.append(seen.most - before)
        assert_soon(lambda: len(os.listdir(TASKS)) == before)  # noqa: B023
    assert most[0] == 1  # the sampler itself
    assert most[1:] == [2, 4]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away")
@unconverged
def test_a_team_on_one_core_is_slow_but_ends():
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(cores)])  # this thread's, which those that it starts inherit
    try:
        assert_threads_agree(*wide())
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.skipif(not TASKS.exists(), reason="threads are counted on Linux only")
def test_ctrl_c_ends_a_team():
    X, y = wide(n_rows=3000)
    before = len(os.listdir(TASKS))
    model = AdditiveSVC("chi2", n_jobs=4, C=1e4, tol=1e-14, max_iter=10**6)
    with ctrl_c_after(0.5), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert_soon(lambda: len(os.listdir(TASKS)) == before)


def box(n_threads, dtype=np.uint8, n_features=400, n_rows=2000, rank=4):
    """A dual of the core's own, and the arrays that it writes."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 9, (n_rows, n_features)).astype(dtype)
    table = rng.normal(size=(9, rank)).astype(np.float32)
    table[0] = 0
    label = (np.arange(n_rows) % 3).astype(np.int32)
    c, diagonal = np.full((2, n_rows), [[0.01], [n_features * rank]], np.float32)
    shared = _core.SharedProblem(
        _core.Rows(codes, None, None, n_features, 9), _core.Tables(table, table, None, 16),
        label, c, diagonal, 1.0, _core.Loss("hinge", None),
    )  # fmt: skip
    targets = np.zeros((3, 16), np.float32)
    targets[:, :3] = 2 * np.eye(3) - 1
    written = [
        np.zeros(shape, np.float32) for shape in ((n_features, rank, 16), (n_rows, 16), (16,))
    ]
    return _core.BoxDual(shared, targets, *written, n_threads), written


@pytest.mark.parametrize("repeats", [1, 2])  # a row that follows itself is for one thread
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_sweeps_agree_whatever_the_codes_and_the_order(dtype, repeats):
    order = np.repeat(np.random.default_rng(1).permutation(2000), repeats).astype(np.int32)
    bounds = np.stack([np.full(16, np.inf), np.full(16, -np.inf)])
    results = []
    for n_threads in (1, 2, 4):
        dual, written = box(n_threads, dtype)
        account, shrunk = np.zeros((N_SUMS, 16)), np.zeros(2000, np.uint8)
        at = 0
        while at < len(order):  # where the machine is crowded a team ends early
            at = dual.sweep(order, at, 1e9, bounds, shrunk, account)
        results.append([*written, account])
    for one, *more in zip(*results, strict=True):
        for other in more:
            assert_array_equal(other, one)


def test_there_is_at_least_one_thread():
    with pytest.raises(ValueError, match="n_threads must be positive"):
        box(0)


@pytest.mark.parametrize(
    ("n_jobs", "n_classes", "each"), [(1, 5, 1), (4, 5, 4), (100, 5, 8), (4, 20, 2), (3, 40, 1)]
)
def test_threads_that_batches_leave_over_help_inside(monkeypatch, n_jobs, n_classes, each):
    given = []
    solve = batches.solve_batch
    monkeypatch.setattr(
        batches, "solve_batch", lambda task, *rest: given.append(task) or solve(task, *rest)
    )
    AdditiveSVC("chi2", n_jobs=n_jobs, random_state=0).fit(*noisy(n_classes))
    assert [task.n_threads for task in given] == [each] * -(-n_classes // 16)
