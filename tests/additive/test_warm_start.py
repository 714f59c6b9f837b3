"""Warm starts and paths over C."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from widemargin import AdditiveSVC

from .problems import LOSSES, MULTI_CLASS, each_machine, histograms, svc

PATH = [0.0625, 0.125, 0.25, 0.5, 1.0, 2.0]


@each_machine
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_at_the_optimum_ends_at_once_with_the_same_model(loss, n_classes, multi_class):
    X, y = histograms(n_classes)
    model = svc(loss=loss, multi_class=multi_class, tol=1e-8).fit(X, y)
    cold, decision = model.n_iter_, model.decision_function(X)
    model.fit(X, y)
    assert model.n_iter_ <= 3 < cold
    np.testing.assert_allclose(model.decision_function(X), decision, atol=1e-3)


@each_machine
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_from_a_larger_c_reaches_the_optimum_of_the_smaller(
    loss, n_classes, multi_class
):
    X, y = histograms(n_classes)
    changes = {"loss": loss, "multi_class": multi_class}
    warm = svc(C=1.0, **changes).fit(X, y).set_params(C=0.1).fit(X, y)
    cold = svc(C=0.1, **changes).fit(X, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-9)
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-4)


def test_warm_start_does_not_carry_over_to_another_multi_class_method():
    X, y = histograms(3)
    model = svc().fit(X, y).set_params(multi_class="crammer_singer")
    with pytest.warns(UserWarning, match="multi_class did: starting afresh"):
        model.fit(X, y)
    cold = svc(multi_class="crammer_singer").fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)


def test_warm_start_on_other_rows_says_that_it_starts_afresh():
    X, y = histograms(3)
    model = svc().fit(X, y)
    with pytest.warns(UserWarning, match="rows or classes changed.*starting afresh"):
        model.fit(X[:-1], y[:-1])
    fresh = svc().fit(X[:-1], y[:-1])
    np.testing.assert_array_equal(model.decision_function(X), fresh.decision_function(X))


def test_dual_variables_are_kept_only_for_a_warm_start():
    X, y = histograms(2)
    assert not hasattr(svc(warm_start=False).fit(X, y), "_dual")


@each_machine
@pytest.mark.parametrize("loss", LOSSES)
def test_path_over_c_equals_separate_fits(loss, n_classes, multi_class):
    X, y = histograms(n_classes)
    model = svc(loss=loss, multi_class=multi_class, tol=1e-9, warm_start=False)
    for C, along in zip(PATH, model.fit_path(X, y, PATH), strict=True):
        alone = model.set_params(C=C).fit(X, y)
        assert along.C == C
        assert along.objective_ == pytest.approx(alone.objective_, rel=1e-8)
        np.testing.assert_allclose(
            along.decision_function(X), alone.decision_function(X), atol=1e-3
        )


@pytest.mark.parametrize("multi_class", MULTI_CLASS)
def test_path_over_c_needs_fewer_sweeps_than_separate_fits(multi_class):
    X, y = (part[:500] for part in load_digits(return_X_y=True))
    model = AdditiveSVC("chi2", multi_class=multi_class, random_state=0)
    along = sum(m.n_iter_ for m in model.fit_path(X, y, PATH))
    alone = sum(model.set_params(C=C).fit(X, y).n_iter_ for C in PATH)
    assert along < alone


def test_path_takes_sample_weights():
    X, y = histograms(3)
    weight = np.arange(len(X)) % 3
    (along,) = svc().fit_path(X, y, [0.5], sample_weight=weight)
    alone = svc(C=0.5).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(along.decision_function(X), alone.decision_function(X))


def test_path_leaves_the_estimator_itself_unfitted():
    model = svc()
    model.fit_path(*histograms(2), [0.1, 1.0])
    assert not hasattr(model, "classes_")


@each_machine
def test_a_start_of_a_far_smaller_c_is_none(n_classes, multi_class):
    """Variables were scaled by 1e9, beyond what single precision holds at 1e39, and far off."""
    X, y = histograms(n_classes)
    model = AdditiveSVC("chi2", multi_class=multi_class, random_state=0)
    _, far = model.fit_path(X, y, [1e-9, 1.0])
    alone = model.set_params(C=1.0).fit(X, y)
    np.testing.assert_array_equal(far.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize("value", [1e308, 1e160])
def test_sums_that_overflow_are_refused_by_name(value):
    """They were NaN, with a warning about tables that are not symmetric."""
    X, y = histograms(2)
    with pytest.raises(ValueError, match=r"C=.* is too large"):
        svc(C=value).fit(X, y)
    with pytest.raises(ValueError, match=r"C=.* is too large"):
        svc().fit_path(X, y, [1.0, value])
    with pytest.raises(ValueError, match="sample weights"):
        svc().fit(X, y, sample_weight=np.full(len(X), value))
