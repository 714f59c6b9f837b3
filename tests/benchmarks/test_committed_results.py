"""The committed results: what they promise of themselves, and reasons for what is far away."""

import re

import pytest
from benchmarks.__main__ import SCRIPTS
from benchmarks.experiments import plan
from benchmarks.experiments.experiment_page import is_far
from benchmarks.experiments.site import read_results
from benchmarks.report import RESULTS

FOLDER = RESULTS / "experiments"
MEASURED = read_results(FOLDER)
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="a source archive has no results")


def test_there_are_results_and_every_one_has_its_file():
    assert MEASURED
    assert {path.stem for path in FOLDER.glob("*.parquet")} <= set(plan.names())
    assert not list(FOLDER.glob("*.jsonl"))  # journals are collected before they are committed


def test_they_are_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.parquet")) < 1_000_000


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_every_figure_far_from_the_papers_has_its_reason(name):
    experiment, lines = MEASURED[name]
    silent = [
        f"{line.data} {line.method} {line.setting}: {line.difference:+.2f}"
        for line in lines
        if is_far(line) and not experiment.reason(line.method, line.data, line.parameters)
    ]
    assert not silent


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.md")), ids=lambda path: path.stem)
def test_no_figure_was_typed_by_hand(path):
    assert "by hand" not in path.read_text()


def test_make_bench_makes_every_figure_but_those_of_another_tree():
    texts = [path.read_text(encoding="utf-8") for path in RESULTS.glob("*.md")]
    made = {found[1] for text in texts if (found := re.search(r"benchmarks\.(\w+)", text))}
    assert len(made) > 30
    assert made - set(SCRIPTS) == {"compare_commits", "examples"}
