"""Reports count as scikit-learn does."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from widemargin import AdditiveSVC
from widemargin.libsvm import ForeignClassifier
from widemargin.report import Evaluation, evaluate

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


class Fixed:
    """A model with these predictions."""

    def __init__(self, classes, predicted):
        self.classes_, self._predicted = np.asarray(classes), np.asarray(predicted)

    def decision_function(self, X):
        lead = 2.0 * (self._predicted[:, None] == self.classes_) - 1
        return lead[:, 1] if len(self.classes_) == 2 else lead


@pytest.mark.parametrize("labels", [Y, NAMES[Y], Y - 1.0, NAMES[Y].astype(object)])
def test_the_numbers_are_those_of_scikit_learn(labels):
    model = AdditiveSVC("chi2", C=0.01, random_state=0).fit(X, labels)
    predicted = model.predict(X)
    found = evaluate(model, X, labels)
    assert found.accuracy == accuracy_score(labels, predicted) < 1
    assert found.rows == 150
    np.testing.assert_array_equal(found.confusion, confusion_matrix(labels, predicted))
    by_class = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    for name, score in by_class.items():
        expected = score(labels, predicted, average=None, zero_division=0.0)
        assert [getattr(c, name) for c in found.classes] == pytest.approx(expected.tolist())
    assert [c.label for c in found.classes] == np.unique(labels).tolist()
    assert [c.rows for c in found.classes] == [50, 50, 50]


@pytest.mark.parametrize("classes", [2, 3])
def test_means_over_classes_are_those_of_scikit_learn(classes):
    rows = np.random.default_rng(0).permutation(150)[:90]
    X_few, y = X[:, :2][rows], np.minimum(Y, classes - 1)[rows]
    model = AdditiveSVC("chi2", C=0.01, random_state=0).fit(X_few, y)
    found = evaluate(model, X_few, y)
    assert found.balanced_accuracy == pytest.approx(
        balanced_accuracy_score(y, model.predict(X_few))
    )
    scores = model.decision_function(X_few).reshape(90, -1)
    labels = model.classes_[-scores.shape[1] :]
    by_class = [roc_auc_score(y == c, s) for c, s in zip(labels, scores.T, strict=True)]
    assert found.roc_auc == pytest.approx(np.mean(by_class))
    assert found.mean.recall == pytest.approx(found.balanced_accuracy)
    assert found.mean.f1 == pytest.approx(f1_score(y, model.predict(X_few), average="macro"))


def test_areas_need_two_classes():
    found = evaluate(Fixed([0, 1], [0, 1]), np.zeros((2, 1)), [1, 1])
    assert np.isnan(found.roc_auc)
    assert found.balanced_accuracy == found.mean.recall == 0.5


def test_rows_of_the_confusion_matrix_are_the_true_classes():
    found = evaluate(Fixed([0, 1], [1, 1, 1, 0]), np.zeros((4, 1)), [0, 0, 1, 1])
    assert found.confusion.tolist() == [[0, 2], [1, 1]]
    assert (found.classes[1].precision, found.classes[1].recall) == (pytest.approx(1 / 3), 0.5)


def test_the_most_confused_are_the_largest_counts_off_the_diagonal():
    truth, predicted = [0, 0, 0, 1, 1, 2, 2, 2], [0, 1, 1, 1, 0, 2, 0, 0]
    found = evaluate(Fixed([0, 1, 2], predicted), np.zeros((8, 1)), truth)
    assert found.most_confused() == [(0, 1, 2), (2, 0, 2), (1, 0, 1)]
    assert found.most_confused(1) == [(0, 1, 2)]


def test_classes_that_only_the_model_or_only_the_data_has():
    found = evaluate(Fixed([0, 1, 2], [0, 0, 1]), np.zeros((3, 1)), [0, 5, 1])
    assert [c.label for c in found.classes] == [0, 1, 2, 5]
    assert [c.rows for c in found.classes] == [1, 1, 0, 1]
    assert [c.recall for c in found.classes] == [1, 1, 0, 0]
    assert found.accuracy == 2 / 3
    assert found.confusion[3].tolist() == [1, 0, 0, 0]


def test_labels_are_plain_values_of_python():
    found = evaluate(Fixed([0, 1], [0]), np.zeros((1, 1)), np.array([1]))
    assert [type(c.label) for c in found.classes] == [int, int]
    assert [type(c.rows) for c in found.classes] == [int, int]
    assert type(found.accuracy) is float


def test_time_per_row():
    found = Evaluation(1.0, 200, 0.5, [], np.zeros((0, 0)))
    assert found.microseconds_per_row == 2500
    assert Evaluation(1.0, 0, 0.5, [], np.zeros((0, 0))).microseconds_per_row == 5e5
    assert evaluate(Fixed([0, 1], [0]), np.zeros((1, 1)), [0]).seconds > 0


class Voting(ForeignClassifier):
    """Decision values and labels take a second each, by a clock of its own."""

    labels_ = classes_ = np.array([0, 1])
    now = 0.0

    def decision_function(self, X):
        self.now += 1
        return np.ones(len(X))

    def predict(self, X):
        self.now += 1
        return np.zeros(len(X), dtype=int)


def test_a_foreign_model_s_labels_are_its_own_and_its_rows_are_timed_once(monkeypatch):
    model = Voting()
    monkeypatch.setattr("widemargin.report.time.perf_counter", lambda: model.now)
    found = evaluate(model, np.zeros((4, 1)), [0, 0, 0, 1])
    assert found.accuracy == 0.75
    assert found.seconds == 1
