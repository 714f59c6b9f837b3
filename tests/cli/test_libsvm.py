"""The command line in LIBSVM's words: what svm-train and svm-predict take, and what they print."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from widemargin import KernelSVC, load
from widemargin.cli import scale as scaling
from widemargin.cli.words import with_long_options

from .helpers import SIGN, TWO, read_lines, refused, run, run_json, write_lines


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
        (["-s", 9], "-s 9: write one of LIBSVM's"),
        (["-s", 0, "-n", 0.5], "--nu cannot be combined with -s 0"),
        (["-h", 0], "-h 0: shrinking cannot be switched off"),
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
    assert "needs --folds" in refused("train", two, "--scoring", "f1")
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


# ------------------------------------------------------------------ svm-scale


def test_range_files_are_written_and_read(two):
    run("scale", "-l", 0, "-u", 1, "-s", "range", two, "a")
    lines = read_lines("range")
    assert lines[:3] == ["x", "0 1", f"1 {TWO[:, 0].min():.17g} {TWO[:, 0].max():.17g}"]
    assert run("scale", "-r", "range", two).stdout == Path("a").read_text()


def test_the_range_of_other_data_is_used_and_new_features_are_named():
    write_lines("train", "1 1:2 2:1", "2 1:4 2:1 3:1")
    write_lines("test", "1 1:3 2:1 3:1 4:7 5:1", "1 1:3 2:2 3:1")
    run("scale", "-s", "range", "train", "out")
    assert read_lines("out") == ["1 1:-1 3:-1", "2 1:1 3:1"]  # the second feature has one value
    result = run("scale", "-r", "range", "test")
    assert result.stdout == "1 3:1\n1 3:1\n"
    assert (
        result.stderr == "warning: test: the features 2, 4, 5 are not in range and are ignored.\n"
    )


def test_labels_are_scaled_too():
    write_lines("train", "10 1:2", "20 1:4", "15 1:3")
    run("scale", "-y", 0, 1, "-s", "range", "train", "out")
    assert read_lines("out") == ["0 1:-1", "1 1:1", "0.5"]
    assert read_lines("range") == ["y", "0 1", "10 20", "x", "-1 1", "1 2 4"]
    write_lines("test", "30 1:4")
    assert run("scale", "-r", "range", "test").stdout == "2 1:1\n"
    assert "-y 1 0: the first" in refused("scale", "-y", 1, 0, "train")
    assert "-y is only for svmlight" in refused("scale", "-y", 0, 1, "--method", "maxabs", "train")
    write_lines("same", "1 1:2", "1 1:3")
    assert "all the same" in refused("scale", "-y", 0, 1, "same", status=1)


def test_rows_are_scaled_in_blocks(two, monkeypatch):
    whole = run("scale", two).stdout
    monkeypatch.setattr(scaling, "_AT_ONCE", 13)
    assert run("scale", two).stdout == whole


def test_a_damaged_range_is_refused(two):
    write_lines("range", "x", "-1 1", "1 nan 2")
    assert refused("scale", "-r", "range", two, status=1).startswith("range: line 3 must be two")
    assert "not a model" in refused("predict", two, "range")


def test_t_0_is_libsvms_linear_model(two):
    """Hinge loss, C as it is, pairs of classes; its intercept alone is penalised."""
    run("train", "-t", 0, "-c", 1, two, "m")
    model = load("m")
    assert isinstance(model, KernelSVC)
    assert (model.kernel, model.C, model.multi_class) == ("linear", 1.0, "ovo")
    assert "KernelSVC" in run("info", "m").stdout


def test_minutes_are_a_limit_of_a_fit(two):
    said = run("train", "-c", 1000, "-e", 1e-14, "--minutes", 1e-9, two, "m").stderr
    assert "The time limit of 6e-08 s is over." in " ".join(said.split())
    assert load("m").max_seconds == pytest.approx(6e-8)
