"""Rows that are prepared when kernel values are computed, a few at a time.

For data on disk, and for a second copy of large data in double precision that never exists as a
whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from widemargin.kernel.kernels import Kernel
from widemargin.stored import StoredMatrix

PREPARED = 128 << 20  # most bytes of selected rows that are read from disk at once
FEW = 1 << 12  # rows that are always read; a multiple of a panel's, so that norms are the same


@dataclass(frozen=True)
class LazyRows:
    """Some rows of the training data, by index.

    A slice or a few rows are prepared; a larger selection stays lazy.  Rows on disk are sent to
    another process as indices, and read there.
    """

    kernel: Kernel
    X: Any
    number: np.ndarray
    known: np.ndarray | None = None  # squared norms, if computed

    @classmethod
    def on_disk(cls, kernel: Kernel, X: StoredMatrix) -> LazyRows:
        """Return all rows, with the norms that a fit to arrays would have."""
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
        """Select rows without reading any."""
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
        """Whether rows on disk are too many for memory."""
        n_bytes = len(self) * self.X.shape[1] * np.dtype(self.kernel.dtype).itemsize
        return self.stored and n_bytes > PREPARED

    def like(self, points: np.ndarray) -> Any:
        return self[:1].like(points)

    def prepared(self) -> Any:
        if not self.stored:
            return self.kernel.training_rows(self.X, self.number)
        X = self.X[self.number]
        if not self.kernel.traits.ours:  # a store's types are too narrow for a user's sums
            X = X.astype(np.float64)
        rows = self.kernel.prepare(X)
        return rows if self.known is None else replace(rows, norms=self.known)

    def regrouped(self, label: np.ndarray, *, shared: bool) -> LazyRows:
        """Return rows read from a copy in which each cluster is contiguous."""
        order = np.argsort(label, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return replace(self, X=self.X.grouped(order, label, shared=shared), number=place)

    def __reduce__(self):
        """Send only these rows to another process."""
        if not self.stored:
            return LazyRows, (self.kernel, self.X[self.number], np.arange(len(self)), self.known)
        return _on_disk, (self.kernel, self.X, _as_range(self.number), self.known)


def _as_range(number: np.ndarray) -> np.ndarray | range:
    """Store consecutive indices, as those of a cluster, in few bytes."""
    run = range(int(number[0]), int(number[0]) + len(number)) if len(number) else range(0)
    return run if np.array_equal(number, run) else number


def _on_disk(kernel: Kernel, X: StoredMatrix, number: np.ndarray | range, known: Any) -> LazyRows:
    return LazyRows(kernel, X, np.asarray(number, dtype=np.int64), known)


def chosen(rows: Any, which) -> Any:
    """Select rows; those on disk are not read yet."""
    on_disk = isinstance(rows, LazyRows) and rows.stored
    return rows.chosen(which) if on_disk else rows[which]


def taken(rows: Any) -> Any:
    """Prepared, unless they are too many."""
    return rows.taken() if isinstance(rows, LazyRows) else rows


def in_memory(rows: Any) -> Any:
    """Prepared, however many they are."""
    return rows.prepared() if isinstance(rows, LazyRows) else rows
