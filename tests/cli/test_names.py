"""Names of columns and labels between Python and the command line: one truth for both."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import AdditiveSVC, KernelSVC, TableEncoder, load, save
from widemargin.data import write_svmlight

from .helpers import SPECIES, files, read_lines, refused, run, run_json, table, write_lines

RNG = np.random.default_rng(0)
NAMES = ["age", "pay", "height", "size", "a=b"]
X = np.round(RNG.normal(size=(90, 5)) * [10, 1, 5, 2, 1] + [40, 3, 170, 40, 0], 3)
Y = np.where(X[:, 0] / 10 + X[:, 1] + RNG.normal(0, 0.3, 90) > 7, "yes", "no")
SHUFFLED = ["size", "income", "age", "a=b", "pay", "height"]

MACHINES = {
    "additive": lambda: AdditiveSVC("intersection", random_state=0),
    "kernel": lambda: KernelSVC(gamma=0.01, random_state=0),
    "scaled": lambda: make_pipeline(StandardScaler(), AdditiveSVC("chi2", random_state=0)),
}
LIBRARIES = {
    "pandas": (pd.DataFrame, lambda values: pd.Series(values, name="income")),
    "polars": (pl.DataFrame, lambda values: pl.Series("income", values)),
    "numpy": (lambda columns: np.column_stack(list(columns.values())), np.array),
}


def columns(order=NAMES) -> dict:
    """Features, and the label where it is asked for."""
    return {name: Y if name == "income" else X[:, NAMES.index(name)] for name in order}


def write(path: str, order) -> str:
    frame = pd.DataFrame(columns(order))
    frame.to_csv(path, index=False) if path.endswith("csv") else frame.to_parquet(path)
    return path


def decisions(data, model) -> np.ndarray:
    run("predict", data, model, "out", "--output", "decision")
    return np.loadtxt("out", skiprows=1)


each_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
each_library = pytest.mark.parametrize("library", LIBRARIES)
each_file = pytest.mark.parametrize("path", ["data.csv", "data.parquet"])
each_order = pytest.mark.parametrize("order", [[*NAMES, "income"], SHUFFLED], ids=["same", "other"])


# ------------------------------------------------------------------ 24 ways there and back


@each_machine
@each_library
@each_file
@each_order
def test_a_model_from_python_on_the_command_line(machine, library, path, order):
    frame, series = LIBRARIES[library]
    model = machine().fit(frame(columns()), series(Y))
    save(model, "m")
    write(path, order)
    # An array has no names: its columns are those of the file, in the file's order.
    own = [name for name in order if name != "income"] if library == "numpy" else NAMES
    expected = frame(columns(own))
    words = ["--label", "income"] if library == "numpy" else []
    assert run_json("evaluate", path, "m", *words)["accuracy"] == np.mean(
        model.predict(expected) == Y
    )
    run("predict", path, "m", "labels", *words)
    assert read_lines("labels") == model.predict(expected).tolist()
    run("predict", path, "m", "out", "--output", "decision", *words)
    np.testing.assert_allclose(np.loadtxt("out", skiprows=1), model.decision_function(expected))


@each_machine
@each_library
@each_file
@each_order
def test_a_model_from_the_command_line_in_python(machine, library, path, order):
    words = {"additive": ["-t", "intersection"], "kernel": ["-g", "0.01"],
             "scaled": ["-t", "chi2", "--scale", "standard"]}  # fmt: skip
    own = next(name for name, made in MACHINES.items() if made is machine)
    run("train", write(path, order), "m", "--label", "income", *words[own])
    model = load("m")
    frame, series = LIBRARIES[library]
    names = model.feature_names_in_.tolist()
    assert sorted(names) == sorted(NAMES)
    rows = frame(columns(names))
    if library == "numpy":
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            found = model.decision_function(rows)
    else:
        found = model.decision_function(rows)
    np.testing.assert_allclose(decisions(path, "m"), found)
    by_hand = machine().fit(frame(columns(names)), series(Y))
    # StandardScaler's sums depend on how rows lie in memory, in the last digits.
    np.testing.assert_allclose(by_hand.decision_function(rows), found, atol=1e-12)
    np.testing.assert_array_equal(by_hand.predict(rows), by_hand.classes_[(found > 0).astype(int)])


# ------------------------------------------------------------------ names


@each_machine
def test_columns_in_another_order_give_the_accuracy_that_python_gives(machine):
    """The label's name is one that nobody has to say: only the order of columns is at stake."""
    model = machine().fit(pd.DataFrame(columns()), Y)
    save(model, "m")
    pd.DataFrame(columns(NAMES[::-1])).assign(label=Y).to_csv("a.csv", index=False)
    assert run_json("evaluate", "a.csv", "m")["accuracy"] == model.score(pd.DataFrame(columns()), Y)


