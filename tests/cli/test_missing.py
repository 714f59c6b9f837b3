"""Tables with gaps and categories on the command line: additive kernels learn from both."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from widemargin import AdditiveSVC, load, save, search
from widemargin.calibration import uncalibrated
from widemargin.persistence import read_header

from .helpers import refused, run, run_json

N = 300


@pytest.fixture
def people() -> pd.DataFrame:
    """A table in a.csv, a tenth of its ages and jobs missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, N).astype(float),
            "job": rng.choice(["baker", "clerk", "smith"], N),
            "pay": rng.exponential(1.0, N).round(3),
        }
    )
    frame["label"] = np.where((frame["age"] > 45) | (frame["job"] == "clerk"), "rich", "poor")
    frame.loc[rng.random(N) < 0.1, "age"] = np.nan
    frame.loc[rng.random(N) < 0.1, "job"] = None
    frame.to_csv("a.csv", index=False)
    return frame


def printed(*words) -> list[str]:
    return run(*words).stdout.splitlines()


def test_training_counts_what_is_missing_and_just_works(people):
    n_age, n_job = people["age"].isna().sum(), people["job"].isna().sum()
    said = run("train", "a.csv", "m", "-t", "intersection").stderr
    assert said.startswith(
        f"columns: 2 numeric, 1 categorical (job 3), {n_age + n_job} values missing "
        f"(age {n_age}, job {n_job})\n"
    )
    assert run_json("evaluate", "a.csv", "m")["accuracy"] > 0.9
    assert run_json("train", "a.csv", "-t", "chi2", "-v", 3)["cross_validation"]["accuracy"] > 0.85
    found = run_json("tune", "a.csv", "-t", "chi2,intersection", "-c", "0.1,1", "-v", 3)
    assert found["best"]["accuracy"] > 0.85
    assert run("tune", "a.csv", "-t", "chi2", "-c", "1", "-v", 3).stderr.count("warning") == 0


def test_a_mark_for_missing_values_is_remembered(people):
    people.to_csv("b.csv", index=False, na_rep="?")
    run("train", "b.csv", "m", "-t", "intersection", "--na", "?")
    run("train", "a.csv", "n", "-t", "intersection")
    decisions = [printed("predict", "b.csv", "m"), printed("predict", "a.csv", "n")]
    assert decisions[0] == decisions[1]


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_other_machines_and_scalers_take_gaps_behind_an_encoder(people, kernel):
    """Wherever the gaps are: in what is learned from, or in new rows."""
    words = ["-t", kernel, "--scale", "standard"]
    run("train", "a.csv", "m", *words)
    assert read_header("m").kinds[0] == "TableEncoder"
    assert run_json("evaluate", "a.csv", "m")["accuracy"] > 0.85
    people.dropna().to_csv("b.csv", index=False)
    run("train", "b.csv", "m", *words)
    assert "count as the mean of their column: 'age' in" in run("evaluate", "a.csv", "m").stderr


def test_arrays_with_gaps_say_what_to_do(people):
    np.savez("a.npz", X=people[["age", "pay"]].to_numpy(), y=people["label"].to_numpy(str))
    said = refused("train", "a.npz", status=1)
    assert "Input X contains NaN at row" in said
    way_out = "an additive kernel, such as --kernel intersection, and without --scale"
    assert said.endswith(f", or learn from them with {way_out}.")
    run("train", "a.npz", "-t", "chi2")


def test_easy_learns_from_gaps_and_categories(people, monkeypatch):
    monkeypatch.setattr(search, "MOST_SETTINGS", 3)
    run("easy", "a.csv", "a.csv", "--model", "m")
    model = uncalibrated(load("m"))
    assert isinstance(model, AdditiveSVC)
    assert model.columns_.categories == {1: ("baker", "clerk", "smith")}
    assert run_json("evaluate", "a.csv", "m")["accuracy"] > 0.9
    lines = printed("predict", "a.csv", "m", "--output", "contributions")
    assert lines[0].split("\t") == ["age", "job", "pay", "intercept"]


