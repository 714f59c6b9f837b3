"""Stores whose making was killed: what is done is kept, and the rest has the same bytes."""

import shutil
import signal
import subprocess
import sys

import pytest

from widemargin import BlockStore, KernelSVC
from widemargin.additive import store_building

from .helpers import svc
from .store_helpers import BUILD, SMALL, build, content, data

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def every_block_is_noted(monkeypatch):
    monkeypatch.setattr(store_building, "_SECONDS_BETWEEN", 0.0)


@pytest.fixture
def store(tmp_path):
    return build(tmp_path / "store")


class Killed(BaseException):
    """Like a kill: nothing handles it."""


def stop_at(step, rows):
    def told(now, done, of):
        if now == step and done >= rows:
            raise Killed

    return told


@pytest.mark.parametrize(
    ("step", "keep"), [("reading", "codes"), ("coding", "codes"), ("reading", "values")]
)
@pytest.mark.parametrize("rows", [1, 60, 120])
def test_a_build_that_was_killed_ends_with_the_same_bytes(step, keep, rows, tmp_path):
    whole = build(tmp_path / "whole", keep=keep)
    with pytest.raises(Killed):
        build(tmp_path / "killed", told=stop_at(step, rows), keep=keep)
    with pytest.raises(ValueError, match=r"is not finished. Build it again"):
        BlockStore(tmp_path / "killed")
    again = build(tmp_path / "killed", keep=keep)
    assert content(again.folder) == content(whole.folder)


def test_blocks_that_are_there_are_not_written_again(tmp_path):
    with pytest.raises(Killed):
        build(tmp_path / "store", told=stop_at("coding", 60))
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "store").glob("block*")}
    assert len(before) >= 4

    def untouched():
        raise AssertionError("all chunks have been read")
        yield

    build(tmp_path / "store", untouched())  # nor are chunks read that need not be
    for name, when in before.items():
        assert (tmp_path / "store" / name).stat().st_mtime_ns == when


def test_a_process_that_is_killed_leaves_what_it_has_done(tmp_path):
    command = [sys.executable, "-c", BUILD]
    for name, n_steps in (("killed", 30), ("killed", 130)):
        process = subprocess.Popen([*command, tmp_path / name], stdout=subprocess.PIPE)
        for _ in range(n_steps):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    subprocess.run([*command, tmp_path / "killed"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*command, tmp_path / "whole"], check=True, stdout=subprocess.DEVNULL)
    left = [p.name for p in (tmp_path / "killed").iterdir() if p.name.endswith(".tmp")]
    killed = content(tmp_path / "killed")
    assert {k: v for k, v in killed.items() if k not in left} == content(tmp_path / "whole")


TWENTY = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from widemargin import BlockStore
from widemargin.additive import store_building
store_building._SECONDS_BETWEEN = 0.0

def chunks():
    rng = np.random.default_rng(0)
    for _ in range(12):
        yield rng.random((50, 20)), rng.integers(0, 2, 50)

def building(folder):
    child = os.fork()  # as a new process, without the seconds that its imports take
    if child == 0:
        status = 1
        try:
            BlockStore.build(folder, chunks(), values_per_block=2000, n_jobs=2)
            status = 0
        except FileExistsError:  # it was killed when all was done
            status = 0
        finally:
            os._exit(status)
    return child

def content(folder):
    passing = (".tmp", ".lock")
    return {p.name: p.read_bytes() for p in Path(folder).iterdir() if p.suffix not in passing}

seconds = float("inf")  # of the quickest of some: a machine may be busy for a moment
for name in ("whole", "again", "once more"):
    started = time.monotonic()
    assert os.waitpid(building(f"{sys.argv[1]}/{name}"), 0)[1] == 0
    seconds = min(seconds, time.monotonic() - started)
whole = content(sys.argv[1] + "/whole")
right = killed = 0
for case in range(20):
    folder, moment = f"{sys.argv[1]}/{case}", random.Random(case)
    for _ in range(2):
        child = building(folder)
        time.sleep(moment.random() * seconds)
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert os.waitpid(building(folder), 0)[1] == 0
    right += content(folder) == whole
print(right, killed)
"""


def test_twenty_builds_that_are_killed_at_any_moment_end_with_the_same_bytes(tmp_path):
    command = [sys.executable, "-c", TWENTY, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    right, killed = map(int, run.stdout.split())
    assert right == 20
    assert killed > 10  # others ended before: the machine may be busy when they are timed


def test_raw_blocks_that_a_kill_left_are_deleted(store, tmp_path):
    """All is done, but for the last step: raw blocks that have their codes are deleted."""
    left = store.folder / "raw-000003.bin"
    for again in (lambda: build(store.folder), lambda: store.append([])):
        left.write_bytes(b"values")
        with pytest.raises((FileExistsError, ValueError), match=r"finished store|no rows to store"):
            again()
        assert not left.exists()


def test_other_data_does_not_finish_a_store(tmp_path):
    with pytest.raises(Killed):
        build(tmp_path / "store", told=stop_at("reading", 60))
    before = content(tmp_path / "store")
    X, y = data()
    with pytest.raises(ValueError, match="begun with other data: the rows from 0 on"):
        build(tmp_path / "store", [(X + 1, y)])
    with pytest.raises(ValueError, match="begun with more rows than these"):
        build(tmp_path / "store", [(X[:14], y[:14])])
    with pytest.raises(ValueError, match="begun with other scaling and n_bins"):
        build(tmp_path / "store", scaling="minmax", n_bins=9)
    assert content(tmp_path / "store") == before


@pytest.mark.parametrize("keep", ["codes", "values"])
def test_a_finished_store_is_not_built_again(keep, tmp_path):
    before = content(build(tmp_path / "store", keep=keep).folder)
    with pytest.raises(FileExistsError, match="finished store already"):
        build(tmp_path / "store", keep=keep)
    assert content(tmp_path / "store") == before


@pytest.mark.parametrize(
    ("keep", "step"), [("codes", "reading"), ("codes", "coding"), ("values", "reading")]
)
def test_an_append_that_was_killed_leaves_the_store_and_goes_on(keep, step, tmp_path):
    X, y = data(60)
    store = build(tmp_path / "store", keep=keep)
    shutil.copytree(store.folder, tmp_path / "other")
    expected = BlockStore(tmp_path / "other").append([(X, y)], values_per_block=SMALL)
    with pytest.raises(Killed):
        store.append([(X, y)], values_per_block=SMALL, told=stop_at(step, 30))
    assert BlockStore(store.folder).shape == (120, 6)
    (svc() if keep == "codes" else KernelSVC(random_state=0)).fit(BlockStore(store.folder))
    store.append([(X, y)], values_per_block=SMALL)
    assert content(store.folder) == content(expected.folder)
