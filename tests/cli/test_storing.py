"""Training from disk, and predictions chunk by chunk."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from widemargin import BlockStore, load
from widemargin.cli import store as storing
from widemargin.cli.store import _expected_bytes, bytes_of
from widemargin.data import reading, svmlight
from widemargin.persistence import read_header
from widemargin.resources import free_memory, used_memory

from .helpers import refused, run, run_json, write_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 1000)
    monkeypatch.setattr(svmlight, "PART", 1 << 6)  # per thread, of which there may be many
    monkeypatch.setattr(svmlight, "_LEAST_PART", 1 << 6)


def test_a_store_is_trained_like_its_file(iris, tmp_path):
    folder = tmp_path / "iris.store"
    made = run_json("store", iris, folder)
    assert (made["rows"], made["features"], made["classes"]) == (150, 4, 3)
    assert made["bytes_per_value"] <= 20
    for data, name in ((folder, "a"), (iris, "b")):
        run("train", data, tmp_path / name, "-t", "intersection", "-e", "1e-6")
    stored, whole = (load(tmp_path / name) for name in "ab")
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    assert stored.classes_.dtype == whole.classes_.dtype == np.int64
    one, two = (run_json("evaluate", iris, tmp_path / name) for name in "ab")
    assert one["accuracy"] == two["accuracy"]


def test_more_rows_are_appended(iris, tmp_path):
    run("store", iris, tmp_path / "s")
    assert run_json("store", iris, tmp_path / "s", "--append")["rows"] == 300
    assert "finished store already" in refused("store", iris, tmp_path / "s", status=1)


def test_large_data_is_trained_from_disk_by_itself_and_leaves_nothing(iris, tmp_path):
    options = ("-t", "intersection", "-e", "1e-6")
    result = run("train", iris, tmp_path / "a", *options, "--memory-limit", "1kB")
    (line,) = result.stderr.splitlines()
    assert "is larger than --memory-limit: training from" in line
    assert str(tmp_path) in line
    assert "rows              150" in result.stdout
    assert {p.name for p in tmp_path.iterdir()} <= {"a", iris.name}
    assert run("train", iris, tmp_path / "b", *options).stderr == ""
    stored, whole = (load(tmp_path / name) for name in "ab")
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    assert run("train", iris, tmp_path / "a", *options, "--memory-limit", "1GB").stderr == ""


@pytest.mark.parametrize(
    "options", [("-t", "chi2", "-v", "3"), ("-t", "chi2", "--scale", "minmax")]
)
def test_what_cannot_be_trained_from_disk_says_so(options, iris, tmp_path):
    said = refused("train", iris, tmp_path / "m", *options, "--memory-limit", "1kB")
    without = "without --scale, --folds and --probability."
    assert said == f"--memory-limit is for training {without}"
    run("store", iris, tmp_path / "s")
    said = refused("train", tmp_path / "s", *options)
    assert said.endswith(f"a store can only be trained {without}")


def test_features_of_a_store_are_scaled_before_it_is_built():
    write_lines("wide.txt", *(f"{k % 2} 1:{k % 3} 2:{k % 5} 3:{1000 * k}" for k in range(20)))
    run("store", "wide.txt", "s", "--keep", "values")
    said = run("train", "s", "m", "-t", "rbf").stderr
    assert "outweigh the others. Scale the features first, before the store is built." in said


def test_a_store_of_values_is_for_kernels_that_are_not_additive(iris, tmp_path):
    made = run_json("store", iris, tmp_path / "s", "--keep", "values")
    assert made["bytes_per_value"] >= 8
    for data, name in ((tmp_path / "s", "a"), (iris, "b")):
        run("train", data, tmp_path / name, "-t", "rbf", "--early", "1", "--seed", "0")
    stored, whole = (load(tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(stored.model_.coef.values, whole.model_.coef.values)
    said = refused("train", tmp_path / "s", "-t", "chi2", status=1)
    assert "holds values" in said
    assert "Build one with store --keep codes." in said
    run("store", iris, tmp_path / "c")
    said = refused("train", tmp_path / "c", "-t", "rbf", status=1)
    assert "(--kernel intersection), or build one with store --keep values." in said
    said = refused("store", iris, tmp_path / "s", "--keep", "values", "--append")
    assert said.startswith("--keep cannot be combined with --append")
    assert "--keep" in refused("store", iris, tmp_path / "t", "--keep", "both", status=1)


def test_a_kernel_machine_goes_to_disk_by_itself(iris, tmp_path, monkeypatch):
    options = ("-t", "rbf", "--seed", "0")
    with monkeypatch.context() as patch:
        patch.setattr(storing, "_COPIES", 1e12)
        result = run("train", iris, tmp_path / "a", *options, "--memory-limit", "16GB")
    assert "is larger than --memory-limit: training from" in result.stderr
    assert {p.name for p in tmp_path.iterdir()} <= {"a", iris.name}
    run("train", iris, tmp_path / "b", *options)
    stored, whole = (load(tmp_path / name) for name in "ab")
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-3)


def test_a_limit_leaves_the_rest_for_kernel_rows(iris, tmp_path):
    limit = f"{used_memory() / 1e9 + 2:.3f}GB"  # this process may hold other tests' memory
    run("train", iris, tmp_path / "m", "-t", "rbf", "--memory-limit", limit)
    cache = load(tmp_path / "m").cache_size
    assert 1000 < cache < 2000
    given = ("--cache-size", "77")
    run("train", iris, tmp_path / "m", "-t", "rbf", "--memory-limit", limit, *given)
    assert load(tmp_path / "m").cache_size == 77
    said = refused("train", iris, tmp_path / "m", "-t", "rbf", "--memory-limit", "1MB")
    assert said.startswith("--memory-limit 1MB: 150 rows of 4 features take ")
    assert said.endswith(" MB at least.")


@pytest.mark.parametrize("limit", ["big", "0GB", "-1", "1PB"])
def test_a_limit_that_is_none(limit, iris, tmp_path):
    said = refused("train", iris, tmp_path / "m", "-t", "chi2", f"--memory-limit={limit}")
    assert said == f"--memory-limit {limit}: write bytes (2GB, 500MB) or a share (50%)."


def test_limits_and_sizes(tmp_path):
    assert bytes_of("1.5MB") == 1.5e6
    assert bytes_of("50%") == pytest.approx(free_memory() / 2, rel=0.5)
    np.savez_compressed(tmp_path / "zeros.npz", X=np.zeros((1000, 100)))
    assert (tmp_path / "zeros.npz").stat().st_size < 10_000
    assert _expected_bytes(tmp_path / "zeros.npz") >= 800_000
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert 8 * 2 < _expected_bytes(tmp_path / "t.csv") < 8 * 8


def test_weights_of_classes_go_by_the_labels_of_the_store(iris, tmp_path):
    run("store", iris, tmp_path / "s")
    run("train", tmp_path / "s", tmp_path / "m", "-t", "chi2", "--weight", "2=3")
    assert load(tmp_path / "m").class_weight == {2: 3.0}
    assert "no row has the label 9" in refused(
        "train", tmp_path / "s", "-t", "chi2", "--weight", "9=3"
    )


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("what", ["labels", "decision", "contributions"])
def test_predictions_in_chunks_are_those_of_the_whole(what, iris, tmp_path, monkeypatch):
    run("train", iris, tmp_path / "m", "-t", "chi2")
    words = ("predict", iris, tmp_path / "m")
    more = ("--output", what, *(("--class", "1") if what == "contributions" else ()))
    pieces = []
    with monkeypatch.context() as patch:
        whole = reading.stream_svmlight

        def counted(*args, **kwargs):
            for piece in whole(*args, **kwargs):
                pieces.append(piece)
                yield piece

        patch.setattr(reading, "stream_svmlight", counted)
        in_chunks = run(*words, tmp_path / "p", *more)
    assert len(pieces) > 1
    monkeypatch.setattr(svmlight, "PART", 1 << 20)
    monkeypatch.setattr(svmlight, "_LEAST_PART", 1 << 20)
    at_once = run(*words, tmp_path / "q", *more)
    assert (tmp_path / "p").read_text() == (tmp_path / "q").read_text()
    assert in_chunks.stdout == at_once.stdout


PEAK = """
import re, sys
from pathlib import Path
from widemargin.__main__ import main
try:
    main()
