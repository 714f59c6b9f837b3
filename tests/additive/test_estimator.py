"""`AdditiveSVC` as a scikit-learn estimator: tools around it, explanations, and bad input."""

import bz2
import logging
import os
import pickle
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.polynomial import Chebyshev, Polynomial
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_digits, load_iris, load_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

from widemargin import AdditiveMap, AdditiveSVC, PowerMean, papers
from widemargin.additive.tables import LOG_OFFSET, PMSVM_NODES


@pytest.fixture(scope="module")
def digits():
    """600 digits with ten classes, pixel counts from 0 to 16."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:600]  # they come sorted by writer
    return X[rows], y[rows]


@pytest.fixture(scope="module")
def three(digits):
    X, y = digits
    return X[y < 3], y[y < 3]


@pytest.fixture(scope="module")
def two(digits):
    """Two classes that overlap a little: 3 and 8."""
    X, y = digits
    rows = (y == 3) | (y == 8)
    return X[rows], y[rows]


def svc(kernel="chi2", **changes):
    return AdditiveSVC(kernel, **{"random_state": 0, **changes})


# ------------------------------------------------------------------ scikit-learn's tools


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


# ------------------------------------------------------------------ class weights

# Tables are fitted to the sample weights: where they are exact ("unary"), only the solver sees
# the weights, and class weights must equal sample weights to the last sweep.


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


# ------------------------------------------------------------------ callbacks and logs


class Recorder:
    """A callback that writes down every task, and can ask to stop after some epochs."""

    def __init__(self, stop_after=None):
        self.tasks, self.fitted, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.tasks.append("setup")

    def teardown(self, estimator, context):
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.tasks.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.fitted.append((fitted_estimator, fitted_estimator.decision_function(X)))
        return context.task_name == "epoch" and context.task_id + 1 == self.stop_after


def test_callbacks_see_the_fit_its_batch_and_the_epochs(three):
    recorder = Recorder()
    model = svc().set_callbacks(recorder).fit(*three)
    epochs = ["begin epoch", "end epoch"] * model.n_iter_
    begin, end = ["setup", "begin fit", "begin batch 0"], ["end batch 0", "end fit", "teardown"]
    assert recorder.tasks == [*begin, *epochs, *end]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_callbacks_see_every_batch_of_classes(n_jobs):
    rng = np.random.default_rng(0)
    X, y = rng.random((120, 8)), np.arange(120) % 40
    recorder = Recorder()
    model = svc(n_jobs=n_jobs).set_callbacks(recorder).fit(X, y)
    ended = [task for task in recorder.tasks if task.startswith("end batch")]
    assert sorted(ended) == ["end batch 0", "end batch 1", "end batch 2"]
    assert recorder.tasks.count("end epoch") == sum(len(batch) for batch in model.history_)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_a_callback_that_returns_true_stops_the_sweeps(three, multi_class):
    model = svc(multi_class=multi_class, tol=1e-9).set_callbacks(Recorder(stop_after=3))
    model.fit(*three)
    assert model.n_iter_ == 3
    assert model.duality_gap_ > 1e-9


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("data", ["two", "three"])
def test_fitted_estimators_given_to_callbacks_do_not_change_later(request, data, multi_class):
    X, y = request.getfixturevalue(data)
    recorder = Recorder()
    svc(multi_class=multi_class, rank=4).set_callbacks(recorder).fit(X, y)
    assert len(recorder.fitted) > 2
    for fitted, decision in recorder.fitted:
        np.testing.assert_array_equal(fitted.decision_function(X), decision)


def test_progress_bar_runs(three, capsys):
    svc().set_callbacks(ProgressBar()).fit(*three)
    assert "AdditiveSVC - fit" in capsys.readouterr().out


def test_progress_bar_runs_along_a_path_over_c(three):
    models = svc().set_callbacks(ProgressBar()).fit_path(*three, [0.1, 1.0])
    assert [m.C for m in models] == [0.1, 1.0]


def test_scoring_monitor_scores_every_epoch(three):
    monitor = ScoringMonitor(scoring="accuracy")
    model = svc().set_callbacks(monitor).fit(*three)
    log = monitor.get_logs().data_as_pandas
    assert (log["task_name"] == "epoch").sum() == model.n_iter_
    assert log.loc[log["task_name"] == "fit", "accuracy"].item() == model.score(*three)


def test_verbose_1_logs_one_summary(three, caplog):
    with caplog.at_level(logging.INFO, logger="widemargin"):
        model = svc(verbose=1).fit(*three)
    (message,) = (r.getMessage() for r in caplog.records if r.name == "widemargin")
    assert message.startswith(f"{model.n_iter_} sweeps in ")
    assert f"relative duality gap {model.duality_gap_:.2g}" in message


def test_verbose_2_logs_every_sweep(three, caplog):
    with caplog.at_level(logging.INFO, logger="widemargin"):
        model = svc(verbose=2).fit(*three)
    assert sum("sweep done" in r.getMessage() for r in caplog.records) == model.n_iter_


def test_verbose_0_is_silent(three, caplog, capsys):
    with caplog.at_level(logging.DEBUG, logger="widemargin"):
        svc(verbose=0).fit(*three)
    assert caplog.records == []
    assert capsys.readouterr() == ("", "")


@contextmanager
def ctrl_c_after(seconds):
    """Sends SIGINT to this process; yields a list that then holds the time it was sent."""
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, interrupt)
    timer.start()
    try:
        yield sent
    finally:
        timer.cancel()


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (40, "ovr"), (3, "crammer_singer")]
)
def test_ctrl_c_ends_a_fit_at_once(n_classes, multi_class, n_jobs):
    rng = np.random.default_rng(0)
    X, y = rng.random((5000, 30)), rng.integers(0, n_classes, 5000)
    endless = svc(loss="hinge", tol=1e-300, max_iter=10**9, rank=4, n_jobs=n_jobs)
    threads = threading.active_count()
    with ctrl_c_after(0.5) as sent, pytest.raises(KeyboardInterrupt):
        endless.set_params(multi_class=multi_class).fit(X, y)
    assert time.perf_counter() - sent[0] < 3.0
    while threading.active_count() > threads and time.perf_counter() - sent[0] < 3.0:
        time.sleep(0.01)
    assert threading.active_count() == threads  # no batch goes on unseen


# ------------------------------------------------------------------ explanations

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
    contribution = model.contributions(X, label)[:, feature]
    expected = np.where(at >= 0, values[np.maximum(at, 0)], 0.0)
    np.testing.assert_allclose(contribution, expected, atol=1e-6)


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


# ------------------------------------------------------------------ prediction


@pytest.mark.parametrize("approximation", ["spectral", "unary", "pmsvm"])
def test_values_outside_the_training_range_are_clipped_to_it(two, approximation):
    X, y = two
    model = svc(approximation=approximation, scaling="global").fit(X, y)
    far = 3.0 * X - 5.0
    inside = np.clip(far, 0.0, X.max())
    np.testing.assert_array_equal(model.decision_function(far), model.decision_function(inside))


def test_values_outside_a_columns_own_range_are_clipped_to_it():
    X, y = load_iris(return_X_y=True)
    model = svc(scaling="minmax").fit(X, y)
    far = 4.0 * X - 12.0
    inside = np.clip(far, X.min(axis=0), X.max(axis=0))
    np.testing.assert_allclose(model.decision_function(far), model.decision_function(inside))


def test_intersection_beyond_a_columns_largest_value_is_flat(two):
    X, y = two
    model = svc("intersection", approximation="unary", scaling=None).fit(X, y)
    inside = np.minimum(16.0, X.max(axis=0)) * np.ones_like(X)
    decision = model.decision_function(np.full_like(X, 16.0))
    np.testing.assert_allclose(decision, model.decision_function(inside), rtol=1e-6)


# ------------------------------------------------------------------ the papers' settings

PRESETS = {"icd": papers.icd, "pmsvm": papers.pmsvm, "pmsvm_lut": papers.pmsvm_lut}
COMMON = {"C_unit": "raw", "fit_intercept": False, "loss": "squared_hinge", "multi_class": "ovr"}
OWN = {
    "icd": {
        "kernel": "intersection",
        "approximation": "unary",
        "scaling": "percentile",
        "n_bins": "auto",
        "C": 1e-3,
    },
    "pmsvm": {
        "kernel": PowerMean(-1.0),
        "approximation": "pmsvm",
        "scaling": "global",
        "C": 0.01,
        "tol": 0.1,
    },
    "pmsvm_lut": {
        "kernel": PowerMean(-1.0),
        "approximation": "chebyshev",
        "scaling": "global",
        "rank": 3,
        "n_bins": 1000,
        "binning": "uniform",
        "C": 0.01,
        "tol": 0.1,
    },
}


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_set_as_its_paper_says(name):
    params = PRESETS[name]().get_params()
    expected = {**COMMON, **OWN[name]}
    assert {key: params[key] for key in expected} == expected


@pytest.mark.parametrize("name", PRESETS)
def test_preset_learns_digits(name):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    assert PRESETS[name](random_state=0).fit(X, y).score(X_test, y_test) > 0.9


@pytest.mark.parametrize("name", PRESETS)
def test_preset_takes_changes(name):
    assert PRESETS[name](C=7.0, random_state=3).get_params()["C"] == 7.0


def test_icd_quantises_to_one_hundred_levels(digits):
    encoder = papers.icd().fit(*digits).model_.encoder
    np.testing.assert_array_equal(encoder.representatives, np.arange(101))


def test_pmsvm_nodes_are_the_papers():
    assert PMSVM_NODES == (0.01, 0.06, 0.75)
    assert LOG_OFFSET == 0.05


@pytest.mark.parametrize(("p", "degree"), [(-1.0, 2), (-8.0, 4)])
def test_pmsvm_lut_takes_p_and_the_degree(p, degree):
    model = papers.pmsvm_lut(p, degree)
    assert model.kernel == PowerMean(p)
    assert model.rank == degree + 1


def test_pmsvm_decides_by_a_polynomial_in_the_logarithm_of_the_value_itself(two):
    """g_j(x) = sum_k a_jk ln(x + .05)^k (PmSVM, eq. 5), at values that training never saw."""
    X, y = two
    model = papers.pmsvm(random_state=0).fit(X, y)
    domain = np.log([LOG_OFFSET, 1 + LOG_OFFSET])  # the core keeps a_jk in Chebyshev's basis
    new = np.random.default_rng(0).uniform(0.01, 1.0, (20, X.shape[1]))
    decision = np.zeros(len(new))
    for j, weights in enumerate(model.model_.weights[0, :, :3, 0].astype(float)):
        powers = Chebyshev(weights, domain=domain).convert(kind=Polynomial).coef
        decision += sum(a * np.log(new[:, j] + LOG_OFFSET) ** k for k, a in enumerate(powers))
    np.testing.assert_allclose(model.decision_function(new * X.max()), decision, atol=1e-5)


def test_pmsvm_decides_alike_on_sparse_and_dense_data_with_shifted_columns():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 5)) * (rng.random((60, 5)) < 0.5)
    y = (X.sum(axis=1) > 0).astype(int)
    model = svc(approximation="pmsvm", scaling="minmax").fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(sp.csr_array(X[:5])), model.decision_function(X[:5]), atol=1e-6
    )


# ------------------------------------------------------------------ approximation errors


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


# ------------------------------------------------------------------ bad data

X4 = np.array([[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.5, 0.6, 0.0], [0.7, 0.0, 0.8]])
Y4 = np.array([0, 1, 0, 1])


def replaced(value, at=(2, 1), dtype=np.float64):
    X = X4.astype(dtype)
    X[at] = value
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_a_value_that_is_not_finite_is_named_by_place(value, name, layout, dtype):
    X = layout(replaced(value, dtype=dtype))
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(X, Y4)
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(layout(X4), Y4).predict(X)


def test_a_value_that_is_not_finite_is_found_in_a_late_row():
    X = np.ones((10_000, 3))
    X[9_000, 2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 9000, column 2"):
        svc().fit(X, np.arange(10_000) % 2)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scaling", ["global", None])
def test_a_negative_value_is_named_by_place_with_the_scaling_that_helps(scaling, layout):
    with pytest.raises(ValueError, match=r'row 2, column 1.*scaling="minmax"'):
        svc(scaling=scaling).fit(layout(replaced(-0.1)), Y4)


def test_the_scaling_that_helps_against_negative_values_does_help():
    X = replaced(-0.1)
    assert svc(scaling="minmax", C=100.0).fit(X, Y4).score(X, Y4) == 1.0


BAD_SHAPES = {
    "no rows": (np.ones((0, 3)), np.ones(0), r"0 sample\(s\)"),
    "no features": (np.ones((4, 0)), Y4, r"0 feature\(s\)"),
    "one dimension": (np.ones(4), Y4, "Expected 2D array"),
    "complex": (X4 + 1j, Y4, "Complex data not supported"),
    "strings": (X4.astype(str), Y4, "arrays of bytes/strings"),
}


@pytest.mark.parametrize(("X", "y", "message"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_data_of_a_wrong_shape_or_kind_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        svc().fit(X, y)


@pytest.mark.parametrize("method", ["predict", "decision_function", "contributions"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_wrong_number_of_features_is_refused(layout, method):
    model = svc().fit(X4, Y4)
    with pytest.raises(ValueError, match="X has 2 features, but AdditiveSVC is expecting 3"):
        getattr(model, method)(layout(X4[:, :2]))


@pytest.mark.parametrize("index", [3, 2**31 - 1, -1])
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_a_sparse_index_out_of_range_is_named_by_its_row(method, index):
    X = sp.csr_array(X4)
    X.indices[X.indptr[1]] = index
    model = svc() if method == "fit" else svc().fit(X4, Y4)
    with pytest.raises(ValueError, match=r"row 1\b.*out of range"):
        model.fit(X, Y4) if method == "fit" else model.predict(X)


def test_more_features_than_indices_can_count_are_refused():
    X = sp.csr_array((np.ones(4), (np.arange(4), np.arange(4))), shape=(4, 2**40))
    with pytest.raises(ValueError, match="features"):
        svc().fit(X, Y4)


# ------------------------------------------------------------------ bad parameters

OUT_OF_RANGE = {
    "C": [0, -1.0, np.inf, np.nan],
    "tol": [0, -1e-3, np.nan],
    "max_iter": [0, -5],
    "rank": [0, -1, 257, "many"],
    "n_bins": [0, -1, 65_536, "many"],
    "loss": ["log", None],
    "approximation": ["nystroem", None],
    "binning": ["quantile", None],
    "scaling": ["standard", False],
    "multi_class": ["ovo", None],
    "C_unit": ["trace", None],
    "kernel": ["rbf"],
    "class_weight": ["heavy", {0: -1.0, 1: 1.0}],
    "n_jobs": [0],
}
WRONG_TYPE = {
    "C": ["1", None, True, [1.0]],
    "tol": ["1e-3", None],
    "max_iter": [1.5, "10", None, True],
    "rank": [2.5, None, True],
    "n_bins": [100.0, None],
    "kernel": [None, 3],
    "fit_intercept": ["no"],
    "warm_start": ["no"],
    "verbose": ["loud"],
    "n_jobs": ["two"],
}


def pairs(table):
    return [pytest.param(k, v, id=f"{k}={v!r}") for k, values in table.items() for v in values]


@pytest.mark.parametrize(("name", "value"), pairs(OUT_OF_RANGE))
def test_a_parameter_out_of_range_is_named(name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        svc(**{name: value}).fit(X4, Y4)


@pytest.mark.parametrize(("name", "value"), pairs(WRONG_TYPE))
def test_a_parameter_of_the_wrong_type_is_named(name, value):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        svc(**{name: value}).fit(X4, Y4)


@pytest.mark.parametrize("p", [0.5, 1, np.inf, np.nan])
def test_a_power_mean_above_zero_is_refused(p):
    with pytest.raises(ValueError, match=r"p must be in \[-inf, 0\]"):
        svc(PowerMean(p)).fit(X4, Y4)


def test_numpy_scalars_are_numbers():
    model = svc(C=np.float32(1), rank=np.int64(2), n_bins=np.int32(50), max_iter=np.uint16(500))
    assert model.fit(X4, Y4).rank_ == 2


BAD_TOGETHER = [
    ({"approximation": "pmsvm", "rank": 4}, "rank=4 with approximation=.pmsvm"),
    ({"approximation": "fourier", "rank": 4}, "rank=4 with approximation=.fourier.*odd"),
    ({"approximation": "unary", "rank": 4}, "rank must be .auto. with approximation=.unary"),
    ({"approximation": "unary", "n_bins": 5000, "binning": "uniform"}, "set n_bins to 4,095"),
    ({"approximation": "chebyshev", "scaling": None}, r"defined on \[0, 1\].*scaling="),
    ({"approximation": "pmsvm", "scaling": None}, r"defined on \[0, 1\].*scaling="),
    ({"approximation": "fourier", "kernel": "linear"}, "homogeneous.*approximation=.spectral"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_TOGETHER)
def test_parameters_that_do_not_go_together_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        svc(**changes).fit(2 * X4, Y4)


def lopsided(x, y):
    return x * y**2


def broken(x, y):
    return np.where(x + y > 0.5, np.nan, x * y)


def scalar_only(x, y):
    return float(np.sum(x * y))


def shifted(x, y):
    return x * y + 1


@pytest.mark.parametrize(
    ("kernel", "layout", "message"),
    [
        (lopsided, np.asarray, r"'lopsided' is not symmetric: k\("),
        (broken, np.asarray, r"'broken' is not finite: k\(.*\) = nan"),
        (scalar_only, np.asarray, "'scalar_only' is not vectorised"),
        (shifted, sp.csr_array, r"'shifted' is not zero at k\(0, y\)"),
    ],
)
def test_a_function_that_is_no_kernel_is_refused(kernel, layout, message):
    with pytest.raises(ValueError, match=message):
        svc(kernel).fit(layout(X4), Y4)


def test_a_kernel_that_does_not_vanish_at_zero_works_on_dense_data():
    assert svc(shifted, C=100.0).fit(X4, Y4).score(X4, Y4) == 1.0


def test_a_user_function_equals_the_named_kernel(two):
    X, y = two

    def chi2(x, y):
        return 2 * x * y / np.maximum(x + y, 1e-300)

    own, named = (svc(kernel, tol=1e-9).fit(X, y) for kernel in (chi2, "chi2"))
    np.testing.assert_allclose(own.decision_function(X), named.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("method", ["predict", "decision_function", "contributions"])
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(svc(), method)(X4)


# ------------------------------------------------------------------ real data


def svmlight(path, n_features):
    with bz2.open(path) as file:
        return load_svmlight_file(file, n_features=n_features)


def test_icd_reaches_its_published_accuracy_on_ijcnn1(data_folder):
    X, y = svmlight(data_folder / "ijcnn1.trn.bz2", 22)
    model = papers.icd(random_state=0).fit(X, y)
    assert model.score(*svmlight(data_folder / "ijcnn1.tst.bz2", 22)) >= 0.945


def test_icd_reaches_its_published_accuracy_on_shuttle(data_folder):
    """The paper took shuttle from LIBSVM's collection, where each feature lies in [-1, 1]."""
    part = np.load(data_folder / "shuttle.npz")
    model = make_pipeline(MinMaxScaler((-1, 1)), papers.icd(random_state=0))
    model.fit(part["X_train"], part["y_train"])
    assert model.score(part["X_test"], part["y_test"]) >= 0.994


