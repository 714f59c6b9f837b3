"""Rows as kernels take them: dense, compressed, a user's own, or rows of a given matrix.

An index array or a slice selects rows.  Rows return a matrix, arrays to store, or points in the
same layout, so that other code is independent of the layout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from widemargin import _core
from widemargin.kernel.moments import squared_norms

_MANY_FEATURES = 1 << 14  # above: only features that occur in a block of rows are laid out
_PAIR_VALUES = 1 << 20  # values of pairs that are subtracted at once


class RangeError(ValueError):
    """Numbers are out of range in this precision."""


class Rows(Protocol):
    """The interface of rows for solver, partition, model and persistence."""

    def __len__(self) -> int: ...

    def __getitem__(self, which) -> Any:
        """Return the rows selected by a slice or an index array."""
        ...

    @property
    def matrix(self) -> Any:
        """Return the rows as an array or a CSR matrix."""
        ...

    def like(self, points: np.ndarray) -> Any:
        """Return other points in the layout in which `fill` combines them with these rows."""
        ...

    def in_double(self) -> Any:
        """Return the same rows for arithmetic in double precision."""
        ...

    def in_single(self) -> Any:
        """Return the same rows in single precision; overflow gives infinity."""
        ...

    @property
    def n_terms(self) -> int:
        """Number of products in the longest inner product."""
        ...

    def pack(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model file stores."""
        ...


@dataclass(frozen=True)
class Finish:
    """How the core turns inner products and squared norms into kernel values, in place."""

    name: str = "linear"
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 0

    @property
    def core(self) -> _core.Finish:
        return _core.Finish(self.name, self.gamma, self.coef0, self.degree)


