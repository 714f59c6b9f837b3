"""The search finds what an exhaustive one finds, on the same folds."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC
from widemargin.errors import RareClassWarning
from widemargin.selection import (
    Candidate,
    Trial,
    pooled,
    ranked,
    sample_rows,
    tune,
)

X, Y = load_iris(return_X_y=True)
CS = [0.01, 1.0, 100.0]


@pytest.mark.parametrize(("scaler", "seed"), [(None, 0), (StandardScaler(), 1)])
@pytest.mark.parametrize(
    "machine",
    [KernelSVC(gamma=0.1, tol=1e-8), AdditiveSVC("chi2", tol=1e-8, max_iter=10**5, random_state=0)],
)
def test_accuracies_are_those_of_a_grid_search(machine, scaler, seed):
    """At a tight tolerance, where a path of warm starts leads to the same models."""
    steps = [("svm", machine)] if scaler is None else [("scale", scaler), ("svm", machine)]
    folds = StratifiedKFold(4, shuffle=True, random_state=seed)
    grid = GridSearchCV(Pipeline(steps), {"svm__C": CS}, cv=folds).fit(X, Y)
    trials = tune([Candidate({}, machine, scaler)], X, Y, CS, folds=4, random_state=seed)
    found = {t.C: (t.score, t.spread) for t in trials}
    expected = zip(grid.cv_results_["mean_test_score"], grid.cv_results_["std_test_score"],
                   strict=True)  # fmt: skip
    for C, (accuracy, spread) in zip(CS, expected, strict=True):
        assert found[C] == (pytest.approx(accuracy), pytest.approx(spread))
    assert trials[0].score == pytest.approx(grid.best_score_)
    assert grid.best_params_["svm__C"] == trials[0].C


def test_more_folds_than_rows_of_any_class_are_refused_by_name():
    candidate = Candidate({}, AdditiveSVC())
    with pytest.raises(ValueError, match=r"^folds=4 are too many: the largest class has 3 rows"):
        tune([candidate], X[:5], [0, 1, 0, 1, 0], CS, folds=4)


class Guess:
    """A machine whose accuracy is what a table says for its C."""

    def __init__(self, accuracy):
        self.accuracy, self.C = accuracy, 1.0

    def fit_path(self, X, y, Cs):
        return [_Scored(self.accuracy[C]) for C in Cs]

    def __sklearn_tags__(self):
        return AdditiveSVC().__sklearn_tags__()


class _Scored:
    converged_ = True

    def __init__(self, accuracy):
        self.accuracy = accuracy

    def score(self, X, y):
        return self.accuracy


def test_the_best_come_first_and_of_equals_the_smaller_c_then_the_earlier_candidate():
    first = Candidate({"name": "first"}, Guess({1.0: 0.5, 10.0: 0.9, 100.0: 0.9}))
    second = Candidate({"name": "second"}, Guess({1.0: 0.5, 10.0: 0.9, 100.0: 0.95}))
    trials = tune([first, second], X, Y, [100, 1, 10], folds=2)
    order = [(t.candidate.settings["name"], t.C) for t in trials]
    assert order == [("second", 100), ("first", 10), ("second", 10), ("first", 100),
                     ("first", 1), ("second", 1)]  # fmt: skip
    assert all(t.spread == 0 for t in trials)
    assert trials[0].seconds == trials[2].seconds > 0  # one path for all C of a candidate


def test_classes_with_fewer_rows_than_folds_are_named_in_one_warning():
    X, y = np.random.default_rng(0).random((40, 2)), np.repeat(["a", "b", "rare"], [20, 18, 2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tune([Candidate({}, AdditiveSVC(random_state=0))], X, y, [1.0], folds=3)
    (only,) = caught
    assert only.category is RareClassWarning
    assert str(only.message).startswith(
        "Classes with fewer rows than the 3 folds are not in all of them: 'rare' (2). Join"
    )


def test_the_seed_decides_the_folds():
    candidates = [Candidate({}, AdditiveSVC("chi2", random_state=0))]
    runs = [
        [(t.C, t.score) for t in tune(candidates, X, Y, CS, folds=3, random_state=seed)]
        for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("scaler", [None, MinMaxScaler()])
@pytest.mark.parametrize("machine", [AdditiveSVC("chi2"), KernelSVC(levels=0)])
def test_folds_that_did_not_converge_are_counted_instead_of_warned_of(machine, scaler):
    short = clone(machine).set_params(max_iter=1, tol=1e-6)
    candidate = Candidate({}, short, scaler)
    trials = tune([candidate], X, Y, [10.0, 1e4], folds=3)  # a warning would be an error
    assert {(t.unconverged, t.folds) for t in trials} == {(3, 3)}
    with pytest.warns(ConvergenceWarning):
        candidate.fit(X, Y, 1e4)
    trials = tune([Candidate({}, machine, scaler)], X, Y, [1.0], folds=3)
    assert [t.unconverged for t in trials] == [0]


def trial(accuracy, unconverged=0, C=1.0):
    return Trial(Candidate({}, None), C, accuracy, 0.04, 1.0, 5, unconverged)  # error 0.02


@pytest.mark.parametrize(
    ("best", "other", "chosen"),
    [
        (trial(0.95), trial(0.94, C=2.0), 0),
        (trial(0.95, 2), trial(0.94, C=2.0), 1),  # converged, and within a standard error
        (trial(0.95, 2), trial(0.92, C=2.0), 0),  # too far
        (trial(0.95, 2), trial(0.94, 1, C=2.0), 0),  # did not converge either
        (trial(0.95), trial(0.94, 1, C=2.0), 0),
    ],
)
def test_the_choice_rests_on_folds_that_converged_where_it_can(best, other, chosen):
    found = ranked([other, trial(0.5, C=3.0), best])
    assert found[0] is (best, other)[chosen]
    assert [t.score for t in found[1:]] == sorted((t.score for t in found[1:]), reverse=True)
    assert len(found) == 3


@pytest.mark.parametrize("scaler", [None, MinMaxScaler()])
def test_a_candidate_fits_one_model_and_stays_as_it_was(scaler):
    candidate = Candidate({}, KernelSVC(), scaler)
    fitted = candidate.fit(X, Y, 7.0)
    machine = fitted if scaler is None else fitted[-1]
    assert machine.C == 7
    by_hand = X if scaler is None else MinMaxScaler().fit_transform(X)
    expected = KernelSVC(C=7).fit(by_hand, Y).decision_function(by_hand)
    np.testing.assert_array_equal(fitted.decision_function(X), expected)
    tune([candidate], 10 * X, Y, [7.0, 70.0], folds=3)
    np.testing.assert_array_equal(fitted.decision_function(X), expected)
    assert candidate.estimator.C == 1
    assert not hasattr(candidate.estimator, "model_")
    assert not hasattr(candidate.scaler, "scale_")


def test_kernel_values_are_taken_by_rows_and_columns():
    K = rbf_kernel(X, gamma=0.1)
    given = tune([Candidate({}, KernelSVC("precomputed", tol=1e-6))], K, Y, CS, folds=3)
    direct = tune([Candidate({}, KernelSVC(gamma=0.1, tol=1e-6))], X, Y, CS, folds=3)
    assert [(t.C, t.score) for t in given] == [(t.C, t.score) for t in direct]


def test_names_of_candidates():
    assert (
        Candidate({"kernel": "rbf", "gamma": 0.1 / 3}, None).name == "kernel rbf, gamma 0.0333333"
    )


# ------------------------------------------------------------------ some of the rows


def test_a_sample_of_rows_keeps_the_classes_in_proportion():
    y = np.repeat([0, 1, 2], [800, 150, 50])
    rows = sample_rows(np.zeros((1000, 1)), y, 100)
    assert len(set(rows.tolist())) == 100
    assert np.all(np.diff(rows) > 0)
    assert np.bincount(y[rows]).tolist() == [80, 15, 5]
    other = sample_rows(np.zeros((1000, 1)), y, 100, random_state=1)
    assert rows.tolist() != other.tolist()
    assert rows.tolist() == sample_rows(np.zeros((1000, 1)), y, 100).tolist()


def test_a_sample_of_all_rows_is_all_of_them():
    assert sample_rows(np.zeros((5, 1)), np.zeros(5), 5).tolist() == [0, 1, 2, 3, 4]
    assert sample_rows(np.zeros((5, 1)), np.zeros(5), 50).tolist() == [0, 1, 2, 3, 4]


def test_a_sample_where_a_class_has_one_row():
    y = np.array([0] * 50 + [1])
    assert len(sample_rows(np.zeros((51, 1)), y, 20)) == 20
    assert len(sample_rows(np.zeros((20, 1)), np.arange(20) // 2, 5)) == 5  # fewer than classes


def test_two_looks_are_one_on_the_folds_of_both():
    scores = np.array([0.8, 0.9, 0.7, 0.95, 0.85])
    candidate = Candidate({"kernel": "chi2"}, AdditiveSVC("chi2"))

    def seen(own, **more):
        return Trial(candidate, 1.0, own.mean(), own.std(), folds=len(own), rows=90, **more)

    found = pooled(
        seen(scores[:3], seconds=8.0, path=4, unconverged=1), seen(scores[3:], seconds=3.0, path=2)
    )
    expected = seen(scores, seconds=3.5, path=1, unconverged=1)
    assert (found.score, found.spread) == pytest.approx((expected.score, expected.spread))
    assert replace(found, score=expected.score, spread=expected.spread) == expected
