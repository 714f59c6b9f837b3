"""store, and what `train` does with data that is larger than memory."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from widemargin import BlockStore, KernelSVC
from widemargin.cli.arguments import UsageError
from widemargin.cli.datasets import is_store, labels_of, no_labels, stream_of
from widemargin.cli.memory import Memory
from widemargin.cli.options import Output, Source
from widemargin.cli.output import print_facts, print_json, printable
from widemargin.cli.words import call_features
from widemargin.data import Dataset, Layout
from widemargin.data.reading import detect_format
from widemargin.data.streams import HEAD
from widemargin.files import Folder
from widemargin.resources import free_memory

_UNITS = {"": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SHARE = 0.5  # of the free memory, that data may take by default
# What rows take in memory per byte of their file, about; a packed one has more in it, and a table
# is there twice, as columns and as rows.
_PACKED = 6.0
_TEXT = {"svmlight": 1.5, "npy": 1.0, "csv": 3.0, "tsv": 3.0, "parquet": _PACKED, "arrow": _PACKED}
_COPIES = 3.0  # of the data, that a kernel machine has in memory beside kernel rows, about
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


def store(
    data: Path, folder: Path, keep: str | None, source: Source, output: Output, *, append: bool
) -> None:
    started = time.perf_counter()
    if append and keep is not None:
        raise UsageError("--keep has no meaning with --append: the store goes on as it is.")
    with _told(output) as told:
        if append:
            there = BlockStore(folder)
            chunks = _chunks(data, source, there.settings.get("keep", "codes"))
            made = there.append(chunks, n_jobs=source.jobs, told=told)
        else:
            keep = keep or "codes"
            chunks = _chunks(data, source, keep)
            made = BlockStore.build(folder, chunks, keep=keep, n_jobs=source.jobs, told=told)
    facts = {
        "store": str(folder),
        "rows": made.shape[0],
        "features": made.shape[1],
        "classes": len(made.classes),
        "MB on disk": made.nbytes / 1e6,
        "bytes per value": made.nbytes / max(made.n_values, 1),
        "seconds": time.perf_counter() - started,
    }
    if output.as_json:
        print_json({k.replace(" ", "_"): v for k, v in facts.items()})
    elif not output.quiet:
        print_facts(facts)


@contextmanager
def store_for(
    data: Path, model: Path, keep: str, source: Source, output: Output
) -> Iterator[BlockStore]:
    """The store that DATA is, or one of DATA beside the model until it is trained."""
    if is_store(data):
        yield BlockStore(data)
        return
    with _folder_beside(model) as folder:
        if not output.quiet:
            size = "may be" if _is_pipe(data) else "is"
            said = f"{data} {size} larger than --memory-limit: training from {folder}"
            print(printable(said), file=sys.stderr)
        with _told(output) as told:
            chunks = _chunks(data, source, keep)
            made = BlockStore.build(folder, chunks, keep=keep, n_jobs=source.jobs, told=told)
        yield made


@contextmanager
def _folder_beside(model: Path) -> Iterator[Path]:
    """A folder for a store until the model is trained, always the same.

    So what a training that was killed has left behind is found by the next one, and removed.
    """
    path = model.with_name(f".{model.name[:40]}.store")
    with Folder(path, make=True) as folder:
        folder.claim(f"The folder {str(path)!r}", "training")
        if folder.names() - {"blocks"}:
            raise ValueError(f"{str(path)!r} is a folder with other files in it: move it away.")
        if folder.has("blocks"):
            shutil.rmtree(folder / "blocks")
        try:
            yield folder / "blocks"
        finally:
            shutil.rmtree(path)


def memory_of(store: BlockStore) -> Memory:
    """What a model has to remember of the data that a store was built from."""
    columns = store.shape[1] if store.feature_names is None else store.feature_names
    notes = store.notes
    layout = Layout(
        columns,
        notes.get("label_name"),
        drop=tuple(notes.get("drop", ())),
        na=tuple(notes.get("na", ())),
        zero_based=notes.get("zero_based"),
    )
    memory = Memory(layout)
    call_features(memory.called)
    return memory


def goes_to_disk(data: Path, limit: str | None, machine, *, possible: bool) -> bool:
    """Whether DATA is a store, or larger than the limit where it is ``possible`` to use one."""
    without = "without --scale, --folds and --probability."
    if is_store(data) and not possible:
        raise UsageError(f"{data}: a store is trained {without}")
    if limit is not None and not possible:
        raise UsageError(f"--memory-limit is for training {without}")
    copies, most = _COPIES if isinstance(machine, KernelSVC) else 1.0, bytes_of(limit)
    if is_store(data) or (limit is not None and _is_pipe(data)):  # which may have any size
        return True
    return possible and copies * _expected_bytes(data) > most


def _is_pipe(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir())


def bytes_of(limit: str | None) -> float:
    """A number of bytes, or a share of the free memory.

    >>> bytes_of("2GB"), bytes_of("500 MB"), bytes_of("1000")
    (2000000000.0, 500000000.0, 1000.0)
    """
    if limit is None:
        return _SHARE * free_memory()
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?(%|[kMGT]B|)", limit)
    if not found or float(found[1]) == 0:
        raise UsageError(f"--memory-limit {limit}: write bytes (2GB, 500MB) or a share (50%).")
    number, unit = float(found[1]), found[2]
    return number / 100 * free_memory() if unit == "%" else number * _UNITS[unit]


def _expected_bytes(path: Path) -> float:
    """What the rows of a file take in memory, about; 0 for those that are read as a whole."""
    size = path.stat().st_size if path.is_file() else 0
    if not size:
        return 0
    with open(path, "rb") as file:
        head = file.read(HEAD)
    if head.startswith(_COMPRESSED):
        return _PACKED * size
    found = detect_format(head, str(path))
    if found == "npz" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return max((m.file_size for m in archive.infolist()), default=0)
    return _TEXT.get(found, 0.0) * size


def _chunks(data: Path, source: Source, keep: str) -> Iterator[Dataset]:
    """Codes have a place for categories and gaps; among values, a category is a number."""
    for chunk in stream_of(source, data, one_hot=keep == "values", **source.rule()):
        if chunk.y is None:
            raise no_labels(data)
        yield replace(chunk, y=labels_of(chunk))


@contextmanager
def _told(output: Output) -> Iterator:
    """Progress in one line of a terminal, which is left empty."""
    shown = not output.quiet and os.isatty(2)

    def told(step: str, rows: int, of: int) -> None:
        if shown:
            share = f" of {of:,}" if of else ""
            print(f"\r{step}: {rows:,}{share} rows\033[K", end="", file=sys.stderr, flush=True)

    yield told
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
