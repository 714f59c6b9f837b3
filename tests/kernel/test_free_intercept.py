"""SVC's own problem, whose intercept is not penalised, against a QP solver and against LIBSVM."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_wine, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from widemargin.kernel.free_intercept import FreeInterceptSVC


def optimum(K, y, upper):
    """max e'a - 1/2 a'Qa over 0 <= a <= upper, y'a = 0, by SLSQP."""
    Q = K * np.outer(y, y)
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.zeros(len(y)),
        jac=lambda a: Q @ a - 1,
        bounds=[(0, u) for u in upper],
        constraints={"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -found.fun


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_optimum_is_that_of_a_qp(kernel, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0.7, 1.0, -1.0)
    weight = rng.uniform(0.5, 2, size=40)
    K = rbf_kernel(X, gamma=0.5) if kernel == "rbf" else X @ X.T
    model = FreeInterceptSVC("precomputed", C=C, tol=1e-9).fit(K, y, sample_weight=weight)
    expected = optimum(K, y, C * weight)
    assert model.duality_gap_ <= 1e-9
    assert model.dual_objective_ == pytest.approx(expected, rel=1e-6)
    assert model.objective_ == pytest.approx(expected, rel=1e-6)
    assert abs(model.dual_coef_.sum()) <= 1e-10 * C
    f = K[:, model.support_] @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(K), f, rtol=1e-10, atol=1e-10)
    norm = model.dual_coef_[0] @ K[np.ix_(model.support_, model.support_)] @ model.dual_coef_[0]
    primal = norm / 2 + C * weight @ np.maximum(0, 1 - y * f)
    assert primal == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("C", [0.03, 1.0, 100.0])
def test_several_classes_are_those_of_libsvm(C):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = SVC(C=C, tol=1e-8, decision_function_shape="ovo").fit(X, y)
    ours = FreeInterceptSVC(C=C, tol=1e-10, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5 * C)


def test_classes_of_different_sizes():
    """Where no variable is free, the intercept is in the middle of where it may be."""
    X, y = make_classification(120, weights=[0.9], n_informative=5, random_state=0)
    theirs = SVC(C=1e-4, tol=1e-9).fit(X, y)
    ours = FreeInterceptSVC(C=1e-4, tol=1e-10, gamma="scale").fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_a_path_of_c_has_a_search_for_each():
    X, y = make_classification(150, weights=[0.8], random_state=1)
    for model in FreeInterceptSVC(tol=1e-8).fit_path(X, y, [0.1, 1.0, 10.0]):
        alone = SVC(C=model.C, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), alone.decision_function(X), atol=1e-5
        )
