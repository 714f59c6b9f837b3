"""The simulated cluster, and the guide's table that comes from it."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.cluster import Accidents, rounds_of, rounds_together, tasks_in_turn

ROOT = Path(__file__).parents[2]
NONE = Accidents(spread=0, slow=0, hours_between=np.inf, per_task=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_tasks_without_accidents_take_as_long_as_their_share(rng):
    assert tasks_in_turn(2.0, 95, 10, NONE, rng) == (20.0, 0)


def test_rounds_without_accidents_are_sweeps_and_exchanges(rng):
    total, lost = rounds_together(3.0, 1_000_000, 7, 10, NONE, rng)
    assert total == pytest.approx(7 * (3.0 + 10 * 1e6 / 1e9))
    assert lost == 0


def test_the_scheduler_is_the_limit_of_short_tasks(rng):
    busy = replace(NONE, per_task=0.01)
    assert tasks_in_turn(0.02, 1000, 100, busy, rng)[0] == pytest.approx(10, rel=0.01)


def test_a_slow_worker_delays_every_round_but_few_tasks(rng):
    slow = replace(NONE, slow=0.2, slower=3.0)
    assert rounds_together(1.0, 0, 10, 50, slow, rng)[0] == pytest.approx(30)
    assert tasks_in_turn(1.0, 1000, 50, slow, rng)[0] < 26


def test_tasks_of_lost_workers_are_done_again(rng):
    often = replace(NONE, hours_between=0.02, restart=10)
    end, again = tasks_in_turn(5.0, 500, 10, often, rng)
    assert again > 10
    assert end > 5.0 * 500 / 10


def test_a_lost_part_is_made_again_from_where_it_was_kept(rng):
    often = replace(NONE, hours_between=0.05, restart=10)
    total, lost = rounds_together(1.0, 0, 100, 10, often, rng)
    assert lost > 2
    assert 100 + 11 <= total <= 100 + lost * 20


def test_rounds_are_those_measured_and_grow_with_parts():
    table = (ROOT / "benchmarks/results/parts.md").read_text()
    line = re.search(r"\| covtype.*classes \|(.*)\|", table)
    measured = dict(zip((1, 2, 4, 8), map(int, line[1].split("|")), strict=True))
    for n_shards in (2, 4, 8):
        assert rounds_of(n_shards) == pytest.approx(measured[n_shards], rel=0.1)
    assert rounds_of(1000) > 10 * rounds_of(10)


def test_the_table_of_the_guide_is_that_of_the_script():
    def rows(path):
        return re.findall(r"^\| 1[0,]* \|.*$", (ROOT / path).read_text(), re.MULTILINE)

    assert len(rows("docs/cluster.md")) == 3
    assert rows("docs/cluster.md") == rows("benchmarks/results/cluster.md")
