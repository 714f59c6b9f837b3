"""Rows that are prepared when kernel values are asked for, a few at a time.

For data on disk, and for a second copy of large data in double precision: nobody holds all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from widemargin.kernel.kernels import Kernel
from widemargin.stored import StoredMatrix

PREPARED = 128 << 20  # bytes of rows on disk that come to memory together, where they are chosen
FEW = 1 << 12  # rows that always do; a multiple of those of a panel, so that norms are the same


@dataclass(frozen=True)
class LazyRows:
    """Some rows of the training data, by number.

    A slice of them is prepared, and so are few others; more stay as they are.  Rows on disk go to
    another process by number, and are read there.
    """

    kernel: Kernel
    X: Any
    number: np.ndarray
    known: np.ndarray | None = None  # squared norms, where they have been computed

    @classmethod
    def on_disk(cls, kernel: Kernel, X: StoredMatrix) -> LazyRows:
        """All rows, with the norms that a fit of arrays would have."""
        rows = cls(kernel, X, np.arange(len(X)))
        return replace(rows, known=rows.norms) if kernel.traits.inner else rows

    @cached_property
    def norms(self) -> np.ndarray:
        if self.known is not None:
            return self.known
        parts = range(0, len(self), FEW)
        return np.concatenate([self[begin : begin + FEW].norms for begin in parts])

    @property
    def n_terms(self) -> int:
        return self.X.shape[1]

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, which) -> Any:
        some = self.chosen(which)
        return some.prepared() if isinstance(which, slice) else some.taken()

    def chosen(self, which) -> LazyRows:
        """Some of them, of which none is read."""
        known = None if self.known is None else self.known[which]
        return replace(self, number=self.number[which], known=known)

    def taken(self) -> Any:
        """Prepared, unless they are too many."""
        few = len(self) <= FEW or (self.stored and not self.many)
        return self.prepared() if few else self

    @property
    def stored(self) -> bool:
        return isinstance(self.X, StoredMatrix)

    @property
    def many(self) -> bool:
        """Whether they are too many for memory, if they are on disk."""
        n_bytes = len(self) * self.X.shape[1] * np.dtype(self.kernel.dtype).itemsize
        return self.stored and n_bytes > PREPARED

    def like(self, points: np.ndarray) -> Any:
        return self[:1].like(points)

    def prepared(self) -> Any:
        if not self.stored:
            return self.kernel.training_rows(self.X, self.number)
        X = self.X[self.number]
        if not self.kernel.traits.ours:  # a store's numbers are too narrow for sums of a user's
            X = X.astype(np.float64)
        rows = self.kernel.prepare(X)
        return rows if self.known is None else replace(rows, norms=self.known)

    def regrouped(self, label: np.ndarray, *, shared: bool) -> LazyRows:
        """Read from a file in which the rows of a cluster lie beside each other."""
        order = np.argsort(label, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return replace(self, X=self.X.grouped(order, label, shared=shared), number=place)

    def __reduce__(self):
        """Another process gets no other rows."""
        if not self.stored:
            return LazyRows, (self.kernel, self.X[self.number], np.arange(len(self)), self.known)
        return _on_disk, (self.kernel, self.X, _as_range(self.number), self.known)


def _as_range(number: np.ndarray) -> np.ndarray | range:
    """Numbers that follow each other, as those of a cluster do, in few bytes."""
    run = range(int(number[0]), int(number[0]) + len(number)) if len(number) else range(0)
    return run if np.array_equal(number, run) else number


def _on_disk(kernel: Kernel, X: StoredMatrix, number: np.ndarray | range, known: Any) -> LazyRows:
    return LazyRows(kernel, X, np.asarray(number, dtype=np.int64), known)


def chosen(rows: Any, which) -> Any:
    """Some of the rows, of which those on disk are not read yet."""
    on_disk = isinstance(rows, LazyRows) and rows.stored
    return rows.chosen(which) if on_disk else rows[which]


def taken(rows: Any) -> Any:
    """Prepared, unless they are too many."""
    return rows.taken() if isinstance(rows, LazyRows) else rows


def in_memory(rows: Any) -> Any:
    """Prepared, however many they are."""
    return rows.prepared() if isinstance(rows, LazyRows) else rows