finally:
    print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.memory
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nobody tells of the peak")
def test_all_of_the_training_stays_within_the_limit(tmp_path):
    rng = np.random.default_rng(0)  # labels that cannot be learned: every row is a support vector
    np.savez(tmp_path / "d.npz", X=rng.normal(size=(12_000, 5)), y=rng.integers(0, 2, 12_000))
    peaks = []
    for memory in ("--cache-size=1000", "--memory-limit=320MB"):
        command = ["train", "d.npz", "m", "-t", "rbf", "-g", "5", memory]
        run = subprocess.run(
            [sys.executable, "-c", PEAK, *command],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(run.stdout.split()[-1]) * 1024)
    assert peaks[0] > 350e6
    assert peaks[1] < 320e6


def test_columns_of_a_store_are_remembered(tmp_path):
    pytest.importorskip("pyarrow")
    table = tmp_path / "t.csv"
    rows = [f"{k},{k % 7},{k % 2}" for k in range(60)]
    table.write_text("\n".join(["age,pay,label", *rows]) + "\n")
    run("store", table, tmp_path / "s")
    assert BlockStore(tmp_path / "s").feature_names == ["age", "pay"]
    run("train", tmp_path / "s", tmp_path / "m", "-t", "intersection")
    model = load(tmp_path / "m")
    assert (model.feature_names_in_.tolist(), model.label_name_) == (["age", "pay"], "label")
    run("predict", table, tmp_path / "m", tmp_path / "p")


