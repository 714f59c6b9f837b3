"""Regroup chunks of rows into blocks of one size, with checked values and numbered labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import (
    check_array,
    column_or_1d,
)

from widemargin.additive.block_files import Stacked, read_ahead, read_arrays
from widemargin.additive.growing_columns import GrowingColumns
from widemargin.additive.manifest import Manifest
from widemargin.additive.source import Ranges, Values, united
from widemargin.errors import Feature, not_finite
from widemargin.files import Folder, checking
from widemargin.sklearn_private import check_sample_weight, get_feature_names
from widemargin.validation import canonical, check_sparse

_NARROW = tuple(map(np.dtype, ("uint8", "uint16", "float32")))
_TOGETHER = 1 << 14  # values compared at a time
_COLUMNS_IN_TWO_BYTES = 1 << 16
_KIND = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "text"}


@dataclass(frozen=True)
class _Piece:
    """Some rows of one chunk."""

    values: Values
    label: np.ndarray
    weight: np.ndarray

    def rows(self, begin: int, end: int) -> _Piece:
        arrays = (array[begin:end] for array in (self.label, self.weight))
        return _Piece(self.values.rows(begin, end), *arrays)

    @property
    def ends(self) -> np.ndarray:
        """Number of values up to the end of each row."""
        if self.values.start is not None:
            return self.values.start[1:]
        return self.values.n_features * np.arange(1, self.values.n_rows + 1)


@dataclass(frozen=True)
class RawBlock:
    """A block of rows, and the facts about the data so far."""

    pieces: list[_Piece]
    known: dict[str, Any]
    lasting: bool = False  # whether the arrays outlive the chunk

    @property
    def index_type(self) -> np.dtype | None:
        """Type of sparse columns: two bytes if enough, else the chunk's."""
        narrow = self.known["n_features"] <= _COLUMNS_IN_TWO_BYTES and not self.lasting
        return np.dtype(np.uint16) if narrow else None

    @property
    def n_rows(self) -> int:
        return sum(piece.values.n_rows for piece in self.pieces)

    def arrays(self) -> dict[str, np.ndarray | Stacked]:
        """Return values (in the smallest exact type), labels and weights."""
        values = [piece.values for piece in self.pieces]
        arrays: dict[str, np.ndarray | Stacked] = {"data": narrowed([v.data for v in values])}
        if self.known["sparse"]:
            arrays |= self._places(values)
        arrays["label"] = np.concatenate([piece.label for piece in self.pieces])
        weight = np.concatenate([piece.weight for piece in self.pieces])
        return arrays if np.all(weight == 1) else arrays | {"weight": weight}

    def _places(self, values: list[Values]) -> dict[str, np.ndarray]:
        """Return the positions of sparse values."""
        ends, n_stored = [np.zeros(1, np.int64)], 0
        for v in values:
            assert v.start is not None
            ends.append(v.start[1:].astype(np.int64) + n_stored)
            n_stored += len(v.data)
        index = [v.index for v in values if v.index is not None]
        start = np.concatenate(ends).astype(np.result_type(*index))
        columns = np.concatenate(index, dtype=self.index_type, casting="unsafe")
        return {"index": columns, "start": start}

    def ranges(self) -> Ranges:
        """Return the smallest and largest value of each column."""
        return reduce(united, (piece.values.ranges() for piece in self.pieces))


def narrowed(parts: list[np.ndarray]) -> np.ndarray | Stacked:
    """Concatenate the parts in the smallest type that represents them exactly.

    >>> narrowed([np.array([3.0, 200.0]), np.array([7.0])])
    array([  3, 200,   7], dtype=uint8)
    """
    dtype = np.result_type(*parts)
    kinds = [kind for kind in _NARROW if kind.itemsize < dtype.itemsize]
    exact = (narrow for kind in kinds if (narrow := _exactly(parts, kind)) is not None)
    narrow = next(exact, None)
    return Stacked([part.astype(dtype, copy=False) for part in parts]) if narrow is None else narrow


