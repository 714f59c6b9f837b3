"""Rows on disk, mapped into memory only while they are copied."""

from __future__ import annotations

import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.files import checking, naming, open_plain
from widemargin.validation import check_sparse


class Store(ABC):
    """Training data on disk, with labels and weights, as machines use it."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def classes(self) -> np.ndarray:
        """The different labels."""

    @property
    @abstractmethod
    def feature_names(self) -> list[str] | None: ...

    @abstractmethod
    def labels(self) -> np.ndarray:
        """Index of each row's class."""

    @abstractmethod
    def weights(self) -> np.ndarray:
        """Sample weight of each row."""

    @abstractmethod
    def matrix(self) -> StoredMatrix:
        """Return the raw values; refused for stores of codes."""


@dataclass(frozen=True)
class ArrayInFile:
    """Location of an array in a file."""

    file: Path | Scratch
    begin: int
    dtype: str
    shape: tuple[int, ...]

    @contextmanager
    def mapped(self) -> Iterator[np.ndarray]:
        """Map the array; the file is closed at once, and pages are freed with the map."""
        size = int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize
        if size == 0:
            yield np.empty(self.shape, dtype=self.dtype)
            return
        first = self.begin - self.begin % mmap.ALLOCATIONGRANULARITY
        before = self.begin - first
        with _opened(self.file) as number:
            pages = mmap.mmap(number, before + size, access=mmap.ACCESS_READ, offset=first)
        yield np.ndarray(self.shape, self.dtype, pages, before)


@contextmanager
def _opened(file: Path | Scratch) -> Iterator[int]:
    if isinstance(file, Scratch):
        yield file.file.fileno()
        return
    try:
        opened = open_plain(file)
    except FileNotFoundError as error:
        reason = "No such file here; workers must see the folder of a store under the same path"
        raise FileNotFoundError(error.errno, reason, str(file)) from None
    with opened:
        yield opened.fileno()


Block = dict[str, ArrayInFile]  # ``data``; for compressed rows also ``index`` and ``start``


