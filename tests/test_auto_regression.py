"""`AutoSVR`: `AutoSVC` for numbers, of any unit."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.cli.helpers import run, run_json

from widemargin import AutoSVR, load, read, save
from widemargin.errors import ChoiceWarning
from widemargin.progress import FitStopper

LONG = 600.0  # no limit


@pytest.fixture(scope="module", autouse=True)
def few_settings():
    """Searches that are short, because tests need no good one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.search.MOST_SETTINGS", 8)
        yield


QUICK = AutoSVR(LONG, machines=["kernel"], random_state=0)


def waves(n=150, noise=0.1):
    """A target that is no sum over columns, and one that is."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    error = noise * rng.normal(size=n)
    return X, np.sin(6 * X[:, 0] * X[:, 1]) + error, np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + error


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = waves()
    return AutoSVR(LONG, random_state=0).fit(X, y)


WHY = "rows decide folds, and copies of a row may be in several of them, a row of weight 2 in one"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [QUICK],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": WHY,
        "check_sample_weight_equivalence_on_sparse_data": WHY,
    },
)
def test_sklearn(estimator, check):
    check(estimator)


def test_the_kernel_that_suits_the_target_is_chosen(fitted):
    X, product, total = waves()
    assert fitted.best_params_["kernel"] == "rbf"
    assert fitted.score(X, product) > 0.9
    assert fitted.scoring_ == "r2"
    assert {t["kernel"] for t in fitted.trials_} == {"linear", "chi2", "intersection", "rbf"}
    added = AutoSVR(LONG, machines=["additive"], random_state=0).fit(X, total)
    assert added.best_params_["kernel"] in ("chi2", "intersection")
    assert "r2 0." in added.explain_choice()


@pytest.mark.parametrize("unit", [1e-9, 1024.0, 1e12])
def test_the_unit_of_the_targets_changes_nothing(fitted, unit):
    X, y, _ = waves()
    other = AutoSVR(LONG, random_state=0).fit(X, unit * y)
    assert other.best_score_ == pytest.approx(fitted.best_score_, abs=0.01)
    assert np.corrcoef(other.predict(X), fitted.predict(X))[0, 1] > 0.995
    assert other.score(X, unit * y) == pytest.approx(fitted.score(X, y), abs=0.02)


def test_it_is_saved_cloned_and_pickled(fitted, tmp_path):
    X, *_ = waves()
    save(fitted, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), fitted.predict(X))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()


def test_frames_and_sparse_rows():
    X, y, _ = waves()
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(job=np.where(y > 0, "x", "y"))
    frame.loc[::9, "a"] = np.nan
    auto = clone(QUICK).set_params(machines=["additive", "kernel"]).fit(frame, y)
    assert auto.score(frame, y) > 0.7
    assert auto.feature_names_in_.tolist() == ["a", "b", "c", "job"]
    sparse = clone(QUICK).fit(sp.csr_array(X * (X > 0.3)), y)
    assert sparse.score(sp.csr_array(X * (X > 0.3)), y) > 0.5


def test_rows_of_weight_0_are_rows_left_out():
    X, y, _ = waves()
    weight = np.where(np.arange(150) % 3, 1.0, 0.0)
    weighted, kept = clone(QUICK).fit(X, y, weight), clone(QUICK).fit(X[weight > 0], y[weight > 0])
    assert weighted.best_params_ == kept.best_params_
    np.testing.assert_array_equal(weighted.predict(X), kept.predict(X))


def test_a_choice_that_is_no_better_than_the_mean_is_told():
    X, y, _ = waves(90)
    shuffled = np.random.default_rng(1).permutation(y)
    with pytest.warns(ChoiceWarning, match="no better than the mean of the targets: r2"):
        AutoSVR(LONG, machines=["additive"], random_state=0).fit(X, shuffled)


def test_a_score_of_ones_own_is_maximised():
    X, y, _ = waves()

    def within(model, X, y):
        return np.mean(np.abs(model.predict(X) - y) < 0.2)

    auto = clone(QUICK).set_params(scoring=within).fit(X, y)
    assert 0.5 < auto.best_score_ <= 1


@pytest.mark.parametrize(
    ("parameters", "y", "said"),
    [
        ({"scoring": "r2"}, np.arange(9.0), "scoring='r2' must be a function or None"),
        ({"machines": ["trees"]}, np.arange(9.0), "machines="),
        ({}, [*"abcdefghi"], "y must hold finite numbers"),
        ({}, [1.0, np.nan, *np.arange(7.0)], "row 1"),
        ({}, np.ones((9, 2)), "1d array"),
        ({}, [1.0, 2.0], "Too few rows to choose by: n_samples = 2"),
    ],
)
def test_what_is_refused(parameters, y, said):
    with pytest.raises(ValueError, match=said):
        AutoSVR(**parameters).fit(np.arange(len(y))[:, None] + np.zeros((1, 2)), y)


class Enough(FitStopper):
    """Asks for the end after some candidates."""

    seen = 0

    def on_fit_task_end(self, estimator, context):
        self.seen += context.task_name == "candidate"
        return self.seen >= 2


def test_a_callback_may_end_the_search():
    X, y, _ = waves()
    auto = AutoSVR(LONG, random_state=0).set_callbacks(Enough()).fit(X, y)
    assert [t["kernel"] for t in auto.trials_] == ["chi2", "linear"]


# ------------------------------------------------------------------ in the terminal


def write_csv(name, X, y):
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(target=y)
    frame.to_csv(name, index=False)


def test_easy_takes_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, _ = waves()
    write_csv("waves.csv", X[:100], y[:100])
    found = run_json("easy", "waves.csv", "waves.csv", "--label", "target", "--model", "m")
    assert found["best"]["r2"] > 0.7
    assert found["test"]["R2"] > 0.9
    told = run_json("evaluate", "waves.csv", "m", "--label", "target")
    assert {k: v for k, v in told.items() if k != "seconds"} == {
        k: v for k, v in found["test"].items() if k != "seconds"
    }
    data = read("waves.csv", label="target")
    same = AutoSVR(LONG, random_state=0).fit(data.X, data.y)
    np.testing.assert_array_equal(load("m").predict(data.X), same.predict(data.X))
    said = run("easy", "waves.csv", "waves.csv", "--label", "target", "--minutes", "0.05")
    assert "R2 " in said.stdout
    assert "(r2 0." in said.stdout
    for words in (["--scoring", "accuracy"], ["--weight", "balanced"]):
        refused = run("easy", "waves.csv", "--label", "target", *words, status=2)
        assert f"{words[0]} is for classes, and the labels are numbers" in refused.stderr


def test_easy_of_classes_keeps_probabilities(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_iris(return_X_y=True)
    write_csv("iris.csv", X[:, 1:], np.array(["a", "b", "c"])[y])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run_json("easy", "iris.csv", "iris.csv", "--label", "target", "--model", "m")
    assert found["test"]["log_loss"] < 0.3
    words = ["--label", "target"]
    labels = run("predict", "iris.csv", "m", *words, "--quiet").stdout.split()
    beside = run("predict", "iris.csv", "m", *words, "--probability", "--quiet").stdout.splitlines()
    rows = [line.split() for line in beside if line.split()[0] in labels]
    assert [row[0] for row in rows] == labels
    assert all(sum(map(float, row[1:])) == pytest.approx(1, abs=1e-4) for row in rows)
    assert json.dumps(found)
