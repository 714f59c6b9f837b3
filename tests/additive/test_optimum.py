"""The solution against independent references (`reference.py`) and LIBLINEAR."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from .problems import LOSSES, c_of, each_problem, exact, histograms, optimum, squared, svc


@each_problem
def test_objective_is_that_of_the_quadratic_program(model_key, n_classes):
    model, _, _, best = optimum(model_key, n_classes)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-8)


@each_problem
def test_dual_objective_is_that_of_the_quadratic_program(model_key, n_classes):
    model, _, _, best = optimum(model_key, n_classes)
    dual = sum(batch[-1]["dual"] for batch in model.history_)
    assert dual == pytest.approx(best.objective, rel=1e-8)


@each_problem
def test_decision_values_are_those_of_the_reference_expansion(model_key, n_classes):
    model, X, _, best = optimum(model_key, n_classes)
    Z = histograms(n_classes, seed=1)[0]
    expansion = reference.gram(model, Z, X) @ best.coef
    decision = model.decision_function(Z).reshape(len(Z), -1)
    np.testing.assert_allclose(decision, expansion, atol=1e-4)


@each_problem
def test_decision_values_are_the_expansion_of_the_models_own_dual_variables(model_key, n_classes):
    model, X, _, _ = optimum(model_key, n_classes)
    coef = model._dual.coef
    decision = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(decision, reference.gram(model, X) @ coef, atol=1e-10)


def test_unary_tables_are_the_exact_kernel_of_the_bin_representatives():
    X, y = histograms(2)
    model = svc(approximation="unary", fit_intercept=False).fit(X, y)
    t = model.model_.encoder.representatives[reference.codes_of(model, X)]
    K = model.model_.tables.kernel.matrix(t)
    np.testing.assert_allclose(reference.gram(model, X), K, rtol=1e-14)


def rare_counts(n_classes):
    """Mostly zeros: dense input with so few values is compressed."""
    X, y = histograms(n_classes)
    return X * (np.random.default_rng(2).random(X.shape) < 0.3), y


def many_values(n_classes):
    """More distinct values than one byte can count."""
    X, y = histograms(n_classes)
    return X + np.random.default_rng(2).random(X.shape), y


@pytest.mark.parametrize(
    ("n_classes", "data", "layout", "code_type"),
    [
        (2, histograms, sp.csr_array, np.uint8),
        (3, histograms, sp.csr_array, np.uint8),
        (2, rare_counts, np.asarray, np.uint8),
        (3, rare_counts, np.asarray, np.uint8),
        (2, many_values, np.asarray, np.uint16),
        (3, many_values, np.asarray, np.uint16),
        (3, many_values, sp.csr_array, np.uint16),
    ],
)
def test_every_layout_of_codes_reaches_the_optimum(n_classes, data, layout, code_type):
    X, y = data(n_classes)
    model = svc(binning="exact", rank=5).fit(layout(X), y)
    assert reference.codes_of(model, X).dtype == code_type
    assert model.objective_ == pytest.approx(exact(model, X, y).objective, rel=1e-8)


def test_c_is_measured_per_unit_of_the_mean_kernel_diagonal():
    X, y = histograms(2)
    model = svc(C=3.0, fit_intercept=False).fit(X, y)
    mean = np.diag(reference.gram(model, X)).mean()
    np.testing.assert_allclose(model.C_, 3.0 / mean, rtol=1e-12)


def test_raw_c_is_taken_as_it_is():
    assert svc(C=0.01, C_unit="raw").fit(*histograms(2)).C_ == 0.01


def test_sample_weights_are_upper_weights_of_the_reference_problem():
    X, y = histograms(3)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
    model = svc(loss="hinge").fit(X, y, sample_weight=weight)
    K, c = reference.gram(model, X), model.C_ * weight
    best = reference.one_vs_rest(K, reference.signs(y), c, squared=False)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("approximation", ["spectral", "unary"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_crammer_singer_objective_is_that_of_a_general_solver(
    loss, n_classes, approximation, fit_intercept
):
    X, y = histograms(n_classes, n_rows=21)
    changes = {"approximation": approximation, "fit_intercept": fit_intercept}
    model = svc(loss=loss, multi_class="crammer_singer", **changes).fit(X, y)
    best = exact(model, X, y)
    expansion = reference.gram(model, X) @ best.coef
    assert model.objective_ == pytest.approx(best.objective, rel=1e-8)
    np.testing.assert_allclose(_scores(model, X), _centred(expansion), atol=1e-4)


def _scores(model, X):
    """Decision values up to a constant per row; for two classes only their difference is known."""
    scores = model.decision_function(X)
    return _centred(scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1) / 2)


def _centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("loss", LOSSES)
def test_crammer_singer_with_more_classes_than_lanes_is_optimal_by_weak_duality(loss):
    X, y = histograms(18, n_rows=72)
    model = svc(loss=loss, multi_class="crammer_singer", tol=1e-9).fit(X, y)
    problem = reference.gram(model, X), model._dual.coef, y, c_of(model, len(X)), squared(model)
    reference.assert_crammer_singer_feasible(*problem[1:])
    primal = reference.crammer_singer_primal(*problem)
    assert reference.crammer_singer_dual(*problem) == pytest.approx(primal, rel=1e-8)
    assert model.objective_ == pytest.approx(primal, rel=1e-10)


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_linear_kernel_has_liblinears_objective(n_classes, loss, C):
    X, y = histograms(n_classes)
    peer = LinearSVC(
        C=C, loss=loss, dual=True, tol=1e-8, fit_intercept=False, max_iter=1_000_000, random_state=0
    ).fit(X / 9, y)
    margin = reference.signs(y) * peer.decision_function(X / 9).reshape(len(X), -1)
    slack = np.maximum(1 - margin, 0)
    losses = slack.sum() if loss == "hinge" else (slack**2).sum()
    ours = svc("linear", C=C, C_unit="raw", loss=loss, scaling="global", fit_intercept=False)
    objective = ours.fit(X, y).objective_
    assert objective == pytest.approx((peer.coef_**2).sum() / 2 + C * losses, rel=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X / 9), atol=1e-3)


def test_linear_kernel_has_liblinears_crammer_singer_solution():
    X, y = histograms(3)
    peer = LinearSVC(
        C=0.5, multi_class="crammer_singer", tol=1e-8, fit_intercept=False, max_iter=1_000_000
    ).fit(X / 9, y)
    ours = svc("linear", C=0.5, C_unit="raw", loss="hinge", multi_class="crammer_singer")
    ours.set_params(scaling="global", fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X / 9), atol=1e-3)
