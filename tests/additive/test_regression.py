"""`AdditiveSVR`: its optimum, its certificate, what does not change it, and what it refuses."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

from widemargin import AdditiveSVR, BlockStore, explain, load, missed_pairs, plots, save
from widemargin.bands import shape_bands

from .problems import unconverged

TIGHT = {"tol": 1e-12, "max_iter": 200_000, "random_state": 0, "warm_start": True}
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")
each_loss = pytest.mark.parametrize("loss", TUBES)


def svr(kernel="chi2", **changes):
    return AdditiveSVR(kernel, **{**TIGHT, **changes})


def counts(seed=0, n_rows=40, n_outputs=1):
    """Counts and targets that are a bent function of them, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (n_rows, 4)).astype(np.float64)
    slopes = rng.normal(size=(4, n_outputs))
    y = np.sqrt(X) @ slopes + 0.5 * rng.standard_t(3, (n_rows, n_outputs))
    return X, np.round(y, 3)


def problem_of(model, X, y, weight=None):
    """The problem of the scaled targets that a fitted model has solved."""
    scaled = (y - model.coding_.centre) / model.coding_.scale
    c = model.C_ * (np.ones(len(X)) if weight is None else weight)
    squared = model.loss.startswith("squared")
    return reference.gram(model, X), scaled, c, model.epsilon / model.coding_.scale, squared


# ------------------------------------------------------------------ optimum and certificate


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(list(TUBES)),
    epsilon=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    weighted=st.booleans(),
    options=st.sampled_from([{}, {"fit_intercept": False}, {"approximation": "unary"}]),
    C=st.sampled_from([0.1, 1.0, 20.0]),
    n_outputs=st.sampled_from([1, 3]),
)
@pytest.mark.filterwarnings("ignore:.*lets every error pass")
def test_the_objective_is_that_of_the_quadratic_program(
    seed, loss, epsilon, weighted, options, C, n_outputs
):
    X, y = counts(seed, 24, n_outputs)
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, len(X)) if weighted else None
    model = svr(loss=loss, epsilon=epsilon, C=C, **options).fit(X, y, sample_weight=weight)
    K, scaled, c, width, squared = problem = problem_of(model, X, y, weight)
    best = reference.tube(*problem)
    unit = model.coding_.scale**2
    exact = float((reference.tube_dual(K, best.coef, *problem[1:]) * unit).sum())
    assert model.objective_ == pytest.approx(exact, rel=1e-8, abs=1e-12)
    expansion = K @ best.coef * model.coding_.scale + model.coding_.centre
    np.testing.assert_allclose(model.predict(X), expansion, atol=1e-4)
    assert not squared or (np.all(np.isfinite(scaled + width)) and np.all(c > 0))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(list(TUBES)),
    epsilon=st.sampled_from([0.0, 0.3, 2.0]),
    max_iter=st.integers(1, 6),
    tol=st.sampled_from([1e-1, 1e-3, 1e-6]),  # single and double precision
)
@unconverged
@pytest.mark.filterwarnings("ignore:.*lets every error pass")
def test_the_claimed_gap_is_never_below_the_true_one(seed, loss, epsilon, max_iter, tol):
    X, y = counts(seed, 24)
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, len(X))
    model = svr(loss=loss, epsilon=epsilon, tol=tol, max_iter=max_iter, C=5.0)
    model.fit(X, y, sample_weight=weight)
    problem = problem_of(model, X, y, weight)
    best = reference.tube(*problem).objective
    primal = reference.tube_primal(problem[0], model._dual.coef.astype(float), *problem[1:])[0]
    assert model.objective_ == pytest.approx(primal * model.coding_.scale[0] ** 2, rel=1e-6)
    assert primal - best <= model.duality_gap_ * primal * (1 + 1e-6) + 1e-12


@each_loss
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_a_linear_kernel_has_liblinears_objective(loss, epsilon):
    X, y = counts(n_rows=80)
    peer = LinearSVR(
        C=0.3, loss=loss, epsilon=epsilon, dual=True, tol=1e-9, max_iter=1_000_000, random_state=0
    ).fit(X / 8, y.ravel())
    slack = np.maximum(np.abs(y.ravel() - peer.predict(X / 8)) - epsilon, 0)
    losses = (slack**2).sum() if loss.startswith("squared") else slack.sum()
    norm = (peer.coef_**2).sum() + float(peer.intercept_[0]) ** 2
    ours = svr("linear", C=0.3, C_unit="raw", loss=loss, epsilon=epsilon, scaling="global")
    ours.fit(X, y.ravel())
    assert ours.objective_ == pytest.approx(norm / 2 + 0.3 * losses, rel=1e-6)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X / 8), atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-3)


