"""`AdditiveSVC` among scikit-learn's tools; class weights."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from widemargin import PowerMean

from .helpers import svc


def test_works_in_a_pipeline(digits):
    X, y = digits
    model = make_pipeline(MinMaxScaler(), svc()).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9


def test_works_in_a_grid_search_over_c_and_kernels(three):
    kernels = ["chi2", PowerMean(-8.0), PowerMean(float("-inf"))]
    search = GridSearchCV(svc(), {"C": [0.1, 1.0], "kernel": kernels}, cv=2).fit(*three)
    assert len(search.cv_results_["params"]) == 6
    assert search.best_params_["kernel"] in kernels
    assert search.best_score_ > 0.95


def test_works_in_cross_validation(digits):
    assert cross_val_score(svc(), *digits, cv=3).min() > 0.85


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibration_gives_probabilities(three, ensemble):
    X, y = three
    probability = CalibratedClassifierCV(svc(), ensemble=ensemble, cv=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert np.mean(probability.argmax(axis=1) == y) > 0.95


def test_clone_has_the_same_parameters_and_no_fitted_state(two):
    model = svc(PowerMean(-2.0), C=0.3, class_weight={3: 2.0, 8: 1.0}).fit(*two)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(two[0])


@pytest.mark.parametrize(
    "changes",
    [{}, {"approximation": "unary"}, {"approximation": "pmsvm"}, {"kernel": PowerMean(-3.0)}],
)
def test_pickle_keeps_the_model_to_the_bit(digits, changes):
    X, y = digits
    model = svc(**changes).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(copy.contributions(X), model.contributions(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_give_the_model_of_their_values_and_keep_feature_names(frame):
    iris = load_iris()
    X = frame(dict(zip(iris.feature_names, iris.data.T, strict=True)))
    model = svc().fit(X, iris.target)
    plain = svc().fit(iris.data, iris.target)
    assert model.feature_names_in_.tolist() == iris.feature_names
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(iris.data))


def test_a_frame_with_other_columns_is_refused():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = svc().fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"petal width (cm)": "width"}))


def test_string_labels_come_back(three):
    X, y = three
    names = np.array(["zero", "one", "two"])
    model = svc().fit(X, names[y])
    assert model.classes_.tolist() == ["one", "two", "zero"]
    assert np.mean(model.predict(X) == names[y]) > 0.99


def test_decision_of_two_classes_is_one_column_positive_for_the_second(two):
    X, y = two
    model = svc().fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, 8, 3))


def test_fit_leaves_every_parameter_as_it_was(two):
    weights = {3: 2.0, 8: 1.0}
    model = svc(PowerMean(-1.0), rank=3, n_bins=50, class_weight=weights, n_jobs=2)
    before = model.get_params()
    model.fit(*two)
    assert all(value is before[name] for name, value in model.get_params().items())
    assert weights == {3: 2.0, 8: 1.0}


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_class_weights_multiply_the_sample_weights(three, multi_class):
    X, y = three
    by_class, own = np.array([0.5, 2.0, 3.0]), 1.0 + np.arange(len(X)) % 2
    model = svc(approximation="unary", multi_class=multi_class)
    explicit = clone(model).fit(X, y, sample_weight=own * by_class[y]).decision_function(X)
    model.set_params(class_weight=dict(enumerate(by_class))).fit(X, y, sample_weight=own)
    np.testing.assert_allclose(model.decision_function(X), explicit, atol=1e-5)


def test_balanced_class_weights_are_the_inverse_frequencies(three):
    X, y = three[0][:-30], three[1][:-30]
    weight = len(y) / (3 * np.bincount(y))
    explicit = svc(approximation="unary").fit(X, y, sample_weight=weight[y])
    balanced = svc(approximation="unary", class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(
        balanced.decision_function(X), explicit.decision_function(X), atol=1e-5
    )


def test_a_class_of_weight_zero_is_absent(three):
    X, y = three
    absent = svc().fit(X, y, sample_weight=(y != 0).astype(float))
    model = svc(class_weight={0: 0.0, 1: 1.0, 2: 1.0}).fit(X, y)
    np.testing.assert_array_equal(model.classes_, absent.classes_)
    np.testing.assert_array_equal(model.decision_function(X), absent.decision_function(X))