def _exactly(parts: list[np.ndarray], kind: np.dtype) -> np.ndarray | None:
    """Return all parts in a type, or None if it cannot represent them, in cache-sized steps."""
    step = max(1, _TOGETHER // max(math.prod(parts[0].shape[1:]), 1))
    out, at = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), kind), 0
    pieces = (part[k : k + step] for part in parts for k in range(0, len(part), step))
    with np.errstate(invalid="ignore", over="ignore"):
        for piece in pieces:
            room = out[at : at + len(piece)]
            room[...] = piece
            if not np.all(room == piece):
                return None
            at += len(piece)
    return out


def raw_blocks(chunks: Iterable, n_values: int, before: Manifest) -> Iterator[RawBlock]:
    """Yield blocks that end with the row at which they reach ``n_values`` values.

    So they do not depend on the chunks.  ``before`` is the store that they extend, or an empty
    one.
    """
    reader = _Reader(before)
    held: list[_Piece] = []
    room = n_values
    for chunk in chunks:
        piece = reader.piece(chunk)
        ends, begin, before_it = piece.ends, 0, 0
        while begin < len(ends):
            end = min(int(np.searchsorted(ends, before_it + room)) + 1, len(ends))
            held.append(piece.rows(begin, end))
            room -= int(ends[end - 1]) - before_it
            begin, before_it = end, int(ends[end - 1])
            if room <= 0:
                yield reader.block(held)
                held, room = [], n_values
    if held:
        yield reader.block(held)
    reader.columns.warn_of_news(reader.names)


class _Reader:
    """Checks chunks for consistency with earlier chunks."""

    def __init__(self, before: Manifest):
        self._fixed = follows = before.complete
        self._n_features, self.names = before.n_features if follows else 0, before.names
        self._sparse: bool | None = before.sparse if follows else None
        # Existing blocks are made again, so labels are numbered from the start.
        self._classes: dict = {c: k for k, c in enumerate(before.classes)} if follows else {}
        self._kinds = {before.kind} if follows else set()
        self._notes = dict(before.notes)
        self._lasting = before.holds_values
        self.columns = GrowingColumns(before)
        self._n_rows = 0

    def piece(self, chunk) -> _Piece:
        X, y, weight, names = _unpacked(chunk)
        X = _checked(self.columns.numbered(X, self._n_rows))
        self._notes |= _notes(chunk)
        n = X.shape[0]
        if y is None:
            raise ValueError(f"The rows from {self._n_rows} on have no labels.")
        y = column_or_1d(y)
        if len(y) != n:
            raise ValueError(
                f"The chunk that begins with row {self._n_rows} has {n} rows and {len(y)} labels."
            )
        self._check_width(X, names)
        gaps = self._check_finite(X)
        weight = check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        label = self._numbered(y)
        self._n_rows += n
        if not np.all(weight > 0):  # rows of weight 0 count as absent
            present = np.flatnonzero(weight > 0)
            X, label, weight = X[present], label[present], weight[present]
        if gaps:
            self.columns.add_gaps(X)
        return _Piece(Values.of(X), label, weight)

    def _check_width(self, X, names: list[str] | None) -> None:
        d, sparse = X.shape[1], sp.issparse(X)
        if self._sparse not in (None, sparse):
            raise ValueError(
                "Chunks must be all dense or all sparse: the one that begins with row "
                f"{self._n_rows} is {'sparse' if sparse else 'dense'}."
            )
        widest = self._n_features if self._fixed or not sparse else d
        if d > (widest or d) or (not sparse and d < widest):
            raise ValueError(
                f"The chunk that begins with row {self._n_rows} has {d} features, the rows before "
                f"have {self._n_features}."
            )
        if self._sparse is not None and names != self.names:
            raise ValueError(
                f"The chunk that begins with row {self._n_rows} has other columns than the rows "
                "before."
            )
        self._sparse, self.names = sparse, names
        self._n_features = max(d, self._n_features)

    def _check_finite(self, X) -> bool:
        """Return whether values are missing, which codes can represent; refuse infinity."""
        if X.dtype.kind != "f":
            return False
        values = Values.of(X)
        position = values.first(lambda values: ~np.isfinite(values))
        if position is None:
            return False
        if not self._lasting:
            position = values.first(np.isinf)
        if position is None:
            return True
        row, column = self._n_rows + position[0], position[1]
        called = Feature(column) if self.names is None else repr(self.names[column])
        raise ValueError(not_finite(X[position], row, called))

    def _numbered(self, y: np.ndarray) -> np.ndarray:
        """Number the labels in the order of first occurrence."""
        kind = _KIND.get(y.dtype.kind, "")
        if y.dtype == object:
            kind = "text" if all(isinstance(label, str) for label in y) else ""
        kinds = self._kinds | {kind}
        finite = kind != "float" or np.all(np.isfinite(y))
        if not finite or not kind or (len(kinds) > 1 and kinds != {"int", "float"}):
            raise ValueError(
                f"The labels from row {self._n_rows} on are {y.dtype}: labels are finite numbers "
                "or text, and of one kind in all rows."
            )
        labels, number = np.unique(y.astype(str) if kind == "text" else y, return_inverse=True)
        self._kinds.add(kind)
        order = np.full(len(labels), len(number))
        np.minimum.at(order, number, np.arange(len(number)))
        for k in np.argsort(order):
            self._classes.setdefault(labels[k].item(), len(self._classes))
        return np.array([self._classes[c.item()] for c in labels], dtype=np.int32)[number]

    def block(self, pieces: list[_Piece]) -> RawBlock:
        kind = "float" if "float" in self._kinds else next(iter(self._kinds))
        known: dict[str, Any] = {
            "n_features": self._n_features,
            "sparse": self._sparse,
            "names": self.names,
            **self.columns.known,
            "notes": dict(self._notes),
            "classes": [float(c) for c in self._classes] if kind == "float" else [*self._classes],
            "kind": kind,
        }
        return RawBlock(pieces, known, self._lasting)


