"""No fit claims a smaller gap than exact arithmetic finds, and none that is fine is refused."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from stress.exact import Case, gaps

from widemargin import KernelSVC


@pytest.mark.parametrize("begin", range(0, 600, 100))
def test_no_claim_is_below_the_true_gap(begin):
    found = {seed: gaps(Case.drawn(seed)) for seed in range(begin, begin + 100)}
    assert sum(pair is not None for pair in found.values()) > 50
    assert [seed for seed, pair in found.items() if pair and not pair.is_true] == []


def test_a_gap_of_one_is_not_claimed_to_be_zero():
    """Six rows of whole numbers near 300, of which double precision loses every margin."""
    X = 300 + np.random.default_rng(0).integers(-9, 9, (6, 3)).astype(float)
    limits = {"degree": 3, "gamma": 1.0, "C": 1e6, "fit_intercept": False, "max_iter": 2000}
    model = KernelSVC("poly", **limits)
    with pytest.warns(ConvergenceWarning, match="gap"):
        model.fit(X, [0, 1] * 3)
    assert not model.converged_
    case = Case(model.get_params(), X, np.array([0, 1] * 3), None)
    assert gaps(case).is_true


def test_the_warning_says_that_rounding_is_the_limit():
    X = np.array([[1.0], [1.0 + 1e-9]])
    model = KernelSVC("linear", C=1e12, tol=1e-12, fit_intercept=False)
    with pytest.warns(ConvergenceWarning, match="Rounding may hide"):
        model.fit(X, [0, 1])
    assert not model.converged_


@pytest.mark.parametrize("most_rows", [2048], indirect=True)
def test_what_rounding_may_hide_is_in_the_gap_and_not_in_the_objective(most_rows):
    """Differences of 1e-13 between values of 1e-6, whose kernel values have ten digits."""
    X = 2.5e-13 * np.array([[1, 1e6], [3, 0], [2, 1e6], [5, 4e6], [3, 5e6], [2, 0]])
    y = np.array([1, 1, 0, 1, 0, 0])
    model = KernelSVC("laplacian", C=1e8, fit_intercept=False)
    with pytest.warns(ConvergenceWarning, match="Rounding may hide"):
        model.fit(X, y)
    K = np.exp(-model.gamma_ * np.abs(X[:, None] - X).sum(axis=2))
    alpha = np.linalg.solve(K * np.multiply.outer(2 * y - 1, 2 * y - 1), np.ones(6))
    assert 0 < alpha.min() < alpha.max() < model.C  # so that no row has a loss
    assert model.objective_ == pytest.approx(alpha.sum() / 2, rel=1e-6)
    assert model.duality_gap_ > 1e-3


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_fits_of_scaled_features_reach_a_small_gap(load, kernel, C):
    X, y = load(return_X_y=True)
    model = KernelSVC(kernel, C=C, tol=1e-6, coef0=float(kernel == "poly"))
    assert model.fit(StandardScaler().fit_transform(X), y).converged_


def test_rows_far_apart_are_exact_whatever_gamma_is():
    X = np.arange(12.0)[:, None]
    model = KernelSVC("rbf", gamma=1e30, C=1e6, tol=1e-9).fit(X, [0, 1] * 6)
    assert model.converged_


def test_the_reference_is_exact():
    """Two rows: the variables are known, and so is the gap of others."""
    case = Case({"kernel": "linear", "C": 0.5, "fit_intercept": False, "tol": 1e-9},
                np.array([[1.0], [-1.0]]), np.array([1, 0]), None)  # fmt: skip
    found = gaps(case)
    assert Fraction(found.true) < Fraction(1, 10**12)
