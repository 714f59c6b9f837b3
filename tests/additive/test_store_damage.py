"""Stores with damaged files: each is found, named and refused."""

import json
import os

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import BlockStore
from widemargin.additive import block_files
from widemargin.additive.manifest import MANIFEST, Manifest
from widemargin.errors import TooLargeError
from widemargin.files import Folder

from .helpers import svc
from .store_helpers import build, chunks, data


@pytest.fixture
def store(tmp_path):
    return build(tmp_path / "store")


def test_values_have_a_name_by_content_and_codes_a_checksum(tmp_path):
    """A checkpoint of `KernelSVC` is known by the values it belongs to."""
    for keep, length in (("values", 32), ("codes", 8)):
        entries = build(tmp_path / keep, keep=keep)._manifest.blocks
        assert all(len(entry.digest) == length for entry in entries)


@pytest.mark.parametrize("named", [True, False], ids=["older", "now"])
def test_damage_is_found_by_the_digest_of_older_stores_and_by_the_checksum(named, store):
    from widemargin.additive.block_files import entry_of, read_arrays

    folder = Folder(store.folder)
    manifest = Manifest.read(folder)
    read = [read_arrays(folder, entry, check=True) for entry in manifest.blocks]
    told = zip(manifest.blocks, read, strict=True)
    blocks = [entry_of(entry.file, arrays, named=named) for entry, arrays in told]
    manifest.with_(blocks=blocks).write(folder)
    BlockStore(folder).verify()
    path = store.folder / blocks[0].file
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"damaged: its checksum is not {blocks[0].digest}"):
        BlockStore(folder).verify()


def flipped(path, at):
    bytes_ = bytearray(path.read_bytes())
    bytes_[at] ^= 1
    path.write_bytes(bytes_)


@pytest.mark.parametrize("at", [0, -1], ids=["codes", "labels"])
def test_a_damaged_block_is_named_and_refused(at, store):
    path = store.folder / store.codes.entries[3].file
    flipped(path, at)
    again = BlockStore(store.folder)
    with pytest.raises(ValueError, match=r"block-000003.bin' is damaged|a label is not a class"):
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
    with pytest.raises(ValueError, match=r"manifest.json' is not valid JSON"):
        BlockStore(store.folder)
    with pytest.raises(ValueError, match=r"manifest.json' is not valid JSON"):
        store.append(chunks())


@pytest.mark.parametrize(
    "change",
    [{"schema": "widemargin block store 99"}, {"n_features": 7}, {"kind": "pickle"}, {"blocks": 3}],
)
def test_a_manifest_that_somebody_changed_is_refused(change, store):
    path = store.folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=r"manifest.json' is damaged"):
        BlockStore(store.folder)


def test_a_folder_that_is_no_store(tmp_path):
    with pytest.raises(ValueError, match=r"is not a store: it has no manifest.json"):
        BlockStore(tmp_path)


def replace_block(store, change, entries=None):
    """A store made by hand: its second block changed, with the right checksum."""
    from widemargin.additive.block_files import entry_of, read_arrays, write_arrays

    folder, entry = Folder(store.folder), (entries or store.codes.entries)[1]
    manifest = Manifest.read(folder)
    arrays = change(read_arrays(folder, entry, check=True))
    changed = entry_of(entry.file, arrays)
    write_arrays(folder, changed, arrays)
    blocks = [changed if e.file == changed.file else e for e in manifest.blocks]
    manifest.with_(blocks=blocks).write(folder)


def out_of_range(arrays):
    arrays["data"].flat[0] = 255
    return arrays


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (out_of_range, r"damaged: a code is out of range .*block-000001.bin"),
        (
            lambda a: a | {"data": a["data"].astype(np.uint16)},
            r"manifest.blocks must be of codes of one type",
        ),
        (
            lambda a: a | {"data": a["data"][:, :-1]},
            r"manifest.blocks\[1\].arrays must be labelled rows",
        ),
        (
            lambda a: a | {"data": a["data"][:-1]},
            r"manifest.blocks\[1\].arrays must be labelled rows",
        ),
    ],
    ids=["range", "type", "width", "rows"],
)
def test_codes_that_cannot_be_are_refused_though_their_checksum_is_right(change, said, store):
    replace_block(store, change)
    with pytest.raises(ValueError, match=said):
        svc().fit(BlockStore(store.folder))


