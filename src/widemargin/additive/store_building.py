"""Build a store: chunks to raw blocks, raw blocks to bins, raw blocks to blocks of codes.

Each step starts from the manifest and ends with a new one, so a killed build can continue.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from widemargin.additive.block_files import (
    Entry,
    entry_of,
    read_ahead,
    read_array,
    read_arrays,
    write_arrays,
)
from widemargin.additive.codes import Codes, encode, with_indicators
from widemargin.additive.encoder import BINNINGS, MAX_BINS, SCALINGS, Encoder, fit_encoder
from widemargin.additive.growing_columns import in_order
from widemargin.additive.learn import SAMPLE, choose_kernel
from widemargin.additive.manifest import MANIFEST, Manifest
from widemargin.additive.raw_blocks import RawBlock, RawSource, raw_blocks, values_of
from widemargin.additive.source import Ranges, Values, united
from widemargin.additive.store import Told, read_encoder
from widemargin.errors import ParameterError
from widemargin.files import Folder, checking
from widemargin.validation import (
    check_choice,
    check_n_jobs,
    check_number,
    check_number_or_auto,
)

_SECONDS_BETWEEN = 1.0  # between manifests: a kill loses the work since the last one
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Steps:
    """Settings of a build: values per block, threads, progress callback."""

    values_per_block: int
    n_jobs: int | None = None
    hears: Told | None = None

    @property
    def n_threads(self) -> int:
        return effective_n_jobs(self.n_jobs)

    def told(self, step: str, rows: int, of: int) -> None:
        if self.hears is not None:
            self.hears(step, rows, of)

    def check(self) -> None:
        check_number("values_per_block", self.values_per_block, low=1, integer=True)
        check_n_jobs(self.n_jobs)


def build(path: Path, chunks: Iterable, settings: dict, steps: Steps) -> None:
    """Build or complete a store in the folder."""
    _check_settings(settings)
    steps.check()
    with Folder(path, make=True) as folder:
        _refuse_other_files(folder)
        _claim(folder)
        if not folder.has(MANIFEST) or Manifest.read(folder).empty:
            Manifest(settings).write(folder)  # before any block, so that it lists all of them
        manifest = Manifest.read(folder)
        _remove_left_overs(folder, manifest)
        _check_same(folder, manifest, settings)
        _Building(folder, manifest, steps).run(chunks)


def append(path: Path, chunks: Iterable, steps: Steps) -> None:
    """Append chunks to a finished store."""
    steps.check()
    with Folder(path) as folder:
        _claim(folder)
        manifest = Manifest.read(folder)
        _remove_left_overs(folder, manifest)
        _Building(folder, manifest, steps).run(chunks)


def _claim(folder: Folder) -> None:
    folder.claim(f"The store {str(folder)!r}", "writer")


def _check_settings(settings: dict[str, Any]) -> None:
    if "keep" in settings:  # values have no bins
        return
    check_choice("scaling", settings["scaling"], SCALINGS)
    check_number_or_auto("n_bins", settings["n_bins"], low=1, high=MAX_BINS, integer=True)
    check_choice("binning", settings["binning"], BINNINGS)
    if settings["scaling"] == "percentile":
        reason = "needs all values at once, which a store does not have. Use another one."
        raise ParameterError("scaling", "percentile", reason)


def _refuse_other_files(folder: Folder) -> None:
    """Refuse a folder with other files, before writing."""
    names = folder.names()
    if names and MANIFEST not in names:
        raise ValueError(f"{str(folder)!r} is a folder with other files in it. Use an empty one.")


def _remove_left_overs(folder: Folder, manifest: Manifest) -> None:
    """Delete raw blocks that a killed build did not delete."""
    if manifest.raw:
        return
    kept = {entry.file for entry in manifest.blocks}  # stores of values keep raw blocks
    for name in folder.names() - kept:
        if fnmatch(name, "raw-*.bin"):
            folder.remove(name)


def _check_same(folder: Folder, manifest: Manifest, settings: dict) -> None:
    if manifest.complete:
        raise FileExistsError(
            f"{str(folder)!r} is a finished store already. Open it, append to it, or delete it."
        )
    other = [name for name, value in settings.items() if manifest.settings.get(name) != value]
    if other:
        raise ValueError(
            f"The unfinished store {str(folder)!r} was begun with other {' and '.join(other)}. "
            "Delete it to start afresh."
        )


@contextmanager
def _keeping_what_is_there(folder: Folder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            error.errno,
            f"{error.strerror}. Finished blocks are kept: free some space, and build the store "
            "again to continue",
            error.filename or str(folder),
        ) from None


class _OtherDataError(Exception):
    """An existing raw block does not match the rows given now."""


class _Building:
    """A store under construction, and what its next step needs."""

    def __init__(self, folder: Folder, manifest: Manifest, steps: Steps):
        self.folder, self.manifest, self.steps = folder, manifest, steps
        self._ranges: Ranges | None = None  # of the raw blocks so far
        self._fresh: set[str] = set()  # raw blocks of this process, whose checksums are right
        self._written = -np.inf

    def run(self, chunks: Iterable) -> None:
        with _keeping_what_is_there(self.folder):
            if not self.manifest.gathered:
                self.gather(chunks)
            if self.manifest.holds_values:
                self.keep_values()
                return
            if self.manifest.encoder is None:
                self.learn_bins()
            self.encode()

    def update(self, *, at_once: bool = True, **changes) -> bool:
        """Write the manifest after a step, at once or if the last one is old."""
        self.manifest = self.manifest.with_(**changes)
        written = at_once or time.monotonic() > self._written + _SECONDS_BETWEEN
        if written:
            self.manifest.write(self.folder)
            self._written = time.monotonic()
        return written

    # ---------------------------------------------------------------- chunks to raw blocks

    def gather(self, chunks: Iterable) -> None:
        """Write raw blocks while reading the rows of the next ones."""
        n_rows, n_blocks, there = 0, 0, list(self.manifest.raw)
        before = len(self.manifest.blocks)

        def kept(numbered: tuple[int, RawBlock]) -> tuple[Entry, RawBlock, Ranges]:
            number, block = numbered
            arrays = block.arrays()
            named = self.manifest.holds_values
            entry = entry_of(f"raw-{before + number:06}.bin", arrays, named=named)
            if number >= len(there):
                write_arrays(self.folder, entry, arrays)
                self._fresh.add(entry.file)
            elif entry != there[number]:
                raise _OtherDataError
            return entry, block, block.ranges()

        blocks = enumerate(raw_blocks(chunks, self.steps.values_per_block, self.manifest))
        try:
            for entry, block, ranges in read_ahead(kept, blocks):
                if n_blocks >= len(there):
                    self.update(at_once=False, raw=[*self.manifest.raw, entry], **block.known)
                self._ranges = ranges if self._ranges is None else united(self._ranges, ranges)
                n_rows, n_blocks = n_rows + block.n_rows, n_blocks + 1
                self.steps.told("reading", n_rows, 0)
        except _OtherDataError:
            raise ValueError(
                f"{str(self.folder)!r} was begun with other data: the rows from {n_rows} on "
                "differ from the stored ones. Delete it to start afresh."
            ) from None
        if n_blocks < max(len(there), 1):
            raise ValueError(
                f"{str(self.folder)!r} was begun with more rows than these."
                if there
                else "There are no rows to store."
            )
        self.update(gathered=True)

    def keep_values(self) -> None:
        """Keep the raw blocks as the store's blocks."""
        blocks = [*self.manifest.blocks, *self.manifest.raw]
        self.update(blocks=blocks, raw=[], gathered=False, n_finished=len(blocks))

    # ---------------------------------------------------------------- raw blocks to bins

    def learn_bins(self) -> None:
        source = RawSource(self.folder, self.manifest, self._ranges, self.steps.n_threads)
        weights = self._weights()
        encoder = fit_encoder(source, weights, **self.manifest.settings)
        arrays = {
            name: np.ascontiguousarray(getattr(encoder, name))
            for name in ("shift", "factor", "thresholds", "representatives")
        }
        entry = entry_of("encoder.bin", arrays)
        write_arrays(self.folder, entry, arrays)
        with checking(self.folder / self.manifest.raw[0].file):
            some = _encoded(self._some_rows(), encoder, self.manifest, None)
        compressed = some.index is not None
        kernel = choose_kernel(source.block(0), len(weights))
        self.update(encoder=entry, kernel=kernel, compressed=compressed)

    def _some_rows(self) -> Values:
        arrays = read_arrays(self.folder, self.manifest.raw[0], check=False)
        values = values_of(arrays, self.manifest.n_features)
        return values.rows(0, min(values.n_rows, SAMPLE))

    def _weights(self) -> np.ndarray:
        parts = [
            read_array(self.folder, entry, "weight")
            if "weight" in entry.arrays
            else np.ones(entry.arrays["label"][1])
            for entry in self.manifest.raw
        ]
        return np.concatenate(parts)

    # ---------------------------------------------------------------- raw blocks to codes

    def encode(self) -> None:
        manifest = self.manifest
        assert manifest.encoder is not None
        encoder = read_encoder(self.folder, manifest.encoder)
        raw, done = manifest.raw, manifest.n_finished
        of = sum(entry.arrays["label"][1][0] for entry in raw)
        left = range(len(manifest.blocks) - done, len(raw))
        n_rows = of - sum(raw[k].arrays["label"][1][0] for k in left)

        def coded(k: int) -> tuple[int, Entry, dict]:
            check = raw[k].file not in self._fresh
            arrays = read_arrays(self.folder, raw[k], check=check)
            with checking(self.folder / raw[k].file):
                arrays = _coded(arrays, encoder, manifest)
            return k, entry_of(f"block-{done + k:06}.bin", arrays, named=False), arrays

        for k, entry, arrays in read_ahead(coded, left, self.steps.n_threads):
            write_arrays(self.folder, entry, arrays)
            if self.update(at_once=False, blocks=[*self.manifest.blocks, entry]):
                self._forget(raw[: k + 1])
            n_rows += entry.arrays["label"][1][0]
            self.steps.told("coding", n_rows, of)
        self.update(raw=[], gathered=False, n_finished=len(self.manifest.blocks))
        self._forget(raw)

    def _forget(self, raw: list[Entry]) -> None:
        """Delete raw blocks whose codes are in the manifest."""
        for entry in raw:
            self.folder.remove(entry.file)


def _coded(arrays: dict, encoder: Encoder, manifest: Manifest) -> dict[str, np.ndarray]:
    """Return the arrays of a block of codes for those of a raw block."""
    values = values_of(arrays, manifest.n_features)
    codes = _encoded(values, encoder, manifest, manifest.compressed)
    coded: dict[str, np.ndarray | None] = {
        "start": codes.start,
        "index": codes.index,
        "data": codes.data,
        "label": arrays["label"],
        "weight": arrays.get("weight"),
    }
    return {name: array for name, array in coded.items() if array is not None}


def _encoded(
    values: Values, encoder: Encoder, manifest: Manifest, compressed: bool | None
) -> Codes:
    """Encode rows: numbers, categories and missing values."""
    if manifest.categories:
        values = Values.of(in_order(values.data, manifest.categories))
    values, marks = manifest.columns.parts_of(values)
    codes = encode(values, encoder, compressed=compressed)
    if marks is None:
        return codes
    return with_indicators(codes, marks, encoder.n_codes - 1, compressed=compressed)
