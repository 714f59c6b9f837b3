"""The programs of the gallery run, without a warning; `make docs` draws their pictures."""

import os
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXAMPLES, reason="not in a checkout"),
]


def test_there_are_enough():
    assert len(EXAMPLES) >= 14


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem.removeprefix("plot_"))
def test_an_example_runs_and_makes_a_figure(path, monkeypatch, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    try:
        runpy.run_path(str(path))
        assert plt.get_fignums()
    finally:
        plt.close("all")
