"""Codings of classes: targets in, scores out."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier

from widemargin.multiclass import Coding

CODINGS = [("ovr", 2), ("ovr", 5), ("ovo", 2), ("ovo", 5), ("crammer_singer", 2),
           ("crammer_singer", 5)]  # fmt: skip
each_coding = pytest.mark.parametrize(("scheme", "n_classes"), CODINGS)


@each_coding
def test_every_output_has_both_sides_and_every_class_a_code_of_its_own(scheme, n_classes):
    coding = Coding(scheme, n_classes)
    assert coding.targets.shape == (n_classes, coding.n_outputs)
    assert set(np.unique(coding.targets)) <= {-1.0, 0.0, 1.0}
    assert np.all(coding.targets.max(axis=0) == 1)
    assert np.all(coding.targets.min(axis=0) == -1)
    assert len(np.unique(coding.targets, axis=0)) == n_classes


@each_coding
def test_outputs_on_target_choose_their_class(scheme, n_classes):
    coding = Coding(scheme, n_classes)
    scores = coding.scores(coding.targets)
    assert scores.shape == ((2,) if n_classes == 2 else (n_classes, n_classes))
    np.testing.assert_array_equal(coding.classes(scores), np.arange(n_classes))


@each_coding
def test_the_readout_is_what_scores_computes(scheme, n_classes):
    coding = Coding(scheme, n_classes)
    if coding.votes:
        pytest.skip("votes are no sum")
    outputs = np.random.default_rng(0).normal(size=(7, coding.n_outputs))
    scores = (outputs @ coding.readout).reshape(coding.scores(outputs).shape)
    np.testing.assert_array_equal(scores, coding.scores(outputs))
    assert coding.readout.shape[1] == len(np.arange(n_classes)[coding.scored])


@pytest.mark.parametrize("scheme", ["ovr", "crammer_singer"])
def test_the_two_scores_of_two_classes_are_opposite(scheme):
    coding = Coding(scheme, 2)
    outputs = np.random.default_rng(1).normal(size=(6, coding.n_outputs))
    np.testing.assert_array_equal(coding.score_of(outputs, 1), coding.scores(outputs))
    np.testing.assert_array_equal(coding.score_of(outputs, 0), -coding.scores(outputs))


def test_the_score_of_one_of_many_classes_is_its_output():
    outputs = np.random.default_rng(2).normal(size=(6, 4))
    np.testing.assert_array_equal(Coding("ovr", 4).score_of(outputs, 2), outputs[:, 2])


@pytest.mark.parametrize("n_classes", [3, 5])
def test_scores_of_pairs_become_scores_of_classes_as_in_scikit_learn(n_classes):
    rng = np.random.default_rng(3)
    label = rng.permutation(np.arange(120) % n_classes)
    X = rng.normal(size=(120, 3)) + rng.normal(size=(n_classes, 3))[label]
    theirs = OneVsOneClassifier(LogisticRegression()).fit(X, label)
    pairs = np.column_stack([e.decision_function(X) for e in theirs.estimators_])
    np.testing.assert_allclose(
        Coding("ovo", n_classes).scores(pairs), theirs.decision_function(X), rtol=1e-12
    )


def test_votes_count_first_and_sums_break_ties():
    # columns: 0 against 1, 0 against 2, 1 against 2; positive is for the later class
    pairs = np.array(
        [
            [-1.0, -1.0, 3.0],  # 0 wins twice
            [-0.1, 5.0, 0.1],  # 2 wins twice, though 0 wins once
            [-1.0, 2.0, -4.0],  # each wins once, by sums of -1, 3 and -2
            [1.0, -2.0, 4.0],  # 1, -3 and 2
            [0.2, -3.0, 0.1],  # 2.8, 0.1 and -2.9
        ]
    )
    scores = Coding("ovo", 3).scores(pairs)
    np.testing.assert_array_equal(np.argmax(scores, axis=1), [0, 2, 1, 2, 0])
    np.testing.assert_array_equal(np.round(scores[:2]), [[2, 0, 1], [1, 0, 2]])
    assert np.all(np.ptp(scores[2:], axis=1) < 1)
