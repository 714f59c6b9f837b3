"""Stores and checkpoints that somebody forged, each made from a random state.

A valid folder is taken: finished, begun or appended to, of codes and of values, and checkpoints of
fits.  Its manifest, its blocks and its parts are changed; digests are made right again in most of
them, as a forger would.  Some files become links, pipes or folders.  A folder is a tar archive in
memory, so that it can be saved and looked at.  `use` does with one whatever a user would.
"""

import functools
import hashlib
import io
import json
import os
import random
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from widemargin import AdditiveSVC, BlockStore, KernelSVC
from widemargin.digest import digest
from widemargin.kernel.checkpoint import MAGIC

NUMBERS = (
    -1,
    0,
    1,
    2,
    3,
    7,
    255,
    256,
    65_535,
    2**31 - 1,
    2**31,
    2**40,
    2**53,
    2**63,
    2**64,
    10**30,
)
VALUES = (
    None,
    True,
    False,
    0.5,
    float("1e308"),
    "",
    "x",
    "auto",
    [],
    {},
    [[]],
    [1],
    ["x"],
    *NUMBERS,
)
SETTINGS = {"values_per_block": 24}
GIVEN = b"years of work"  # what a link must not destroy

rng = np.random.default_rng(0)
X = rng.random((24, 4)).round(3)
SPARSE = sp.csr_array(X * (rng.random((24, 4)) < 0.3))
TABLE = pa.table({"age": X[:, 0], "job": ["a", "b", None, "c"] * 6, "pay": [1.0, None, 2.0] * 8})
Y = np.arange(24) % 3
FOLDS = [slice(k, k + 8) for k in range(0, 24, 8)]
WEIGHTS = 1 + rng.random(24)


def chunks(rows, y=Y, weights=None):
    cut = [rows.slice(f.start, 8) if isinstance(rows, pa.Table) else rows[f] for f in FOLDS]
    own = [()] * 3 if weights is None else [(weights[f],) for f in FOLDS]
    return [(part, y[f], *w) for part, f, w in zip(cut, FOLDS, own, strict=True)]


CHUNKS = {
    "dense": lambda: chunks(X),
    "sparse": lambda: chunks(SPARSE),
    "table": lambda: chunks(TABLE),
    "weights": lambda: chunks(X, np.array(["no", "yes", "maybe"])[Y], WEIGHTS),
}


class _Stopped(Exception):  # noqa: N818
    pass


def _build(folder, rows: str, keep: str = "codes", stop: str = "") -> None:
    def told(step: str, done: int, of: int) -> None:
        if step == stop and done > 10:
            raise _Stopped

    with suppress(_Stopped):
        BlockStore.build(folder, CHUNKS[rows](), keep=keep, told=told, n_jobs=1, **SETTINGS)


def _fitted(folder, **how) -> KernelSVC:
    own = {"random_state": 0, "max_iter": 50, "n_jobs": 1, **how}
    return KernelSVC(checkpoint=folder, **own).fit(X, Y)


def _begun(folder) -> None:
    """With a whole problem that was begun."""
    model = _fitted(folder, levels=0)
    content = _contents(Path(folder))
    head = json.loads(content["fit.json"])
    for name in [name for name in content if name.startswith("whole")]:
        begun = name.replace(".part", "-begun.part")
        arrays = {"alpha": unpack(content[name][len(MAGIC) + 32 :])["alpha0"]}
        (Path(folder) / begun).write_bytes(_signed(head, begun, pack(arrays)))
        (Path(folder) / name).unlink()
    assert model is not None


STORES: dict[str, Callable] = {
    **{rows: functools.partial(_build, rows=rows) for rows in CHUNKS},
    "values": functools.partial(_build, rows="dense", keep="values"),
    "sparse values": functools.partial(_build, rows="sparse", keep="values"),
    "begun": functools.partial(_build, rows="table", stop="reading"),
    "begun, sparse": functools.partial(_build, rows="sparse", stop="reading"),
    "half coded": functools.partial(_build, rows="table", stop="coding"),
    "half coded, sparse": functools.partial(_build, rows="sparse", stop="coding"),
    "begun values": functools.partial(_build, rows="dense", keep="values", stop="reading"),
}
CHECKPOINTS: dict[str, Callable] = {
    "levels": functools.partial(_fitted, levels=1, branching=2),
    "early": functools.partial(_fitted, levels=1, branching=2, early=1),
    "whole": functools.partial(_fitted, levels=0),
    "one-vs-rest": functools.partial(_fitted, levels=1, branching=2, multi_class="ovr"),
    "begun": _begun,
}
KINDS = {"store": STORES, "checkpoint": CHECKPOINTS}


