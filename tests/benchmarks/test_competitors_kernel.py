"""Kernel machines against the exact solution, or the optimum on what they keep."""

import numpy as np
import pytest
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.cascade import CascadeSVM
from benchmarks.competitors.committees import RandomPartition
from benchmarks.competitors.lasvm import LaSVM
from benchmarks.competitors.spsvm import SpSVM
from competitor_references import GAMMA, dual_value, signs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from widemargin import KernelSVC


def test_spsvm_on_all_rows_is_the_exact_machine(problem):
    X, y = problem
    X, y = X[:120], y[:120]
    model = SpSVM(C=0.7, gamma=GAMMA, basis=120).fit(X, y)
    root = np.linalg.cholesky(rbf_kernel(X, gamma=GAMMA) + 1e-10 * np.eye(120))
    reference = LinearSVC(C=0.7, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(root, y)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(root), atol=1e-3
    )


def test_spsvm_is_optimal_on_its_basis_and_better_than_a_random_one(problem):
    X, y = problem
    s, C = signs(y), 0.7

    def state(rows, b):
        K = rbf_kernel(X, X[rows], gamma=GAMMA)
        slack = np.maximum(0, 1 - s * (K @ b))
        gradient = K[rows] @ b - 2 * C * K.T @ (s * slack)
        return b @ K[rows] @ b / 2 + C * (slack**2).sum(), gradient

    greedy = SpSVM(C=C, gamma=GAMMA, basis=20).fit(X, y)
    value, gradient = state(greedy.basis_, greedy.coef_)
    assert np.abs(gradient).max() < 1e-4
    others = []
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(300)[:20]
        columns = rbf_kernel(X, X[rows], gamma=GAMMA)
        others.append(state(rows, greedy._newton(columns, rows, s, np.zeros(20)))[0])
    assert value < min(others)


def test_lasvm_ends_at_libsvms_optimum(problem):
    X, y = problem
    model = LaSVM(C=2.0, gamma=GAMMA, passes=3, tol=1e-4).fit(X, y)
    reference = SVC(C=2.0, gamma=GAMMA, tol=1e-6).fit(X, y)
    kernel = rbf_kernel(X, gamma=GAMMA)
    found, best = np.zeros(300), np.zeros(300)
    found[model.support_] = model.dual_coef_
    best[reference.support_] = reference.dual_coef_[0]
    assert abs(found.sum()) < 1e-9
    assert np.all(found * signs(y) >= 0)
    assert np.abs(found).max() <= 2.0
    assert dual_value(found, kernel) == pytest.approx(dual_value(best, kernel), rel=1e-4)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X), atol=0.02
    )


def test_one_pass_of_lasvm_comes_near(problem):
    X, y = problem
    kernel = rbf_kernel(X, gamma=GAMMA)
    model = LaSVM(C=2.0, gamma=GAMMA).fit(X, y)
    found, best = np.zeros(300), np.zeros(300)
    found[model.support_] = model.dual_coef_
    reference = SVC(C=2.0, gamma=GAMMA).fit(X, y)
    best[reference.support_] = reference.dual_coef_[0]
    share = dual_value(found, kernel) / dual_value(best, kernel)
    assert 0.95 < share <= 1 + 1e-6


def test_the_cascade_ends_at_libsvms_optimum_after_some_rounds(problem):
    X, y = problem
    kernel = rbf_kernel(X, gamma=GAMMA)

    def value(machine):
        return dual_value(
            np.ravel(machine.dual_coef_), kernel[np.ix_(machine.support_, machine.support_)]
        )

    whole = SVC(C=2.0, gamma=GAMMA).fit(X, y)
    many = CascadeSVM(C=2.0, gamma=GAMMA, parts=8, rounds=20).fit(X, y)
    once = CascadeSVM(C=2.0, gamma=GAMMA, parts=8).fit(X, y)
    np.testing.assert_allclose(many.decision_function(X), whole.decision_function(X), atol=5e-3)
    off = np.abs(once.decision_function(X) - whole.decision_function(X)).max()
    assert off > 5e-3  # one round is not enough, as DC-SVM's Figure 2 has it
    assert value(once) < 0.9999 * value(whole)
    assert value(many) == pytest.approx(value(whole), rel=1e-4)


def test_a_random_partition_solves_its_parts_and_is_worse_than_the_whole(problem):
    X, y = problem
    kernel = rbf_kernel(X, gamma=GAMMA)
    whole = KernelSVC(C=2.0, gamma=GAMMA, fit_intercept=False, tol=1e-6).fit(X, y)
    one = RandomPartition(C=2.0, gamma=GAMMA, parts=1).fit(X, y)
    four = RandomPartition(C=2.0, gamma=GAMMA, parts=4).fit(X, y)
    assert dual_value(one.dual_coef_, kernel) == pytest.approx(whole.dual_objective_, rel=2e-3)
    assert dual_value(four.dual_coef_, kernel) < 0.9 * whole.dual_objective_
    rows = np.array_split(np.random.default_rng(0).permutation(300), 4)[1]
    part = KernelSVC(C=2.0, gamma=GAMMA, fit_intercept=False).fit(X[rows], y[rows])
    own = dual_value(four.dual_coef_[rows], kernel[np.ix_(rows, rows)])
    assert own == pytest.approx(part.dual_objective_, rel=2e-3)


def test_the_committee_is_certain_where_its_rows_are(problem):
    """Two clusters far apart: near one of them only that one has a say."""
    X, y = problem
    far = np.vstack([X, X + 20.0])
    committee = COMPETITORS["BCM"](C=2.0, gamma=GAMMA, clusters=2).fit(far, np.tile(y, 2))
    alone = KernelSVC(C=2.0, gamma=GAMMA, fit_intercept=False).fit(X, y)
    agree = committee.predict(X) == alone.predict(X)
    assert agree.mean() > 0.99