@dataclass(frozen=True, repr=False)
class StoredMatrix:
    """Raw values by row: a slice or an index array loads rows into memory.

    Code that needs all rows loads a few at a time.
    """

    folder: Path  # has room for a reordered copy of the rows
    blocks: list[Block]
    cuts: np.ndarray  # first row of each block, and the total number of rows
    n_features: int
    dtype: np.dtype
    name: str  # digest of the content

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.cuts[-1]), self.n_features

    @property
    def sparse(self) -> bool:
        return "index" in self.blocks[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"StoredMatrix({self.shape[0]} x {self.shape[1]}, {self.name})"

    def __getitem__(self, which) -> Any:
        """Load rows as an array or a CSR matrix."""
        if isinstance(which, slice):
            which = np.arange(*which.indices(len(self)))
        if np.any(which[1:] < which[:-1]):
            order = np.argsort(which, kind="stable")
            return self[which[order]][np.argsort(order)]
        ends = np.searchsorted(which, self.cuts)
        pieces = [
            self._take(k, which[begin:end] - self.cuts[k])
            for k, (begin, end) in enumerate(pairwise(ends))
            if end > begin
        ]
        return self._joined(pieces)

    def _joined(self, pieces: list) -> Any:
        if self.sparse:
            empty = sp.csr_array((0, self.n_features), dtype=self.dtype)
            return sp.vstack(pieces, format="csr", dtype=self.dtype) if pieces else empty
        if len(pieces) == 1:
            return pieces[0].astype(self.dtype, copy=False)
        empty = np.empty((0, self.n_features), dtype=self.dtype)
        return np.concatenate([empty, *pieces], dtype=self.dtype)

    def _take(self, number: int, rows: np.ndarray) -> Any:
        """Load ascending rows of one block."""
        block, run = self.blocks[number], int(rows[-1] - rows[0]) == len(rows) - 1
        with block["data"].mapped() as data:
            if not self.sparse:
                return data[rows[0] : rows[-1] + 1].copy() if run else data[rows]
            with block["index"].mapped() as index, block["start"].mapped() as start:
                begin, length = start[rows], start[rows + 1] - start[rows]
                ends = np.cumsum(length)
                positions = np.repeat(begin - ends + length, length) + np.arange(length.sum())
                parts = (data[positions], index[positions], np.concatenate([[0], ends]))
        with checking(block["data"].file):  # these bytes are not validated yet
            matrix = sp.csr_array(parts, shape=(len(rows), self.n_features))
            check_sparse(matrix)
        return matrix

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield all rows in order, a block at a time."""
        for begin, end in pairwise(self.cuts.tolist()):
            yield slice(begin, end), self[begin:end]

    def min(self, axis: int) -> np.ndarray:
        """Return the minimum of each column, absent zeros included."""
        return np.min([_filled(part.min(axis=axis)) for _, part in self.parts()], axis=0)

    def max(self, axis: int) -> np.ndarray:
        return np.max([_filled(part.max(axis=axis)) for _, part in self.parts()], axis=0)

    def grouped(
        self, order: np.ndarray, group: np.ndarray, *, shared: bool = False
    ) -> StoredMatrix:
        """Return a copy of the rows with those of a group adjacent.

        Writes in one pass: a block's rows of a group are appended to that group.  The file is
        deleted with the last reference to the matrix; it has a name only if it is ``shared`` with
        other processes.
        """
        length = self._row_lengths()
        at = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(length[order], out=at[1:])
        first = np.searchsorted(group[order], np.arange(int(group.max(initial=0)) + 1))
        with naming(self.folder):
            writer = _Writer(Scratch(self.folder, shared), int(at[-1]), self.dtype, self.sparse)
            for rows, values in self.parts():
                by_group = np.argsort(group[rows], kind="stable")
                values, groups = values[by_group], group[rows][by_group]
                cuts = np.flatnonzero(np.diff(groups, prepend=-1, append=groups[-1] + 1))
                for begin, end in pairwise(cuts.tolist()):
                    writer.write(values[begin:end], int(at[first[groups[begin]]]))
                    first[groups[begin]] += end - begin
            block = writer.finished(at, self.shape)
        cuts = np.array([0, len(self)])
        return StoredMatrix(self.folder, [block], cuts, self.n_features, self.dtype, self.name)

    def _row_lengths(self) -> np.ndarray:
        """Return the number of values of each row."""
        if not self.sparse:
            return np.full(len(self), self.n_features, dtype=np.int64)
        lengths = []
        for block in self.blocks:
            with block["start"].mapped() as start:
                lengths.append(np.diff(start).astype(np.int64))
        return np.concatenate(lengths)


def _filled(row) -> np.ndarray:
    return row.toarray().ravel() if sp.issparse(row) else row


class Scratch:
    """A temporary file in a folder, deleted with the last reference to this object.

    It has no name, so that even a kill leaves nothing, unless it is ``shared`` with other
    processes.
    """

    def __init__(self, folder: Path, shared: bool = False):
        if shared:
            self.file: Any = tempfile.NamedTemporaryFile(  # noqa: SIM115
                dir=folder, prefix="grouped-", suffix=".tmp"
            )
        else:
            self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def __reduce__(self):
        return Path, (self.file.name,)

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


class _Writer:
    """Writes rows to their places in a file: values, and the indices of compressed rows."""

    def __init__(self, file: Scratch, n_values: int, dtype: np.dtype, sparse: bool):
        self._file, self._n_values, self._dtype = file, n_values, np.dtype(dtype)
        self._sparse = sparse
        self._index_at = n_values * self._dtype.itemsize
        self._index_at += -self._index_at % 64
        self._start_at = self._index_at + 8 * n_values

    def write(self, values, at: int) -> None:
        """Write rows, starting at value number ``at`` of the file."""
        if self._sparse:
            self._put(values.indices.astype(np.int64), self._index_at + 8 * at)
            values = values.data
        self._put(values, at * self._dtype.itemsize)

    def _put(self, values: np.ndarray, at: int) -> None:
        self._file.file.seek(at)
        self._file.file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    def finished(self, start: np.ndarray, shape: tuple[int, int]) -> Block:
        kind, n = self._dtype.str, (self._n_values,)
        if self._sparse:
            self._put(start, self._start_at)
        self._file.file.flush()
        if not self._sparse:
            return {"data": ArrayInFile(self._file, 0, kind, shape)}
        return {
            "data": ArrayInFile(self._file, 0, kind, n),
            "index": ArrayInFile(self._file, self._index_at, "<i8", n),
            "start": ArrayInFile(self._file, self._start_at, "<i8", start.shape),
        }


def matrix_of(X) -> StoredMatrix | None:
    """Return the values of a store; None for data in memory."""
    return X.matrix() if isinstance(X, Store) else X if isinstance(X, StoredMatrix) else None


def check_store_input(estimator, store: Store, y, sample_weight) -> None:
    """Check a store as `check_X_y` checks arrays; y, weights and names are the store's."""
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(f"{name} must be None if X is a store, which has its own.")
    estimator.n_features_in_ = store.shape[1]
    if store.feature_names is not None:
        estimator.feature_names_in_ = np.array(store.feature_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
