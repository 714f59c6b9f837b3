"""The duality gap and the violation are what they say."""

import numpy as np
import pytest
import reference
from sklearn.exceptions import ConvergenceWarning

from .problems import LOSSES, MULTI_CLASS, c_of, exact, histograms, squared, svc, unconverged


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "crammer_singer")]
)
def test_gap_is_never_below_the_true_suboptimality(n_classes, multi_class, loss):
    X, y = histograms(n_classes, n_rows=21)
    model = svc(loss=loss, multi_class=multi_class, warm_start=False)
    best = exact(model.fit(X, y), X, y).objective
    for tol in (0.5, 0.1, 1e-2, 1e-3, 1e-5):
        model.set_params(tol=tol).fit(X, y)
        above = model.objective_ - best
        assert -1e-6 * best <= above <= model.duality_gap_ * model.objective_ + 1e-6 * best
        assert model.duality_gap_ <= tol


@pytest.mark.parametrize("n_sweeps", [1, 3, 30])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 20])
@unconverged
def test_gap_is_the_one_recomputed_from_the_dual_variables(n_classes, loss, n_sweeps):
    X, y = histograms(n_classes)
    model = svc(loss=loss, max_iter=n_sweeps).fit(X, y)
    K, sign, c = reference.gram(model, X), reference.signs(y), c_of(model, len(X))
    coef = model._dual.coef
    primal = reference.primal(K, coef, sign, c, squared(model))
    gap = primal - reference.dual(K, coef, c, squared(model))
    assert model.objective_ == pytest.approx(primal.sum(), rel=1e-10)
    assert model.duality_gap_ == pytest.approx((gap / primal).max(), abs=1e-12, rel=1e-8)


@pytest.mark.parametrize("n_sweeps", [1, 3, 30])
@pytest.mark.parametrize("loss", LOSSES)
@unconverged
def test_crammer_singer_gap_is_the_one_recomputed_from_the_dual_variables(loss, n_sweeps):
    X, y = histograms(3)
    model = svc(loss=loss, max_iter=n_sweeps, multi_class="crammer_singer").fit(X, y)
    problem = reference.gram(model, X), model._dual.coef, y, c_of(model, len(X)), squared(model)
    reference.assert_crammer_singer_feasible(*problem[1:])
    primal = reference.crammer_singer_primal(*problem)
    gap = 1 - reference.crammer_singer_dual(*problem) / primal
    assert model.objective_ == pytest.approx(primal, rel=1e-10)
    assert model.duality_gap_ == pytest.approx(gap, abs=1e-12, rel=1e-8)


@pytest.mark.parametrize("multi_class", MULTI_CLASS)
@pytest.mark.parametrize("loss", LOSSES)
@unconverged
def test_dual_objective_never_falls_from_sweep_to_sweep(loss, multi_class):
    X, y = histograms(3)
    duals = []
    for n_sweeps in range(1, 13):
        model = svc(loss=loss, multi_class=multi_class, max_iter=n_sweeps).fit(X, y)
        duals.append(model.history_[0][-1]["dual"])
    assert np.all(np.diff(duals) > -1e-12 * duals[-1])
    assert duals[-1] > duals[0]


@pytest.mark.parametrize("n_sweeps", [1, 3, 30])
@pytest.mark.parametrize("loss", LOSSES)
@unconverged
def test_violation_is_the_spread_of_the_projected_gradient(loss, n_sweeps):
    X, y = histograms(2)
    model = svc(loss=loss, max_iter=n_sweeps).fit(X, y)
    K, sign, c = reference.gram(model, X), reference.signs(y), c_of(model, len(X))
    pg = reference.projected_gradient(K, model._dual.coef, sign, c, squared(model))
    spread = max(pg.max(), 0) - min(pg.min(), 0)
    assert model.violation_ == pytest.approx(spread, abs=1e-12, rel=1e-8)


@pytest.mark.parametrize("approximation", ["chebyshev", "pmsvm"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_without_symmetry_stop_on_the_violation(approximation, n_classes):
    X, y = histograms(n_classes)
    model = svc(approximation=approximation, C=0.1, tol=0.01).fit(X, y)
    assert 0 < model.violation_ <= 0.01
    assert model.converged_


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("approximation", ["chebyshev", "pmsvm"])
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "crammer_singer")]
)
def test_gap_without_symmetry_is_that_of_the_variables_under_spectral_tables(
    n_classes, multi_class, approximation, loss
):
    for seed in range(5):
        X, y = histograms(n_classes, n_rows=21, seed=seed)
        model = svc(approximation=approximation, loss=loss, multi_class=multi_class, tol=0.1)
        model.fit(X, y)
        K = reference.gram(svc(fit_intercept=False).fit(X, y), X)
        K += reference.constant_feature(model) ** 2
        c, coef = c_of(model, len(X)), model._dual.coef
        if multi_class == "ovr":
            sign = reference.signs(y)
            best = reference.one_vs_rest(K, sign, c, squared(model)).objective
            primal = reference.primal(K, coef, sign, c, squared(model)).sum()
        else:
            best = reference.crammer_singer(K, y, c, squared(model)).objective
            primal = reference.crammer_singer_primal(K, coef, y, c, squared(model))
        assert model.objective_ == pytest.approx(primal, rel=1e-6)
        above = model.objective_ - best
        assert -1e-6 * best <= above <= model.duality_gap_ * model.objective_ + 1e-6 * best


def test_convergence_warning_gives_the_gap_and_advice():
    advice = r"gap of 0\.\d+, above the tolerance of 1e-11\. Increase max_iter, decrease C"
    with pytest.warns(ConvergenceWarning, match=advice):
        svc(max_iter=2).fit(*histograms(3))


def test_convergence_warning_of_tables_without_symmetry_gives_the_violation():
    with pytest.warns(ConvergenceWarning, match=r"projected gradient violation of .*max_iter"):
        svc(approximation="chebyshev", max_iter=2).fit(*histograms(3))
