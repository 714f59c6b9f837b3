"""Two halves of a sweep's rows side by side: one thread's bits by two, and always a gain."""

import os

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import AdditiveSVC, _core
from widemargin.duality import N_SUMS

from .problems import LOSSES, c_of, squared, unconverged
from .test_callbacks import ctrl_c_after
from .test_team import TASKS, Sampler, assert_soon, assert_threads_agree, wide

ROUND = 2 * 512 + 64  # rows of the shortest: two halves, and those after them


pytestmark = pytest.mark.usefixtures("many_cores")


def narrow(n_classes=2, n_rows=4000, n_features=12):
    """Rows too short to be shared by threads, and enough of them for several rounds."""
    return wide(n_classes, n_rows, n_features)


@unconverged
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rank": 1},
        {"rank": 8},
        {"kernel": "intersection", "C": 30.0},
        {"tol": 1e-6},
        {"approximation": "unary"},
        {"approximation": "chebyshev", "C": 0.01},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_two_threads_leave_the_bits_of_one(n_classes, changes, loss):
    assert_threads_agree(*narrow(n_classes), loss=loss, **changes)


@unconverged
@pytest.mark.parametrize("n_classes", [2, 5])
def test_so_they_do_with_sparse_rows_and_weights(n_classes):
    X, y = narrow(n_classes)
    X[np.random.default_rng(2).uniform(size=X.shape) < 0.7] = 0
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y))
    assert_threads_agree(sp.csr_array(X), y, weight)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gap_is_that_of_the_variables(n_classes, loss):
    X, y = narrow(n_classes, n_rows=2500)
    model = AdditiveSVC("chi2", loss=loss, tol=1e-3, random_state=0, warm_start=True).fit(X, y)
    K, c, coef = reference.gram(model, X), c_of(model, len(X)), model._dual.coef.astype(float)
    target = reference.signs(y)
    decision = K @ coef
    slack = np.maximum(1 - target * decision, 0)
    quadratic = 0.5 * (coef * decision).sum(axis=0)
    ridge = 0.5 / c if squared(model) else 0 * c
    primal = quadratic + (c[:, None] * (slack**2 if squared(model) else slack)).sum(axis=0)
    dual = (target * coef).sum(axis=0) - quadratic - 0.5 * (ridge[:, None] * coef**2).sum(axis=0)
    assert_allclose(((primal - dual) / primal).max(), model.duality_gap_, rtol=1e-3, atol=1e-9)
    assert model.duality_gap_ <= 1e-3


class Core:
    """A dual of the core's own, in double precision, and the arrays that it writes."""

    def __init__(self, codes, lanes, loss, C, n_threads=1, n_labels=2):
        rng = np.random.default_rng(0)
        n_rows, n_features = codes.shape
        table = rng.uniform(0.2, 1, (codes.max() + 1, 4))
        table[0] = 0
        features = table[codes].reshape(n_rows, -1)
        self.bias_value, self.C, self.loss = 0.5, C, loss
        self.phi = np.hstack([features, np.full((n_rows, 1), self.bias_value)])
        label = rng.integers(0, n_labels, n_rows).astype(np.int32)
        self.targets = np.zeros((2, lanes))
        self.targets[:, : min(lanes, 3)] = [[1], [-1]]
        if lanes > 1:
            self.targets[:, 1] *= -1
            self.targets[1, 2] = 1
        self.target = self.targets[label]
        shared = _core.SharedProblem(
            _core.Rows(codes, None, None, n_features, int(codes.max()) + 1),
            _core.Tables(table, table, None, lanes), label, np.full(n_rows, C),
            (self.phi**2).sum(axis=1), self.bias_value, _core.Loss(loss),
        )  # fmt: skip
        self.weights = np.zeros((n_features, 4, lanes))
        self.coef, self.bias = np.zeros((n_rows, lanes)), np.zeros(lanes)
        self.account, self.fate = np.zeros((N_SUMS, 16)), np.zeros(n_rows, np.uint8)
        written = self.weights, self.coef, self.bias
        self.dual = _core.BoxDual(shared, self.targets, *written, n_threads)

    def sweep(self, order, seconds=1e9):
        at, calls = 0, 0
        bounds = np.stack([np.full(16, np.inf), np.full(16, -np.inf)])
        while at < len(order):
            at = self.dual.sweep(order, at, seconds, bounds, self.fate, self.account)
            calls += 1
        return calls

    @property
    def objective(self):
        """Of the dual, from the variables alone."""
        ridge = 0.5 / self.C if self.loss == "squared_hinge" else 0.0
        weights = self.phi.T @ self.coef
        linear = (self.target * self.coef).sum(axis=0)
        return linear - 0.5 * (weights**2).sum(axis=0) - 0.5 * ridge * (self.coef**2).sum(axis=0)

    def assert_consistent(self):
        lanes = self.coef.shape[1]
        weights = np.vstack([self.weights.reshape(-1, lanes), self.bias])
        assert_allclose(weights, self.phi.T @ self.coef, rtol=1e-9, atol=1e-9)
        signed = self.target * self.coef
        assert signed.min() >= 0
        assert self.loss == "squared_hinge" or signed.max() <= self.C


