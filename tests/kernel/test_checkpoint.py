"""Checkpoints: a killed fit goes on, a foreign folder is left alone, damage is computed again."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.kernel import checkpoint as module
from widemargin.kernel import claim, several
from widemargin.kernel.checkpoint import Checkpoint
from widemargin.kernel.claim import CLAIM
from widemargin.kernel.clusters import ClusterSolution
from widemargin.kernel.problem import Solution

from . import helpers
from .helpers import Recorder, points, rbf2


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def data(request):
    return points(160, request.param)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "fit"


def svc(kernel="rbf", **changes):
    return helpers.svc(kernel, **{"levels": 2, "branching": 2, **changes})


class Killed(Exception):  # noqa: N818
    """What a test raises in the place of a kill."""


@pytest.fixture
def solves(monkeypatch):
    """Counts the problems that are solved; ``after`` raises `Killed` at a later one."""

    class Counter:
        n, after = 0, np.inf

    real = several.SeveralProblems.solve

    def solve(*arguments, **settings):
        if Counter.n >= Counter.after:
            raise Killed
        Counter.n += 1
        return real(*arguments, **settings)

    monkeypatch.setattr(several.SeveralProblems, "solve", solve)
    return Counter


def parts(folder):
    return sorted(path.name for path in folder.glob("*.part"))


def kept(folder):
    """All files but the claim, which is no content."""
    return [path for path in folder.iterdir() if path.name != CLAIM]


def snapshot(folder):
    """Names, contents and times of what a fit has kept."""
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in kept(folder)}


def assert_same_fit(a, b):
    for name in ("dual_coef_", "support_", "intercept_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("objective_", "dual_objective_", "duality_gap_", "n_iter_"):
        np.testing.assert_equal(getattr(a, name), getattr(b, name))  # both NaN are equal
    for one, other in zip(a.levels_, b.levels_, strict=True):
        assert (one.level, one.objective, one.gap) == (other.level, other.objective, other.gap)
        np.testing.assert_array_equal(one.sizes, other.sizes)


# ------------------------------------------------------------------ a fit that was killed


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
    n_levels = sum(level.n_clusters for level in whole.levels_)
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


def test_a_finished_fit_is_loaded(data, folder, solves):
    first = svc(checkpoint=folder).fit(*data)
    assert solves.n > 0
    before, solves.n = snapshot(folder), 0
    again = svc(checkpoint=folder).fit(*data)
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


# ------------------------------------------------------------------ two fits, one folder

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


@pytest.mark.parametrize("error", [None, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_folder_that_cannot_be_locked_is_used_with_a_warning(error, data, folder, monkeypatch):
    def flock(descriptor, operation):
        if operation != module_fcntl.LOCK_UN:
            raise OSError(error, os.strerror(error))

    module_fcntl = claim.fcntl
    if error is None:  # no POSIX
        monkeypatch.setattr(claim, "fcntl", None)
    else:
        monkeypatch.setattr(module_fcntl, "flock", flock)
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


# ------------------------------------------------------------------ another fit's folder

OTHER = {
    "a value": ("data", lambda X, y: (np.maximum(X, X.min() + 1e-12), y)),
    "the order of rows": ("data", lambda X, y: (X[::-1], y[::-1])),
    "a label": ("data", lambda X, y: (X, np.where(np.arange(len(y)) == 3, 1 - y % 2, y))),
    "the precision": ("data", lambda X, y: (X.astype(np.float32), y)),
    "the layout": ("data", lambda X, y: (sp.csr_array(X), y)),
    "class names": ("data", lambda X, y: (X, y + 1)),
    "fewer rows": ("data", lambda X, y: (X[:-1], y[:-1])),
    "C": ("parameters", {"C": 5.000001}),
    "gamma": ("parameters", {"gamma": 2.5}),
    "kernel": ("parameters", {"kernel": "laplacian"}),
    "levels": ("parameters", {"levels": 1}),
    "tol": ("parameters", {"tol": 1e-4}),
    "seed": ("parameters", {"random_state": 1}),
    "early": ("parameters", {"early": 1}),
    "fit_intercept": ("parameters", {"fit_intercept": True}),
}


@pytest.mark.parametrize(("name", "change"), OTHER.values(), ids=OTHER)
def test_another_fits_folder_is_refused_by_name_and_left_untouched(name, change, folder):
    X, y = points(160)
    svc(checkpoint=folder).fit(X, y)
    before = snapshot(folder)
    model = svc(checkpoint=folder)
    if callable(change):
        X, y = change(X, y)
    else:
        model.set_params(**change)
    with pytest.raises(ValueError, match=rf"belongs to a fit with other {name}\. It was left"):
        model.fit(X, y)
    assert snapshot(folder) == before


def test_another_weight_is_other_data(folder):
    X, y = points(160)
    svc(checkpoint=folder).fit(X, y)
    with pytest.raises(ValueError, match="other data"):
        svc(checkpoint=folder).fit(X, y, sample_weight=np.where(y == 0, 1.0, 1.5))
    with pytest.raises(ValueError, match="other data and parameters"):
        svc(checkpoint=folder, class_weight={0: 1.0, 1: 1.5}).fit(X, y)


def test_another_version_is_refused(folder, monkeypatch):
    data = points(160)
    svc(checkpoint=folder).fit(*data)
    before = snapshot(folder)
    monkeypatch.setattr("widemargin.kernel.machine.version", lambda name: "0.0.0")
    with pytest.raises(ValueError, match="a fit with other version"):
        svc(checkpoint=folder).fit(*data)
    with pytest.raises(ValueError, match="a fit with other parameters and version"):
        svc(checkpoint=folder, C=1.0).fit(*data)
    assert snapshot(folder) == before


def test_a_folder_with_other_files_is_refused(folder):
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    before = snapshot(folder)
    with pytest.raises(ValueError, match="folder with other files in it"):
        svc(checkpoint=folder).fit(*points(160))
    assert snapshot(folder) == before


def test_an_empty_folder_and_one_that_does_not_exist_are_used(folder):
    data = points(160)
    folder.mkdir()
    svc(checkpoint=folder).fit(*data)
    svc(checkpoint=folder / "deeper" / "still").fit(*data)
    assert parts(folder) == parts(folder / "deeper" / "still") != []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"data": "x"}', b'{"seed": "one"}', b"\xff\xfe\x00", b"null"]
)
def test_a_damaged_head_is_refused_by_name(content, folder):
    data = points(160)
    svc(checkpoint=folder).fit(*data)
    (folder / "fit.json").write_bytes(content)
    before = snapshot(folder)
    with pytest.raises(ValueError, match=r"fit\.json' is not the head of a checkpoint"):
        svc(checkpoint=folder).fit(*data)
    assert snapshot(folder) == before


# ------------------------------------------------------------------ functions as kernels

WIDTH = 2.0


def reads_a_global(A, B):
    return rbf_kernel(A, B, gamma=WIDTH)


def closing_over(state):
    return lambda A, B: rbf_kernel(A, B, gamma=state["gamma"])


class Callable:
    """A kernel that is an object: another one in every process, at another address."""

    def __init__(self, gamma):
        self.gamma = gamma

    def __call__(self, A, B):
        return rbf_kernel(A, B, gamma=self.gamma)


MADE_AGAIN = {
    "a global": lambda gamma: reads_a_global,
    "a closure": lambda gamma: closing_over({"gamma": gamma}),
    "an object": Callable,
    "a bound method": lambda gamma: Callable(gamma).__call__,
    "a partial": lambda gamma: partial(rbf_kernel, gamma=gamma),
}


@pytest.mark.parametrize("make", MADE_AGAIN.values(), ids=MADE_AGAIN)
def test_a_function_is_known_by_its_values(make, folder, solves, monkeypatch):
    X, y = points(300)
    first = svc(make(2.0), checkpoint=folder).fit(X, y)
    before, solves.n = snapshot(folder), 0
    assert_same_fit(svc(make(2.0), checkpoint=folder).fit(X, y), first)
    assert solves.n == 0
    monkeypatch.setitem(globals(), "WIDTH", 20.0)
    with pytest.raises(ValueError, match="a fit with other kernel values"):
        svc(make(20.0), checkpoint=folder).fit(X, y)
    assert snapshot(folder) == before


@pytest.mark.parametrize("make", MADE_AGAIN.values(), ids=MADE_AGAIN)
def test_a_warm_start_is_for_the_same_values(make, monkeypatch):
    X, y = points(300)
    model = svc(make(2.0), warm_start=True, tol=1e-6).fit(X, y)
    assert model.set_params(kernel=make(2.0)).fit(X, y).n_iter_ == 1
    monkeypatch.setitem(globals(), "WIDTH", 20.0)
    warm = model.set_params(kernel=make(20.0)).fit(X, y)
    assert_same_fit(warm, svc(make(20.0), tol=1e-6).fit(X, y))


def test_sparse_rows_of_a_function_are_probed_too(folder, solves):
    X, y = points(160)
    first = svc(rbf2, checkpoint=folder).fit(sp.csr_array(X), y)
    solves.n = 0
    assert_same_fit(svc(rbf2, checkpoint=folder).fit(sp.csr_array(X), y), first)
    assert solves.n == 0


# ------------------------------------------------------------------ damage


def truncated(position):
    return lambda content: content[: int(position * len(content))]


def flipped(position):
    def flip(content):
        at = min(int(position * len(content)), len(content) - 1)
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return flip


DAMAGE = {
    **{f"truncated at {p}": truncated(p) for p in (0, 0.01, 0.1, 0.3, 0.7, 0.99)},
    **{f"a bit flipped at {p}": flipped(p) for p in (0, 0.03, 0.08, 0.2, 0.5, 1)},
    "more at the end": lambda content: content + b"\0",
    "another file": lambda content: os.urandom(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("part", ["level2-cluster0", "whole0"])
def test_a_damaged_part_is_computed_again_with_a_warning(part, damage, folder, solves):
    data = points(160, 3)
    first = svc(checkpoint=folder).fit(*data)
    path = folder / f"{part}.part"
    good = path.read_bytes()
    path.write_bytes(damage(good))
    if part != "whole0":  # so that what is computed again matters
        for whole in folder.glob("whole*.part"):
            whole.unlink()
    solves.n = 0
    with pytest.warns(UserWarning, match=rf"{part}\.part' is truncated or damaged"):
        again = svc(checkpoint=folder).fit(*data)
    assert solves.n == (1 if part == "whole0" else 3 + 3)
    assert_same_fit(again, first)
    assert path.read_bytes() == good
    solves.n = 0
    svc(checkpoint=folder).fit(*data)  # without a warning now
    assert solves.n == 0


def test_an_intact_digest_of_something_else_is_damage(folder):
    data = points(160)
    first = svc(checkpoint=folder).fit(*data)
    payload = b"not what was packed"
    with Checkpoint(folder, svc()._identity(svc()._prepare(*data, None)), 0) as stored:
        content = module.MAGIC + stored._digest("whole0", payload) + payload
    (folder / "whole0.part").write_bytes(content)
    with pytest.warns(UserWarning, match="truncated or damaged"):
        assert_same_fit(svc(checkpoint=folder).fit(*data), first)


# ------------------------------------------------------------------ a full disk


def no_space():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_on_write(monkeypatch):
    """The disk has room for ten more bytes."""
    real = Path.write_bytes

    def write_bytes(path, content):
        if ".part." not in path.name:
            return real(path, content)
        real(path, content[:10])
        raise no_space()

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


def full_on_rename(monkeypatch):
    real = os.replace

    def replace(source, target):
        if str(target).endswith(".part"):
            raise no_space()
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize("full", [full_on_write, full_on_rename])
def test_a_full_disk_is_a_warning_and_the_fit_goes_on(full, data, folder, monkeypatch):
    expected = svc().fit(*data)
    full(monkeypatch)
    with pytest.warns(UserWarning, match=r"could not be written.*No space left.*the fit goes on"):
        model = svc(checkpoint=folder).fit(*data)
    assert_same_fit(model, expected)
    assert [path.name for path in kept(folder)] == ["fit.json"]


def test_a_fit_goes_on_from_what_a_full_disk_has_kept(folder, monkeypatch, solves):
    data = points(160)
    with monkeypatch.context() as context:
        real, written = module._write, []

        def write(path, content):
            if len(written) == 4:
                raise no_space()
            written.append(path)
            real(path, content)

        context.setattr(module, "_write", write)
        with pytest.warns(UserWarning, match="could not be written"):
            first = svc(checkpoint=folder).fit(*data)
    total, solves.n = solves.n, 0
    assert_same_fit(svc(checkpoint=folder).fit(*data), first)
    assert solves.n == total - 3  # the head was the fourth file


def test_nothing_temporary_is_left(data, folder, solves):
    solves.after = 5
    with pytest.raises(Killed):
        svc(checkpoint=folder).fit(*data)
    assert all(path.suffix in (".part", ".json") for path in kept(folder))
    solves.after = np.inf
    svc(checkpoint=folder).fit(*data)
    assert all(path.suffix in (".part", ".json") for path in kept(folder))


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.part"
    module._write(path, b"old")

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        module._write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# ------------------------------------------------------------------ the folder itself


def test_parts_and_solutions_come_back_to_the_bit(folder):
    rng = np.random.default_rng(0)
    solved = [
        ClusterSolution(rng.permutation(5), rng.random(5), 0.1, 1e-17, 3, True),
        ClusterSolution(np.arange(0), np.empty(0), 0.0, 0.0, 0, False),
    ]
    solution = Solution(rng.random(4), 1 / 3, 0.3, 12, double=True)
    with Checkpoint(folder, {"data": "d"}, 7) as stored:
        stored.save("cluster", solved)
        stored.save_solution("whole", solution)
    with Checkpoint(folder, {"data": "d"}, 8) as again:
        assert again.seed == 7
        for one, other in zip(again.load("cluster"), solved, strict=True):
            np.testing.assert_array_equal(one.variables, other.variables)
            np.testing.assert_array_equal(one.alpha, other.alpha)
            assert one[2:] == other[2:]
        loaded = again.load_solution("whole")
        np.testing.assert_array_equal(loaded.alpha, solution.alpha)
        assert (loaded.primal, loaded.dual, loaded.n_iter, loaded.double) == (1 / 3, 0.3, 12, True)
        assert again.load("absent") is again.load_solution("absent") is None


def test_a_fit_that_a_callback_stopped_is_not_taken_for_a_finished_one(data, folder):
    X, y = data
    stopped = svc(checkpoint=folder, levels=0, tol=1e-6).set_callbacks(Recorder(stop_at="epoch"))
    with pytest.warns(ConvergenceWarning, match="told to stop"):
        stopped.fit(X, y)
    again = svc(checkpoint=folder, levels=0, tol=1e-6).fit(X, y)
    assert again.duality_gap_ <= 1e-6


def test_a_path_has_a_checkpoint_per_value_of_c(data, folder):
    first = svc(checkpoint=folder).fit_path(*data, [1.0, 2.0])
    again = svc(checkpoint=folder).fit_path(*data, [1.0, 2.0])
    assert sorted(path.name for path in folder.iterdir()) == ["C=1.0", "C=2.0"]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)


def test_values_of_c_that_print_alike_have_folders_of_their_own(data, folder):
    Cs = [1.0, 1.0000001, np.float32(2.0), 3]
    first = svc(checkpoint=folder).fit_path(*data, Cs)
    again = svc(checkpoint=folder).fit_path(*data, Cs)
    names = ["C=1.0", "C=1.0000001", "C=2.0", "C=3.0"]
    assert sorted(path.name for path in folder.iterdir()) == names
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)


def test_a_temporary_file_of_a_killed_process_does_not_make_a_folder_foreign(data, folder):
    folder.mkdir()
    (folder / ".fit.json.1-2.tmp").write_bytes(b"{")
    assert svc(checkpoint=folder).fit(*data).duality_gap_ <= 1e-3
