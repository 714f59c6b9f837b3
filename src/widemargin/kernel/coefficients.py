"""Coefficients of support vectors in outputs; for pairs of classes, of each vector's own pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from widemargin.multiclass import pairs_of


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of vectors (down) in outputs (across).

    If outputs are pairs of classes, a vector takes part only in the pairs of its class, so
    ``values`` has a column per other class, in order, as in LIBSVM.  Vectors are then sorted by
    class.

    Examples
    --------
    >>> pairs = Coefficients(np.array([[-1.0, 0.0], [1.0, -2.0], [3.0, 2.0]]), np.array([0, 1, 2]))
    >>> pairs.dense()  # classes 0 and 1, 0 and 2, 1 and 2
    array([[-1.,  0.,  0.],
           [ 1.,  0., -2.],
           [ 0.,  3.,  2.]])
    """

    values: np.ndarray
    owner: np.ndarray | None = None  # of pairs: the class of each vector, ascending

    @classmethod
    def of(cls, values: np.ndarray | Coefficients) -> Coefficients:
        """Return the coefficients of a plain matrix."""
        return values if isinstance(values, Coefficients) else cls(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which) -> Coefficients:
        """Return the coefficients of some vectors, in ascending order."""
        return Coefficients(self.values[which], None if self.owner is None else self.owner[which])

    @property
    def n_outputs(self) -> int:
        n_columns = self.values.shape[1]
        return n_columns if self.owner is None else n_columns * (n_columns + 1) // 2

    def runs(self) -> Iterator[tuple[slice, Any, np.ndarray]]:
        """Yield the vectors of each class, their outputs and their coefficients."""
        if self.owner is None:
            yield slice(0, len(self)), slice(0, self.n_outputs), self.values
            return
        n_classes = self.values.shape[1] + 1
        ends = self.owner.searchsorted(np.arange(n_classes + 1)).tolist()
        for number, (begin, end) in enumerate(pairwise(ends)):
            if begin < end:
                yield slice(begin, end), pairs_of(number, n_classes), self.values[begin:end]

    def applied(self, kernel_values: np.ndarray) -> np.ndarray:
        """Multiply kernel values with all vectors by the coefficients."""
        out = np.zeros((len(kernel_values), self.n_outputs))
        for vectors, outputs, own in self.runs():
            out[:, outputs] += kernel_values[:, vectors] @ own
        return out

    def dense(self) -> np.ndarray:
        """A column for every output."""
        if self.owner is None:
            return self.values
        out = np.zeros((len(self), self.n_outputs))
        for vectors, outputs, own in self.runs():
            out[vectors, outputs] = own
        return out

    @property
    def reach(self) -> np.ndarray:
        """Return the largest |coefficient| of each vector."""
        return np.abs(self.values).max(axis=1, initial=0.0)

    def squared(self) -> Coefficients:
        return replace(self, values=np.square(self.values))