def test_a_block_that_is_cut_short_while_it_is_read(store, monkeypatch):
    path = store.folder / store.codes.entries[1].file
    whole = path.stat()
    with open(path, "rb+") as file:
        file.truncate(whole.st_size - 8)
    fstat = os.fstat
    monkeypatch.setattr(
        os, "fstat", lambda n: whole if fstat(n).st_ino == whole.st_ino else fstat(n)
    )
    with pytest.raises(ValueError, match=r"000001.bin' is damaged: it was cut short while"):
        store.verify()


def test_a_system_that_takes_no_hints_reads_the_same(store, monkeypatch):
    expected = svc().fit(store).objective_
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    assert svc().fit(BlockStore(store.folder)).objective_ == expected


def test_raw_blocks_of_a_build_before_are_held_against_their_checksum(tmp_path):
    """Those of this process are not: it has just made it."""

    def stop(step, rows, of):
        if step == "coding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "store", told=stop)
    flipped(sorted((tmp_path / "store").glob("raw*"))[-1], 3)
    with pytest.raises(ValueError, match=r"raw-0000\d\d.bin' is damaged: its checksum is not"):
        build(tmp_path / "store")


def test_a_checksum_is_made_once_for_every_block_that_is_written(tmp_path, monkeypatch):
    made, crc32 = [], block_files._crc32
    monkeypatch.setattr(block_files, "_crc32", lambda pieces: made.append(1) or crc32(pieces))
    store = build(tmp_path / "store")
    assert len(made) == 2 * len(store.codes.entries)  # raw blocks, and codes


# ------------------------------------------------------------------ numbers that promise too much


def sparse_values(folder):
    X, y = data()
    return build(folder, [(sp.csr_array(X), y)], keep="values", values_per_block=200)


def pointers(change):
    def changed(arrays):
        arrays["start"] = change(arrays["start"])
        return arrays

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda start: np.where(np.arange(len(start)) % 2, start[-1], 0).astype(start.dtype),
        lambda start: start + 1,
        lambda start: -start,
        lambda start: np.full_like(start, start[-1]),
    ],
    ids=["up and down", "beyond the end", "negative", "not from 0"],
)
def test_row_pointers_are_held_against_the_values(change, tmp_path):
    """A few kB of them took gigabytes."""
    store = sparse_values(tmp_path / "store")
    replace_block(store, pointers(change), store._entries)
    with pytest.raises(ValueError, match=r"raw-000001.bin' is damaged: its row pointers"):
        BlockStore(store.folder).matrix()


def test_features_are_held_against_the_size_of_the_files(tmp_path):
    store = sparse_values(tmp_path / "store")
    folder = Folder(store.folder)
    Manifest.read(folder).with_(n_features=2**31).write(folder)
    with pytest.raises(TooLargeError, match=r"manifest.json': its 2147483648 features take 550 GB"):
        BlockStore(store.folder)
    assert BlockStore(store.folder, max_bytes=2**40).shape == (120, 2**31)


def test_a_manifest_that_is_too_long_is_not_read(tmp_path):
    store = build(tmp_path / "store")
    with open(store.folder / MANIFEST, "r+b") as file:
        file.truncate(2**42)  # of which the disk has next to nothing
    with pytest.raises(TooLargeError, match=r"manifest.json': its contents take"):
        BlockStore(store.folder)


def test_a_store_of_classes_without_bins_is_refused(tmp_path):
    store = build(tmp_path / "store")
    folder = Folder(store.folder)
    for changes in ({"encoder": None}, {"kernel": ""}, {"classes": []}, {"n_finished": 99}):
        manifest = Manifest.read(folder)
        manifest.with_(**changes).write(folder)
        with pytest.raises(ValueError, match=r"manifest\.(blocks|classes) must be"):
            BlockStore(store.folder)
        manifest.write(folder)
    BlockStore(store.folder)