def test_easy_fills_in_what_is_missing_where_a_general_kernel_is_the_best(folder):
    """Classes that no sum of columns tells apart; the model's file takes tables with gaps."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, N), "b": rng.uniform(-1, 1, N)})
    frame["job"] = rng.choice(["x", "y"], N)
    frame["label"] = np.where((frame["a"] * frame["b"] > 0) ^ (frame["job"] == "x"), "p", "q")
    frame.loc[::20, "a"] = np.nan
    frame.loc[1::20, "job"] = None
    frame.to_csv("a.csv", index=False)
    assert run_json("easy", "a.csv", "a.csv", "--model", "m")["test"]["accuracy"] > 0.85
    first, *between, machine = read_header("m").kinds
    assert (first, machine) == ("TableEncoder", "KernelSVC")
    expected = load("m").predict(frame)
    frame[["job", "b", "label", "a"]].to_parquet("b.parquet")
    for data in ("a.csv", "b.parquet"):
        assert printed("predict", data, "m") == expected.tolist()
    run("report", "m", "a.csv")
    if "NormalScaler" in between:
        assert "NormalScaler" in refused("export", "m", "m.onnx", status=1)
    else:
        run("export", "m", "m.onnx")


def test_models_go_to_python_and_back(people):
    X, y = people.drop(columns="label"), people["label"]
    run("train", "a.csv", "m", "-t", "intersection")
    model = load("m")
    assert model.feature_names_in_.tolist() == ["age", "job", "pay"]
    assert model.columns_.categories == {1: ("baker", "clerk", "smith")}
    mine = AdditiveSVC("intersection", missing="learn", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), mine.decision_function(X))
    save(mine, "mine")
    assert read_header("mine").categorical == (1,)
    people[["pay", "label", "job", "age"]].to_parquet("b.parquet")
    for data in ("a.csv", "b.parquet"):
        for path in ("m", "mine"):
            lines = printed("predict", data, path)
            assert lines == model.predict(X).tolist()


def test_columns_are_terms_in_contributions_plots_and_json(people):
    run("train", "a.csv", "m", "-t", "intersection")
    lines = printed("predict", "a.csv", "m", "--output", "contributions")
    assert lines[0].split("\t") == ["age", "job", "pay", "intercept"]
    run("export", "m", "m.json")
    shapes = json.loads(Path("m.json").read_text())
    assert shapes["features"][1]["grid"] == ["baker", "clerk", "smith", "(missing)"]
    assert shapes["features"][0]["missing"] is not None
    run("plot", "m", "m.png", "--features", "age,job")
    assert Path("m.png").stat().st_size > 1000


def test_onnx_files_take_the_columns_of_the_table(people):
    onnxruntime = pytest.importorskip("onnxruntime")
    run("train", "a.csv", "m", "-t", "intersection")
    run("export", "m", "m.onnx")
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    given = {
        "age": people[["age"]].to_numpy(np.float32),
        "job": people[["job"]].astype(object).to_numpy(),
        "pay": people[["pay"]].to_numpy(np.float32),
    }
    label, scores = session.run(["label", "scores"], given)
    assert label.tolist() == printed("predict", "a.csv", "m")
    decided = [float(x) for x in printed("predict", "a.csv", "m", "--output", "decision")[1:]]
    np.testing.assert_allclose(scores, decided, atol=1e-4)


def test_new_categories_are_counted_in_one_line(people):
    run("train", "a.csv", "m", "-t", "intersection")
    people.head(3).assign(job=["pilot", "nurse", "clerk"]).to_csv("b.csv", index=False)
    lines = run("predict", "b.csv", "m").stderr.splitlines()
    assert [line for line in lines if line.startswith("warning")] == [
        "warning: Categories that the training data did not have are ignored: "
        "'job' in 2 rows, first 'pilot'."
    ]
