"""How a store comes to be: chunks to raw blocks, raw blocks to bins, and to blocks of codes.

Each step ends with a new manifest, and begins with what the last one says; so a build that was
killed goes on where it was.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.additive.block_files import (
    Entry,
    entry_of,
    read_ahead,
    read_array,
    read_arrays,
    write_arrays,
)
from widemargin.additive.choice import choose_kernel
from widemargin.additive.codes import encode_block
from widemargin.additive.encoder import BINNINGS, MAX_BINS, SCALINGS, Encoder, fit_encoder
from widemargin.additive.manifest import MANIFEST, Manifest
from widemargin.additive.raw_blocks import raw_blocks
from widemargin.additive.source import Values
from widemargin.additive.store import read_encoder
from widemargin.claim import CLAIM, Claim
from widemargin.validation import check_choice, check_number, check_number_or_auto
from widemargin.wording import words

_SECONDS_BETWEEN = 1.0  # manifests: a kill costs no more than the work since the last one
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def build(folder: Path, chunks: Iterable, settings: dict, values_per_block: int, told) -> None:
    """A finished store in the folder, whatever of it was there before."""
    _check_settings(settings)
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_other_files(folder)
    with _claimed(folder):
        manifest = Manifest(settings)
        if (folder / MANIFEST).exists():
            manifest = Manifest.read(folder)
            _check_same(folder, manifest, settings)
        _Building(folder, manifest, told).run(chunks, values_per_block)


def append(folder: Path, chunks: Iterable, values_per_block: int, told) -> None:
    """The same with chunks that come after those of a finished store."""
    with _claimed(folder):
        _Building(folder, Manifest.read(folder), told).run(chunks, values_per_block)


def _claimed(folder: Path) -> Claim:
    return Claim(folder, f"The store {str(folder)!r}", "writer")


def _check_settings(settings: dict[str, Any]) -> None:
    if "keep" in settings:  # values, which have no bins
        return
    check_choice("scaling", settings["scaling"], SCALINGS)
    check_number_or_auto("n_bins", settings["n_bins"], low=1, high=MAX_BINS, integer=True)
    check_choice("binning", settings["binning"], BINNINGS)
    if settings["scaling"] == "percentile":
        raise ValueError(
            f"{words().option('scaling', 'percentile')} needs all values at once, which a store "
            "does not have. Use another one."
        )


def _refuse_other_files(folder: Path) -> None:
    """Before anything is written."""
    names = {path.name for path in folder.iterdir() if path.suffix != ".tmp"}
    if names - {CLAIM} and MANIFEST not in names:
        raise ValueError(f"{str(folder)!r} is a folder with other files in it. Use an empty one.")


def _check_same(folder: Path, manifest: Manifest, settings: dict) -> None:
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
def _keeping_what_is_there(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            error.errno,
            f"{error.strerror}. The blocks that are finished are kept: make room, and build the "
            "store again to go on",
            error.filename or str(folder),
        ) from None


class _Building:
    """A store on its way, and what the next step needs of it."""

    def __init__(self, folder: Path, manifest: Manifest, told: Callable | None):
        self.folder, self.manifest = folder, manifest
        self.told = told or (lambda step, rows, of: None)
        self._written = -np.inf

    def run(self, chunks: Iterable, values_per_block: int) -> None:
        check_number("values_per_block", values_per_block, low=1, integer=True)
        with _keeping_what_is_there(self.folder):
            if not self.manifest.gathered:
                self.gather(chunks, values_per_block)
            if self.manifest.holds_values:
                self.keep_values()
                return
            if self.manifest.encoder is None:
                self.learn_bins()
            self.encode()

    def update(self, *, at_once: bool = True, **changes) -> bool:
        """A step is done; the folder says so, at once or when the last time was a while ago."""
        self.manifest = self.manifest.with_(**changes)
        written = at_once or time.monotonic() > self._written + _SECONDS_BETWEEN
        if written:
            self.manifest.write(self.folder)
            self._written = time.monotonic()
        return written

    # ---------------------------------------------------------------- chunks to raw blocks

    def gather(self, chunks: Iterable, values_per_block: int) -> None:
        n_rows, n_blocks, there = 0, 0, list(self.manifest.raw)
        for block in raw_blocks(chunks, values_per_block, self.manifest):
            number = len(self.manifest.blocks) + n_blocks
            entry = entry_of(f"raw-{number:06}.bin", block.arrays)
            if n_blocks < len(there):
                if entry.digest != there[n_blocks].digest:
                    raise ValueError(
                        f"{str(self.folder)!r} was begun with other data: the rows from {n_rows} "
                        "on are not those that are there. Delete it to start afresh."
                    )
            else:
                write_arrays(self.folder, entry, block.arrays)
                self.update(at_once=False, raw=[*self.manifest.raw, entry], **block.known)
            n_rows, n_blocks = n_rows + block.n_rows, n_blocks + 1
            self.told("reading", n_rows, 0)
        if n_blocks < max(len(there), 1):
            raise ValueError(
                f"{str(self.folder)!r} was begun with more rows than these."
                if there
                else "There are no rows to store."
            )
        self.update(gathered=True)

    def keep_values(self) -> None:
        """Raw blocks as they are."""
        blocks = [*self.manifest.blocks, *self.manifest.raw]
        self.update(blocks=blocks, raw=[], gathered=False, n_finished=len(blocks))

    # ---------------------------------------------------------------- raw blocks to bins

    def learn_bins(self) -> None:
        source, weight = RawSource(self.folder, self.manifest), self._weights()
        encoder = fit_encoder(source, weight, **self.manifest.settings)
        arrays = {
            name: np.ascontiguousarray(getattr(encoder, name))
            for name in ("shift", "factor", "thresholds", "representatives")
        }
        entry = entry_of("encoder.bin", arrays)
        write_arrays(self.folder, entry, arrays)
        first = encode_block(next(source.blocks()), encoder)
        self.update(encoder=entry, kernel=choose_kernel(source), compressed=first.index is not None)

    def _weights(self) -> np.ndarray:
        found = [
            read_array(self.folder, entry, "weight")
            if "weight" in entry.arrays
            else np.ones(entry.arrays["label"][1])
            for entry in self.manifest.raw
        ]
        return np.concatenate(found)

    # ---------------------------------------------------------------- raw blocks to codes

    def encode(self) -> None:
        manifest = self.manifest
        assert manifest.encoder is not None
        encoder = read_encoder(self.folder, manifest.encoder, manifest.n_features)
        raw, done = manifest.raw, manifest.n_finished
        of = sum(entry.arrays["label"][1][0] for entry in raw)
        left = range(len(manifest.blocks) - done, len(raw))
        n_rows = of - sum(raw[k].arrays["label"][1][0] for k in left)
        for k, arrays in zip(left, read_ahead(self._raw, left), strict=True):
            coded = _coded(arrays, encoder, manifest)
            entry = entry_of(f"block-{done + k:06}.bin", coded)
            write_arrays(self.folder, entry, coded)
            if self.update(at_once=False, blocks=[*self.manifest.blocks, entry]):
                self._forget(raw[: k + 1])
            n_rows += len(coded["label"])
            self.told("coding", n_rows, of)
        self.update(raw=[], gathered=False, n_finished=len(self.manifest.blocks))
        self._forget(raw)

    def _forget(self, raw: list[Entry]) -> None:
        """Raw blocks whose codes the manifest has."""
        for entry in raw:
            (self.folder / entry.file).unlink(missing_ok=True)

    def _raw(self, number: int) -> dict[str, np.ndarray]:
        return read_arrays(self.folder, self.manifest.raw[number], check=True)


def _coded(arrays: dict, encoder: Encoder, manifest: Manifest) -> dict[str, np.ndarray]:
    """The arrays of a block of codes, of those of a raw one."""
    values = _values(arrays, manifest.n_features)
    codes = encode_block(values, encoder, compressed=manifest.compressed)
    coded: dict[str, np.ndarray | None] = {
        "start": codes.start,
        "index": codes.index,
        "data": codes.data,
        "label": arrays["label"],
        "weight": arrays.get("weight"),
    }
    return {name: array for name, array in coded.items() if array is not None}


def _values(arrays: dict, n_features: int) -> Values:
    data, index, start = (arrays.get(name) for name in ("data", "index", "start"))
    assert data is not None
    return Values(data, index, start, len(arrays["label"]), n_features)


@dataclass(frozen=True)
class RawSource:
    """The raw blocks as a `Source`, from which bins are learned."""

    folder: Path
    manifest: Manifest

    @property
    def n_rows(self) -> int:
        return sum(entry.arrays["label"][1][0] for entry in self.manifest.raw)

    @property
    def n_features(self) -> int:
        return self.manifest.n_features

    @property
    def sparse(self) -> bool:
        return self.manifest.sparse

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(*(entry.arrays["data"][0] for entry in self.manifest.raw))

    def blocks(self) -> Iterator[Values]:
        numbers = range(len(self.manifest.raw))
        return (_values(arrays, self.n_features) for arrays in read_ahead(self._load, numbers))

    def _load(self, number: int) -> dict[str, np.ndarray]:
        return read_arrays(self.folder, self.manifest.raw[number], check=False)