def test_spectral_tables_are_as_accurate_as_chebyshevs_on_usps(data_folder):
    part = np.load(data_folder / "usps.npz")
    accuracy = {
        tables: svc(approximation=tables, rank=3)
        .fit(part["X_train"], part["y_train"])
        .score(part["X_test"], part["y_test"])
        for tables in ("spectral", "chebyshev")
    }
    assert accuracy["spectral"] >= accuracy["chebyshev"] - 0.005
    assert accuracy["spectral"] > 0.9


# ------------------------------------------------------------------ found by review


def test_the_sparse_map_feeds_liblinear():
    X = sp.random_array((60, 30), density=0.3, format="csr", rng=0)
    y = np.arange(60) % 2
    Z = AdditiveMap("chi2").fit_transform(X)
    assert Z.indices.dtype == np.int32
    LinearSVC().fit(Z, y)


def test_values_are_rounded_to_the_nearest_distinct_one_zero_included():
    X = np.array([[0.0], [1.0]] * 20)
    model = AdditiveSVC("chi2", random_state=0).fit(X, X[:, 0] > 0)
    scores = model.decision_function([[0.0], [0.4], [0.6], [1.0]])
    assert scores[0] == scores[1] < scores[2] == scores[3]


@pytest.mark.parametrize("weight", [np.nan, np.inf, -1.0])
def test_class_weights_must_be_finite_and_not_negative(weight):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"class_weight of class .* finite and not negative"):
        AdditiveSVC(class_weight={0: weight, 1: 1.0, 2: 1.0}).fit(X, y)


