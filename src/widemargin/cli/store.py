"""The command store, and training on data that is larger than memory."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from scipy.sparse import issparse

from widemargin import BlockStore, TableEncoder, save
from widemargin.additive.frames import is_frame
from widemargin.cli.datasets import (
    ENCODER,
    Memory,
    encoder_of,
    is_store,
    labels_of,
    no_labels,
    stream_of,
)
from widemargin.cli.options import Output, Source
from widemargin.cli.output import print_result, printable
from widemargin.cli.words import UsageError, call_features
from widemargin.data import Dataset, Layout
from widemargin.data.reading import detect_format
from widemargin.data.streams import HEAD
from widemargin.files import Folder
from widemargin.kernel.cache import LEAST_SLOTS
from widemargin.kernel.exact import COPIED
from widemargin.kernel.lazy_rows import PREPARED
from widemargin.kernel.machine import KernelMachine
from widemargin.resources import free_memory, used_memory

_UNITS = {"": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SHARE = 0.5  # share of the free memory that data may take by default
# Approximate bytes in memory per byte of a file; tables take twice, as columns and as rows.
_PACKED = 6.0
_TEXT = {"svmlight": 1.5, "npy": 1.0, "csv": 3.0, "tsv": 3.0, "parquet": _PACKED, "arrow": _PACKED}
_COPIES = 3.0  # approximate copies of the data in a fit of KernelSVC, without kernel rows
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


def store(
    data: Path, folder: Path, keep: str | None, source: Source, output: Output, *, append: bool
) -> None:
    started = time.perf_counter()
    if append and keep is not None:
        raise UsageError("--keep cannot be combined with --append: the store determines it.")
    with _told(output) as progress:
        if append:
            there = BlockStore(folder)
            known = encoder_of(there)
            with _chunks(data, source, "codes", known) as (chunks, _):
                made = there.append(chunks, n_jobs=source.jobs, told=progress)
        else:
            made = _built(folder, data, keep or "codes", source, progress)
    facts = {
        "store": str(folder),
        "rows": made.shape[0],
        "features": made.shape[1],
        "classes": len(made.classes),
        "MB on disk": made.nbytes / 1e6,
        "bytes per value": made.nbytes / max(made.n_values, 1),
        "seconds": time.perf_counter() - started,
    }
    print_result(facts, output)


@contextmanager
def store_for(
    data: Path, model: Path, keep: str, source: Source, output: Output
) -> Iterator[BlockStore]:
    """Yield DATA if it is a store, or a temporary store of DATA beside the model."""
    if is_store(data):
        yield BlockStore(data)
        return
    with _folder_beside(model) as folder:
        if not output.quiet:
            size = "may be" if _is_pipe(data) else "is"
            notice = f"{data} {size} larger than --memory-limit: training from {folder}"
            print(printable(notice), file=sys.stderr)
        with _told(output) as progress:
            made = _built(folder, data, keep, source, progress)
        yield made


@contextmanager
def _folder_beside(model: Path) -> Iterator[Path]:
    """Return the folder of the temporary store.

    Its name is fixed, so that the next training finds and removes what a killed one left.
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


def _built(folder: Path, data: Path, keep: str, source: Source, progress) -> BlockStore:
    """Build a store, and save the encoder of its values with it."""
    with _chunks(data, source, keep) as (chunks, encoder):
        made = BlockStore.build(folder, chunks, keep=keep, n_jobs=source.jobs, told=progress)
    if encoder is not None:
        save(encoder, folder / ENCODER)
    return made


def memory_of(store: BlockStore) -> Memory:
    """Return what a model has to remember of the data that a store was built from."""
    columns: Any = store.shape[1] if store.feature_names is None else store.feature_names
    encoder, notes = encoder_of(store), store.notes
    if encoder is not None:
        columns = [*encoder.feature_names_in_]
    layout = Layout(
        columns,
        notes.get("label_name"),
        drop=tuple(notes.get("drop", ())),
        na=tuple(notes.get("na", ())),
        zero_based=notes.get("zero_based"),
    )
    memory = Memory(layout)
    names = store.feature_names
    call_features(memory.called if names is None else lambda j: repr(names[j]))
    return memory


def goes_to_disk(data: Path, limit: str | None, machine, *, possible: bool) -> bool:
    """Whether to train from disk: DATA is a store or exceeds the limit, and ``possible``."""
    without = "without --scale, --folds and --probability."
    if is_store(data) and not possible:
        raise UsageError(f"{data}: a store can only be trained {without}")
    if limit is not None and not possible:
        raise UsageError(f"--memory-limit is for training {without}")
    copies, most = _COPIES if isinstance(machine, KernelMachine) else 1.0, bytes_of(limit)
    if is_store(data) or (limit is not None and _is_pipe(data)):  # of unknown size
        return True
    return possible and copies * _expected_bytes(data) > most


