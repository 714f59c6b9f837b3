"""A fit in a process of its own, and how such a process ends."""

import sys
from dataclasses import replace

import pytest
from benchmarks.experiments import process
from benchmarks.experiments.cell import run
from benchmarks.experiments.runner import line
from benchmarks.experiments.store import Results
from pretended_fits import DIGITS

pytestmark = pytest.mark.slow


@pytest.mark.memory
def test_a_fit_is_measured_in_a_process_of_its_own():
    found = process.fit(replace(DIGITS, measure=["gap", "iterations"]), limit=60.0)
    assert found["status"] == "done", found["message"]
    assert found["accuracy"] > 0.8
    assert found["fit_seconds"] > 0
    assert found["peak_megabytes"] > 50
    assert found["fit_megabytes"] < found["peak_megabytes"]
    assert found["details"]["gap"] < 1e-3
    assert found["details"]["load"] >= 0
    assert found["train_rows"] == 300


def test_where_memory_cannot_be_measured_the_rest_is(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.experiments.cell.forget_peak", lambda: False)
    found = run(replace(DIGITS, parameters={"C": 0.001}), limit=60.0)
    assert found["fit_megabytes"] is None
    assert found["accuracy"] > 0.8
    kept = Results(tmp_path / "here.parquet")
    assert "MB" not in line(kept.keep(DIGITS, found | {"status": "done", "limit": 1.0}))
    kept.collect()


def test_a_fit_that_takes_too_long_is_killed():
    slow = replace(DIGITS, method="PWLSGD", use="PWLSGD", parameters={"passes": 10_000})
    found = process.fit(replace(slow, rows=None), limit=0.2)
    assert found == {"status": "timeout", "message": "killed after 0.2 s"}


def test_a_fit_that_fails_says_why():
    found = process.fit(replace(DIGITS, parameters={"C": -1.0}), limit=60.0)
    assert found["status"] == "failed"
    assert "C" in found["message"]


@pytest.mark.parametrize(
    ("code", "error", "status"),
    [
        (-9, "", "killed"),
        (1, "FileNotFoundError: [Errno 2] No such file: 'mnist.npz'", "missing"),
        (1, "", "failed"),
    ],
)
def test_ends_of_processes_are_told_apart(code, error, status):
    assert process._outcome(code, "", error, 1.0)["status"] == status


def test_a_competitor_that_is_not_installed_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    found = process.fit(replace(DIGITS, method="LightGBM", use="LightGBM", parameters={}), 60.0)
    assert found["status"] == "missing"
    assert "needs lightgbm: pip install lightgbm" in found["message"]