# ------------------------------------------------------------------ what does not change a model


@each_loss
def test_whole_weights_are_copies_and_weight_zero_is_absence(loss):
    X, y = counts()
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    copies = np.repeat(np.arange(len(X)), weight)
    one = svr(loss=loss, epsilon=0.2).fit(X, y.ravel(), sample_weight=weight)
    other = svr(loss=loss, epsilon=0.2).fit(X[copies], y.ravel()[copies])
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-6)


@each_loss
@pytest.mark.parametrize(("unit", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e5), (-2.5, 7.0)])
def test_a_target_in_another_unit_has_the_same_fit(loss, unit, shift):
    X, y = counts()
    one = AdditiveSVR(loss=loss, epsilon=0.2, random_state=0).fit(X, y.ravel())
    other = AdditiveSVR(loss=loss, epsilon=0.2 * abs(unit), random_state=0)
    other.fit(X, unit * y.ravel() + shift)
    assert other.n_iter_ == one.n_iter_
    np.testing.assert_allclose(
        other.predict(X), unit * one.predict(X) + shift, rtol=1e-5, atol=1e-5 * abs(unit)
    )
    assert other.duality_gap_ == pytest.approx(one.duality_gap_, rel=1e-3)


@each_loss
@pytest.mark.parametrize("n_outputs", [2, 16, 18])
def test_targets_that_are_learned_together_are_those_learned_alone(loss, n_outputs):
    X, y = counts(n_outputs=n_outputs)
    together = svr(loss=loss, epsilon=0.1).fit(X, y * np.arange(1, n_outputs + 1))
    found = together.predict(X)
    assert found.shape == y.shape
    assert together.intercept_.shape == (n_outputs,)
    for k in (0, n_outputs - 1):
        alone = svr(loss=loss, epsilon=0.1).fit(X, y[:, k] * (k + 1))
        np.testing.assert_allclose(found[:, k], alone.predict(X), atol=1e-5)


def test_a_column_of_targets_is_predicted_as_a_column():
    X, y = counts()
    column, flat = svr().fit(X, y), svr().fit(X, y.ravel())
    assert column.predict(X).shape == (len(X), 1)
    np.testing.assert_array_equal(column.predict(X).ravel(), flat.predict(X))


@each_loss
def test_rows_in_any_order_and_any_layout_have_the_same_model(loss):
    X, y = counts(n_outputs=2)
    X *= np.random.default_rng(0).random(X.shape) < 0.4
    order = np.random.default_rng(1).permutation(len(X))
    one = svr(loss=loss, epsilon=0.1).fit(X, y).predict(X)
    for other in (X[order], sp.csr_array(X[order])):
        again = svr(loss=loss, epsilon=0.1).fit(other, y[order])
        np.testing.assert_allclose(again.predict(X), one, atol=1e-5)


@each_loss
def test_threads_change_no_bit(loss):
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 1500)), rng.normal(size=(200, 18))
    fits = [AdditiveSVR("chi2", loss=loss, rank=3, n_jobs=n, random_state=0) for n in (1, 2)]
    one, two = (model.fit(X, y) for model in fits)
    np.testing.assert_array_equal(one.model_.weights, two.model_.weights)


@each_loss
def test_a_path_and_a_warm_start_end_where_single_fits_do(loss):
    X, y = counts(n_outputs=2)
    path = svr(loss=loss, epsilon=0.1).fit_path(X, y, [0.1, 1.0, 10.0])
    for model in path:
        alone = svr(loss=loss, epsilon=0.1, C=model.C).fit(X, y)
        np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-5)
    again = svr(loss=loss, epsilon=0.1).fit(X, y)
    assert again.fit(X, y).n_iter_ == 0
    assert again.set_params(epsilon=0.3).fit(X, y).objective_ == pytest.approx(
        svr(loss=loss, epsilon=0.3).fit(X, y).objective_, rel=1e-9
    )


# ------------------------------------------------------------------ what a user meets


def test_the_parts_of_a_prediction_are_in_the_targets_unit():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = AdditiveSVR(C=0.3, random_state=0).fit(X, 1000 * y)
    parts = model.contributions(X)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), rtol=1e-6)
    np.testing.assert_allclose(parts[:, :-1].mean(axis=0), 0, atol=1e-3 * 1000)
    importance = np.abs(parts[:, :-1]).mean(axis=0)
    np.testing.assert_allclose(model.feature_importances_, importance, rtol=1e-4)
    grid, g = model.shape_function("bmi")
    assert np.all(np.diff(grid) > 0)
    assert g[-1] - g[0] > 50_000


