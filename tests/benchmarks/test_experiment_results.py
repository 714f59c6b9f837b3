"""What is kept of an experiment, and where a run goes on."""

import json
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.environment import describe
from benchmarks.experiments.__main__ import summary
from benchmarks.experiments.plan import Method
from benchmarks.experiments.store import SCHEMA, Results
from pretended_fits import DIGITS, Pretended, experiment, near, ran


def test_a_second_run_fits_nothing_and_finds_the_same(tmp_path):
    first = ran(tmp_path, Pretended(near(1.0)), experiment(seeds=[0, 1], repeats=2))
    again = Pretended()
    second = ran(tmp_path, again, experiment(seeds=[0, 1], repeats=2))
    assert again.cells == []
    assert len(first) == 4
    assert second == first


def test_a_run_that_ended_in_the_middle_goes_on_there(tmp_path):
    class Interrupted(Pretended):
        def __call__(self, cell, limit):
            if len(self.cells) == 2:
                raise KeyboardInterrupt
            return super().__call__(cell, limit)

    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, Interrupted(near(1.0)))
    fit = Pretended(near(1.0))
    ran(tmp_path, fit)
    assert [cell.parameters["C"] for cell in fit.cells] == [10.0, 1.0]


@pytest.mark.parametrize(("status", "again"), [("failed", 1), ("missing", 1), ("timeout", 0)])
def test_what_failed_is_tried_again_and_what_ran_out_of_time_is_not(tmp_path, status, again):
    plain = experiment(methods=[Method("ICD", "ICD")], limit=10.0)
    assert ran(tmp_path, Pretended(status=status), plain)[0]["status"] == status
    fit = Pretended()
    ran(tmp_path, fit, plain)
    assert len(fit.cells) == again
    longer = Pretended()
    ran(tmp_path, longer, replace(plain, limit=20.0))
    assert len(longer.cells) == 1 - again  # a longer time is another chance


def test_results_are_parquet_with_their_origin_and_the_papers_figures(tmp_path):
    wanted = experiment(published=[{"method": "LIBLINEAR", "accuracy": 91.0}])
    rows = ran(tmp_path, Pretended(near(1.0)), wanted)
    table = pq.read_table(tmp_path / "here.parquet")
    types = {f.name: str(f.type) for f in table.schema}
    assert types == {k: v.replace("float64", "double") for k, v in SCHEMA.items()}
    kept = {row["key"]: row for row in table.to_pylist()}[rows[0]["key"]]
    assert json.loads(kept["published"]) == {"accuracy": 91.0}
    assert json.loads(kept["packages"])["numpy"] == np.__version__
    for name in ("machine", "cores", "python", "commit", "when"):
        assert kept[name], name
    assert kept["seed"] == 0
    assert "| digits | LIBLINEAR | C=1.0 | 100.00 | 91.0 | 1.00 | 1 |" in summary(rows)


def test_a_file_with_other_columns_is_refused(tmp_path):
    import pyarrow as pa

    pq.write_table(pa.table({"key": ["a"]}), tmp_path / "here.parquet")
    with pytest.raises(ValueError, match="has other columns: move it away"):
        Results(tmp_path / "here.parquet")


def test_the_commit_is_that_of_the_tree():
    assert len(describe()["commit"].rstrip("+")) == 40


def test_fits_are_lines_of_a_journal_until_the_run_ends(tmp_path):
    results = Results(tmp_path / "here.parquet")
    results.keep(DIGITS, {"status": "done", "accuracy": 0.5, "limit": 1.0})
    assert not results.path.exists()
    with open(results.journal, "a") as file:
        file.write('{"key": "half a l')  # of a machine that was switched off
    again = Results(tmp_path / "here.parquet")
    assert again.find(DIGITS, 1.0)["accuracy"] == 0.5
    other = replace(DIGITS, seed=1)
    again.keep(other, {"status": "done", "accuracy": 0.75, "limit": 1.0})
    assert again.collect() == results.path
    assert not results.journal.exists()
    assert len(Results(tmp_path / "here.parquet").rows) == 2


def test_without_pyarrow_the_journal_is_what_is_kept(tmp_path, monkeypatch):
    results = Results(tmp_path / "here.parquet")
    results.keep(DIGITS, {"status": "done", "limit": 1.0})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert results.collect() == results.journal
    assert Results(tmp_path / "here.parquet").find(DIGITS, 1.0)["status"] == "done"
    monkeypatch.undo()
    assert Results(tmp_path / "here.parquet").collect() == results.path


@pytest.mark.parametrize("name", ["digits", "ICD"])
@pytest.mark.parametrize("journal", [False, True])
def test_fits_of_a_set_or_a_method_are_made_again(tmp_path, monkeypatch, name, journal):
    results = Results(tmp_path / "here.parquet")
    other = replace(DIGITS, data="usps", method="fm-HI")
    for cell in (DIGITS, other):
        results.keep(cell, {"status": "done", "limit": 1.0})
    if journal:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    results.collect()
    Results(results.path).forget([name])
    left = Results(results.path)
    assert left.find(DIGITS, 1.0) is None
    assert left.find(other, 1.0)["status"] == "done"
    before = left.path.stat().st_mtime_ns if left.path.exists() else None
    left.forget(["nobody"])  # changes nothing
    assert before == (left.path.stat().st_mtime_ns if left.path.exists() else None)
