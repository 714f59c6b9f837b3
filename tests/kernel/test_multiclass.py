"""Several classes: binary problems and votes, weights of classes, and labels."""

import numpy as np
import pytest
import reference
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.multiclass import OneVsOneClassifier

from widemargin.kernel.problems import binary_problems
from widemargin.multiclass import Coding

from .helpers import each_size, svc

pytestmark = each_size

# ------------------------------------------------------------------ models of several classes


def test_one_vs_rest_is_one_binary_model_per_class(three):
    X, y = three
    model = svc(tol=1e-9).fit(X, y)
    single = [svc(tol=1e-9).fit(X, y == c) for c in range(3)]
    together = np.stack([m.decision_function(X) for m in single], axis=1)
    np.testing.assert_allclose(model.decision_function(X), together, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), together.argmax(axis=1))
    assert model.objective_ == pytest.approx(sum(m.objective_ for m in single), rel=1e-8)
    assert model.duality_gap_ <= 1e-9


def test_one_vs_one_votes_like_scikit_learns(three):
    X, y = three
    ours = svc(tol=1e-9, multi_class="ovo").fit(X, y)
    theirs = OneVsOneClassifier(svc(tol=1e-9)).fit(X, y)
    assert ours.decision_function(X).shape == (len(X), 3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_one_vs_one_and_one_vs_rest_differ_for_three_classes(three):
    X, y = three
    one, rest = (svc(multi_class=m).fit(X, y).decision_function(X) for m in ("ovo", "ovr"))
    assert np.abs(one - rest).max() > 0.1


def test_two_classes_are_one_problem_either_way(two):
    X, y = two
    one, rest = (svc(multi_class=m).fit(X, y) for m in ("ovo", "ovr"))
    np.testing.assert_array_equal(one.decision_function(X), rest.decision_function(X))
    assert one.dual_coef_.shape == (1, len(one.support_))
    assert one.decision_function(X).shape == (len(X),)
    np.testing.assert_array_equal(one.predict(X), (one.decision_function(X) > 0).astype(int))


def test_boolean_labels_come_back(two):
    X, y = two
    model = svc().fit(X, y == 1)
    assert model.predict(X).dtype == bool
    np.testing.assert_array_equal(model.predict(X), svc().fit(X, y).predict(X) == 1)


# ------------------------------------------------------------------ weights of classes


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_class_weights_multiply_the_sample_weights(three, multi_class):
    X, y = three
    by_class, own = np.array([0.5, 2.0, 3.0]), 1.0 + np.arange(len(X)) % 2
    model = svc(multi_class=multi_class, levels=1)
    explicit = clone(model).fit(X, y, sample_weight=own * by_class[y])
    model.set_params(class_weight=dict(enumerate(by_class))).fit(X, y, sample_weight=own.copy())
    np.testing.assert_array_equal(model.decision_function(X), explicit.decision_function(X))
    without = clone(model).set_params(class_weight=None).fit(X, y, sample_weight=own)
    assert not np.allclose(model.decision_function(X), without.decision_function(X))


def test_class_weights_go_by_text_where_labels_are_text(two):
    X, y = two
    names = np.array(["1", "2"])[y]  # not the numbers 1 and 2
    model = svc(class_weight={"1": 3.0}).fit(X, names)
    by_number = svc(class_weight={0: 3.0}).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), by_number.decision_function(X))
    with pytest.raises(
        ValueError, match=r"class_weight has key 1, which is not a class in y; class '1'"
    ):
        svc(class_weight={1: 3.0}).fit(X, names)


def test_balanced_class_weights_are_the_inverse_frequencies(two):
    X, y = two[0][:90], two[1][:90]
    weight = len(y) / (2 * np.bincount(y))
    explicit = svc().fit(X, y, sample_weight=weight[y])
    balanced = svc(class_weight="balanced").fit(X, y)
    np.testing.assert_array_equal(balanced.decision_function(X), explicit.decision_function(X))
    assert weight[0] != weight[1]


def test_a_class_of_weight_zero_is_absent(three):
    X, y = three
    model = svc(class_weight={0: 0.0, 1: 1.0, 2: 1.0}).fit(X, y)
    absent = svc().fit(X[y > 0], y[y > 0])
    assert model.classes_.tolist() == [1, 2]
    np.testing.assert_array_equal(model.decision_function(X), absent.decision_function(X))
    np.testing.assert_array_equal(model.support_, np.flatnonzero(y > 0)[absent.support_])


# ------------------------------------------------------------------ binary problems and their votes


class Keeper(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it was trained on."""

    def fit(self, X, y):
        self.classes_, self.X_, self.y_ = np.unique(y), X, y
        return self


def class_labels(n_classes, n=40):
    return np.random.default_rng(2).permutation(np.arange(n) % n_classes)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_pairs_of_classes_are_those_of_scikit_learn(n_classes):
    label = class_labels(n_classes)
    upper = np.linspace(1, 2, len(label))
    numbers = np.arange(len(label), dtype=float)[:, None]
    theirs = OneVsOneClassifier(Keeper()).fit(numbers, label).estimators_
    ours = binary_problems(label, Coding("ovo", n_classes), upper, grouped=False)
    assert len(ours) == len(theirs) == n_classes * (n_classes - 1) // 2
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        order = np.argsort(other.y_, kind="stable")  # ours are class by class
        np.testing.assert_array_equal(mine.row, other.X_[order, 0])
        np.testing.assert_array_equal(mine.sign, np.where(other.y_[order] == 1, 1.0, -1.0))
        np.testing.assert_array_equal(mine.upper, upper[mine.row])
        np.testing.assert_array_equal(mine.output, [number])


def test_one_problem_per_class_has_all_rows_and_that_class_positive():
    label, upper = class_labels(3), np.linspace(1, 2, 40)
    ours = binary_problems(label, Coding("ovr", 3), upper)
    np.testing.assert_array_equal(np.stack([p.sign for p in ours], axis=1), reference.signs(label))
    for p in ours:
        np.testing.assert_array_equal(p.row, np.arange(40))
        np.testing.assert_array_equal(p.upper, upper)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_two_classes_are_one_problem_with_the_later_class_positive(scheme):
    label = class_labels(2)
    (p,) = binary_problems(label, Coding(scheme, 2), np.ones(40))
    np.testing.assert_array_equal(p.sign, reference.signs(label)[:, 0])