def _notes(chunk) -> dict[str, Any]:
    """Return what a model has to remember about a chunk's file."""
    notes = {name: getattr(chunk, name, None) for name in ("zero_based", "label_name")}
    columns = getattr(chunk, "columns", None)
    notes["na"] = list(getattr(chunk, "na", ())) or None
    notes["drop"] = list(getattr(columns, "dropped", ())) or None
    return {name: value for name, value in notes.items() if value is not None}


def _unpacked(chunk) -> tuple[Any, Any, Any, list[str] | None]:
    """Split a chunk into X, y, weights and names."""
    if hasattr(chunk, "X") and hasattr(chunk, "y"):
        X, y, weight, names = chunk.X, chunk.y, None, chunk.feature_names
    elif isinstance(chunk, tuple) and len(chunk) in (2, 3):
        X, y, weight = (*chunk, None)[:3]
        names = get_feature_names(X)
    else:
        raise TypeError(
            "A chunk is a pair (X, y), a triple (X, y, sample_weight), or what widemargin.stream "
            f"reads, not {type(chunk).__name__}."
        )
    return X, y, weight, None if names is None else [str(name) for name in names]


def _checked(X) -> Any:
    """Check that X is a matrix of numbers."""
    check_sparse(X)
    X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, not {X.dtype}.")
    return canonical(X)


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
        values = values_of(read_arrays(self.folder, entry, check=False), manifest.n_features)
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


def values_of(arrays: dict[str, np.ndarray], n_features: int) -> Values:
    """Return the values of a raw block from its file's arrays."""
    data, index, start = (arrays.get(name) for name in ("data", "index", "start"))
    assert data is not None
    return Values(data, index, start, len(arrays["label"]), n_features)
