"""Stores that were killed, damaged, left without room, or claimed twice."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from widemargin import BlockStore, KernelSVC
from widemargin.additive import block_files, store_building
from widemargin.additive.manifest import MANIFEST
from widemargin.claim import Claim

from .helpers import svc
from .problems import histograms

SMALL = 80


@pytest.fixture(autouse=True)
def every_block_is_noted(monkeypatch):
    monkeypatch.setattr(store_building, "_SECONDS_BETWEEN", 0.0)


def data(n_rows=120):
    return histograms(3, n_rows)


def chunks(n_rows=120, size=10):
    X, y = data(n_rows)
    return [(X[k : k + size], y[k : k + size]) for k in range(0, n_rows, size)]


def build(folder, parts=None, **options):
    return BlockStore.build(folder, chunks() if parts is None else parts,
                            **{"values_per_block": SMALL, **options})  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return build(tmp_path / "store")


def content(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "claim.lock"}


class Killed(BaseException):
    """Like a kill: nothing handles it."""


def stop_at(step, rows):
    def told(now, done, of):
        if now == step and done >= rows:
            raise Killed

    return told


# ------------------------------------------------------------------ kill and resume


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


BUILD = """
import sys
import numpy as np
from widemargin import BlockStore
from widemargin.additive import store_building
store_building._SECONDS_BETWEEN = 0.0

def chunks():
    rng = np.random.default_rng(0)
    for _ in range(200):
        yield rng.random((50, 20)), rng.integers(0, 2, 50)

BlockStore.build(sys.argv[1], chunks(), values_per_block=2000, told=lambda *step: print(flush=True))
"""


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
    assert killed > 20  # some end before they are killed


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


def test_values_have_a_name_by_content_and_codes_a_checksum(tmp_path):
    """A checkpoint of `KernelSVC` is known by the values it belongs to."""
    for keep, length in (("values", 32), ("codes", 8)):
        entries = build(tmp_path / keep, keep=keep)._manifest.blocks
        assert all(len(entry.digest) == length for entry in entries)


@pytest.mark.parametrize("named", [True, False], ids=["older", "now"])
def test_damage_is_found_by_the_digest_of_older_stores_and_by_the_checksum(named, store):
    from widemargin.additive.block_files import entry_of, read_arrays
    from widemargin.additive.manifest import Manifest

    folder, manifest = store.folder, Manifest.read(store.folder)
    read = [read_arrays(folder, entry, check=True) for entry in manifest.blocks]
    told = zip(manifest.blocks, read, strict=True)
    blocks = [entry_of(entry.file, arrays, named=named) for entry, arrays in told]
    manifest.with_(blocks=blocks).write(folder)
    BlockStore(folder).verify()
    path = folder / blocks[0].file
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"damaged: its checksum is not {blocks[0].digest}"):
        BlockStore(folder).verify()


# ------------------------------------------------------------------ two writers


def test_a_second_writer_is_refused(store, tmp_path):
    with (
        Claim(store.folder, "The store", "writer"),
        pytest.raises(BlockingIOError, match=r"The store .* is in use by process \d+"),
    ):
        store.append(chunks())
    (tmp_path / "new").mkdir()
    with (
        Claim(tmp_path / "new", "The store", "writer"),
        pytest.raises(BlockingIOError, match="Wait until that writer ends"),
    ):
        build(tmp_path / "new")
    build(tmp_path / "new")


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(ValueError, match="other files in it"):
        build(tmp_path)
    assert content(tmp_path) == {"thesis.tex": b"years"}


# ------------------------------------------------------------------ damage


def flipped(path, at):
    bytes_ = bytearray(path.read_bytes())
    bytes_[at] ^= 1
    path.write_bytes(bytes_)


@pytest.mark.parametrize("at", [0, -1], ids=["codes", "labels"])
def test_a_damaged_block_is_named_and_refused(at, store):
    path = store.folder / store.codes.entries[3].file
    flipped(path, at)
    again = BlockStore(store.folder)
    with pytest.raises(ValueError, match=r"block-000003.bin' is damaged|a label is no class"):
        svc().fit(again)
    with pytest.raises(ValueError, match=r"block-000003.bin' is damaged: its checksum is not"):
        again.verify()
    with pytest.raises(ValueError, match=r"block-000003.bin' is damaged"):
        svc().fit(*data()).decision_function(again)


def test_a_truncated_block_is_named(store):
    path = store.folder / store.codes.entries[2].file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"block-000002.bin' is damaged: it has"):
        svc().fit(BlockStore(store.folder))


def test_a_block_that_is_gone_is_named(store):
    (store.folder / store.codes.entries[2].file).unlink()
    with pytest.raises(FileNotFoundError, match=r"block-000002.bin"):
        svc().fit(BlockStore(store.folder))


def test_damaged_bins_are_refused(store):
    flipped(store.folder / "encoder.bin", 5)
    with pytest.raises(ValueError, match=r"encoder.bin' is damaged"):
        BlockStore(store.folder)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_manifest_is_refused(share, store):
    path = store.folder / MANIFEST
    text = path.read_text()
    path.write_text(text[: int(share * len(text))])
    with pytest.raises(ValueError, match=r"manifest.json' is damaged or of another version"):
        BlockStore(store.folder)
    with pytest.raises(ValueError, match=r"manifest.json' is damaged or of another version"):
        store.append(chunks())


@pytest.mark.parametrize(
    "change",
    [{"schema": "widemargin block store 99"}, {"n_features": 7}, {"kind": "pickle"}, {"blocks": 3}],
)
def test_a_manifest_that_somebody_changed_is_refused(change, store):
    path = store.folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match="damaged or of another version"):
        BlockStore(store.folder)


def test_a_folder_that_is_no_store(tmp_path):
    with pytest.raises(ValueError, match=r"is no store: there is no manifest.json in it"):
        BlockStore(tmp_path)


def replace_block(store, change):
    """A store made by hand: its second block changed, with the right checksum."""
    from widemargin.additive.block_files import entry_of, read_arrays, write_arrays
    from widemargin.additive.manifest import Manifest

    entry = store.codes.entries[1]
    arrays = change(read_arrays(store.folder, entry, check=True))
    changed = entry_of(entry.file, arrays)
    write_arrays(store.folder, changed, arrays)
    manifest = Manifest.read(store.folder)
    blocks = [changed if e.file == changed.file else e for e in manifest.blocks]
    manifest.with_(blocks=blocks).write(store.folder)


def out_of_range(arrays):
    arrays["data"].flat[0] = 255
    return arrays


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (out_of_range, r"damaged: a code is out of range .*block-000001.bin"),
        (lambda a: a | {"data": a["data"].astype(np.uint16)}, r"000001.* not of the type of the"),
        (lambda a: a | {"data": a["data"][:, :-1]}, r"000001.* not of the type of the others"),
        (lambda a: a | {"data": a["data"][:-1]}, r"000001.* has not as many rows as labels"),
    ],
    ids=["range", "type", "width", "rows"],
)
def test_codes_that_cannot_be_are_refused_though_their_checksum_is_right(change, said, store):
    replace_block(store, change)
    with pytest.raises(ValueError, match=said):
        svc().fit(BlockStore(store.folder))


def test_a_block_that_is_cut_short_while_it_is_read(store, monkeypatch):
    path = store.folder / store.codes.entries[1].file
    with open(path, "rb+") as file:
        file.truncate(path.stat().st_size - 8)
    monkeypatch.setattr(block_files, "_check_size", lambda path, entry: None)
    with pytest.raises(ValueError, match=r"000001.bin' is damaged: it was cut short while"):
        store.verify()


def test_a_system_that_takes_no_hints_reads_the_same(store, monkeypatch):
    expected = svc().fit(store).objective_
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    assert svc().fit(BlockStore(store.folder)).objective_ == expected


# ------------------------------------------------------------------ no room

FULL = """
import resource, sys
import numpy as np
from widemargin import BlockStore
from widemargin.additive import store_building
store_building._SECONDS_BETWEEN = 0.0

