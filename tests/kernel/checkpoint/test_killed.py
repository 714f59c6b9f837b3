"""A fit that was killed goes on from its checkpoint, to the same bits."""

import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from ..helpers import points, rbf2
from .helpers import Killed, assert_same_fit, parts, snapshot, svc

pytestmark = pytest.mark.slow


def test_a_checkpoint_does_not_change_the_model(data, folder):
    assert_same_fit(svc(checkpoint=folder).fit(*data), svc().fit(*data))
    assert (folder / "fit.json").exists()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("early", [False, 1])
def test_a_killed_fit_computes_only_what_is_missing(share, early, data, folder, solves):
    whole = svc(early=early).fit(*data)
    total = solves.n
    n_problems = len(whole.dual_coef_)
    solves.n, solves.after = 0, int(share * total)
    with pytest.raises(Killed):
        svc(early=early, checkpoint=folder).fit(*data)
    n_levels = sum(level.n_clusters for level in whole.levels_ if level.level > 0)
    done = parts(folder)
    clusters = sum(name.startswith("level") for name in done)
    kept = clusters * n_problems + len(done) - clusters
    assert kept >= solves.after - n_problems
    solves.n, solves.after = 0, np.inf
    resumed = svc(early=early, checkpoint=folder).fit(*data)
    assert solves.n == total - kept
    assert_same_fit(resumed, whole)
    assert len(parts(folder)) == n_levels + (not early) * n_problems


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fit_without_a_seed_goes_on_with_the_one_it_began_with(n_jobs, data, folder, solves):
    solves.after = 4
    with pytest.raises(Killed):
        svc(random_state=None, checkpoint=folder, n_jobs=n_jobs).fit(*data)
    solves.after = np.inf
    fresh = folder.with_name("fresh")
    fresh.mkdir()
    shutil.copy(folder / "fit.json", fresh)
    resumed = svc(random_state=None, checkpoint=folder).fit(*data)
    uninterrupted = svc(random_state=None, checkpoint=fresh).fit(*data)
    assert_same_fit(resumed, uninterrupted)
    seed = json.loads((folder / "fit.json").read_text())["seed"]
    assert snapshot(folder).keys() == snapshot(fresh).keys()
    assert isinstance(seed, int)


def test_a_fit_goes_on_after_an_error_of_the_users_kernel(data, folder):
    X, y = data
    state = {"calls": 0, "most": np.inf}

    def kernel(A, B):
        state["calls"] += 1
        if state["calls"] > state["most"]:
            raise Killed
        return rbf2(A, B)

    expected = svc(kernel=kernel).fit(X, y)
    total = state["calls"]
    state.update(calls=0, most=total - 2)
    with pytest.raises(Killed):
        svc(kernel=kernel, checkpoint=folder).fit(X, y)
    assert parts(folder)
    state.update(calls=0, most=np.inf)
    assert_same_fit(svc(kernel=kernel, checkpoint=folder).fit(X, y), expected)
    assert state["calls"] < total


KILLED = """
import os, signal, sys
import numpy as np
from widemargin import KernelSVC
from widemargin.kernel.checkpoint import Checkpoint

folder, data, most = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3])
real, saved = Checkpoint._save, []

def save(self, name, arrays):
    real(self, name, arrays)
    saved.append(name)
    if len(saved) == most:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoint._save = save
KernelSVC(gamma=2.0, C=5.0, levels=2, branching=2, multi_class="ovr", fit_intercept=False,
          random_state=None, checkpoint=folder).fit(
    data["X"], data["y"]
)
"""


@pytest.mark.parametrize("most_rows", [2048], indirect=True)  # as in the other process
def test_a_process_that_was_killed_goes_on_in_another(folder, tmp_path, solves):
    X, y = points(160, 3)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    command = [sys.executable, "-c", KILLED, str(folder), str(tmp_path / "data.npz"), "3"]
    ended = subprocess.run(command, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(parts(folder)) == 3
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    shutil.copy(folder / "fit.json", fresh)
    resumed = svc(random_state=None, checkpoint=folder).fit(X, y)
    rest, solves.n = solves.n, 0
    uninterrupted = svc(random_state=None, checkpoint=fresh).fit(X, y)
    assert rest == solves.n - 3 * 3  # three clusters of three problems each
    assert_same_fit(resumed, uninterrupted)


@pytest.mark.parametrize("how", [{}, {"fit_intercept": True}, {"multi_class": "ovo"}], ids=str)
def test_a_finished_fit_is_loaded(how, data, folder, solves):
    first = svc(checkpoint=folder, **how).fit(*data)
    assert first.intercept_.any() == ("fit_intercept" in how)
    assert solves.n > 0
    before, solves.n = snapshot(folder), 0
    again = svc(checkpoint=folder, **how).fit(*data)
    assert solves.n == 0
    assert snapshot(folder) == before
    assert_same_fit(again, first)
    np.testing.assert_array_equal(
        again.decision_function(data[0]), first.decision_function(data[0])
    )


@pytest.mark.parametrize(
    "change",
    [{"n_jobs": 2}, {"verbose": False}, {"cache_size": 50.0}, {"on_interrupt": "keep"}],
    ids=str,
)
def test_what_does_not_change_the_model_may_change_between_runs(change, data, folder, solves):
    first = svc(checkpoint=str(folder)).fit(*data)
    solves.n = 0
    assert_same_fit(svc(checkpoint=folder, **change).fit(*data), first)
    assert solves.n == 0
