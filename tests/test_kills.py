"""A worker killed in the middle of every phase of a fit on a cluster: the model is the same."""

from functools import cache

import pytest

pytest.importorskip("distributed")

from benchmarks.kills import EARLY, PARTS, PHASES, ROUNDS, Runs, computed, fits, two_workers
from benchmarks.traps import BEGINS, ENDS, HALFWAY, Trap

from widemargin.dask import ROUNDS_KEPT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kills")


@pytest.fixture(scope="module")
def ready(folder):
    return fits(folder)


@pytest.fixture(scope="module")
def runs(client, folder):
    return Runs(client, folder)


@pytest.fixture(scope="module")
def undisturbed(ready, runs):
    """Bits and tasks of a fit that nobody is killed in."""
    return cache(lambda name: runs.run(ready[name]))


@pytest.mark.parametrize("name", dict.fromkeys(phase.fit for phase in PHASES))
def test_a_fit_that_is_watched_is_the_plain_one(name, ready, client, undisturbed):
    fit = ready[name]
    plain = fit.here() if fit.alike else fit.on(client)
    assert undisturbed(name)[0] == fit.bits(plain)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.words)
def test_a_worker_killed_in_a_phase_changes_nothing(phase, ready, runs, undisturbed):
    trap = Trap(phase.task, phase.middle, phase.number)
    bits, tasks = runs.run(ready[phase.fit], trap)
    assert bits == undisturbed(phase.fit)[0]
    assert tasks[phase.task] > undisturbed(phase.fit)[1][phase.task]  # it was done again


def test_rounds_resume_where_states_were_last_kept(ready, runs, undisturbed):
    """All workers are lost after more than ten passes; fewer are done again for each part."""
    bits, tasks = runs.run(ready[ROUNDS], Trap("descend", HALFWAY, 13 * PARTS, everybody=True))
    expected, without = undisturbed(ROUNDS)
    assert bits == expected
    assert 0 < computed(tasks) - computed(without) <= PARTS * ROUNDS_KEPT < 13 * PARTS


def test_a_task_may_lose_its_worker_many_times(ready, runs, undisturbed):
    """The scheduler gave it up with the fourth."""
    bits, _ = runs.run(ready[EARLY], Trap("solve_task level1", BEGINS, 1, times=4))
    assert bits == undisturbed(EARLY)[0]


def test_what_has_come_home_is_not_done_again(ready, runs, undisturbed):
    """Results were wanted as long as their futures lived, when their rows on disk had gone."""
    trap = Trap("solve_task level1", ENDS, 3, everybody=True)
    bits, tasks = runs.run(ready[EARLY], trap)
    expected, without = undisturbed(EARLY)
    assert bits == expected
    assert tasks["solve_task level2"] == without["solve_task level2"]