@functools.cache
def seeds(kind: str) -> dict[str, dict[str, bytes]]:
    """The files of every valid folder."""
    found = {}
    for name, make in KINDS[kind].items():
        with tempfile.TemporaryDirectory() as folder:
            make(folder)
            found[name] = _contents(Path(folder))
    return found


def _contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.iterdir() if path.name != "claim.lock")
    return {path.name: path.read_bytes() for path in files}


# ------------------------------------------------------------------ forging


def forged(kind: str, random: random.Random, changed: Callable) -> bytes:
    """A folder of this kind as an archive; ``changed`` changes bytes."""
    name = random.choice(list(KINDS[kind]))
    files = dict(seeds(kind)[name])
    for _ in range(1 + int(random.expovariate(1))):
        if kind == "store":
            _forge_store(random, files, changed)
        else:
            _forge_checkpoint(random, files, changed)
    planted = {}
    if random.random() < 0.1:
        where = random.choice([*files, "claim.lock", "block-000003.bin", "encoder.bin"])
        planted[where] = random.choice((tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE))
    return _archive(name, files, planted)


def _archive(name: str, files: dict[str, bytes], planted: dict[str, bytes]) -> bytes:
    """The name of the seed is the first member's."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for member, content in {
            f"seed {name}": b"",
            **files,
            **dict.fromkeys(planted, b""),
        }.items():
            info = tarfile.TarInfo(member)
            info.type = planted.get(member, tarfile.REGTYPE)
            info.linkname = "../given" if info.issym() else ""
            info.size = len(content) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _forge_store(random: random.Random, files: dict, changed: Callable) -> None:
    if "manifest.json" not in files:
        return
    try:
        content = json.loads(files["manifest.json"])
        schema, entries = content.pop("schema", None), content["blocks"] + content["raw"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    what = random.random()
    if what < 0.1:
        files["manifest.json"] = changed(random, files["manifest.json"], list(files.values()))
        return
    present = [e for e in entries if isinstance(e, dict) and str(e.get("file")) in files]
    if what < 0.45 and present:
        entry = random.choice(present)
        _forge_block(random, files, entry, changed)
    else:
        _forge_json(random, content)
    content.pop("digest", None)
    signed = digest(json.dumps(content, sort_keys=True)) if random.random() < 0.98 else "x"
    files["manifest.json"] = json.dumps({"schema": schema, "digest": signed, **content}).encode()


def _forge_block(random: random.Random, files: dict, entry: dict, changed: Callable) -> None:
    """Other bytes, and in most cases the checksum that belongs to them."""
    name = entry["file"]
    content = bytearray(files[name])
    if random.random() < 0.3:
        content = bytearray(changed(random, bytes(content), list(files.values())))
    elif content:
        size = min(random.choice((1, 2, 4, 8)), len(content))
        at = random.randrange(0, len(content) - size + 1, size)
        value = random.choice(NUMBERS) if random.random() < 0.7 else random.getrandbits(64)
        content[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    files[name] = bytes(content)
    if random.random() < 0.9 and isinstance(entry.get("digest"), str):
        short = len(entry["digest"]) == 8
        long = hashlib.blake2b(content, digest_size=16).hexdigest()
        entry["digest"] = f"{zlib.crc32(content):08x}" if short else long


def _forge_json(random: random.Random, content) -> None:
    """Another value somewhere in it."""
    where, at = None, content
    while isinstance(at, (dict, list)) and at and (where is None or random.random() < 0.8):
        where = (at, random.choice(list(at) if isinstance(at, dict) else range(len(at))))
        at = where[0][where[1]]
    if where is None:
        return
    tree, key = where
    what = random.random()
    if what < 0.1:
        del tree[key]
    elif what < 0.2 and isinstance(tree, list):
        tree.append(tree[key])
    elif what < 0.5 and type(at) is int:
        tree[key] = at + random.choice((-1, 1, 2, 8, 1000))
    else:
        tree[key] = random.choice(VALUES)


def _signed(head: dict, file: str, payload: bytes) -> bytes:
    """A part of the fit with this head, as the checkpoint writes it."""
    own = {name: value for name, value in head.items() if name != "seed"}
    key = digest(digest(*sorted(own.items()), head["seed"]), file.removesuffix(".part")).encode()
    return MAGIC + hashlib.blake2b(payload, key=key, digest_size=32).digest() + payload


def _forge_checkpoint(random: random.Random, files: dict, changed: Callable) -> None:
    name = random.choice(list(files))
    if name == "fit.json" or random.random() < 0.1:
        files[name] = changed(random, files[name], list(files.values()))
        return
    try:
        head = json.loads(files["fit.json"])
        arrays = dict(unpack(files[name][len(MAGIC) + 32 :]))
        which = random.choice(sorted(arrays))
        arrays[which] = _forged_array(random, arrays[which])
        if random.random() < 0.1:
            del arrays[which]
        files[name] = _signed(head, name, pack(arrays))
    except Exception:  # of a file that was changed before
        files[name] = changed(random, files[name], list(files.values()))


def _forged_array(random: random.Random, array: np.ndarray) -> np.ndarray:
    what = random.randrange(6)
    if what == 0:
        return array[: random.randrange(array.size + 1)].copy()
    if what == 1:
        return np.concatenate([array, array])
    if what == 2:
        return np.zeros((3, 2), random.choice(("f4", "f8", "i4", "i8", "u1")))
    with np.errstate(all="ignore"):
        if what == 3:
            return array.astype(random.choice(("f4", "f8", "i4", "u1", "?")))
        array = array.copy()
        if array.size:
            values = np.array([np.nan, np.inf, -np.inf, -1, 0, 1, 1e300, 2**62, 1e-310])
            array.flat[random.randrange(array.size)] = values.astype(array.dtype)[
                random.randrange(len(values))
            ]
    return array


# ------------------------------------------------------------------ using


def use(kind: str, content: bytes, random: random.Random, max_bytes: int) -> None:
    """What a user would do with the folder; its errors name it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="forged-") as outside:
        given = Path(outside, "given")
        given.write_bytes(GIVEN)
        folder = Path(outside, "folder")
        folder.mkdir()
        name = _unpack(content, folder)
        try:
            if kind == "checkpoint":
                _go_on(name, folder)
            else:
                _read(name, folder, random, max_bytes)
        finally:
            if given.read_bytes() != GIVEN:
                raise AssertionError("a link was written through")