@pytest.fixture(params=["csv", "parquet", "arrow"])
def wages(request, tmp_path):
    """A table with categories, in more than one chunk."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(18, 70, 400),
        "pay": rng.random(400).round(4),
        "job": rng.choice(["smith", "clerk", "abbot"], 400),
        "id": np.arange(400),
        "label": rng.choice(["rich", "poor"], 400),
    }
    columns["label"][columns["pay"] > 0.6] = "rich"
    path = tmp_path / f"wages.{request.param}"
    if request.param == "parquet":
        parquet.write_table(pa.table(columns), path, row_group_size=90)
    elif request.param == "arrow":
        with pa.ipc.new_stream(path, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns), 90)
    else:
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join(",".join(map(str, row)) for row in [[*columns], *rows]) + "\n")
    return path


@pytest.mark.usefixtures("small_chunks")
def test_a_store_of_a_table_in_pieces_is_that_of_the_whole(wages, tmp_path):
    from widemargin import read

    whole = read(wages, drop=["id"])
    BlockStore.build(tmp_path / "whole", [whole])
    run("store", wages, tmp_path / "pieces", "--drop", "id")
    contents = [
        {p.name: p.read_bytes() for p in (tmp_path / name).iterdir() if p.suffix != ".lock"}
        for name in ("whole", "pieces")
    ]
    assert contents[0] == contents[1]
    run("train", tmp_path / "pieces", tmp_path / "m", "-t", "intersection")
    model = load(tmp_path / "m")
    assert model.feature_names_in_.tolist() == whole.feature_names.tolist()
    found = run("evaluate", wages, tmp_path / "m")
    assert "accuracy" in found.stdout
    assert "does not use" not in found.stderr  # --drop is remembered


@pytest.mark.usefixtures("small_chunks")
def test_a_large_table_is_trained_from_disk_by_itself(wages, tmp_path):
    options = ("-t", "intersection", "-e", "1e-6", "--drop", "id")
    result = run("train", wages, tmp_path / "a", *options, "--memory-limit", "1kB")
    assert "is larger than --memory-limit: training from" in result.stderr
    run("store", wages, tmp_path / "s", "--drop", "id")
    run("train", tmp_path / "s", tmp_path / "b", *options[:4])
    one, two = (load(tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(one.model_.weights, two.model_.weights)


def test_missing_values_are_learned_from_disk_as_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 5)), rng.integers(0, 2, 300)
    X[(rng.random(300) < 0.8) & (y == 1), 2] = np.nan
    np.savez(tmp_path / "d.npz", X=X, y=y)
    options = ("-t", "intersection", "-e", "1e-6")
    run("store", tmp_path / "d.npz", tmp_path / "s")
    run("train", tmp_path / "s", tmp_path / "a", *options)
    run("train", tmp_path / "d.npz", tmp_path / "b", *options, "--memory-limit", "1kB")
    run("train", tmp_path / "d.npz", tmp_path / "c", *options)
    stored, by_itself, whole = (load(tmp_path / name) for name in "abc")
    np.testing.assert_array_equal(stored.model_.weights, by_itself.model_.weights)
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    assert stored.columns_ == whole.columns_
    found = [run_json("evaluate", tmp_path / "d.npz", tmp_path / name) for name in "abc"]
    assert found[0]["accuracy"] == found[1]["accuracy"] == found[2]["accuracy"] > 0.8
    said = refused("store", tmp_path / "d.npz", tmp_path / "v", "--keep", "values", status=1)
    assert said.endswith(
        "or learn from them with an additive kernel, such as train --kernel intersection."
    )


@pytest.mark.usefixtures("small_chunks")
def test_gaps_and_categories_of_a_large_table_are_learned_as_in_memory(wages, tmp_path):
    from widemargin import read

    table = read(wages, drop=["id"])
    frame = table.X.to_pandas()
    rich = table.y == "rich"
    frame.loc[rich & (np.arange(400) % 2 == 0), "age"] = np.nan
    frame["job"] = frame["job"].astype(object).where(np.arange(400) % 7 != 0)
    frame["label"] = table.y
    path = wages.with_name(f"gaps{wages.suffix}")
    write = {".csv": frame.to_csv, ".parquet": frame.to_parquet, ".arrow": frame.to_feather}
    write[path.suffix](path, **({"index": False} if path.suffix == ".csv" else {}))
    options = ("-t", "intersection", "-e", "1e-6")
    run("store", path, tmp_path / "s")
    run("train", tmp_path / "s", tmp_path / "a", *options)
    run("train", path, tmp_path / "b", *options, "--memory-limit", "1kB")
    run("train", path, tmp_path / "c", *options)
    stored, by_itself, whole = (load(tmp_path / name) for name in "abc")
    assert stored.columns_ == whole.columns_
    assert list(stored.columns_.categories.values()) == [("abbot", "clerk", "smith")]
    np.testing.assert_array_equal(stored.model_.weights, by_itself.model_.weights)
    np.testing.assert_array_equal(stored.model_.encoder.thresholds, whole.model_.encoder.thresholds)
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    for model in "ac":
        run("predict", path, tmp_path / model, tmp_path / f"{model}.txt")
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "c.txt").read_text()
    assert run_json("evaluate", path, tmp_path / "a")["accuracy"] > 0.7


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kernel", ["intersection", "rbf"])
def test_tables_are_predicted_in_chunks(wages, kernel, tmp_path, monkeypatch):
    run("train", wages, tmp_path / "m", "-t", kernel, "--drop", "id")
    sizes, whole = [], reading.stream_table

    def counted(*args, **kwargs):
        for chunk in whole(*args, **kwargs):
            sizes.append(chunk.X.shape[0])
            yield chunk

    monkeypatch.setattr(reading, "stream_table", counted)
    in_chunks = run("predict", wages, tmp_path / "m", tmp_path / "p", "--output", "decision")
    assert len(sizes) > 3
    assert sum(sizes) == 400
    found = run_json("evaluate", wages, tmp_path / "m")
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 1 << 24)
    at_once = run("predict", wages, tmp_path / "m", tmp_path / "q", "--output", "decision")
    p, q = ((tmp_path / name).read_text().split() for name in "pq")
    assert len(p) == len(q)
    for one, other in zip(p, q, strict=True):  # decisions of a few rows are sums in double
        assert one == other or float(one) == pytest.approx(float(other), rel=1e-6, abs=1e-6)
    assert in_chunks.stdout == at_once.stdout
    assert found["accuracy"] == run_json("evaluate", wages, tmp_path / "m")["accuracy"]


@pytest.mark.usefixtures("small_chunks")
def test_gaps_and_categories_of_a_table_of_values_are_those_of_memory(tmp_path, monkeypatch):
    """In a store that a command names or makes by itself, and with rows that come later."""
    rng = np.random.default_rng(0)
    age, job = rng.integers(20, 60, 300), rng.choice(["clerk", "smith", ""], 300)
    rows = [f"{'' if k % 9 == 0 else a},{j},{int(a > 40) ^ (j == 'clerk')}"
            for k, (a, j) in enumerate(zip(age, job, strict=True))]  # fmt: skip
    path, other = tmp_path / "t.csv", tmp_path / "u.csv"
    path.write_text("\n".join(["age,job,label", *rows, "33,baker,1"]) + "\n")
    other.write_text("job,label,age\nbaker,1,21\nclerk,0,\n")
    words = ["-t", "rbf", "-g", "0.01", "-c", "10", "--tol", "1e-6", "-q"]
    run("train", path, tmp_path / "a", *words)
    run("store", path, tmp_path / "s", "--keep", "values", "-q")
    run("train", tmp_path / "s", tmp_path / "b", *words)
    monkeypatch.setattr(storing, "_COPIES", 1e12)
    run("train", path, tmp_path / "c", *words, "--memory-limit", "16GB")
    for model in "abc":
        run("predict", path, tmp_path / model, tmp_path / f"{model}.txt")
        assert read_header(tmp_path / model).kinds == ("TableEncoder", "KernelSVC")
    assert (tmp_path / "b.txt").read_text() == (tmp_path / "a.txt").read_text()
    assert (tmp_path / "c.txt").read_text() == (tmp_path / "a.txt").read_text()
    found = run_json("evaluate", path, tmp_path / "a")
    again = run_json("evaluate", tmp_path / "s", tmp_path / "b")
    assert again["confusion"] == found["confusion"]
    run("store", other, tmp_path / "s", "--append", "-q")
    assert BlockStore(tmp_path / "s").shape == (303, 6)