def chunks():
    rng = np.random.default_rng(0)
    for _ in range(12):
        yield rng.random((50, 20)), rng.integers(0, 2, 50)

limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    BlockStore.build(sys.argv[1], chunks(), values_per_block=int(sys.argv[3]))
except OSError as error:
    print(error.errno, error)
"""


def test_a_disk_that_is_full_is_said_and_the_build_goes_on_later(tmp_path):
    def run(limit):
        command = [sys.executable, "-c", FULL, tmp_path / "store", str(limit), "2000"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    said = run(12_000)  # less than a raw block of 16,000 bytes
    assert said.startswith(f"{errno.EFBIG} ")
    assert "The blocks that are finished are kept: make room, and build the store again" in said
    assert "raw-000000.bin" in said
    assert run(0) == ""
    assert BlockStore(tmp_path / "store").shape == (600, 20)


def test_no_room_in_the_middle_keeps_the_blocks_before(tmp_path, monkeypatch):
    write, written = store_building.write_arrays, []

    def full(folder, entry, arrays):
        if len(written) == 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / entry.file))
        written.append(entry.file)
        write(folder, entry, arrays)

    monkeypatch.setattr(store_building, "write_arrays", full)
    with pytest.raises(OSError, match=r"No space left.*finished are kept.*block-00000"):
        build(tmp_path / "store")
    monkeypatch.setattr(store_building, "write_arrays", write)
    build(tmp_path / "store", [])
    build(tmp_path / "whole")
    assert content(tmp_path / "store") == content(tmp_path / "whole")


def test_the_lock_ends_with_the_process(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", BUILD, tmp_path / "s"],
                               stdout=subprocess.PIPE)  # fmt: skip
    process.stdout.readline()
    with pytest.raises(BlockingIOError, match=f"process {process.pid}"):
        build(tmp_path / "s")
    process.kill()
    process.wait()
    process.stdout.close()
    started = time.monotonic()
    with pytest.raises(ValueError, match="begun with other data"):
        build(tmp_path / "s", [(np.ones((50, 20)), np.zeros(50))] * 3)
    assert time.monotonic() - started < 30
