"""widemargin bench."""

from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from widemargin import comparison
from widemargin.cli import benching

from .helpers import run

PAGE = Path("bench/index.html")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for module in (comparison, benching):
        monkeypatch.setattr(module, "DATA", {"iris": load_iris})
    monkeypatch.setattr(comparison, "GRIDS", {"C": (1.0, 10.0), "learning_rate": (0.1, 0.2)})


def test_a_table_and_a_page():
    result = run("bench", "--quick")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("3 splits of each data set")
    assert [line.split()[0] for line in lines[1:-1]] == ["iris", *comparison.MACHINES]
    assert lines[-1] == str(PAGE)
    assert "iris, 3 splits" in PAGE.read_text(encoding="utf-8")
    assert result.stderr == ""


def interrupted():
    raise KeyboardInterrupt


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    monkeypatch.setitem(comparison.MACHINES, "LinearSVC", interrupted)
    result = run("bench", "--quick", "-o", "there", status=130)
    assert "interrupted after 2 of 5 machines." in result.stderr
    assert "KernelSVC" in result.stdout
    assert "learn, s" in Path("there/index.html").read_text(encoding="utf-8")


def test_ctrl_c_before_anything_is_done(monkeypatch):
    monkeypatch.setitem(comparison.MACHINES, "AdditiveSVC", interrupted)
    run("bench", "--quick", status=130)
    assert not PAGE.exists()


def test_more_splits_unless_it_is_to_be_quick(monkeypatch):
    monkeypatch.setattr(comparison, "MACHINES", {"SVC": SVC})
    monkeypatch.setattr(benching, "MACHINES", {"SVC": SVC})
    assert run("bench").stdout.startswith("20 splits")
    assert "iris, 20 splits" in PAGE.read_text(encoding="utf-8")
