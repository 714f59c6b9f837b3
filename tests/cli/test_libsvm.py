"""The command line in LIBSVM's words: what svm-train and svm-predict take, and what they print."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from widemargin import KernelSVC, load
from widemargin.cli.arguments import with_long_options

from .helpers import SIGN, TWO, read_lines, refused, run, run_json


@pytest.mark.parametrize(
    ("words", "long"),
    [
        (["-b", "1"], ["--probability"]),
        (["-b", "0"], ["--no-probability"]),
        (["-h", "1"], ["--shrinking"]),
        (["-h", "0"], ["--no-shrinking"]),
        (["-h"], ["-h"]),
        (["-b", "2"], ["-b", "2"]),
    ],
)
def test_switches_in_libsvm_s_way(words, long):
    assert with_long_options(["train", *words]) == ["train", *long]


def test_h_alone_is_help():
    assert "Train a model on DATA" in run("train", "-h").stdout


def test_the_type_and_shrinking_that_there_are_are_taken(two):
    run("train", "-s", 0, "-h", 1, "-c", 5, "-t", 2, "-g", 0.5, "-e", 0.1, two, "m")
    model = load("m")
    assert (model.C, model.gamma, model.tol) == (5, 0.5, 0.1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-s", 1, "-n", 0.2], "-s 1 (nu-SVC): there is classification with C only, -s 0"),
        (["-s", 2, "-n", 0.1], "-s 2 (one-class SVM): there is"),
        (["-s", 3, "-p", 0.1, "-t", 0], "-s 3 (epsilon-SVR): there is"),
        (["-s", 4], "-s 4 (nu-SVR): there is"),
        (["-s", 9], "-s 9 (no machine of LIBSVM's): there is"),
        (["-n", 0.5], "-n: there is no nu here"),
        (["-h", 0], "-h 0: variables at rest"),
    ],
)
def test_what_there_is_not_is_refused_by_name(two, words, said):
    assert refused("train", *words, two).startswith(said)


def test_cross_validation_prints_libsvm_s_line_first(two):
    first, *_ = run("train", two, "-v", 5).stdout.splitlines()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    score = cross_val_score(KernelSVC(random_state=0), TWO, SIGN, cv=folds).mean()
    assert first == f"Cross Validation Accuracy = {100 * score:g}%"
    assert run("train", two, "-v", 5, "-q").stdout.splitlines() == [first]


def test_cross_validation_by_another_score(two):
    words = ["train", two, "-v", 5, "--scoring", "roc_auc"]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    areas = [
        roc_auc_score(SIGN[b], KernelSVC().fit(TWO[a], SIGN[a]).decision_function(TWO[b]))
        for a, b in folds.split(TWO, SIGN)
    ]
    found = run_json(*words)["cross_validation"]
    assert found["roc_auc"] == pytest.approx(np.mean(areas))
    assert set(found) == {"folds", "roc_auc", "spread", "unconverged"}
    assert run(*words).stdout.startswith(f"Cross Validation roc_auc = {np.mean(areas):g}\n")


def test_scores_of_cross_validation_are_checked(two, iris):
    assert "without --folds" in refused("train", two, "--scoring", "f1")
    assert "not one of accuracy" in refused("train", two, "-v", 3, "--scoring", "r2")
    assert "it is for two classes" in refused("train", iris, "-v", 3, "--scoring", "f1")


def test_accuracy_is_on_standard_output_unless_predictions_are(two):
    run("train", two, "m")
    result = run("predict", two, "m", "out")
    n = int(np.sum(np.array(read_lines("out"), int) == SIGN))
    assert result == (f"Accuracy = {n}% ({n}/100) (classification)\n", "")
    beside = run("predict", two, "m")
    assert beside.stderr == result.stdout
    assert "Accuracy" not in beside.stdout
    assert run("predict", "-q", two, "m", "out").output == ""
