"""Stores as data to predict and evaluate."""

from pathlib import Path

import numpy as np
import pytest

from .helpers import refused, run, run_json


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A table and its columns in another order, with categories."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200)).round(3)
    job = rng.choice(["smith", "clerk"], 200)
    y = np.where(a + b + (job == "clerk") > 0, "yes", "no")
    rows = list(zip(a, b, job, y, strict=True))
    lines = ["a,b,job,y", *(f"{p},{q},{r},{s}" for p, q, r, s in rows)]
    Path("t.csv").write_text("\n".join(lines) + "\n")
    lines = ["job,b,a,y", *(f"{r},{q},{p},{s}" for p, q, r, s in rows)]
    Path("turned.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("kernel", "keep", "file"),
    [("rbf", "values", "t.csv"), ("rbf", "values", "turned.csv"), ("chi2", "codes", "t.csv")],
)
def test_a_store_is_data_to_predict_and_evaluate(kernel, keep, file):
    run("store", file, "s", "--keep", keep, "-q")
    run("train", "s" if keep == "codes" else "t.csv", "m", "-t", kernel, "-q")
    for words in (("predict",), ("predict", "--output", "decision")):
        command, *options = words
        of_file, of_store = (run(command, data, "m", *options) for data in ("t.csv", "s"))
        assert of_file.stderr == of_store.stderr
        assert len(of_store.stdout.splitlines()) >= 200
        if not options:
            assert of_store.stdout == of_file.stdout
    of_file, of_store = (run_json("evaluate", data, "m") for data in ("t.csv", "s"))
    assert of_store["confusion"] == of_file["confusion"]
    assert of_store["rows"] == 200


@pytest.mark.usefixtures("tables")
def test_a_store_that_a_model_cannot_take_says_what_to_do():
    run("store", "t.csv", "codes", "-q")
    run("store", "t.csv", "values", "--keep", "values", "-q")
    run("train", "t.csv", "kernel", "-t", "rbf", "-q")
    run("train", "t.csv", "whole", "-t", "chi2", "-q")  # of categories as they are
    said = refused("predict", "codes", "kernel", status=2)
    assert "codes: a store of codes, which only an additive model" in said
    assert "or a store of values (store --keep values)." in said
    assert run_json("evaluate", "values", "whole") | {"seconds": 0, "microseconds_per_row": 0} == (
        run_json("evaluate", "t.csv", "whole") | {"seconds": 0, "microseconds_per_row": 0}
    )
    run("store", "t.csv", "some", "--keep", "values", "-q", "--drop", "job")
    said = refused("evaluate", "some", "whole", status=1)
    assert "the model's columns 'job' are missing; the file has 'a', 'b'" in said
    said = refused("report", "kernel", "values", status=2)
    assert "values: a store, but this command needs a file." in said
    Path("other.csv").write_text("a,b,job,y\n0,3,clerk,yes\n5,1,smith,no\n")
    run("store", "other.csv", "other", "-q")
    assert "has other bins than the model" in refused("evaluate", "other", "whole", status=1)


def test_features_that_are_counted_otherwise_are_not_mixed_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("from0").write_text("1 0:1 1:2\n-1 0:2 1:1\n" * 20)
    Path("from1").write_text("1 1:1 2:2\n-1 1:2 2:1\n" * 20)
    run("train", "from1", "m", "-t", "rbf", "-q")
    for name in ("from0", "from1"):
        run("store", name, f"{name}.store", "--keep", "values", "-q")
    assert run_json("evaluate", "from1.store", "m")["accuracy"] == 1.0
    said = refused("evaluate", "from0.store", "m", status=2)
    assert "its features count from 0, those of the model from 1." in said
