"""The last pass leaves its variables behind while it runs, and a later fit begins with them."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from widemargin import KernelSVC
from widemargin.kernel import checkpoint
from widemargin.kernel.backend import MOST_ROWS
from widemargin.kernel.checkpoint import BEGUN, found_in

from ..helpers import points
from .helpers import parts

pytestmark = pytest.mark.slow

N = MOST_ROWS + 200  # problems on fewer rows are solved at once
SETTINGS = {"gamma": 2.0, "C": 100.0, "levels": 0, "random_state": 0, "tol": 1e-4, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    X, y = points(N, 2)
    rng = np.random.default_rng(0)
    return X, np.where(rng.random(N) < 0.1, 1 - y, y)


@pytest.fixture(scope="module")
def uninterrupted(data):
    return KernelSVC(**SETTINGS).fit(*data)


KILLED = """
import os, signal, sys
import numpy as np
from widemargin import KernelSVC
from widemargin.kernel import checkpoint

folder, data, most = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3])
checkpoint.EVERY = 0.0
real, saved = checkpoint.Checkpoint.save_begun, []

def save(self, name, alpha):
    real(self, name, alpha)
    saved.append(name)
    if len(saved) == most:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.Checkpoint.save_begun = save
KernelSVC(gamma=2.0, C=100.0, levels=0, random_state=0, tol=1e-4, n_jobs=1, checkpoint=folder).fit(
    data["X"], data["y"]
)
"""


def test_a_process_that_was_killed_in_the_last_pass_goes_on(data, uninterrupted, tmp_path):
    X, y = data
    np.savez(tmp_path / "data.npz", X=X, y=y)
    most = int(2 * uninterrupted.n_iter_[0] // 3)
    assert most > 3
    folder = tmp_path / "fit"
    command = [sys.executable, "-c", KILLED, str(folder), str(tmp_path / "data.npz"), str(most)]
    ended = subprocess.run(command, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert parts(folder) == [f"whole0{BEGUN}.part"]
    assert found_in(folder) == "1 whole problem begun"
    resumed = KernelSVC(**SETTINGS, checkpoint=folder).fit(X, y)
    assert resumed.duality_gap_ <= SETTINGS["tol"]
    assert resumed.n_iter_ < uninterrupted.n_iter_
    allowed = 2 * SETTINGS["tol"] * uninterrupted.objective_
    assert abs(resumed.objective_ - uninterrupted.objective_) <= allowed
    assert abs(resumed.dual_objective_ - uninterrupted.dual_objective_) <= allowed
    assert parts(folder) == ["whole0.part"]
    assert found_in(folder) == "1 whole problem solved"


def test_a_fit_that_was_told_to_stop_goes_on(data, uninterrupted, tmp_path):
    class Stop:
        n = 0

        def setup(self, estimator, context):
            pass

        teardown = on_fit_task_begin = setup

        def on_fit_task_end(self, estimator, context):
            self.n += 1
            return self.n > uninterrupted.n_iter_ // 2

    folder = tmp_path / "fit"
    stopped = KernelSVC(**SETTINGS, checkpoint=folder).set_callbacks(Stop())
    with pytest.warns(UserWarning, match="told to stop"):
        stopped.fit(*data)
    assert stopped.duality_gap_ > SETTINGS["tol"]
    assert parts(folder) == [f"whole0{BEGUN}.part"]
    resumed = KernelSVC(**SETTINGS, checkpoint=folder).fit(*data)
    assert resumed.duality_gap_ <= SETTINGS["tol"]
    assert resumed.n_iter_ < uninterrupted.n_iter_


def test_looks_are_rare_and_change_nothing(data, uninterrupted, tmp_path, monkeypatch):
    saved = []
    real = checkpoint.Checkpoint.save_begun
    monkeypatch.setattr(
        checkpoint.Checkpoint, "save_begun", lambda *a: (saved.append(0), real(*a))[1]
    )
    KernelSVC(**SETTINGS, checkpoint=tmp_path / "rare").fit(*data)
    assert saved == []
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    often = KernelSVC(**SETTINGS, checkpoint=tmp_path / "often").fit(*data)
    assert len(saved) >= uninterrupted.n_iter_
    np.testing.assert_array_equal(often.dual_coef_, uninterrupted.dual_coef_)


def test_what_is_found_is_counted(tmp_path):
    assert found_in(tmp_path) is None
    for name in ("level1-0", "level1-1", "whole0", f"whole1{BEGUN}"):
        (tmp_path / f"{name}.part").touch()
    assert found_in(tmp_path) == "2 clusters solved, 1 whole problem solved, 1 whole problem begun"
