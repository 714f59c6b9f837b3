"""The committed results: what they promise of themselves, and reasons for what is far away."""

import re
from dataclasses import replace

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


def test_no_published_error_stands_beside_an_empty_feature():
    experiment, lines = MEASURED["lut_table2"]
    for line in lines:
        errors = line.done[0]["details"]["errors"]
        assert {int(j) for j in errors} == set(experiment.features)
        assert all(e["max"] > 0 and e["mean"] > 0 for e in errors.values())


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_fits_are_those_that_their_file_asks_for(name):
    """Rows, scale, seeds and measures of a result are those of its file today."""
    experiment, lines = MEASURED[name]
    methods = {method.name: method for method in experiment.methods}
    for line in lines:
        for row in line.rows:
            asked = plan.cell(experiment, line.data, methods[line.method], line.parameters, "test")
            asked = replace(asked, seed=row["seed"], repeat=row["repeat"])
            assert row["key"] == asked.key, (line.data, line.method, line.setting)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.md")), ids=lambda path: path.stem)
def test_no_figure_was_typed_by_hand(path):
    assert "by hand" not in path.read_text()


def test_make_bench_makes_every_figure_but_those_of_two_trees():
    texts = [path.read_text(encoding="utf-8") for path in RESULTS.glob("*.md")]
    made = {found[1] for text in texts if (found := re.search(r"benchmarks\.(\w+)", text))}
    assert len(made) > 30
    assert made - set(SCRIPTS) == {"compare_commits"}
