"""Gaps of peers: small where a solution is good, large where it is not, never below the truth."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.competitors import COMPETITORS
from benchmarks.peer_gaps import _least_hinge, kernel_gap, linear_gap, relative_gap
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import SVC, LinearSVC

from widemargin import AdditiveSVC, KernelSVC

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def problem():
    return make_classification(300, 5, n_redundant=0, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_linear_gap_closes_with_the_tolerance(problem, intercept):
    X, y = problem
    models = [
        LinearSVC(C=0.5, tol=tol, fit_intercept=intercept, max_iter=sweeps, random_state=0)
        for tol, sweeps in ((1e-9, 100_000), (1e-9, 1))
    ]
    good, bad = (linear_gap(model.fit(X, y), X, y) for model in models)
    assert 0 <= good < 1e-6
    assert bad > 1e-4


def test_the_largest_gap_of_many_classes_counts_and_sparse_rows_are_the_same():
    X, y = load_digits(return_X_y=True)
    model = LinearSVC(C=1e-3, max_iter=3, random_state=0).fit(X, y)
    whole = linear_gap(model, X, y)
    classes = [
        linear_gap(_one(model, k), X, np.where(y == k, 1, 0)) for k in range(len(model.classes_))
    ]
    assert whole == pytest.approx(max(classes))
    assert linear_gap(model, sp.csr_matrix(X), y) == pytest.approx(whole)


def _one(model, k):
    """The problem of one class as a model of its own."""
    one = LinearSVC(C=model.C)
    one.coef_, one.intercept_ = model.coef_[k : k + 1], model.intercept_[k : k + 1]
    one.classes_ = np.array([0, 1])
    return one


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_a_kernel_gap_closes_with_the_tolerance(problem, kernel):
    X, y = problem
    good, bad = (SVC(C=2.0, kernel=kernel, tol=tol).fit(X, y) for tol in (1e-8, 1.5))
    assert -1e-9 < kernel_gap(good, X, y) < 1e-5
    assert kernel_gap(bad, X, y) > 1e-2


@pytest.mark.parametrize("seed", range(5))
def test_the_best_bias_is_found(seed):
    rng = np.random.default_rng(seed)
    decision, sign = rng.standard_normal(40) * 3, rng.choice([-1.0, 1.0], 40, p=[0.3, 0.7])

    def value(b):
        return np.maximum(0, 1 - sign * (decision + b)).sum()

    grid = min(value(b) for b in sign - decision)  # a piecewise linear function: at a corner
    assert _least_hinge(sign, decision) == pytest.approx(grid)
    assert _least_hinge(sign, decision) <= minimize_scalar(value).fun + 1e-9


def test_our_own_models_say_it_themselves_and_the_rest_cannot(problem):
    X, y = problem
    ours = KernelSVC(random_state=0).fit(X, y)
    assert relative_gap(ours, X, y) == ours.duality_gap_
    additive = AdditiveSVC(random_state=0).fit(X, y)
    assert relative_gap(additive, X, y) == additive.duality_gap_
    assert relative_gap(COMPETITORS["boosted trees"]().fit(X, y), X, y) is None
    X, y = load_digits(return_X_y=True)
    assert relative_gap(SVC().fit(X[:200], y[:200]), X, y) is None  # many pairs


@pytest.mark.parametrize("machine", [SVC, LinearSVC])
def test_weights_of_classes_make_another_problem(problem, machine):
    """A solution of that one would be called a bad one of this."""
    model = machine(class_weight={0: 1.0, 1: 5.0}).fit(*problem)
    assert relative_gap(model, *problem) is None


def test_pipelines_are_judged_in_their_features():
    X, y = load_digits(return_X_y=True)
    model = COMPETITORS["fm-chi2"](C=1.0).fit(X / 16, y)
    assert relative_gap(model, X / 16, y) == linear_gap(model[-1], model[0].transform(X / 16), y)
