"""`AutoSVC`: what it takes, how it stops, what it says."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import AutoSVC, KernelSVC, TableEncoder, load, save
from widemargin.errors import ChoiceWarning, IdentifierWarning, LostClassWarning
from widemargin.progress import FitStopper
from widemargin.selection import cross_validated

X, Y = load_iris(return_X_y=True)
LONG = 600.0  # no limit


@pytest.fixture(scope="module", autouse=True)
def few_settings():
    """Searches that are short, because tests need no good one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.search.MOST_SETTINGS", 8)
        yield


@pytest.fixture(scope="module")
def iris():
    return AutoSVC(LONG, random_state=0).fit(X, Y)


# ------------------------------------------------------------------ scikit-learn

WHY = "rows decide folds, and copies of a row may be in several of them, a row of weight 2 in one"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [AutoSVC(LONG, machines=["kernel"], random_state=0)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": WHY,
        "check_sample_weight_equivalence_on_sparse_data": WHY,
    },
)
def test_sklearn(estimator, check):
    check(estimator)


def test_it_is_cloned_pickled_and_searched(iris):
    same = clone(iris)
    assert same.get_params() == iris.get_params()
    assert not hasattr(same, "best_estimator_")
    again = pickle.loads(pickle.dumps(iris))
    np.testing.assert_array_equal(again.predict_proba(X), iris.predict_proba(X))
    quick = AutoSVC(LONG, machines=["kernel"], random_state=0)
    assert cross_val_score(quick, X, Y, cv=2).min() > 0.9
    found = GridSearchCV(quick, {"class_weight": [None, "balanced"]}, cv=2).fit(X, Y)
    assert found.best_score_ > 0.9


def test_weights_of_rows_are_routed():
    weight = np.where(Y == 2, 0.0, 1.0)
    quick = AutoSVC(LONG, machines=["kernel"], random_state=0)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(MinMaxScaler(), quick.set_fit_request(sample_weight=True))
        model.fit(X, Y, sample_weight=weight)
    assert model[-1].classes_.tolist() == [0, 1]
    assert "of 100 rows" in model[-1].explain_choice()


def test_rows_of_weight_0_are_rows_left_out():
    rng = np.random.default_rng(0)
    weight = (rng.random(150) < 0.7).astype(float)
    quick = AutoSVC(LONG, machines=["kernel"], random_state=0)
    weighted, kept = clone(quick).fit(X, Y, weight), clone(quick).fit(X[weight > 0], Y[weight > 0])
    assert weighted.best_params_ == kept.best_params_
    np.testing.assert_array_equal(weighted.predict(X), kept.predict(X))


def test_weights_count_in_scores():
    """Two classes that cannot be told, of which one has weights that make it the larger one."""
    rng = np.random.default_rng(0)
    noise, label = rng.random((200, 2)), np.arange(200) % 2
    weight = np.where(label == 1, 3.0, 1.0)
    with pytest.warns(ChoiceWarning, match="no better than the majority class: accuracy 75"):
        auto = AutoSVC(LONG, machines=["kernel"], random_state=0).fit(noise, label, weight)
    assert auto.best_score_ == pytest.approx(0.75, abs=0.03)


# ------------------------------------------------------------------ results


def test_the_results_are_those_of_the_best_estimator(iris):
    best = iris.best_estimator_
    np.testing.assert_array_equal(iris.predict(X), best.predict(X))
    np.testing.assert_array_equal(iris.decision_function(X), best.decision_function(X))
    assert iris.score(X, Y) > 0.94
    probability = iris.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(iris.calibrated_estimator_.predict_proba(X), probability)
    assert np.mean(probability.argmax(axis=1) == iris.predict(X)) > 0.97
    np.testing.assert_array_equal(iris.calibrated_estimator_.predict(X), iris.predict(X))
    table = pd.DataFrame(iris.trials_)
    assert {"kernel", "gamma", "C", "score", "standard_error", "seconds", "rows", "folds"} <= {
        *table.columns
    }
    assert table.score[0] == iris.best_score_
    first = table[(table.rows == table.rows[0]) & (table.folds == table.folds[0])]
    assert iris.best_score_ >= first.score.max() - first.standard_error.max()
    assert {k: v for k, v in iris.trials_[0].items() if k in iris.best_params_} == iris.best_params_
    assert 0 < iris.seconds_ < LONG