def _is_pipe(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir())


def bytes_of(limit: str | None) -> float:
    """Parse a number of bytes or a share of the free memory.

    >>> bytes_of("2GB"), bytes_of("500 MB"), bytes_of("1000")
    (2000000000.0, 500000000.0, 1000.0)
    """
    if limit is None:
        return _SHARE * free_memory()
    match = re.fullmatch(r"([0-9]*\.?[0-9]+) ?(%|[kMGT]B|)", limit)
    if not match or float(match[1]) == 0:
        raise UsageError(f"--memory-limit {limit}: write bytes (2GB, 500MB) or a share (50%).")
    number, unit = float(match[1]), match[2]
    return number / 100 * free_memory() if unit == "%" else number * _UNITS[unit]


def _expected_bytes(path: Path) -> float:
    """Estimate the memory for the rows of a file; 0 if unknown."""
    size = path.stat().st_size if path.is_file() else 0
    if not size:
        return 0
    with open(path, "rb") as file:
        head = file.read(HEAD)
    if head.startswith(_COMPRESSED):
        return _PACKED * size
    kind = detect_format(head, str(path))
    if kind == "npz":
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:  # damage is told later
            return max((m.file_size for m in archive.infolist()), default=0)
    return _TEXT.get(kind, 0.0) * size


@contextmanager
def _chunks(data: Path, source: Source, keep: str, encoder: TableEncoder | None = None):
    """Return chunks of rows with labels and, for a table, the encoder of its columns.

    Codes can represent categories and gaps; values are numbers only, so they need the encoder.
    """
    with ExitStack() as copies:
        if keep == "values" and encoder is None:
            if _is_pipe(data):  # the encoder needs a pass before the rows do
                copy = copies.enter_context(NamedTemporaryFile())
                with open(data, "rb") as file:
                    shutil.copyfileobj(file, copy)
                data = Path(copy.name)
            for chunk in stream_of(source, data, **source.rule()):
                if not is_frame(chunk.X):
                    break
                encoder = (encoder or TableEncoder(scaling=None)).partial_fit(chunk.X)
        yield _labelled(data, source, encoder), encoder


def _labelled(data: Path, source: Source, encoder: TableEncoder | None) -> Iterator[Dataset]:
    for chunk in stream_of(source, data, **source.rule()):
        if chunk.y is None:
            raise no_labels(data)
        chunk = replace(chunk, y=labels_of(chunk))
        if encoder is not None:
            names = encoder.get_feature_names_out()
            chunk = replace(chunk, X=encoder.transform(chunk.X), feature_names=names)
        yield chunk


@contextmanager
def _told(output: Output) -> Iterator:
    """Yield a function that shows progress in one line of the terminal, cleared at the end."""
    shown = not output.quiet and os.isatty(2)

    def told(step: str, rows: int, of: int) -> None:
        if shown:
            share = f" of {of:,}" if of else ""
            print(f"\r{step}: {rows:,}{share} rows\033[K", end="", file=sys.stderr, flush=True)

    yield told
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


# Measured (benchmarks/kernel_memory.py), rounded up.
_PER_ROW = 200  # bytes of variables, gradients, bounds, labels and indices
_LEAST_ROWS = 2  # multiple of the cache's minimum: a step needs as many rows again
_WORK = 64e6  # bytes of working blocks of kernel values


def keep_within(limit: str | None, machine, data) -> None:
    """Set ``cache_size`` so that the whole training stays within the limit, if any."""
    if limit is None or not isinstance(machine, KernelMachine) or machine.cache_size != "auto":
        return
    allowed, needed = bytes_of(limit), used_memory() + _beside_kernel_rows(data)
    least = _LEAST_ROWS * 4.0 * LEAST_SLOTS * data.shape[0]
    if allowed < needed + least:
        raise UsageError(
            f"--memory-limit {limit}: {data.shape[0]:,} rows of {data.shape[1]} features take "
            f"{(needed + least) / 1e6:.0f} MB at least."
        )
    machine.set_params(cache_size=(allowed - needed) / 1e6)


def _beside_kernel_rows(data) -> float:
    """Return the bytes of a fit without its data and the cache."""
    fixed = _WORK + _PER_ROW * data.shape[0]
    if isinstance(data, BlockStore):
        return fixed + 3 * PREPARED
    stored = 2 * data.nnz if issparse(data) else data.shape[0] * data.shape[1]
    double = 8.0 * stored
    return fixed + 2 * 4.0 * stored + (double if double <= COPIED else PREPARED)