@dataclass(frozen=True)
class DenseRows:
    """Rows in the kernel's precision, and their squared norms."""

    data: np.ndarray  # (n, d)
    norms: np.ndarray

    @classmethod
    def of(cls, data: np.ndarray) -> DenseRows:
        """Compute norms like inner products, so that BLAS gives equal rows a distance of 0."""
        norms = np.empty(len(data), dtype=data.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # `check_norms` names the row
            for begin in range(0, len(data), _core.PANEL):
                part = data[begin : begin + _core.PANEL]
                norms[begin : begin + _core.PANEL] = np.matmul(part, part.T).diagonal()
        return cls(data, norms)

    def __len__(self) -> int:
        return len(self.norms)

    def __getitem__(self, which) -> DenseRows:
        if isinstance(which, np.ndarray) and which.dtype == np.int64:  # three times as fast
            return DenseRows(self.data.take(which, axis=0), self.norms.take(which))
        return DenseRows(self.data[which], self.norms[which])

    @property
    def matrix(self) -> np.ndarray:
        return self.data

    def like(self, points: np.ndarray) -> DenseRows:
        return DenseRows(points, np.zeros(len(points), dtype=points.dtype))

    def in_double(self) -> DenseRows:
        return self if self.data.dtype == np.float64 else DenseRows.of(self.data.astype(np.float64))

    def in_single(self) -> DenseRows:
        with np.errstate(over="ignore"):
            single = self.data.astype(np.float32, copy=False)
        return self if single is self.data else DenseRows.of(single)

    @property
    def n_terms(self) -> int:
        return self.data.shape[1]

    def pack(self) -> dict[str, np.ndarray]:
        return {"data": self.data, "norms": self.norms}

    def as_left(self) -> DenseRows:
        return self

    def fill(self, others, out: np.ndarray, finish: Finish | None = None) -> None:
        """Write inner products with other rows, finished by ``finish`` if given, to ``out``."""
        np.matmul(self.data, others.data.T, out=out)
        if finish is not None:
            finish.core.apply(out, self.norms, others.norms)


@dataclass(frozen=True)
class CompressedRows:
    """Rows whose nonzero values are stored; slices share their memory."""

    start: np.ndarray  # int64, n + 1 positions
    index: np.ndarray  # int32
    value: np.ndarray
    norms: np.ndarray
    n_features: int

    @classmethod
    def of(cls, X: sp.csr_array) -> CompressedRows:
        return cls._of(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape[1])

    @classmethod
    def of_dense(cls, X: np.ndarray, dtype) -> CompressedRows:
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(dtype)
        parts = _core.compress_rows(np.ascontiguousarray(X), dtype == np.float32)
        return cls._of(*parts, X.shape[1])

    @classmethod
    def _of(cls, start, index, value, n_features: int) -> CompressedRows:
        """Compute norms as sums like inner products, so that equal rows have distance 0."""
        rows = cls(start, index, value, np.zeros(len(start) - 1, dtype=value.dtype), n_features)
        norms = np.empty_like(rows.norms)
        for begin in range(0, len(rows), _core.PANEL):
            part = rows[begin : begin + _core.PANEL]
            out = np.empty((len(part), len(part)), dtype=norms.dtype)
            part.as_left().fill(part, out)
            norms[begin : begin + _core.PANEL] = out.diagonal()
        return replace(rows, norms=norms)

    def __len__(self) -> int:
        return len(self.norms)

    def __getitem__(self, which) -> CompressedRows:
        if isinstance(which, slice):
            begin, end, step = which.indices(len(self))
            if step != 1:
                return self[np.arange(begin, end, step)]
            end = max(begin, end)
            part = replace(self, start=self.start[begin : end + 1], norms=self.norms[which])
            part.__dict__["core"] = self.core.part(begin, end)  # needs no second check
            return part
        which = np.asarray(which)
        if which.dtype != np.int64 or (len(which) and which.min() < 0):  # NumPy's other indices
            which = np.arange(len(self))[which]
        start, index, value = _core.take_rows(self.start, self.index, self.value, which)
        return CompressedRows(start, index, value, self.norms[which], self.n_features)

    def __reduce__(self):
        return CompressedRows, (self.start, self.index, self.value, self.norms, self.n_features)

    @cached_property
    def core(self) -> _core.CompressedRows:
        """The checked view that the core's loops take."""
        return _core.CompressedRows(self.start, self.index, self.value, self.norms, self.n_features)

    @property
    def matrix(self) -> sp.csr_array:
        stored = slice(self.start[0], self.start[-1])
        start = self.start - self.start[0]
        if start[-1] <= np.iinfo(np.int32).max:  # k-means requires it
            start = start.astype(np.int32)
        parts = (self.value[stored], self.index[stored], start)
        return sp.csr_array(parts, shape=(len(self), self.n_features))

    def like(self, points: np.ndarray) -> Panels:
        return CompressedRows.of(sp.csr_array(points)).as_left()

    def in_double(self) -> CompressedRows:
        if self.value.dtype == np.float64:
            return self
        return CompressedRows.of(self.matrix.astype(np.float64))

    def in_single(self) -> CompressedRows:
        if self.value.dtype == np.float32:
            return self
        with np.errstate(over="ignore"):
            return CompressedRows.of(self.matrix.astype(np.float32))

    @property
    def n_terms(self) -> int:
        return int(np.diff(self.start).max(initial=0))

    def pack(self) -> dict[str, np.ndarray]:
        first, last = self.start[0], self.start[-1]
        return {
            "start": self.start - first,
            "index": self.index[first:last],
            "value": self.value[first:last],
            "norms": self.norms,
        }

    def as_left(self) -> Panels:
        return Panels.of(self)


@dataclass(frozen=True)
class Panels:
    """Rows laid out for products with compressed ones (see cpp/kernel)."""

    values: np.ndarray  # (n_panels, n_features, PANEL)
    place: np.ndarray | None  # of each feature in the panels, if only some occur
    norms: np.ndarray  # padded to whole panels
    n: int

    @classmethod
    def of(cls, rows: CompressedRows) -> Panels:
        """Lay out the rows; if they have very many features, only those that occur."""
        place, n_features = None, rows.n_features
        if n_features > _MANY_FEATURES:
            present = np.unique(rows.index[rows.start[0] : rows.start[-1]])
            place = np.full(n_features, -1, dtype=np.int32)
            place[present] = np.arange(len(present))
            n_features = len(present)
        values = _core.make_panels(rows.core, place, n_features)
        norms = np.zeros(len(values) * _core.PANEL, dtype=rows.norms.dtype)
        norms[: len(rows)] = rows.norms
        return cls(values, place, norms, len(rows))

    @cached_property
    def core(self) -> _core.Panels:
        return _core.Panels(self.values, self.place, self.norms)

    def __len__(self) -> int:
        return self.n

    def fill(
        self,
        others: CompressedRows,
        out: np.ndarray,
        finish: Finish | None = None,
        slots: np.ndarray | None = None,
        team: _core.Team | None = None,
    ) -> None:
        """Write inner products with compressed rows, finished by ``finish`` if given.

        ``slots`` are the rows of ``out`` to write to, if not all of them.
        """
        self.core.fill(others.core, (finish or Finish()).core, out, slots, team)

    def weights(self, columns: np.ndarray) -> np.ndarray:
        """Lay out the weight of each row in every sum (across) for `add`."""
        weights = np.zeros((columns.shape[1], len(self.norms)), dtype=self.values.dtype)
        weights[:, : len(self)] = columns.T
        return weights

    def add(
        self,
        others: CompressedRows,
        weights: np.ndarray,
        sums: np.ndarray,
        finish: Finish,
        team: _core.Team | None = None,
    ) -> None:
        """Add weighted sums of the values that `fill` would write, with a few rounding errors
        each."""
        self.core.add(others.core, finish.core, weights, sums, team)


@dataclass(frozen=True)
class GivenRows:
    """Rows for a function K(X, Z), of any type that the function accepts."""

    data: Any

    def __len__(self) -> int:
        return self.data.shape[0]

    def __getitem__(self, which) -> GivenRows:
        return GivenRows(self.data[which])

    @property
    def matrix(self) -> Any:
        return self.data

    def like(self, points: np.ndarray) -> DenseRows:
        return DenseRows(points, np.zeros(len(points), dtype=points.dtype))

    def in_double(self) -> GivenRows:
        """Convert float32 to double; other types stay as they are."""
        lifted = getattr(self.data, "dtype", None) == np.float32
        return GivenRows(self.data.astype(np.float64)) if lifted else self

    def in_single(self) -> GivenRows:
        with np.errstate(over="ignore"):
            return GivenRows(self.data.astype(np.float32, copy=False))

    @property
    def norms(self) -> np.ndarray:
        """Squared norms of rows that are points."""
        return squared_norms(self.data)

    @property
    def n_terms(self) -> int:
        return self.data.shape[1]

    def pack(self) -> dict[str, np.ndarray]:
        if not isinstance(self.data, np.ndarray) or self.data.ndim != 2:
            raise TypeError(
                "A model file holds support vectors of a kernel function only where they are rows "
                "of a dense matrix of numbers."
            )
        return {"data": self.data}


@dataclass(frozen=True)
class MatrixRows:
    """Rows of a given kernel matrix, and their columns in it (-1: not a training row)."""

    values: np.ndarray | None  # None if only the columns are known, as in a fitted model
    row: np.ndarray
    column: np.ndarray

    @classmethod
    def of_columns(cls, column: np.ndarray) -> MatrixRows:
        return cls(None, np.arange(len(column)), column)

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, which) -> MatrixRows:
        return replace(self, row=self.row[which], column=self.column[which])

    @property
    def matrix(self) -> Any:
        raise TypeError("Rows of a kernel matrix have no features.")

    def like(self, points: np.ndarray) -> Any:
        raise TypeError("Rows of a kernel matrix have no inner products with points.")

    def in_double(self) -> MatrixRows:
        return self

    def in_single(self) -> MatrixRows:
        return self

    @property
    def n_terms(self) -> int:
        raise TypeError("Rows of a kernel matrix have no inner products.")

    def pack(self) -> dict[str, np.ndarray]:
        return {"column": self.column}


def pair_distances(
    a: DenseRows | CompressedRows, b: DenseRows | CompressedRows, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return |a_i - b_j|^2 of pairs from differences, which do not cancel as norms do."""
    left, right = a.matrix, b.matrix
    squares = np.empty(len(i))
    step = max(1, _PAIR_VALUES // max(left.shape[1], 1))
    for begin in range(0, len(i), step):
        pairs = slice(begin, begin + step)
        apart = left[i[pairs]] - right[j[pairs]]
        squares[pairs] = (apart * apart).sum(axis=1)
    return squares


def check_norms(rows):
    """Refuse rows whose norms overflow: every distance would be wrong."""
    finite = np.isfinite(rows.norms)
    if not finite.all():
        bad = int(finite.argmin())
        raise RangeError(
            f"Row {bad} is too large for {rows.norms.dtype} arithmetic: its squared norm "
            "overflows. Scale the features first."
        )
    return rows
