"""Fits side by side, in their order, until the time is up."""

import threading
import time
from contextlib import suppress

import pytest
from benchmarks.experiments import plan, process
from benchmarks.experiments.__main__ import _wanted
from benchmarks.experiments.plan import Method
from benchmarks.experiments.runner import Runner
from benchmarks.experiments.schedule import Schedule
from benchmarks.experiments.store import Results
from pretended_fits import Pretended, experiment, near, ran

pytestmark = pytest.mark.slow


class Together(Pretended):
    """Fits that wait until as many as are expected run at once."""

    def __init__(self, number):
        super().__init__(near(1.0))
        self.barrier, self.now, self.most = threading.Barrier(number), 0, 0

    def __call__(self, cell, limit):
        self.now += 1
        self.most = max(self.most, self.now)
        with suppress(threading.BrokenBarrierError):
            self.barrier.wait(1)
        self.now -= 1
        return super().__call__(cell, limit)


def test_fits_run_side_by_side_with_the_same_results(tmp_path):
    (tmp_path / "one").mkdir()
    wanted = experiment(seeds=[0, 1, 2])
    fit = Together(3)
    many = ran(tmp_path, fit, wanted, jobs=3)
    assert (fit.most, len(fit.cells)) == (3, 6)
    one = ran(tmp_path / "one", Pretended(near(1.0)), wanted)
    for a, b in zip(many, one, strict=True):
        assert (a["key"], a["accuracy"]) == (b["key"], b["accuracy"])


def test_a_fit_waits_for_as_many_threads_as_it_has(tmp_path):
    fit = Together(2)
    ran(tmp_path, fit, experiment(seeds=[0, 1, 2, 3], threads=2), jobs=3)
    assert fit.most == 1
    fit = Together(2)
    (tmp_path / "wide").mkdir()
    ran(tmp_path / "wide", fit, experiment(threads=8), jobs=4)  # wider than all: alone
    assert (fit.most, len(fit.cells)) == (1, 4)


def test_first_lines_come_first(tmp_path):
    wanted = experiment(methods=[Method("ICD", "ICD"), *experiment().methods], seeds=[0, 1])
    fit = Pretended(lambda parameters: 0.5)
    ran(tmp_path, fit, wanted)
    assert [c.method for c in fit.cells[:2]] == ["ICD", "ICD"]


def test_when_the_budget_is_spent_fits_are_killed_forgotten_and_run_again(tmp_path, monkeypatch):
    ended = threading.Event()

    class Slow(Pretended):
        def __call__(self, cell, limit):
            if self.cells:
                assert ended.wait(10)
                return {"status": "killed", "message": "SIGKILL"}
            return super().__call__(cell, limit)

    results = Results(tmp_path / "here.parquet")
    wanted = experiment(methods=[Method("ICD", "ICD")], seeds=[0, 1, 2])
    runner = Runner(wanted, results, lambda text: None, fit=Slow())
    started = time.monotonic()
    schedule = Schedule([runner], 1, 0.3, stop=ended.set)
    assert not schedule.run()
    assert time.monotonic() - started < 5
    assert schedule.open_lines() == 1
    assert [row["seed"] for row in results.rows.values()] == [0]
    fit = Pretended()
    assert len(ran(tmp_path, fit, wanted)) == 3
    assert [cell.seed for cell in fit.cells] == [1, 2]


def test_a_budget_ends_real_processes(tmp_path):
    slow = Method("PWLSGD", "PWLSGD", {"passes": 1_000_000})
    wanted = experiment(methods=[slow], seeds=[0, 1])
    runner = Runner(wanted, Results(tmp_path / "here.parquet"), lambda text: None)
    started = time.monotonic()
    assert not Schedule([runner], 2, 0.5).run()
    assert time.monotonic() - started < 20
    assert not process._running
    assert not runner.results.rows


def test_grids_of_which_no_fit_ended_are_not_extended(tmp_path):
    fit = Pretended(status="timeout")
    assert ran(tmp_path, fit)[0]["status"] == "timeout"
    assert len(fit.cells) == 3 + 1


def test_names_come_in_their_order_and_all_is_the_rest():
    first = plan.names()[-1]
    assert _wanted([first, "all"]) == [first, *plan.names()[:-1]]
    assert _wanted(["icd_C", "icd_C"]) == ["icd_C"]
