"""train, predict, evaluate and tune with probabilities."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss

from widemargin import load

from .helpers import IRIS, SIGN, SPECIES, TWO, read_lines, refused, run, run_json, table


@pytest.mark.parametrize("words", [["-t", "chi2"], ["-g", "0.1"], ["--scale", "minmax"]])
def test_predict_writes_them_as_svm_predict_does(iris, words):
    run("train", iris, "m", "-b", 1, *words)
    model = load("m")
    expected = model.predict_proba(IRIS)
    n = int(np.sum(model.predict(IRIS) == SPECIES))
    result = run("predict", "-b", 1, iris, "m", "out")
    assert result.stdout == f"Accuracy = {100 * n / 150:g}% ({n}/150) (classification)\n"
    header, *lines = read_lines("out")
    assert header == "labels 0 1 2"
    found = np.array([line.split() for line in lines], dtype=float)
    np.testing.assert_array_equal(found[:, 0], model.predict(IRIS))
    np.testing.assert_allclose(found[:, 1:], expected, rtol=1e-5)
    run("predict", "-b", 0, iris, "m", "plain")
    run("train", iris, "without", *words)
    run("predict", iris, "without", "same")
    assert read_lines("plain") == read_lines("same")


def test_labels_are_the_same_with_and_without_them(two):
    rows = [line for k, line in enumerate(read_lines(two)) if line[0] == "1" or k % 7 == 0]
    Path("few").write_text("\n".join(rows) + "\n")
    run("train", "few", "m", "--probability", "--weight", "balanced", "-c", "0.01")
    run("predict", "few", "m", "plain")
    result = run("predict", "few", "m", "out", "--probability")
    labels = [line.split() for line in read_lines("out")]
    assert [words[0] for words in labels[1:]] == read_lines("plain")
    most = [labels[0][1 + (float(words[2]) > float(words[1]))] for words in labels[1:]]
    n = sum(a != b for a, b in zip(most, read_lines("plain"), strict=True))
    assert n > 0
    assert f"note: {n} of {len(most)} labels are not the most probable class" in result.stderr
    assert "note" not in run("predict", "few", "m", "out", "--probability", "-q").stderr


def test_labels_may_be_text_and_columns_have_names():
    colours = np.array(["red", "blue"])[(SIGN > 0).astype(int)]
    path = table("a.csv", {"x": TWO[:, 2], "z": TWO[:, 3], "label": colours})
    run("train", path, "m", "--probability", "--scale", "standard")
    run("predict", path, "m", "out", "--probability")
    header, first, *_ = read_lines("out")
    assert header == "labels blue red"
    assert first.split()[0] in ("red", "blue")
    assert "probabilities" in run("info", "m").stdout


def test_labels_with_blanks_are_told_apart_by_tabs():
    colours = np.array(["deep red", "blue"])[(SIGN > 0).astype(int)]
    path = table("a.csv", {"x": TWO[:, 2], "label": colours})
    run("train", path, "m", "--probability")
    run("predict", path, "m", "out", "--probability")
    assert read_lines("out")[0] == "labels\tblue\tdeep red"
    assert {line.split("\t")[0] for line in read_lines("out")[1:]} == {"blue", "deep red"}
    assert {len(line.split("\t")) for line in read_lines("out")} == {3}


def test_everything_else_sees_the_machine_within(iris):
    run("train", iris, "m", "-t", "chi2", "--probability")
    run("train", iris, "plain", "-t", "chi2")
    contributions = ["--output", "contributions", "--class", "1"]
    for words in (
        ["predict", iris, "{}", "--output", "decision"],
        ["predict", iris, "{}", *contributions],
        ["export", "{}", "x.json"],
    ):
        outputs = {run(*[str(w).format(m) for w in words]).stdout for m in ("m", "plain")}
        assert len(outputs) == 1
    facts = run("info", "m").stdout
    assert "probabilities" in facts
    assert "of pairs of classes" in facts
    assert "probabilities" not in run("info", "plain").stdout


def test_probabilities_of_two_classes_go_to_libsvm(two, iris):
    run("train", two, "m", "--probability")
    run("export", "m", "theirs")
    assert [line.split()[0] for line in read_lines("theirs")[:9]][7:] == ["probA", "probB"]
    for model in ("m", "theirs"):
        run("predict", two, model, f"{model}.out", "--probability")
    ours, theirs = ([line.split() for line in read_lines(f"{m}.out")] for m in ("m", "theirs"))
    swapped = [1 + ours[0][1:].index(label) for label in theirs[0][1:]]
    for own, other in zip(ours[1:], theirs[1:], strict=True):
        assert [float(own[k]) for k in swapped] == pytest.approx([*map(float, other[1:])], abs=1e-4)
    run("train", iris, "m", "--probability")
    run("export", "m", "m.onnx")
    assert b"probabilities" in Path("m.onnx").read_bytes()
    said = refused("export", "m", "theirs", status=1)
    assert said.endswith("Export the model without them: train --no-probability.")


def test_evaluate_says_the_log_loss(iris):
    run("train", iris, "m", "-t", "chi2", "--probability")
    found = run_json("evaluate", iris, "m")
    assert found["log_loss"] == pytest.approx(log_loss(SPECIES, load("m").predict_proba(IRIS)))
    assert "log loss" in run("evaluate", iris, "m").stdout
    run("train", iris, "plain", "-t", "chi2")
    assert "log_loss" not in run_json("evaluate", iris, "plain")


def test_log_loss_chooses_where_there_are_probabilities(iris):
    words = ["-t", "chi2", "-v", 3, "--scoring", "neg_log_loss"]
    found = run_json("train", iris, "--probability", *words)["cross_validation"]
    assert -0.5 < found["neg_log_loss"] < 0
    tuned = run_json("tune", iris, "m", "-c", "0.01,1", "--probability", *words)
    by_C = {trial["C"]: trial["neg_log_loss"] for trial in tuned["trials"]}
    assert by_C[1.0] == pytest.approx(found["neg_log_loss"], rel=0.02)  # from another start
    assert tuned["best"]["neg_log_loss"] == max(by_C.values())
    assert load("m").predict_proba(IRIS).shape == (150, 3)
    both = run_json("train", iris, "--probability", "-t", "chi2", "-v", 3)
    assert both == run_json("train", iris, "-t", "chi2", "-v", 3)


def test_what_there_is_not_is_refused(iris):
    run("train", iris, "m", "-t", "chi2")
    assert "has no probabilities. Train it with --probability" in refused(
        "predict", iris, "m", "--probability"
    )
    said = refused("predict", iris, "m", "-b", 1, "--output", "decision")
    assert said == "--probability cannot be combined with --output decision."
    for command in (["train", "-v", 3], ["tune"]):
        said = refused(*command, iris, "--scoring", "neg_log_loss")
        assert "it needs probabilities" in said
        assert said.endswith("models that have them (--probability).")


def test_data_on_disk_have_none(iris):
    said = refused("train", iris, "-t", "chi2", "--probability", "--memory-limit", "1kB")
    assert said.endswith("without --scale, --folds and --probability.")
