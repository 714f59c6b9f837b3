"""Shape functions, contributions, and errors of the tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import AdditiveSVC, explain

from .helpers import svc

MODELS = {
    "spectral": {},
    "unary": {"approximation": "unary"},
    "unary, intersection": {"approximation": "unary", "kernel": "intersection"},
    "fourier": {"approximation": "fourier"},
    "chebyshev": {"approximation": "chebyshev"},
    "pmsvm": {"approximation": "pmsvm"},
    "crammer_singer": {"multi_class": "crammer_singer", "rank": 4},
    "no intercept": {"fit_intercept": False},
    "double precision": {"tol": 1e-6},
    "percentile": {"scaling": "percentile"},
    "minmax": {"scaling": "minmax"},
}

each_model = pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)


@each_model
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("data", ["two", "three"])
def test_contributions_sum_to_the_decision_value(request, data, layout, changes):
    X, y = request.getfixturevalue(data)
    model = svc(**changes).fit(layout(X), y)
    parts = model.contributions(layout(X))
    assert parts.shape[:2] == (len(X), X.shape[1] + 1)
    np.testing.assert_allclose(
        parts.sum(axis=1), model.decision_function(layout(X)), atol=1e-5, rtol=1e-5
    )


@each_model
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("data", ["two", "three"])
def test_contributions_are_centred_over_the_training_data(request, data, weighted, changes):
    """So the intercept is the mean decision value, and the importances need no data."""
    X, y = request.getfixturevalue(data)
    weight = np.random.default_rng(0).random(len(X)) + 0.5 if weighted else np.ones(len(X))
    model = svc(**changes).fit(X, y, sample_weight=weight)
    parts = model.contributions(X)
    mean = np.average(parts[:, :-1], axis=0, weights=weight)
    on_grid = 0.05 if changes.get("approximation") == "pmsvm" else 1e-6
    np.testing.assert_allclose(mean, 0, atol=on_grid)
    distance = np.average(np.abs(parts[:, :-1]), axis=0, weights=weight)
    expected = distance.reshape(X.shape[1], -1).mean(axis=1)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=on_grid)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_importances_select_features(two, layout):
    X, y = two
    X = layout(X)
    model = svc().fit(X, y)
    assert model.feature_importances_.shape == (64,)
    few = SelectFromModel(svc(), max_features=10, threshold=-np.inf).fit(X, y)
    best = np.sort(np.argsort(-model.feature_importances_, kind="stable")[:10])
    assert few.get_support(indices=True).tolist() == best.tolist()
    eliminated = RFE(svc(), n_features_to_select=8, step=0.5).fit(X, y)
    assert eliminated.get_support().sum() == 8
    assert eliminated.score(X, y) > 0.9
    with pytest.raises(NotFittedError):
        _ = svc().feature_importances_


def test_a_feature_that_is_always_the_same_has_no_importance(two):
    X, y = two
    constant = np.column_stack([np.full(len(X), 7.0), X])
    model = svc().fit(constant, y)
    assert model.feature_importances_[0] == pytest.approx(0, abs=1e-6)
    model = svc(scaling="minmax").fit(constant, y)
    grid, values = model.shape_function(0)
    assert (grid.tolist(), values.tolist()) == ([7], [0])


@each_model
def test_contributions_of_one_class_are_its_slice(three, changes):
    X, y = three
    model = svc(**changes).fit(X, y)
    np.testing.assert_array_equal(model.contributions(X, 1), model.contributions(X)[:, :, 1])


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_contributions_of_the_first_of_two_classes_are_those_of_the_second_reversed(
    two, multi_class
):
    X, y = two
    model = svc(multi_class=multi_class, rank=4).fit(X, y)
    np.testing.assert_array_equal(model.contributions(X, 3), -model.contributions(X, 8))
    np.testing.assert_array_equal(model.contributions(X), model.contributions(X, 8))


@each_model
@pytest.mark.parametrize("data", ["two", "three"])
def test_shape_function_at_a_training_value_is_its_contribution(request, data, changes):
    X, y = request.getfixturevalue(data)
    model = svc(**changes).fit(X, y)
    label, feature = y[0], 20
    grid, values = model.shape_function(feature, label)
    assert np.all(np.diff(grid) > 0)
    raw = X[:, feature]
    at = np.searchsorted(grid, raw * (1 + 1e-9) + 1e-9, side="right") - 1  # the bin it fell into
    assert at.min() == 0  # absent values are the first
    contribution = model.contributions(X, label)[:, feature]
    np.testing.assert_allclose(contribution, values[at], atol=1e-6)


def test_shape_function_is_in_the_features_own_units():
    X, y = load_iris(return_X_y=True)
    X = X - 5.0  # signed
    model = svc(scaling="minmax").fit(X, y)
    for j, column in enumerate(X.T):
        grid, _ = model.shape_function(j, 0)
        assert grid[0] >= column.min() - 1e-9
        assert grid[-1] == pytest.approx(column.max())


def test_shape_function_takes_a_feature_by_name():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = svc().fit(X, y)
    for by_name, by_number in zip(
        model.shape_function("petal width (cm)", 2), model.shape_function(3, 2), strict=True
    ):
        np.testing.assert_array_equal(by_name, by_number)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"feature": 0}, ValueError, r"class_label is needed: one of \[0, 1, 2\]"),
        ({"feature": 0, "class_label": 7}, ValueError, r"class_label=7 is not in \[0, 1, 2\]"),
        ({"feature": 0, "class_label": "a"}, ValueError, "class_label='a' is not in"),
        ({"feature": 64, "class_label": 0}, ValueError, "feature=64 is out of range"),
        ({"feature": -1, "class_label": 0}, ValueError, "feature=-1 is out of range"),
        ({"feature": "pixel", "class_label": 0}, ValueError, "feature 'pixel' is not among"),
        ({"feature": 1.5, "class_label": 0}, TypeError, "feature must be an integer"),
    ],
)
def test_shape_function_refuses_what_it_does_not_know(three, arguments, error, message):
    with pytest.raises(error, match=message):
        svc().fit(*three).shape_function(**arguments)


def test_contributions_refuse_an_unknown_class(three):
    with pytest.raises(ValueError, match="class_label=7 is not in"):
        svc().fit(*three).contributions(three[0], 7)


@pytest.mark.parametrize(("kernel", "bound"), [("chi2", 0.01), ("intersection", 0.1)])
def test_spectral_tables_are_closer_to_the_kernel_than_chebyshevs(digits, kernel, bound):
    errors = {
        tables: svc(kernel, approximation=tables, rank=3).fit(*digits).approximation_error()
        for tables in ("spectral", "chebyshev")
    }
    assert errors["spectral"].relative_weighted < bound
    assert errors["chebyshev"].relative_weighted > 2 * errors["spectral"].relative_weighted
    assert errors["chebyshev"].max > errors["spectral"].max


def test_spectral_shape_functions_are_closer_to_the_true_ones_than_chebyshevs(two):
    X, y = two
    mean = {}
    for tables in ("spectral", "chebyshev"):
        model = svc(approximation=tables, rank=3, warm_start=True).fit(X, y)
        errors = model.approximation_error(X, features=[20, 21, 27, 28])
        assert len(errors) == 4
        mean[tables] = np.mean([error.relative_weighted for error in errors])
    assert mean["spectral"] < 0.05
    assert mean["chebyshev"] > 2 * mean["spectral"]


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("data", ["two", "three"])
def test_unary_shape_functions_are_the_true_ones(request, data, multi_class):
    X, y = request.getfixturevalue(data)
    model = svc(approximation="unary", multi_class=multi_class, tol=1e-6, warm_start=True)
    errors = model.fit(X, y).approximation_error(X)
    assert len(errors) == X.shape[1]
    assert max(error.max for error in errors) < 1e-10
    assert model.approximation_error().max == 0


def test_the_true_shape_functions_need_the_dual_variables(two):
    with pytest.raises(ValueError, match="warm_start=True"):
        svc().fit(*two).approximation_error(*two)


def test_the_true_shape_functions_need_the_training_rows(two):
    X, y = two
    with pytest.raises(ValueError, match="rows that the model was fitted on"):
        svc(warm_start=True).fit(X, y).approximation_error(X[:-1], y[:-1])


def test_contributions_of_one_class_are_those_among_all():
    X, y = load_iris(return_X_y=True)
    model = AdditiveSVC(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.contributions(X, 1), model.contributions(X)[..., 1])


def test_a_machine_behind_scalers_says_who_knows_the_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), AdditiveSVC(random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match=r"widemargin\.explain\(pipeline\)"):
        model[-1].shape_function("petal width (cm)", 0)
    explained = explain(model)
    shape = explained.shape(explained.term("petal width (cm)"))  # as the message says
    assert shape.values[-1] == pytest.approx(2.5)
