"""What a search maximises, and what an evaluation reports."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from widemargin import AdditiveSVC, load
from widemargin.calibration import uncalibrated

from .helpers import IRIS, SPECIES, refused, run, run_json, write


@pytest.fixture
def rare():
    """Two classes, one of them rare and hard to tell."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.06, 1, -1)
    return write("rare.txt", rng.random((400, 3)) + 0.15 * y[:, None] + 1, y)


def test_tune_maximises_what_it_is_told_to(rare):
    words = ["-t", "chi2", "-c", "0.01,1,100", "-v", 3, "--weight", "balanced"]
    found = run_json("tune", rare, "m", *words, "--scoring", "roc_auc")
    scores = {t["C"]: t["roc_auc"] for t in found["trials"]}
    assert found["best"]["roc_auc"] == max(scores.values())
    data = run_json("tune", rare, "m", *words, "--scoring", "balanced_accuracy")
    assert {"balanced_accuracy"} == set(data["best"]) & {"balanced_accuracy", "accuracy", "roc_auc"}
    result = run("tune", rare, "m", *words, "--scoring", "roc_auc", "--plot", "a.png")
    assert "roc_auc  spread" in result.stdout
    assert f"(roc_auc {found['best']['roc_auc']:.4f})" in result.stdout


def test_scores_are_those_of_scikit_learn(rare):
    from widemargin.data import read

    data = read(rare)
    found = run_json("tune", rare, "-t", "chi2", "-c", "1", "-v", 3, "--scoring", "f1")
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    machine = AdditiveSVC("chi2", random_state=0)
    expected = cross_val_score(machine, data.X, data.y, cv=folds, scoring="f1").mean()
    assert found["best"]["f1"] == pytest.approx(expected)


def test_easy_takes_a_score_and_weights(rare):
    found = run_json("easy", rare, rare, "--scoring", "balanced_accuracy", "--weight", "balanced")
    most = max(t["folds"] for t in found["trials"])
    assert found["best"]["balanced_accuracy"] == max(
        t["balanced_accuracy"] for t in found["trials"] if t["folds"] == most
    )
    fitted = uncalibrated(load("rare.safetensors"))
    machine = fitted[-1] if hasattr(fitted, "steps") else fitted
    assert machine.class_weight == "balanced"
    run("easy", rare, "-w1", "5")
    fitted = uncalibrated(load("rare.safetensors"))
    assert (fitted[-1] if hasattr(fitted, "steps") else fitted).class_weight == {1: 5.0}


@pytest.mark.parametrize("command", [["tune", "-t", "chi2"], ["easy"]])
@pytest.mark.parametrize(
    ("scoring", "said"),
    [
        ("log_loss", "--scoring log_loss: it needs probabilities"),
        ("r2", "--scoring r2: not one of accuracy"),
        ("f1", "--scoring f1: it is for two classes, but there are 3. Use f1_macro."),
    ],
)
def test_scores_that_make_no_sense_are_refused(iris, command, scoring, said):
    assert refused(*command, iris, "--scoring", scoring).startswith(said)


def test_easy_refuses_weights_of_labels_that_are_not_there(rare):
    assert "no row has the label 7" in refused("easy", rare, "--weight", "7=2")


@pytest.mark.parametrize("classes", [2, 3])
def test_evaluate_reports_the_area_and_the_balance(classes):
    data = write("a.txt", IRIS, np.minimum(SPECIES, classes - 1))
    run("train", data, "m", "-t", "chi2", "-c", "0.01")
    found, model = run_json("evaluate", data, "m"), load("m")
    y, scores = np.minimum(SPECIES, classes - 1), model.decision_function(IRIS).reshape(150, -1)
    labels = model.classes_[-scores.shape[1] :]
    areas = [roc_auc_score(y == c, s) for c, s in zip(labels, scores.T, strict=True)]
    assert found["roc_auc"] == pytest.approx(np.mean(areas))
    assert found["balanced_accuracy"] == pytest.approx(
        balanced_accuracy_score(y, model.predict(IRIS))
    )
    printed = run("evaluate", data, "m").stdout
    assert f"\nAUC                {np.mean(areas):.4g}\n" in printed
    assert "balanced accuracy  " in printed
    assert "\nmean " in printed