def test_one_of_several_targets_is_explained_by_its_number():
    X, y = counts(n_outputs=3)
    model = svr().fit(X, y)
    parts = model.contributions(X)
    assert parts.shape == (len(X), 5, 3)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), atol=1e-9)
    np.testing.assert_array_equal(model.contributions(X, 2), parts[..., 2])
    assert model.shape_function(0, 1)[1].shape == model.shape_function(0, 1)[0].shape
    with pytest.raises(ValueError, match=r"one of \[0, 1, 2\]"):
        model.shape_function(0)
    with pytest.raises(ValueError, match=r"class_label=3 is not in \[0, 1, 2\]"):
        model.shape_function(0, 3)


@pytest.mark.filterwarnings("ignore:y is")
def test_constant_targets_give_the_constant():
    model = AdditiveSVR(random_state=0).fit(counts()[0], np.full(40, 3.5))
    np.testing.assert_array_equal(model.predict(counts()[0]), 3.5)
    assert model.duality_gap_ == 0


@pytest.mark.filterwarnings("ignore:.*lets every error pass")
@pytest.mark.parametrize("epsilon", [100.0, 1e60, 1e308])
def test_a_tube_that_holds_all_targets_gives_a_constant(epsilon):
    X, y = counts()
    model = AdditiveSVR(epsilon=epsilon, random_state=0).fit(X, 0.001 * y.ravel())
    assert len(np.unique(model.predict(X))) == 1
    assert model.objective_ == 0


@each_loss
@pytest.mark.parametrize("outlier", [1e6, 1e30, 1e100])
def test_one_far_target_moves_no_other_prediction_with_the_linear_loss(loss, outlier):
    X, y = counts(n_rows=200)
    far = y.ravel().copy()
    far[0] = outlier
    one, other = (AdditiveSVR(loss=loss, random_state=0).fit(X, t) for t in (y.ravel(), far))
    assert np.isfinite(other.objective_)
    assert other.duality_gap_ <= 1e-2
    if loss == "epsilon_insensitive":
        assert np.abs(one.predict(X) - other.predict(X))[1:].max() < 1.0


@pytest.mark.parametrize("approximation", ["chebyshev", "pmsvm", "fourier", "unary"])
def test_every_kind_of_table_learns(approximation):
    X, y = counts(n_rows=200)
    model = AdditiveSVR("chi2", approximation=approximation, random_state=0).fit(X, y.ravel())
    assert model.converged_
    assert model.score(X, y.ravel()) > 0.35


def test_columns_of_categories_and_missing_values_are_learned():
    import pandas as pd

    rng = np.random.default_rng(0)
    job = rng.choice(["smith", "clerk", "cook"], 200)
    age = np.where(rng.random(200) < 0.2, np.nan, rng.integers(20, 60, 200))
    pay = np.where(job == "clerk", 30.0, 10.0) + np.where(np.isnan(age), 5.0, 0.1 * age)
    people = pd.DataFrame({"job": job, "age": age})
    model = AdditiveSVR(missing="learn", C=10.0, random_state=0).fit(people, pay)
    assert model.score(people, pay) > 0.99


def test_a_huge_or_tiny_target_is_fitted_in_double_precision():
    X, y = counts()
    for unit in (1e60, 1e-60):
        model = AdditiveSVR(random_state=0).fit(X, unit * y.ravel())
        one = AdditiveSVR(random_state=0).fit(X, y.ravel())
        np.testing.assert_allclose(model.predict(X) / unit, one.predict(X), rtol=1e-2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"loss": "hinge"}, "'squared_epsilon_insensitive', 'epsilon_insensitive'"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"C": 0.0}, "C"),
        ({"C_unit": "metre"}, "'diagonal', 'raw'"),
    ],
)
def test_parameters_out_of_range_are_named(changes, said):
    with pytest.raises(ValueError, match=said):
        AdditiveSVR(**changes).fit(*counts())


@pytest.mark.parametrize("bad", [np.nan, np.inf, "much"])
def test_targets_that_are_no_numbers_are_named_by_row(bad):
    X, y = counts()
    y = y.ravel().astype(object)
    y[7] = bad
    with pytest.raises(ValueError, match="row 7"):
        AdditiveSVR().fit(X, y)


# ------------------------------------------------------------------ beside the machine


def waves(n_outputs=1):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 4))
    y = 10 * np.sin(3 * X[:, 0]) + 4 * X[:, 1] * X[:, 3]
    return X, np.stack([y * 10**k for k in range(n_outputs)], axis=1)


