"""One model of a table in Python, in a file, in the terminal and in ONNX: the same labels."""

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.pipeline import make_pipeline
from tests.cli.helpers import run

from widemargin import AdditiveSVC, AutoSVC, KernelSVC, TableEncoder, load, read, save
from widemargin.export import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")


def staff(n=300, seed=0):
    """Categories, gaps, dates, booleans and numbers, and labels that need most of them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "job": rng.choice(["clerk", "smith", "nurse, night", None], n),
            "away": rng.random(n) < 0.5,
            "since": np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("m8[D]"),
            "grade": rng.integers(0, 4, n).astype(str),
        }
    )
    frame.loc[::7, "age"] = np.nan
    late = frame["since"] > pd.Timestamp("2021-03-01")
    right = (frame["job"] == "smith").astype(int) + late + (frame["grade"] == "2")
    return frame.astype({"grade": "category"}), np.where(right > 1, "yes", "no")


MACHINES = {
    "kernel": lambda: make_pipeline(TableEncoder(date_features=["since"]), KernelSVC(C=10.0)),
    "additive": lambda: make_pipeline(
        TableEncoder(date_features=["since"], scaling=None), AdditiveSVC("chi2", random_state=0)
    ),
    "additive alone": lambda: AdditiveSVC("chi2", missing="learn", random_state=0),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_model_of_a_frame_says_the_same_everywhere(machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, y = staff()
    if machine == "additive alone":  # which takes dates as days
        days = (frame["since"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        frame = frame.assign(since=days)
    train, new = frame[:200], frame[200:]
    model = MACHINES[machine]().fit(train, y[:200])
    expected = model.predict(new)
    assert np.mean(expected == y[200:]) > 0.9
    save(model, "m")
    np.testing.assert_array_equal(load("m").predict(new), expected)
    order = ["grade", "since", "age", "job", "away"]
    new[order].to_csv("new.csv", index=False)
    new[order].to_parquet("new.parquet")
    for file in ("new.csv", "new.parquet"):
        run("predict", file, "m", "out")
        assert (tmp_path / "out").read_text().split() == expected.tolist()
    export_onnx(model, "m.onnx")
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    found = session.run(["label"], {name: onnx_column(new[name]) for name in new.columns})[0]
    assert found.tolist() == expected.tolist()


def onnx_column(column):
    if column.dtype.kind == "M":
        column = (column - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    if column.dtype.kind in "bf":
        return column.to_numpy(np.float32).reshape(-1, 1)
    return np.array([["" if value != value or value is None else str(value)] for value in column])


@pytest.mark.parametrize("kernel", ["rbf", "intersection"])
def test_a_model_that_the_terminal_trains_is_that_of_python(kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, y = staff()
    frame.assign(label=y).to_csv("staff.csv", index=False)
    scale = ["--scale", "minmax"] if kernel == "rbf" else []
    run("train", "staff.csv", "m", "-t", kernel, *scale, "--numeric", "since", "--seed", "0",
        "--categorical", "grade")  # fmt: skip
    data = read("staff.csv", numeric=["since"], categorical=["grade"])
    machine = AdditiveSVC(kernel, missing="learn", random_state=0)
    if kernel == "rbf":
        machine = make_pipeline(TableEncoder(), KernelSVC(random_state=0))
    expected = machine.fit(data.X, data.y).decision_function(data.X)
    found = load("m").decision_function(data.X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    frame[["job", "since", "grade", "away", "age"]].to_csv("new.csv", index=False)
    printed = run("predict", "new.csv", "m", "--output", "decision").stdout.split()[1:]
    np.testing.assert_allclose(np.array(printed, float), found, rtol=1e-6)


def test_easy_is_the_same_for_a_frame_and_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, y = staff(200)
    frame = frame.drop(columns="since").assign(grade=frame["grade"].astype(int))
    frame.assign(label=y).to_csv("staff.csv", index=False)
    model = AutoSVC(600, n_jobs=1, random_state=0).fit(frame, y)
    run("easy", "staff.csv", "--model", "m", "--jobs", "1")
    save(model, "python")
    by_terminal, by_python = load_file("m"), load_file("python")
    assert by_terminal.keys() == by_python.keys()
    assert all(np.array_equal(by_terminal[name], by_python[name]) for name in by_python)
    again = load("m")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    frame.to_csv("new.csv", index=False)
    assert run("predict", "new.csv", "python").stdout.split() == model.predict(frame).tolist()