def test_the_same_seed_is_the_same_model(iris):
    again = AutoSVC(LONG, random_state=0, n_jobs=2).fit(X, Y)
    assert [t["score"] for t in again.trials_] == [t["score"] for t in iris.trials_]
    np.testing.assert_array_equal(again.decision_function(X), iris.decision_function(X))
    np.testing.assert_array_equal(again.predict_proba(X), iris.predict_proba(X))


def test_it_is_saved_with_its_probabilities(iris, tmp_path):
    save(iris, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again.estimator_) is type(iris.best_estimator_)
    np.testing.assert_array_equal(again.predict(X), iris.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), iris.decision_function(X))
    np.testing.assert_array_equal(again.predict_proba(X), iris.predict_proba(X))
    save(iris.best_estimator_, tmp_path / "b")
    assert type(load(tmp_path / "b")) is type(iris.best_estimator_)
    with pytest.raises(TypeError, match="not AutoSVC"):
        save(AutoSVC(), tmp_path / "n")


def test_the_choice_is_explained(iris):
    said = iris.explain_choice()
    best = iris.ranking_[0]
    assert said.startswith(f"{best.candidate.name}, C {best.C:g}: accuracy 9")
    assert f"{best.folds} folds of 150 rows, of {len(iris.trials_)} trials" in said
    assert "It is trained on all 150 rows." in said
    assert "not tried" not in said.lower()


def test_what_there_was_no_time_for_is_told():
    digits = load_digits()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that the limit ends
        auto = AutoSVC(0.5, random_state=0).fit(digits.data, digits.target)
    assert auto.untried_
    assert "Not tried for lack of time: " in auto.explain_choice()


# ------------------------------------------------------------------ data


