"""LIBLINEAR and LIBSVM as the papers ran them."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.quantisation import UnaryCode
from competitor_references import GAMMA, intersection, signs
from reference import codes_of
from sklearn.svm import SVC

from widemargin import KernelSVC, papers


def test_liblinear_solves_the_squared_hinge_without_a_bias(problem):
    X, y = problem
    model = COMPETITORS["LIBLINEAR"](C=0.3, tol=1e-8).fit(X, y)
    slack = np.maximum(0, 1 - signs(y) * (X @ model.coef_[0]))
    np.testing.assert_allclose(model.coef_[0], 2 * 0.3 * (signs(y) * slack) @ X, atol=1e-5)
    assert model.intercept_ == 0


def test_unary_codes_have_the_intersection_kernel_of_equation_13():
    X = np.random.default_rng(0).random((40, 5))
    code = UnaryCode(levels=10).fit(X)
    top = np.percentile(X, 97.5, method="inverted_cdf")
    v = np.clip(np.floor(10 * (X - X.min()) / (top - X.min()) + 1e-9), 0, 10)
    np.testing.assert_array_equal(code.quantise(X), v)
    Z = code.transform(X)
    np.testing.assert_array_equal((Z @ Z.T).toarray(), intersection(v, v))
    np.testing.assert_array_equal(code.transform(sp.csr_matrix(X)).toarray(), Z.toarray())


@pytest.mark.parametrize("least", [0.0, -0.5])
def test_unary_codes_have_the_levels_of_papers_icd(least):
    X = np.random.default_rng(1).random((60, 4)) * (np.random.default_rng(2).random((60, 4)) > 0.6)
    X = np.where(X == 0, least, X)
    ours = papers.icd(n_bins=10).fit(X, np.arange(60) % 2)
    code = UnaryCode(levels=10).fit(X)
    np.testing.assert_array_equal(code.quantise(X), codes_of(ours, X))


@pytest.mark.parametrize("matrix_rows", [0, 10_000])
def test_libsvm_hik_is_libsvm_with_that_kernel(problem, matrix_rows, monkeypatch):
    monkeypatch.setattr("benchmarks.competitors.libsvm.MATRIX_ROWS", matrix_rows)
    X, y = problem
    model = COMPETITORS["LIBSVM HIK"](C=1e-2, tol=1e-6).fit(X, y)
    v = UnaryCode().fit(X).quantise(X).astype(float)
    reference = SVC(kernel=intersection, C=1e-2, tol=1e-6).fit(v, y)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(v), atol=1e-4
    )


def test_libsvm_without_a_bias_solves_the_problem_without_one(problem):
    X, y = problem
    model = COMPETITORS["LIBSVM RBF, no bias"](C=2.0, gamma=0.5, tol=1e-7).fit(X, y)
    reference = KernelSVC(C=2.0, gamma=0.5, tol=1e-9, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X), atol=1e-4
    )


def test_libsvm_rbf_has_svm_trains_gamma(problem):
    X, y = problem
    assert COMPETITORS["LIBSVM RBF"]().fit(X, y)._gamma == 1 / 6


def test_libsvm_linear_is_optimal_with_a_bias(problem):
    X, y = problem
    model = COMPETITORS["LIBSVM linear"](C=2.0, tol=1e-6).fit(X, y)
    margin = signs(y) * (X @ model.coef_[0] + model.intercept_[0])
    a = np.zeros(len(y))
    a[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(a * signs(y) @ X, model.coef_[0], atol=1e-8)
    assert abs(a @ signs(y)) < 1e-8  # what a bias asks for
    assert np.all(margin[a == 0] >= 1 - 1e-4)
    assert np.all(margin[a == 2.0] <= 1 + 1e-4)
    np.testing.assert_allclose(margin[(a > 0) & (a < 2.0)], 1, atol=1e-4)


def test_libsvms_polynomial_has_no_constant(problem):
    X, y = problem
    model = COMPETITORS["LIBSVM polynomial"](C=2.0, gamma=GAMMA, tol=1e-6).fit(X, y)
    reference = SVC(kernel=lambda A, B: (GAMMA * A @ B.T) ** 3, C=2.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X), atol=1e-4
    )


def test_intelex_solves_the_same_problem(problem):
    pytest.importorskip("sklearnex")
    X, y = problem
    found = [
        COMPETITORS[name](C=2.0, gamma=GAMMA, tol=1e-5).fit(X, y).decision_function(X)
        for name in ("LIBSVM RBF", "intelex RBF")
    ]
    np.testing.assert_allclose(*found, atol=1e-3)
