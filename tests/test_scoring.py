"""Scores by name are scikit-learn's, where decision values allow them."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import get_scorer as scikit_learn_s
from sklearn.metrics import roc_auc_score

from widemargin import AdditiveSVC, KernelSVC
from widemargin.scoring import (
    OF_TWO,
    SCORINGS,
    balanced_accuracy,
    check_scoring,
    get_scorer,
    roc_auc,
)

X, Y = load_iris(return_X_y=True)
X = X[:, :2]  # so that there are errors


@pytest.fixture(scope="module", params=[AdditiveSVC("chi2", random_state=0), KernelSVC()])
def machine(request):
    return request.param


@pytest.mark.parametrize("name", SCORINGS)
def test_scores_of_two_classes_are_those_of_scikit_learn(machine, name):
    y = (Y == 2).astype(int)
    model = machine.fit(X, y)
    assert get_scorer(name)(model, X, y) == pytest.approx(scikit_learn_s(name)(model, X, y))


@pytest.mark.parametrize("name", [n for n in SCORINGS if n not in OF_TWO and n != "roc_auc"])
def test_scores_of_three_classes_are_those_of_scikit_learn(machine, name):
    model = machine.fit(X, Y)
    assert get_scorer(name)(model, X, Y) == pytest.approx(scikit_learn_s(name)(model, X, Y))


def test_the_area_of_several_classes_is_the_mean_of_each_against_the_rest(machine):
    scores = machine.fit(X, Y).decision_function(X)
    expected = np.mean([roc_auc_score(k == Y, scores[:, k]) for k in range(3)])
    assert get_scorer("roc_auc")(machine, X, Y) == pytest.approx(expected)
    some = Y < 2  # nothing can be said of the third
    expected = np.mean([roc_auc_score(Y[some] == k, scores[some, k]) for k in range(2)])
    assert roc_auc(Y[some], scores[some], machine.classes_) == pytest.approx(expected)
    assert np.isnan(roc_auc(Y[:50], scores[:50], machine.classes_))


@pytest.mark.parametrize("name", OF_TWO)
def test_a_class_by_itself_is_the_second_whatever_its_label(machine, name):
    y = Y == 2
    as_numbers = get_scorer(name)(machine.fit(X, y.astype(int)), X, y.astype(int))
    words = np.where(y, "yes", "no")
    assert get_scorer(name)(machine.fit(X, words), X, words) == as_numbers < 1


def test_balanced_accuracy_of_classes_that_are_only_predicted():
    assert balanced_accuracy(np.array([0, 0, 1]), np.array([0, 2, 1])) == 0.75
    assert np.isnan(balanced_accuracy(np.array([]), np.array([])))


def test_a_function_is_taken_as_it_is():
    assert get_scorer(sum) is sum


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log_loss", "needs probabilities.*decision values.*roc_auc"),
        ("neg_brier_score", "needs probabilities"),
        ("rand", "scoring='rand': not one of accuracy, balanced_accuracy"),
    ],
)
def test_scores_that_there_are_not(name, said):
    with pytest.raises(ValueError, match=said):
        get_scorer(name)


@pytest.mark.parametrize("name", OF_TWO)
def test_scores_of_two_classes_are_refused_for_three(machine, name):
    with pytest.raises(ValueError, match=f"'{name}': it is for two classes, but there are 3. Use "):
        get_scorer(name)(machine.fit(X, Y), X, Y)
    check_scoring(name, np.array([0, 1]))