def test_shape_functions_of_a_table_s_model_go_by_name():
    run("train", write("data.csv", [*NAMES, "income"]), "m", "--label", "income", "-t", "chi2")
    model = load("m")
    assert model.label_name_ == "income"
    for number, name in enumerate(NAMES):
        for by_name, by_number in zip(
            model.shape_function(name), model.shape_function(number), strict=True
        ):
            np.testing.assert_array_equal(by_name, by_number)


@each_machine
def test_extra_columns_are_dropped_with_one_line_and_missing_ones_named(machine):
    frame = pd.DataFrame(columns())
    model = machine().fit(frame, pd.Series(Y, name="income"))
    save(model, "m")
    pd.DataFrame({**columns(SHUFFLED), "id": range(90)}).to_csv("more.csv", index=False)
    result = run("predict", "more.csv", "m")
    (line, accuracy) = result.stderr.splitlines()
    assert line == "warning: more.csv: the model does not use the columns 'id'"
    assert accuracy.startswith(f"Accuracy = {100 * model.score(frame, Y):g}% (")
    pd.DataFrame(columns(["age", "pay", "size"])).to_csv("fewer.csv", index=False)
    said = refused("predict", "fewer.csv", "m", status=1)
    assert said.startswith("fewer.csv: the model's columns 'height', 'a=b' are missing")


@each_machine
def test_files_without_names_are_taken_by_position(machine):
    model = machine().fit(pd.DataFrame(columns()), Y)
    save(model, "m")
    expected = model.decision_function(pd.DataFrame(columns()))
    np.save("a.npy", X)
    np.savez("a.npz", X=X)
    np.savetxt("a.csv", X, delimiter=",")
    write_lines("a.txt", *("0 " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row in X))
    for path in ("a.npy", "a.npz", "a.csv", "a.txt"):
        np.testing.assert_allclose(decisions(path, "m"), expected)
    np.save("short.npy", X[:, :4])
    assert "4 features" in refused("predict", "short.npy", "m", status=1)


def test_a_model_without_names_takes_a_table_by_position():
    model = AdditiveSVC("chi2", random_state=0).fit(X, Y)
    save(model, "m")
    write("plain.csv", NAMES)  # with names, without a label
    np.testing.assert_allclose(decisions("plain.csv", "m"), model.decision_function(X))
    write("fewer.csv", [*NAMES[:3], "income"])
    said = refused("predict", "fewer.csv", "m", "--label", "income", status=1)
    assert "the model has 5 features without names" in said
    assert "3 columns besides the label: 'age', 'pay', 'height'" in said


def test_scaling_factors_know_their_columns_and_label():
    run("scale", write("data.csv", [*NAMES, "income"]), "a", "--label", "income", "-s", "factors")
    assert load("factors").feature_names_in_.tolist() == NAMES
    run("scale", write("other.csv", SHUFFLED), "b", "-r", "factors")
    assert read_lines("a") == read_lines("b")


# ------------------------------------------------------------------ what a model remembers


def test_the_label_s_column_is_named_once():
    path = write("data.csv", SHUFFLED)
    assert "name one with --label" in refused("train", path, status=1)
    run("train", path, "m", "--label", "income")
    assert run_json("evaluate", path, "m")["rows"] == 90
    assert run("predict", path, "m").stderr.startswith("Accuracy = ")
    assert run("predict", path, "m", "--label", "none").stderr == ""
    printed = run("info", "m").stdout
    assert "label column     income\n" in printed
    assert "made by          widemargin train data.csv m --label income\n" in printed


@pytest.mark.parametrize("label", ["0", "-6", "5"])
def test_the_label_s_position_is_given_once(label):
    labels = (Y == "yes").astype(float)
    at = int(label) % 6
    rows = np.insert(X, at, labels, axis=1)
    np.savetxt("a.csv", rows, delimiter=",")
    np.save("a.npy", rows)
    for path in ("a.csv", "a.npy"):
        run("train", path, "m", "--label", label, "-t", "chi2")
        found = run_json("evaluate", path, "m")["accuracy"]
        model = AdditiveSVC("chi2", random_state=0).fit(X, labels)
        assert found == model.score(X, labels)