def test_a_coordinate_out_of_range_is_named():
    X = sp.coo_array(np.eye(4))
    X.coords[0][0] = 50_000_000
    with pytest.raises(ValueError, match="row index 50000000 is out of range"):
        AdditiveSVC().fit(X, [0, 1, 0, 1])


def test_fields_of_structured_arrays_are_read_whatever_their_strides():
    table = np.zeros(40, dtype=[("a", "u1"), ("b", "f4", (3,))])
    table["b"] = np.random.default_rng(0).random((40, 3))
    y = np.arange(40) % 2
    packed = AdditiveSVC(random_state=0).fit(np.ascontiguousarray(table["b"]), y)
    strided = AdditiveSVC(random_state=0).fit(table["b"], y)
    np.testing.assert_array_equal(
        packed.decision_function(table["b"]), strided.decision_function(table["b"])
    )


def test_a_model_that_was_never_fitted_to_the_end_is_not_fitted():
    model = AdditiveSVC()
    model.n_features_in_ = 2  # what an interrupted first fit leaves behind
    with pytest.raises(NotFittedError):
        model.predict([[0.0, 1.0]])


def test_a_pmsvm_model_is_not_its_training_data():
    X = np.random.default_rng(0).random((2000, 20))
    model = papers.pmsvm(random_state=0).fit(X, X[:, 0] > 0.5)
    assert model.model_.encoder.n_codes <= 1001
    assert len(pickle.dumps(model)) < X.nbytes


def test_contributions_of_one_class_are_those_among_all():
    X, y = load_iris(return_X_y=True)
    model = AdditiveSVC(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.contributions(X, 1), model.contributions(X)[..., 1])
