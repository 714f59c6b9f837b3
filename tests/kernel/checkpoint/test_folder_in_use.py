"""A folder serves one fit at a time; the second is refused."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from widemargin.kernel.checkpoint import Checkpoint

from ..helpers import points
from .helpers import assert_same_fit, parts, snapshot, svc

pytestmark = pytest.mark.slow

HELD = """
import sys
import numpy as np
from widemargin import KernelSVC
from widemargin.kernel.checkpoint import Checkpoint

folder, data = sys.argv[1], np.load(sys.argv[2])
real = Checkpoint._save

def save(self, name, arrays):
    real(self, name, arrays)
    print("saved", flush=True)
    sys.stdin.readline()

Checkpoint._save = save
KernelSVC(gamma=2.0, C=5.0, levels=2, branching=2, multi_class="ovr", fit_intercept=False,
          random_state=None, checkpoint=folder).fit(
    data["X"], data["y"]
)
"""


@pytest.mark.parametrize("most_rows", [2048], indirect=True)
def test_a_folder_in_use_is_refused_by_its_owners_name_until_the_owner_is_killed(folder, tmp_path):
    X, y = points(160)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    command = [sys.executable, "-c", HELD, str(folder), str(tmp_path / "data.npz")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            assert process.stdout.readline() == "saved\n"
            before = snapshot(folder)
            message = f"'{folder}' is in use by process {process.pid} on .*give this one another"
            with pytest.raises(BlockingIOError, match=message):
                svc(random_state=None, checkpoint=folder).fit(X, y)
            assert snapshot(folder) == before
        finally:
            process.kill()
    assert len(parts(folder)) == 1
    resumed = svc(random_state=None, checkpoint=folder).fit(X, y)
    seed = json.loads((folder / "fit.json").read_text())["seed"]
    fresh = folder.with_name("fresh")
    fresh.mkdir()
    shutil.copy(folder / "fit.json", fresh)
    assert_same_fit(resumed, svc(random_state=None, checkpoint=fresh).fit(X, y))
    assert isinstance(seed, int)


RACE = """
import sys
import numpy as np
from widemargin import KernelSVC

folder, data = sys.argv[1], np.load(sys.argv[2])
model = KernelSVC(gamma=2.0, C=5.0, levels=2, branching=2, multi_class="ovr", fit_intercept=False,
                  random_state=None, checkpoint=folder)
print("ready", flush=True)
sys.stdin.readline()
try:
    model.fit(data["X"], data["y"])
except BlockingIOError:
    print("refused", flush=True)
else:
    print(model.dual_coef_.tobytes().hex(), flush=True)
"""


def test_processes_that_start_together_in_a_fresh_folder_never_mix(folder, tmp_path):
    X, y = points(160)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    command = [sys.executable, "-c", RACE, str(folder), str(tmp_path / "data.npz")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0].strip() for process in processes]
    found = svc(random_state=None, checkpoint=folder).fit(X, y).dual_coef_.tobytes().hex()
    assert set(said) - {"refused"} == {found}


def test_a_second_fit_of_the_same_process_is_refused(folder):
    data = points(160)
    with (
        Checkpoint(folder, {"data": "d"}, 7),
        pytest.raises(BlockingIOError, match=f"in use by process {os.getpid()} on"),
    ):
        svc(checkpoint=folder).fit(*data)
    shutil.rmtree(folder)
    svc(checkpoint=folder).fit(*data)


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_folder_that_cannot_be_locked_is_used_with_a_warning(error, data, folder, monkeypatch):
    def flock(descriptor, operation):
        if operation != fcntl.LOCK_UN:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(UserWarning, match="cannot be locked .* no other fit uses it"):
        model = svc(checkpoint=folder).fit(*data)
    assert_same_fit(model, svc().fit(*data))


def test_parts_of_another_seed_are_computed_again(folder):
    data = points(160)
    other = folder.with_name("other")
    expected = svc(random_state=None, checkpoint=folder).fit(*data)
    svc(random_state=None, checkpoint=other).fit(*data)
    for path in other.glob("*.part"):
        shutil.copy(path, folder)
    with pytest.warns(UserWarning, match="or of another fit; this part is computed again"):
        assert_same_fit(svc(random_state=None, checkpoint=folder).fit(*data), expected)


def test_a_part_under_another_name_is_computed_again(folder):
    data = points(160, 3)
    expected = svc(checkpoint=folder).fit(*data)
    shutil.copy(folder / "whole0.part", folder / "whole1.part")
    with pytest.warns(UserWarning, match="whole1.part' is .* of another fit"):
        assert_same_fit(svc(checkpoint=folder).fit(*data), expected)