def test_a_label_that_looks_like_a_position_is_a_name():
    """The new file has no labels, and a column at that position."""
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "1": Y}).to_csv("a.csv", index=False)
    run("train", "a.csv", "m", "--label", "1")
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}).to_csv("b.csv", index=False)
    assert run("predict", "b.csv", "m").stdout == run("predict", "a.csv", "m").stdout


def test_models_of_s_t_and_s_txt_and_s_csv_are_three():
    for name in ("s.txt", "s.t", "s.csv"):
        table(name, {"a": X[:, 0], "label": Y})
        run("train", name)
    assert {"s.safetensors", "s.t.safetensors", "s.csv.safetensors"} < files()


# ------------------------------------------------------------------ damaged files


@pytest.mark.parametrize(
    "notes",
    [{"zero_based": "yes"}, {"drop": "id"}, {"na": [None]}, {"serial_numbers": 1}],
)
def test_damaged_notes_are_refused(notes):
    save(AdditiveSVC("chi2").fit(X, Y), "m", notes=notes)
    write("data.csv", [*NAMES, "income"])
    assert "damaged" in refused("predict", "data.csv", "m", status=1)


def test_names_in_the_header_are_checked():
    save(AdditiveSVC("chi2").fit(pd.DataFrame(columns()), Y), "m")
    Path("bad").write_bytes(Path("m").read_bytes().replace(b'\\"height\\"', b'12345678\\"'[:10]))
    assert "bad" in refused("info", "bad", status=1)


def test_info_as_json_has_names_and_label():
    run("train", write("data.csv", [*NAMES, "income"]), "m", "--label", "income")
    found = json.loads(run("info", "m", "--json").stdout)
    encoder, machine = found["steps"]
    assert encoder["feature_names"] == NAMES
    assert machine["label_name"] == "income"


# ------------------------------------------------------------------ warnings of wide features


def test_a_wide_column_is_named_and_the_way_out_is_an_option():
    path = table("a.csv", {"age": X[:, 1], "pay": X[:, 0] * 1000, "size": X[:, 3], "label": Y})
    for words in ([], ["-v", 3]):
        said = run("train", path, "m", *words).stderr
        assert "warning: Feature 'pay' ranges from " in said
        assert said.count("Scale the features first, for example with --scale standard.") == 1
    assert "warning" not in run("train", path, "m", "--scale", "standard").stderr


@pytest.mark.parametrize("zero_based", [False, True])
def test_a_wide_feature_of_svmlight_text_has_the_file_s_number(zero_based):
    rows = X[:, :3] * [1, 1e5, 1]
    write_svmlight("a.txt", rows, np.where(Y == "yes", 1, -1), zero_based=zero_based)
    said = run("train", "a.txt", "m").stderr
    assert f"warning: Feature {1 if zero_based else 2} ranges from " in said
    assert "with --scale maxabs" in said


# ------------------------------------------------------------------ numbers of svmlight text


@pytest.mark.parametrize("zero_based", [False, True])
def test_features_of_svmlight_text_have_the_file_s_numbers(zero_based):
    first = 0 if zero_based else 1
    write_lines(
        "a.txt",
        *(f"{y} {' '.join(f'{j + first}:{v}' for j, v in enumerate(row))}"
          for y, row in zip(SPECIES[:90], X, strict=True)),
    )  # fmt: skip
    run("train", "a.txt", "m", "-t", "chi2")
    names = [f"feature {j + first}" for j in range(5)]
    printed = run("predict", "a.txt", "m", "--output", "contributions", "--class", "1").stdout
    assert printed.splitlines()[0].split("\t") == [*names, "intercept"]
    run("export", "m", "m.json")
    exported = json.loads(Path("m.json").read_text())["features"]
    assert [feature["name"] for feature in exported] == names
    run("plot", "m", "a.png", "--features", str(first))
    said = refused("plot", "m", "a.png", "--features", str(5 + first))
    assert said.endswith(f"there are 5, {first} to {4 + first}.")
    write_lines("wide.txt", f"1 {9 + first}:3")
    assert f"features above {4 + first}," in run("predict", "wide.txt", "m").stderr


def test_a_model_that_prepares_tables_itself_is_for_the_terminal_too():
    frame = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 3, "clerk", "smith")})
    model = make_pipeline(TableEncoder(), KernelSVC()).fit(frame, Y)
    save(model, "m")
    frame.assign(label=Y).to_csv("data.csv", index=False)
    assert run("predict", "data.csv", "m").stdout.split() == model.predict(frame).tolist()
    assert "KernelSVC after TableEncoder" in run("info", "m").stdout