@pytest.mark.filterwarnings("ignore:Different in every row. '__index_level_0__'")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_data_frame_is_taken_as_it_is(make, tmp_path):
    """By its rows' order, whatever their index says."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300), "job": rng.choice(["x", "y", None], 300)})
    y = (frame["a"] > 0.5) ^ (frame["job"] == "x")
    frame.loc[::10, "a"] = np.nan
    order = rng.permutation(300)
    given, y = make(frame.iloc[order]), y.iloc[order]
    auto = AutoSVC(LONG, random_state=0).fit(given, y)
    encoder, *_, machine = [type(step) for _, step in auto.best_estimator_.steps]
    assert (encoder, machine) == (TableEncoder, KernelSVC)
    assert auto.score(given, y) > 0.9
    assert auto.feature_names_in_.tolist()[:2] == ["a", "job"]
    save(auto, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(given), auto.predict(given))


def test_sparse_rows_are_dense_ones():
    counts = load_digits().data[:300]
    quick = AutoSVC(LONG, machines=["kernel"], random_state=0)
    dense = clone(quick).fit(counts, load_digits().target[:300])
    sparse = clone(quick).fit(sp.csr_matrix(counts), load_digits().target[:300])
    assert sparse.best_score_ == pytest.approx(dense.best_score_, abs=0.01)
    assert np.mean(sparse.predict(sp.csr_matrix(counts)) == dense.predict(counts)) > 0.99


def test_columns_that_number_the_rows_are_named():
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(number=np.arange(150) * 7 % 151)
    with pytest.warns(IdentifierWarning, match="'number'") as seen:
        AutoSVC(LONG, machines=["additive"], random_state=0).fit(frame, Y)
    assert len([w for w in seen if w.category is IdentifierWarning]) == 1


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"max_seconds": 0}, "max_seconds=0"),
        ({"scoring": "best"}, "scoring='best': not one of accuracy"),
        ({"scoring": "f1"}, "scoring='f1': it is for two classes"),
        ({"machines": "kernel"}, "machines='kernel' must be"),
        ({"machines": []}, "machines="),
        ({"machines": ["forest"]}, "machines="),
        ({"scoring": 3}, "scoring=3 must be a name, a function or None"),
    ],
)
def test_parameters_that_are_refused(parameters, said):
    with pytest.raises(ValueError, match=said):
        AutoSVC(**parameters).fit(X, Y)


def test_no_model_where_every_candidate_was_left_out(monkeypatch):
    monkeypatch.setattr("widemargin.search.Search._compared", lambda *_: [])
    with pytest.raises(ValueError, match=r"^No candidate could be trained on this data"):
        AutoSVC().fit(X, Y)


# ------------------------------------------------------------------ honesty


def rare(n=500, share=0.07, noise=0.5):
    rng = np.random.default_rng(0)
    label = np.arange(n) < share * n
    return rng.normal(size=(n, 4)) + noise * label[:, None], label


def test_of_a_rare_class_the_balanced_accuracy_decides_and_a_warning_says_so():
    data, label = rare(noise=1.5)
    words = np.where(label, "ill", "well").astype(object)
    with pytest.warns(ChoiceWarning, match=r"Class 'ill' has 7 % of the rows, so the balanced"):
        auto = AutoSVC(LONG, random_state=0).fit(data, words)
    assert auto.scoring_ == "balanced_accuracy"
    assert auto.best_params_["class_weight"] == "balanced"
    recall = np.mean(auto.predict(data)[label] == "ill")
    assert recall > 0.7
    given = AutoSVC(LONG, scoring="accuracy", machines=["kernel"], random_state=0)
    assert given.fit(data, label).scoring_ == "accuracy"
    assert "class_weight" not in given.best_params_


def test_a_class_that_is_never_predicted_is_named():
    data, label = rare(noise=0.1)
    auto = AutoSVC(LONG, scoring="accuracy", machines=["additive"], random_state=0)
    with (
        pytest.warns(ChoiceWarning, match="no better"),
        pytest.warns(LostClassWarning, match="training rows: class True"),
    ):
        auto.fit(data, label)


def test_a_choice_that_is_no_better_than_a_guess_is_told():
    rng = np.random.default_rng(0)
    with pytest.warns(ChoiceWarning, match="no better than the majority class"):
        AutoSVC(LONG, machines=["kernel"], random_state=0).fit(rng.random((90, 3)), Y[30:120] > 0)


def test_no_probabilities_of_a_class_with_one_row():
    label = Y.copy()
    label[0] = 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        auto = AutoSVC(LONG, machines=["kernel"], random_state=0).fit(X, label)
    with pytest.raises(AttributeError) as raised:
        auto.predict_proba(X)
    assert "two rows or more of every class" in str(raised.value.__cause__)
    assert auto.predict(X).shape == (150,)


# ------------------------------------------------------------------ the end


def interrupting(monkeypatch, at, error=KeyboardInterrupt):
    """Ctrl-C in the fits of a candidate."""
    seen = []

    def interrupted(*args):
        seen.append(args)
        if len(seen) == at:
            raise error
        return cross_validated(*args)

    monkeypatch.setattr("widemargin.search.cross_validated", interrupted)


def test_ctrl_c_ends_the_search_with_the_best_so_far(monkeypatch):
    interrupting(monkeypatch, 3)
    auto = AutoSVC(LONG, random_state=0).fit(X, Y)
    assert [t["kernel"] for t in auto.trials_] == ["chi2", "linear"]
    assert auto.best_estimator_.kernel == "chi2"
    assert auto.predict_proba(X).shape == (150, 3)


def test_ctrl_c_before_anything_is_found_is_raised(monkeypatch):
    interrupting(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        AutoSVC(LONG, random_state=0).fit(X, Y)


class Enough(FitStopper):
    """Asks for the end after some candidates."""

    def __init__(self, most):
        self.most, self.names, self.trials = most, [], 0

    def on_fit_task_begin(self, estimator, context):
        self.names.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.trials += len(getattr(context, "trials", []))
        return self.names.count("candidate") >= self.most


@pytest.mark.parametrize("most", [1, 5])
def test_a_callback_hears_candidates_and_may_end_the_search(most):
    enough = Enough(most)
    auto = AutoSVC(LONG, random_state=0).set_callbacks(enough).fit(X, Y)
    assert enough.names == ["fit", *["candidate"] * most, "choice"]
    assert enough.trials - 1 == len({(t["kernel"], t["C"]) for t in auto.trials_}) + (most == 5)
    assert not getattr(auto.best_estimator_, "_skl_callbacks", None)


def test_candidates_are_logged(caplog):
    with caplog.at_level("INFO", logger="widemargin"):
        AutoSVC(LONG, machines=["kernel"], random_state=0, verbose=1).fit(X, Y)
    assert "kernel rbf, gamma 3.63: 0.95" in caplog.text
