"""train, predict and evaluate, against the same thing done in Python."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import AdditiveSVC, KernelSVC, load, save

from .helpers import (
    DIGIT,
    DIGITS,
    IRIS,
    SIGN,
    SPARSE,
    SPECIES,
    TWO,
    decisions,
    files,
    read_lines,
    run,
    run_json,
    write,
)


@pytest.mark.parametrize(
    ("words", "by_hand"),
    [
        ((), KernelSVC(random_state=0)),
        (("-t", "chi2", "-c", "3"), AdditiveSVC("chi2", C=3, random_state=0)),
        (("--scale", "standard"), make_pipeline(StandardScaler(), KernelSVC(random_state=0))),
    ],
)
def test_train_and_predict_agree_with_python(iris, words, by_hand):
    run("train", iris, "m", *words)
    X = IRIS if "--scale" in words else SPARSE
    by_hand.fit(X, SPECIES)
    expected = by_hand.decision_function(X)
    np.testing.assert_array_equal(load("m").decision_function(X), expected)
    np.testing.assert_allclose(decisions(iris, "m"), expected, rtol=1e-8)
    run("predict", iris, "m", "out")
    assert read_lines("out") == [str(label) for label in by_hand.predict(X)]


def test_labels_are_printed_as_libsvm_prints_them(two):
    run("train", two, "m")
    result = run("predict", two, "m")
    assert set(result.stdout.split()) == {"1", "-1"}
    assert len(result.stdout.splitlines()) == len(TWO)
    accuracy = np.mean(KernelSVC().fit(sp.csr_array(TWO), SIGN).predict(TWO) == SIGN)
    assert (
        result.stderr
        == f"Accuracy = {100 * accuracy:g}% ({round(100 * accuracy)}/100) (classification)\n"
    )


def test_labels_of_a_model_from_python_are_printed_without_a_fraction(two):
    save(AdditiveSVC("chi2").fit(TWO, SIGN.astype(float)), "m")
    assert set(run("predict", two, "m").stdout.split()) == {"1", "-1"}
    assert run("predict", two, "m", "--output", "decision").stdout.startswith("1\n")
    run("predict", two, "m", "--output", "contributions", "--class", "1")


def test_decision_values_have_nine_digits_and_a_header(two, iris):
    run("train", two, "m")
    header, first, *_ = run("predict", two, "m", "--output", "decision").stdout.splitlines()
    assert header == "1"
    value = load("m").decision_function(sp.csr_array(TWO))[0]
    assert first == f"{value:.9g}"
    assert abs(float(first) - value) <= 1e-8 * abs(value)
    run("train", iris, "m")
    assert run("predict", iris, "m", "--output", "decision").stdout.startswith("0\t1\t2\n")


@pytest.mark.parametrize("scaling", ["none", "minmax"])
def test_contributions_sum_to_the_decision_value(iris, scaling):
    run("train", iris, "m", "-t", "intersection", "--scale", scaling)
    run("predict", iris, "m", "parts", "--output", "contributions", "--class", "2")
    header, *_ = read_lines("parts")
    assert header.split("\t") == [*(f"feature {j}" for j in range(1, 5)), "intercept"]
    parts = np.loadtxt("parts", skiprows=1)
    assert parts.shape == (150, 5)
    assert np.all(np.ptp(parts[:, :4], axis=0) > 0)
    np.testing.assert_allclose(parts.sum(axis=1), decisions(iris, "m")[:, 2], atol=1e-6)


def test_contributions_of_two_classes_need_no_class(two):
    run("train", two, "m", "-t", "chi2")
    run("predict", two, "m", "parts", "--output", "contributions")
    total = np.loadtxt("parts", skiprows=1).sum(axis=1)
    np.testing.assert_allclose(total, decisions(two, "m"), atol=1e-6)


@pytest.mark.parametrize(
    ("data", "model"),
    [
        ("iris.txt", "iris"),
        ("a.b.txt", "a.b"),
        ("sub/x.y", "x.y"),
        (".hidden", ".hidden"),
        ("s.t", "s.t"),
        ("s.scale.TXT", "s.scale"),
    ],
)
def test_the_model_has_the_data_s_name_and_lies_in_the_current_folder(data, model):
    Path("sub").mkdir()
    write(data, IRIS, SPECIES)
    before = files()
    assert f"{model}.safetensors" in run("train", data).stdout
    assert files() - before == {f"{model}.safetensors"}


def test_train_prints_what_it_found(iris):
    by_hand = KernelSVC(random_state=0).fit(SPARSE, SPECIES)
    facts = dict(line.split(maxsplit=1) for line in run("train", iris).stdout.splitlines())
    assert facts["model"] == "iris.safetensors"
    assert (facts["rows"], facts["features"], facts["classes"]) == ("150", "4", "3")
    found = run_json("train", iris)
    assert found["model"] == "iris.safetensors"
    assert (found["rows"], found["features"], found["classes"]) == (150, 4, 3)
    assert found["duality_gap"] == by_hand.duality_gap_ <= 1e-3
    assert found["support_vectors"] == len(by_hand.support_)
    assert found["seconds_reading"] > 0 < found["seconds_training"]
    assert "support_vectors" not in run_json("train", iris, "-t", "chi2")


def test_quiet_training_prints_nothing(iris):
    result = run("train", iris, "-q")
    assert result.output == ""
    assert Path("iris.safetensors").exists()


@pytest.mark.parametrize("seed", [0, 1])
def test_cross_validation_prints_the_accuracy_and_writes_no_model(iris, seed):
    found = run_json("train", iris, "-v", 4, "--seed", seed)
    folds = StratifiedKFold(4, shuffle=True, random_state=seed)
    scores = cross_val_score(KernelSVC(random_state=0), SPARSE, SPECIES, cv=folds)
    expected = {"folds": 4, "accuracy": scores.mean(), "spread": scores.std(), "unconverged": 0}
    assert found == {"cross_validation": pytest.approx(expected)}
    assert "accuracy  " in run("train", iris, "-v", 4).stdout
    assert files() == {"iris.txt"}


def test_seeds_of_cross_validation_differ(iris):
    first, second = (run_json("train", iris, "-v", 4, "--seed", seed) for seed in (0, 1))
    assert first != second


def test_predict_says_as_json_what_it_did(iris):
    run("train", iris, "m")
    found = run_json("predict", iris, "m", "out")
    accuracy = np.mean(np.array(read_lines("out"), int) == SPECIES)
    assert found == {"out": "out", "rows": 150, "seconds": found["seconds"], "accuracy": accuracy}
    assert found["seconds"] > 0
    same = run_json("predict", iris, "m", "out", "--output", "decision")
    assert same["accuracy"] == accuracy


def test_threads_of_predict_are_its_own(iris, monkeypatch):
    run("train", iris, "m", "--jobs", 2)
    seen = []
    for name in ("decision_function", "predict"):
        fitted = getattr(KernelSVC, name)
        monkeypatch.setattr(
            KernelSVC, name, lambda self, X, f=fitted: seen.append(self.n_jobs) or f(self, X)
        )
    run("predict", iris, "m", "out", "-j", 1)
    run("evaluate", iris, "m", "-j", 3)
    assert sorted(set(seen)) == [1, 3]


def test_predictions_of_digits_agree_for_both_machines():
    """Ten classes, and compressed rows on the way."""
    write("train.txt", DIGITS[:400], DIGIT[:400])
    write("test.txt", DIGITS[400:], DIGIT[400:])
    for kernel, machine in (("rbf", KernelSVC()), ("chi2", AdditiveSVC("chi2", random_state=0))):
        run("train", "train.txt", "m", "-t", kernel)
        machine.fit(sp.csr_array(DIGITS[:400]), DIGIT[:400])
        expected = machine.decision_function(sp.csr_array(DIGITS[400:]))
        np.testing.assert_allclose(decisions("test.txt", "m"), expected, rtol=1e-6, atol=1e-6)


def test_evaluate_counts_as_scikit_learn_does(iris):
    run("train", iris, "m", "-c", "0.01")
    predicted = load("m").predict(SPARSE)
    found = run_json("evaluate", iris, "m")
    assert found["accuracy"] == accuracy_score(SPECIES, predicted) < 1
    assert found["confusion"] == confusion_matrix(SPECIES, predicted).tolist()
    f1 = f1_score(SPECIES, predicted, average=None)
    assert [c["f1"] for c in found["classes"]] == pytest.approx(list(f1))
    assert [(c["label"], c["rows"]) for c in found["classes"]] == [(0, 50), (1, 50), (2, 50)]
    assert set(found["classes"][0]) == {"label", "rows", "precision", "recall", "f1"}
    assert found["microseconds_per_row"] == pytest.approx(1e6 * found["seconds"] / 150)
    printed = run("evaluate", iris, "m").stdout
    assert f"accuracy           {100 * found['accuracy']:.2f} %" in printed
    assert all(text in printed for text in ("per class", "confusion", "true \\ predicted"))


def test_of_many_classes_the_most_confused_are_listed():
    rng = np.random.default_rng(0)
    path = write("many.txt", rng.random((120, 3)), np.arange(120) % 30)
    run("train", path, "m", "-t", "linear", "--max-iter", "5")
    printed = run("evaluate", path, "m").stdout
    confusion = np.array(run_json("evaluate", path, "m")["confusion"])
    np.fill_diagonal(confusion, 0)
    _, _, listed = printed.partition("most confused\n")
    header, first, *_ = listed.splitlines()
    assert header.split() == ["true", "predicted", "rows"]
    true, predicted, n = map(int, first.split())
    assert confusion[true, predicted] == confusion.max() == n
    assert "true \\ predicted" not in printed