def test_terms_behind_a_scaler_are_in_the_datas_units():
    X, y = waves()
    model = make_pipeline(StandardScaler(), AdditiveSVR(random_state=0)).fit(5 * X, y.ravel())
    explained = explain(model)
    assert explained.ranked[0].name == "feature 0"
    shape = explained.shape(explained.ranked[0])
    np.testing.assert_allclose(shape.values[[0, -1]], [-5, 5], atol=0.1)
    middle = np.abs(shape.values) < 4.5
    np.testing.assert_allclose(
        shape.scores[middle, 0], 10 * np.sin(0.6 * shape.values[middle]), atol=1.5
    )
    np.testing.assert_allclose(
        explained.contributions(5 * X).sum(axis=1), model.predict(5 * X), atol=1e-4
    )
    assert explained.intercept == pytest.approx(model.predict(5 * X).mean(), abs=1e-2)


def test_pairs_that_a_sum_misses_are_found_for_numbers():
    X, y = waves(2)
    model = AdditiveSVR(random_state=0).fit(X, y)
    pairs = missed_pairs(model, X, y)
    assert pairs[0].name == "feature 1 \N{MULTIPLICATION SIGN} feature 3"
    assert pairs[0].stands_out
    assert not pairs[1].stands_out


def test_plots_and_bands_of_numbers_name_the_target():
    import pandas as pd

    X, y = waves(2)
    frame, target = pd.DataFrame(X, columns=list("abcd")), pd.Series(y[:, 0], name="height")
    one = AdditiveSVR(random_state=0).fit(frame, target)
    bands = shape_bands(one, frame, target, n_fits=3)
    assert np.all(bands.low["a"] <= bands.high["a"])
    axes = plots.plot_shape(one, "a", bands=bands)
    assert axes.get_ylabel() == "contribution to height"
    two = AdditiveSVR(random_state=0).fit(X, y)
    assert plots.plot_shape(two, 0, class_label=1).get_ylabel() == "contribution to 1"
    assert plots.plot_shape(two, 0).get_legend().get_title().get_text() == "target"
    assert len(plots.plot_importance(two).patches) == 4


def test_a_store_of_numbers_has_the_model_of_memory(tmp_path):
    X, y = counts(n_rows=120)
    y = np.round(y.ravel(), 1)
    chunks = [(X[:50], y[:50]), (X[50:], y[50:])]
    store = BlockStore.build(tmp_path / "store", chunks, values_per_block=100)
    stored, memory = (
        AdditiveSVR("chi2", tol=1e-9, random_state=0).fit(*data) for data in ((store,), (X, y))
    )
    np.testing.assert_allclose(stored.predict(X), memory.predict(X), atol=1e-4)
    np.testing.assert_array_equal(stored.predict(store), stored.predict(X))


def test_a_store_of_texts_is_no_target(tmp_path):
    store = BlockStore.build(tmp_path / "store", [(counts()[0], ["a", "b"] * 20)])
    with pytest.raises(ValueError, match="finite numbers"):
        AdditiveSVR("chi2").fit(store)


@pytest.mark.parametrize("n_outputs", [1, 2, 18])
@pytest.mark.parametrize("approximation", ["spectral", "unary"])
def test_a_saved_model_predicts_and_explains_the_same(tmp_path, approximation, n_outputs):
    X, y = counts(n_outputs=n_outputs)
    model = AdditiveSVR("chi2", approximation=approximation, epsilon=0.1, random_state=0).fit(X, y)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert isinstance(again, AdditiveSVR)
    assert again.get_params() == model.get_params()
    assert again.fit_record_ == model.fit_record_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.contributions(X, 0), model.contributions(X, 0))
    np.testing.assert_array_equal(again.coding_.scale, model.coding_.scale)


def test_a_saved_pipeline_predicts_the_same(tmp_path):
    X, y = counts()
    model = make_pipeline(StandardScaler(), AdditiveSVR(random_state=0)).fit(X, y.ravel())
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@unconverged
def test_a_time_limit_and_a_callback_end_a_fit_with_the_model_it_has():
    X, y = counts(n_rows=300)
    limited = AdditiveSVR(C=1e6, tol=1e-12, max_seconds=1e-9, random_state=0).fit(X, y)
    assert limited.n_iter_ == 1
    seen = []

    class Stopper:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if fitted_estimator is not None:
                seen.append(fitted_estimator.predict(X))
            return context.task_name == "epoch" and context.task_id == 2

    model = AdditiveSVR(C=1e6, tol=1e-12, random_state=0).set_callbacks(Stopper()).fit(X, y)
    assert model.n_iter_ == 3
    # The judge has recomputed the weights of the final model.
    np.testing.assert_allclose(seen[-1], model.predict(X), rtol=1e-6)