def rows_of(kind, n_rows=3 * ROUND + 100):
    rng = np.random.default_rng(1)
    if kind == "copies":
        return np.tile(np.array([[3, 1, 2, 5, 4, 1, 2]], np.uint8), (n_rows, 1))
    n_features = 1 if kind == "one feature" else 7
    return rng.integers(0, 9, (n_rows, n_features)).astype(np.uint8)


def order_of(n_rows, seed=0):
    return np.random.default_rng(seed).permutation(n_rows).astype(np.int32)


@pytest.mark.parametrize("C", [0.01, 100.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("kind", ["copies", "one feature", "any"])
def test_every_sweep_gains_and_weights_are_those_of_the_variables(kind, lanes, loss, C):
    core, last = Core(rows_of(kind), lanes, loss, C, n_threads=2), 0.0
    for seed in range(4):
        core.sweep(order_of(len(core.coef), seed))
        core.assert_consistent()
        now = core.objective
        assert np.all(now >= last - 1e-12 * np.abs(now))
        last = now
    assert np.all(last[: min(lanes, 3)] > 0)


def test_halves_that_find_the_same_are_averaged():
    core = Core(rows_of("copies", ROUND), 1, "hinge", C=100.0, n_labels=1)
    order = order_of(ROUND)
    core.sweep(order)
    step = 1 / (core.phi[0] ** 2).sum()  # of one row, after which no other moves
    expected = np.zeros((ROUND, 1))
    group = order.astype(np.uint32) >> int(np.log2(ROUND // 32))  # neighbours are in one half
    half = (group + np.uint32(order[0])) * np.uint32(0x9E3779B1) >> 31
    first = [order[half == which][0] for which in (0, 1)]
    expected[first] = 0.5 * step
    assert_allclose(core.coef, expected, rtol=1e-12, atol=1e-15)
    core.assert_consistent()


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("lanes", [1, 16])
def test_a_sweep_that_is_cut_goes_on_as_if_it_were_not(lanes, n_threads):
    codes = rows_of("any")
    whole, cut = (Core(codes, lanes, "hinge", 1.0, n) for n in (1, n_threads))
    order = order_of(len(codes))
    assert whole.sweep(order) == 1
    assert cut.sweep(order, seconds=0) == 4  # a round at a time, and what is left
    for one, other in zip(
        (whole.coef, whole.weights, whole.bias, whole.account, whole.fate),
        (cut.coef, cut.weights, cut.bias, cut.account, cut.fate),
        strict=True,
    ):
        assert_array_equal(other, one)


def test_rows_that_come_twice_are_swept_one_after_another():
    codes = rows_of("any")
    twice, once = Core(codes, 1, "hinge", 1.0, 2), Core(codes, 1, "hinge", 1.0)
    order = np.concatenate([order_of(len(codes)), order_of(len(codes), 1)])
    twice.sweep(order)
    twice.assert_consistent()
    for a in range(0, len(order), 500):  # too short for a round
        once.sweep(order[a : a + 500].copy())
    assert_array_equal(twice.coef, once.coef)


def test_it_ends_where_one_row_after_another_does():
    codes = rows_of("any")
    halves, rows = (Core(codes, 1, "squared_hinge", 0.05) for _ in range(2))
    for seed in range(25):
        order = order_of(len(codes), seed)
        halves.sweep(order)
        for a in range(0, len(order), 500):
            rows.sweep(order[a : a + 500].copy())
    assert not np.array_equal(halves.coef, rows.coef)
    assert_allclose(halves.objective, rows.objective, rtol=1e-9)
    assert_allclose(halves.coef, rows.coef, rtol=1e-3, atol=1e-6)


@pytest.mark.skipif(not TASKS.exists(), reason="threads are counted on Linux only")
def test_there_are_two_threads_at_most_and_one_for_a_short_sweep():
    most = []
    for n_rows, n_jobs in ((60_000, 1), (60_000, 4), (1200, 4)):
        X, y = narrow(n_rows=n_rows)
        before = len(os.listdir(TASKS))
        with Sampler() as seen:
            AdditiveSVC("chi2", n_jobs=n_jobs, tol=1e-4, random_state=0).fit(X, y)
        most.append(seen.most - before)
        assert_soon(lambda: len(os.listdir(TASKS)) == before)  # noqa: B023
    assert most[0] == 1  # the sampler itself
    assert most[1] >= 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away")
@unconverged
def test_two_threads_on_one_core_end():
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(cores)])
    try:
        assert_threads_agree(*narrow(n_rows=20_000))
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.skipif(not TASKS.exists(), reason="threads are counted on Linux only")
def test_ctrl_c_ends_both():
    X, y = narrow(n_rows=20_000)
    before = len(os.listdir(TASKS))
    model = AdditiveSVC("chi2", n_jobs=2, C=1e4, tol=1e-14, max_iter=10**6)
    with ctrl_c_after(0.5), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert_soon(lambda: len(os.listdir(TASKS)) == before)
