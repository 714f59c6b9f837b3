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

    A slice of them is prepared, and so are few others; more stay as they are.
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

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, which) -> Any:
        known = None if self.known is None else self.known[which]
        some = replace(self, number=self.number[which], known=known)
        few = isinstance(which, slice) or len(some) <= FEW
        return some.prepared() if few or (some.stored and not some.many) else some

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

    def regrouped(self, label: np.ndarray) -> LazyRows:
        """Read from a file in which the rows of a cluster lie beside each other."""
        order = np.argsort(label, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return replace(self, X=self.X.grouped(order, label), number=place)

    def __reduce__(self):
        """Another process gets no other rows."""
        return LazyRows, (self.kernel, self.X[self.number], np.arange(len(self)), self.known)


def in_memory(rows: Any) -> Any:
    """Prepared, however many they are."""
    return rows.prepared() if isinstance(rows, LazyRows) else rows
