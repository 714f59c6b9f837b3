"""widemargin bench."""

import signal
from contextlib import suppress
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
    header, *rows, page = result.stdout.splitlines()
    assert header.split()[:3] == ["machine", "right,", "%"]
    assert [row.split()[:2] for row in rows] == [["iris", name] for name in comparison.MACHINES]
    assert page == str(PAGE)
    assert "iris, 3 splits" in PAGE.read_text(encoding="utf-8")
    said = result.stderr.splitlines()
    assert said[0].startswith("3 splits of every data set")
    assert [line.partition(":")[0] for line in said[1:]] == [
        f"iris, {name}" for name in comparison.MACHINES
    ]


def interrupted():
    signal.raise_signal(signal.SIGINT)


def swallowed():
    """As NumPy does with what is raised while it looks at a buffer."""
    try:
        interrupted()
    except KeyboardInterrupt:
        raise ValueError("no PEP 3118") from None


def lost():
    """An interrupt of which nothing is left."""
    with suppress(KeyboardInterrupt):
        interrupted()
    return SVC()


@pytest.mark.parametrize("how", [interrupted, swallowed, lost])
def test_ctrl_c_keeps_what_is_done(monkeypatch, how):
    monkeypatch.setitem(comparison.MACHINES, "LinearSVC", how)
    result = run("bench", "--quick", "-o", "there", status=130)
    assert "interrupted after 2 of 5 machines." in result.stderr
    assert "KernelSVC" in result.stdout
    assert "learn, s" in Path("there/index.html").read_text(encoding="utf-8")


def test_other_errors_are_errors(monkeypatch):
    monkeypatch.setitem(comparison.MACHINES, "KernelSVC", lambda: SVC(C=1.0, gamma=-1.0))
    assert "gamma" in run("bench", "--quick", status=1).stderr


def test_ctrl_c_before_anything_is_done(monkeypatch):
    monkeypatch.setitem(comparison.MACHINES, "AdditiveSVC", interrupted)
    run("bench", "--quick", status=130)
    assert not PAGE.exists()


def test_more_splits_unless_it_is_to_be_quick(monkeypatch):
    monkeypatch.setattr(comparison, "MACHINES", {"SVC": SVC})
    monkeypatch.setattr(benching, "MACHINES", {"SVC": SVC})
    assert run("bench").stderr.startswith("20 splits")
    assert "iris, 20 splits" in PAGE.read_text(encoding="utf-8")
