"""Raw blocks in files as a `Source`, to learn bins from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TypeVar

import numpy as np

from widemargin.additive.block_files import Entry, map_arrays, read_ahead
from widemargin.additive.manifest import Manifest
from widemargin.additive.source import Ranges, Values, united
from widemargin.files import Folder, checking

T = TypeVar("T")


@dataclass(frozen=True)
class RawSource:
    """The raw blocks of a store under construction.

    ``known_ranges`` are the ranges of all columns, if known; each of ``n_threads`` holds a block
    in memory.
    """

    folder: Folder
    manifest: Manifest
    known_ranges: Ranges | None = None
    n_threads: int = 1

    @property
    def n_rows(self) -> int:
        return sum(self._sizes)

    @property
    def n_features(self) -> int:
        return self.manifest.columns.n_numbers

    @property
    def sparse(self) -> bool:
        return self.manifest.sparse

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(*(entry.arrays["data"][0] for entry in self.manifest.raw))

    @property
    def _sizes(self) -> list[int]:
        return [entry.arrays["label"][1][0] for entry in self.manifest.raw]

    def block(self, number: int) -> Values:
        """Return the numeric columns of a block, which alone determine scale and bins."""
        entry, manifest = self.manifest.raw[number], self.manifest
        values = values_of(read_raw(self.folder, entry, check=False), manifest.n_features)
        with checking(self.folder / entry.file):
            assert values.core is not None
        if not manifest.categories:
            return values
        return Values.of(values.data[:, manifest.columns.numbers])

    def blocks(self) -> Iterator[Values]:
        return self.each(lambda _, block: block)

    def each(self, look: Callable[[slice, Values], T]) -> Iterator[T]:
        cuts = np.cumsum([0, *self._sizes]).tolist()
        rows = [slice(*pair) for pair in pairwise(cuts)]
        numbers = range(len(rows))
        return read_ahead(lambda k: look(rows[k], self.block(k)), numbers, self.n_threads)

    def ranges(self) -> Ranges:
        if self.known_ranges is not None:
            low, high = self.known_ranges
            numbers = self.manifest.columns.numbers
            return low[numbers], high[numbers]
        return reduce(united, self.each(lambda _, block: block.ranges()))


def read_raw(folder: Folder, entry: Entry, *, check: bool) -> dict[str, np.ndarray]:
    """Map the arrays of a raw block; safe, because the builder holds the folder's lock."""
    return map_arrays(folder, entry, check=check)


def values_of(arrays: dict[str, np.ndarray], n_features: int) -> Values:
    """Return the values of a raw block from its file's arrays."""
    data, index, start = (arrays.get(name) for name in ("data", "index", "start"))
    assert data is not None
    return Values(data, index, start, len(arrays["label"]), n_features)
