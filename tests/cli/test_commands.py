"""Every command, end to end, against the same thing done in Python."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp
from libsvm import svmutil
from PIL import Image
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import widemargin.cli
from widemargin import AdditiveSVC, KernelSVC, demo, load, read, save
from widemargin.export import shape_functions

from .helpers import (
    DIGIT,
    DIGITS,
    IRIS,
    SIGN,
    SPECIES,
    TWO,
    files,
    read_lines,
    run,
    run_json,
    table,
    write,
    write_lines,
)

SPARSE = sp.csr_array(IRIS)


def decisions(data, model) -> np.ndarray:
    """What ``predict --output decision`` writes, less its header."""
    run("predict", data, model, "decisions.txt", "--output", "decision")
    return np.loadtxt("decisions.txt", skiprows=1)


def is_picture(name) -> bool:
    with Image.open(name) as image:
        image.load()
        return min(image.size) > 100 and len(set(image.convert("L").tobytes())) > 10


# ------------------------------------------------------------------ train and predict


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
    fitted = KernelSVC.decision_function
    monkeypatch.setattr(
        KernelSVC, "decision_function", lambda self, X: seen.append(self.n_jobs) or fitted(self, X)
    )
    run("predict", iris, "m", "out", "-j", 1)
    run("evaluate", iris, "m", "-j", 3)
    assert seen == [1, 3]


# ------------------------------------------------------------------ evaluate and info


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


@pytest.mark.parametrize("kernel", ["rbf", "chi2", "auto"])
def test_info_says_what_was_trained(iris, kernel):
    words = ["-t", kernel, "-c", "2.5", "-w1", "3", "--scale", "maxabs"]
    found = run_json("train", iris, "m", *words)
    printed = run("info", "m").stdout
    machine = "KernelSVC" if kernel == "rbf" else "AdditiveSVC"
    assert f"{machine} after MaxAbsScaler" in printed
    assert "C=2.5, class_weight={1: 3.0}" in printed
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in printed.splitlines())
    assert ("support vectors" in facts) == (kernel == "rbf")
    assert facts.get("kernel") == {"auto": "intersection", "chi2": "chi2"}.get(kernel)
    header = run_json("info", "m")
    scaler, svm = header["steps"]
    assert (scaler["kind"], svm["kind"]) == ("MaxAbsScaler", machine)
    assert svm["parameters"]["C"] == 2.5
    assert svm["classes"]["values"] == [0, 1, 2]
    assert svm["training"]["rows"] == 150
    assert svm["training"]["gap"] == found["duality_gap"]
    command = "widemargin train iris.txt m -t {} -c 2.5 --weight 1=3 --scale maxabs --json"
    assert header["notes"] == {"zero_based": False, "command": command.format(kernel)}
    assert facts["made by"] == command.format(kernel)
    shown = f"{facts['parameters']}, {facts['defaults']}"
    assert all(f"{name}=" in shown for name in load("m")[-1].get_params())


def test_info_shows_some_of_many_classes():
    write("a.txt", np.eye(12)[np.arange(24) % 12], np.arange(24) % 12)
    run("train", "a.txt", "m")
    assert "classes          0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...\n" in run("info", "m").stdout


def test_info_of_a_model_that_needs_its_function():
    save(KernelSVC(lambda A, B: A @ B.T).fit(TWO, SIGN), "m")
    printed = run("info", "m").stdout
    assert "KernelSVC" in printed
    assert "100" in printed


def test_info_of_factors(iris):
    run("scale", iris, "out", "-s", "factors")
    assert "range file of svm-scale" in run("info", "factors").stdout
    assert run_json("info", "factors")["features"] == 4
    run("scale", iris, "out", "-s", "factors", "--method", "standard")
    assert "StandardScaler" in run("info", "factors").stdout
    assert run_json("info", "factors")["kind"] == "StandardScaler"


# ------------------------------------------------------------------ scale


def scaled(*words) -> np.ndarray:
    run("scale", *words, "scaled.txt")
    return read("scaled.txt").X.toarray()


@pytest.mark.parametrize(
    ("words", "scaler"),
    [
        ((), MinMaxScaler((-1, 1))),
        (("-l", "0", "-u", "2"), MinMaxScaler((0, 2))),
        (("--method", "maxabs"), MaxAbsScaler()),
        (("--method", "standard"), StandardScaler()),
    ],
)
def test_scale_and_restore(iris, words, scaler):
    test = write("test.txt", TWO[:20] + 1, SIGN[:20])
    first = scaled(iris, *words, "-s", "factors")
    rounding = {"rtol": 1e-14, "atol": 0.0 if "--method" in words else 5e-16}  # svm-scale's formula
    np.testing.assert_allclose(first, scaler.fit(IRIS).transform(IRIS), **rounding)
    again = scaled(test, "-r", "factors")
    np.testing.assert_allclose(again, scaler.transform(read(test).X.toarray()), **rounding)
    assert [line.split()[0] for line in read_lines("scaled.txt")] == [str(s) for s in SIGN[:20]]


def test_scale_keeps_zero_based_features_and_queries():
    write_lines("train.txt", "1 qid:1 0:1 1:4", "2 qid:2 0:3 1:8")
    write_lines("test.txt", "1 qid:7 1:6")
    run("scale", "train.txt", "out", "--method", "maxabs", "-s", "factors")
    assert read_lines("out") == ["1 qid:1 0:0.3333333333333333 1:0.5", "2 qid:2 0:1 1:1"]
    assert run("scale", "test.txt", "-r", "factors").stdout == "1 qid:7 1:0.75\n"


def test_scale_of_a_table_without_labels():
    table("a.csv", {"a": [1, 2], "b": [4, 8]})
    printed = run("scale", "a.csv", "--label", "none", "--method", "maxabs").stdout
    assert printed == "0 1:0.5 2:0.5\n0 1:1 2:1\n"


# ------------------------------------------------------------------ plot and export


def test_plot_draws_what_the_model_has(iris):
    run("train", iris, "rbf")
    run("train", iris, "chi2", "-t", "chi2")
    assert run("plot", "rbf").stdout == "rbf.png\n"
    assert run("plot", "chi2").stdout == "chi2.png\n"
    run("plot", "chi2", "some.png", "--features", "1, feature 2")
    run("plot", "chi2", "bars.png", "--what", "importance")
    half = write("half.txt", IRIS[::2], SPECIES[::2])
    run("plot", "chi2", "measured.png", "--what", "importance", "--data", half)
    run("plot", "chi2", "gaps.PNG", "--what", "convergence")
    pictures = ["rbf.png", "chi2.png", "some.png", "bars.png", "measured.png", "gaps.PNG"]
    assert all(map(is_picture, pictures))
    assert len({Path(picture).read_bytes() for picture in pictures}) == len(pictures)


def test_plot_draws_vectors_too(iris):
    run("train", iris, "m", "-t", "chi2", "--scale", "minmax")
    run("plot", "m", "m.svg", "--data", iris)
    assert b"</svg>" in Path("m.svg").read_bytes()
    run("plot", "m", "m.pdf")
    assert Path("m.pdf").read_bytes().startswith(b"%PDF")


def test_export_to_onnx(iris):
    run("train", iris, "m", "-t", "chi2")
    assert run("export", "m", "m.onnx").stdout == "m.onnx\n"
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    _, scores = session.run(["label", "scores"], {"X": IRIS.astype(np.float32)})
    np.testing.assert_allclose(scores, load("m").decision_function(IRIS), atol=1e-5)


def test_export_to_libsvm(iris):
    run("train", iris, "m", "--multi-class", "ovo")
    run("export", "m", "out")
    labels, *_ = svmutil.svm_predict([], IRIS, svmutil.svm_load_model("out"), "-q")
    np.testing.assert_array_equal(labels, load("m").predict(SPARSE))


def test_export_of_shapes_knows_the_names_of_columns():
    table("a.csv", {"width": IRIS[:, 0], "length": IRIS[:, 2], "class": SPECIES})
    run("train", "a.csv", "m", "-t", "chi2")
    run("export", "m", "m.json")
    found = json.loads(Path("m.json").read_text())
    expected = shape_functions(load("m"))
    assert [f.pop("name") for f in found["features"]] == ["width", "length"]
    assert [f.pop("name") for f in expected["features"]] == ["width", "length"]
    assert [t.pop("name") for t in found["terms"]] == ["width", "length"]
    assert [t.pop("name") for t in expected["terms"]] == ["width", "length"]
    assert found == expected
    run("export", "m", "other", "--to", "shapes")
    assert Path("other").read_text() == Path("m.json").read_text()


# ------------------------------------------------------------------ tune and easy


def folds_by_hand(estimator, X, y, folds: int, seed: int = 0) -> float:
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return cross_val_score(estimator, X, y, cv=cv).mean()


def test_tune_finds_what_an_exhaustive_search_finds(iris):
    # Tight, so that a model along a path is the one that is fitted alone.
    words = ["-t", "chi2,rbf", "-g", "0.01,1", "-c", "0.01,1,100", "-v", 3, "-e", 1e-8]
    found = run_json("tune", iris, "m", *words)
    machines = {
        ("chi2", None): AdditiveSVC("chi2", tol=1e-8, max_iter=10**5, random_state=0),
        ("rbf", 0.01): KernelSVC(gamma=0.01, tol=1e-8, random_state=0),
        ("rbf", 1.0): KernelSVC(gamma=1.0, tol=1e-8, random_state=0),
    }
    accuracy = {
        (kernel, gamma, C): folds_by_hand(machine.set_params(C=C), SPARSE, SPECIES, 3)
        for (kernel, gamma), machine in machines.items()
        for C in (0.01, 1.0, 100.0)
    }
    trials = {(t["kernel"], t.get("gamma"), t["C"]): t["accuracy"] for t in found["trials"]}
    assert trials == pytest.approx(accuracy)
    best = found["best"]
    assert best["accuracy"] == max(trials.values())
    assert best["C"] == min(C for (_, _, C), a in trials.items() if a == best["accuracy"])
    assert found["trials"][0] == best
    assert set(best) - {"gamma"} == {"kernel", "C", "accuracy", "spread", "unconverged", "rows",
                                      "path_seconds"}  # fmt: skip

    fitted = load(found["model"])
    assert best["C"] == fitted.C
    alone = machines[best["kernel"], best.get("gamma")].set_params(C=best["C"])
    expected = alone.fit(SPARSE, SPECIES).decision_function(SPARSE)
    np.testing.assert_array_equal(fitted.decision_function(SPARSE), expected)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_seed_of_tune_is_that_of_its_folds(iris, seed):
    found = run_json("tune", iris, "-t", "rbf", "-c", "1", "-v", 4, "--seed", seed)
    assert found["best"]["accuracy"] == pytest.approx(
        folds_by_hand(KernelSVC(), SPARSE, SPECIES, 4, seed)
    )


def test_of_equals_tune_takes_the_smaller_c():
    write("a.txt", np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0), np.repeat([1, 2], 20))
    found = run_json("tune", "a.txt", "-c", "100,1,10", "-t", "chi2,rbf", "-v", 2)
    assert all(trial["accuracy"] == 1 for trial in found["trials"])
    assert [t["C"] for t in found["trials"]] == [1, 1, 10, 10, 100, 100]
    assert (found["best"]["C"], found["best"]["kernel"]) == (1, "chi2")


def test_tune_leaves_out_what_fails_and_draws_a_picture():
    write("a.txt", TWO - 5, SIGN)  # exp_chi2 takes no negative values
    result = run("tune", "a.txt", "m", "-t", "exp_chi2,rbf", "-c", "1,10", "--plot", "a.png", "-v",
                 2)  # fmt: skip
    (warning,) = [line for line in result.stderr.splitlines() if line.startswith("warning")]
    assert "kernel exp_chi2 is left out" in warning
    assert "negative" in warning
    assert "kernel rbf: " in result.stderr
    assert "exp_chi2" not in result.stdout
    assert "best: kernel rbf" in result.stdout
    assert load("m").kernel == "rbf"
    assert is_picture("a.png")


def test_tune_takes_powers_scaling_and_some_of_the_rows(iris):
    found = run_json("tune", iris, "-t", "power_mean", "-p", "-1,-4", "-c", "1", "--rows", 60,
                     "--scale", "minmax", "-v", 2, "--seed", 3)  # fmt: skip
    assert sorted(t["power"] for t in found["trials"]) == [-4, -1]
    scaler, machine = load("iris.safetensors")
    assert isinstance(scaler, MinMaxScaler)
    assert (machine.kernel.p, machine.random_state) == (found["best"]["power"], 3)
    assert machine.fit_record_.n_rows == 150
    assert all(round(30 * t["accuracy"] * 2, 6).is_integer() for t in found["trials"])


def test_quiet_tuning_prints_nothing(iris):
    assert run("tune", iris, "-q", "-t", "chi2", "-c", "1").output == ""
    assert load("iris.safetensors").kernel == "chi2"


def string_labels(y) -> np.ndarray:
    return np.array(["setosa", "versicolor", "virginica"])[y]


def write_for_easy(kind: str) -> tuple[str, str]:
    """Training and test files with the same rows, in one of several forms."""
    order = np.random.default_rng(0).permutation(150)
    X, y, parts = IRIS[order], SPECIES[order], {"train": slice(100), "test": slice(100, 150)}
    for part, rows in parts.items():
        if kind == "dense":
            np.savez(f"{part}.npz", X=X[rows], y=y[rows])
        elif kind == "sparse":
            write(f"{part}.txt", X[rows], y[rows])
        elif kind == "strings":
            lines = (
                f"{label} {' '.join(f'{j + 1}:{v}' for j, v in enumerate(row))}"
                for row, label in zip(X[rows], string_labels(y[rows]), strict=True)
            )
            write_lines(f"{part}.txt", *lines)
        else:
            columns = {f"x{j}": X[rows, j] for j in range(4)}
            table(f"{part}.csv", {**columns, "kind": string_labels(y[rows])})
    suffix = {"dense": "npz", "csv": "csv"}.get(kind, "txt")
    return f"train.{suffix}", f"test.{suffix}"


@pytest.mark.parametrize("kind", ["dense", "sparse", "strings", "csv"])
def test_easy_chooses_trains_on_all_rows_and_reports(kind):
    train, test = write_for_easy(kind)
    words = ["--label", "kind"] if kind == "csv" else []
    found = run_json("easy", train, test, *words)
    name = f"{train.removesuffix('.txt')}.safetensors"
    assert found["model"] == name
    kernels = {(t["kernel"], t.get("gamma")) for t in found["trials"]}
    assert len(kernels) >= 6
    assert {kernel for kernel, _ in kernels} == {"linear", "chi2", "intersection", "rbf"}
    assert found["best"] == found["trials"][0]
    assert found["best"]["accuracy"] == max(t["accuracy"] for t in found["trials"]) > 0.9
    fitted = load(name)
    machine = fitted[-1] if found["best"]["kernel"] == "rbf" else fitted
    assert machine.fit_record_.n_rows == 100
    assert found["best"]["C"] == machine.C
    assert found["test"]["rows"] == 50
    assert found["test"]["accuracy"] > 0.9
    again = run_json("evaluate", test, name, *words)
    assert again["accuracy"] == found["test"]["accuracy"]
    assert again["confusion"] == found["test"]["confusion"]
    labels = [c["label"] for c in again["classes"]]
    assert labels == (
        [0, 1, 2] if kind in ("dense", "sparse") else sorted(string_labels([0, 1, 2]))
    )


def test_easy_without_a_test_and_with_another_model(iris):
    result = run("easy", iris, "--model", "m")
    assert "trained on all 150 rows: m\n" in result.stdout
    assert "best of 28 on 150 rows" in result.stdout
    assert "confusion" not in result.stdout
    assert result.stderr.startswith(
        "reading iris.txt\n"
        "comparing kernels on 150 rows, then training the best on all, for 10 minutes at most\n"
    )
    assert result.stderr.count("kernel rbf, gamma") == 4  # the best width of three was an end
    assert files() == {"iris.txt", "m"}
    quiet = run("easy", iris, iris, "-q")
    assert quiet.stderr == ""
    assert quiet.stdout.startswith("accuracy")  # what was asked for, and no more


def test_easy_says_a_word_before_it_imports_anything_heavy(iris, monkeypatch):
    monkeypatch.setitem(sys.modules, "widemargin.cli.choosing", None)
    monkeypatch.delattr(widemargin.cli, "choosing", raising=False)
    assert run("easy", iris, status=1).stderr.startswith("reading iris.txt\nerror: ")
    assert run("easy", iris, "-q", status=1).stderr.startswith("error: ")


def test_easy_chooses_a_machine_that_suits_the_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    write("xor.txt", X, np.where(X.prod(axis=1) > 0, 1, -1))  # no sum over features can tell
    assert run_json("easy", "xor.txt")["best"]["kernel"] == "rbf"


# ------------------------------------------------------------------ demo


def test_demo_prints_a_table_and_draws_a_picture(monkeypatch):
    monkeypatch.setattr(demo, "ROWS", 1000)
    printed = run("demo").stdout
    for name in demo.MACHINES:
        learn, label, right = zip(
            *re.findall(rf"(?m)^  {name} +(\S+) +(\S+) +(\S+)$", printed), strict=True
        )
        assert len(right) == 2  # digits, and the larger problem
        assert min(map(float, learn + label)) >= 0
        assert 50 < min(map(float, right)) <= max(map(float, right)) <= 100
    assert is_picture("demo.png")


def test_the_demo_has_a_border_that_a_line_cannot_follow():
    X, y = demo.bent_borders(2000)
    assert X.shape == (2000, 8)
    assert set(y) == {0, 1, 2, 3}
    linear = demo.MACHINES["LinearSVC"]().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:])
    additive = demo.MACHINES["AdditiveSVC"]().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:])
    assert additive > linear + 0.1


def test_predictions_of_digits_agree_for_both_machines():
    """Ten classes, and compressed rows on the way."""
    write("train.txt", DIGITS[:400], DIGIT[:400])
    write("test.txt", DIGITS[400:], DIGIT[400:])
    for kernel, machine in (("rbf", KernelSVC()), ("chi2", AdditiveSVC("chi2", random_state=0))):
        run("train", "train.txt", "m", "-t", kernel)
        machine.fit(sp.csr_array(DIGITS[:400]), DIGIT[:400])
        expected = machine.decision_function(sp.csr_array(DIGITS[400:]))
        np.testing.assert_allclose(decisions("test.txt", "m"), expected, rtol=1e-6, atol=1e-6)