def _unpack(content: bytes, folder: Path) -> str:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        first, *members = archive.getmembers()
        for member in members:
            path = folder / member.name
            if member.name in os.listdir(folder):
                path.unlink()
            if member.issym():
                path.symlink_to(member.linkname)
            elif member.isfifo():
                os.mkfifo(path)
            elif member.isdir():
                path.mkdir()
            else:
                path.write_bytes(archive.extractfile(member).read())
    return first.name.removeprefix("seed ")


def _go_on(name: str, folder: Path) -> None:
    make = CHECKPOINTS[name]
    if make is _begun:
        make = CHECKPOINTS["whole"]
    model = make(folder)
    model.decision_function(X)


def _read(name: str, folder: Path, random: random.Random, max_bytes: int) -> None:
    make = STORES[name]
    rows = make.keywords["rows"]
    if "stop" in make.keywords:
        _build(folder, rows, make.keywords.get("keep", "codes"))
    store = BlockStore(folder, max_bytes=max_bytes)
    assert len(store.labels()) == len(store.weights()) == store.shape[0]
    repr((store, store.columns, store.feature_names, store.notes, store.kernel, store.n_values))
    if store.settings.get("keep") == "values":
        matrix = store.matrix()
        for part, values in matrix.parts():
            assert values.shape == (part.stop - part.start, store.shape[1])
        matrix.min(axis=0), matrix.max(axis=0)
        matrix[np.arange(len(matrix))[::-2]]
        machine = KernelSVC(max_iter=3, n_jobs=1)
    else:
        for _, codes in store.codes.blocks():
            codes.toarray()
        machine = AdditiveSVC(max_iter=2, n_jobs=1, missing="learn")
    if random.random() < 0.1:
        with suppress(ValueError):  # of values that no fit can do anything with
            machine.fit(store)
    if random.random() < 0.2:
        try:
            store.append(CHUNKS[rows](), **SETTINGS)
        except ValueError as error:
            if "hunk" not in str(error):  # which is what such an error names
                raise
