"""Kernels k(X, Z) on blocks of rows: one matrix product and a fused finish.

A kernel prepares each data set once (`operand`) and then fills blocks of kernel values from two
operands; nothing here ever forms a whole n-by-n matrix.  Values are float32, which is what the
memory and the matrix product are sized for, or float64 for tight tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel

from widemargin import _core

KERNELS = ("rbf", "poly", "sigmoid", "laplacian", "chi2", "precomputed")
DENSE_FROM = 0.35  # share of non-zeros from which dense rows and the matrix product are faster
OFF_CENTRE = 8.0  # squared distance of the centre from zero, in units of the rows' from it
_VARIANCE_ROWS = 256
TILE, TILE_COMPRESSED = 1024, 2048  # columns
_MANY_FEATURES = 1 << 14  # from here on only the features present in a block of rows are laid out


Rows: TypeAlias = Any
"""Rows as their kernel wants them, of some length; an index array or a slice selects some."""


@dataclass(frozen=True)
class Operand:
    """Rows in the kernel's precision and, where it needs them, their squared norms."""

    data: Any  # dense (n, d), csr (n, d), or whatever a user's function takes
    norms: np.ndarray

    def __len__(self) -> int:
        return len(self.norms)

    def __getitem__(self, rows) -> Operand:
        return Operand(self.data[rows], self.norms[rows])


@dataclass(frozen=True)
class CompressedRows:
    """Rows of which only the non-zero values are kept; slices share their memory."""

    start: np.ndarray  # int64, n + 1 positions
    index: np.ndarray  # int32
    value: np.ndarray
    norms: np.ndarray
    n_features: int

    @classmethod
    def of(cls, X: sp.csr_array) -> CompressedRows:
        start, index = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        rows = cls(start, index, X.data, np.zeros(X.shape[0], dtype=X.dtype), X.shape[1])
        return replace(rows, norms=_norms(rows, lambda a, out: Panels.of(a).fill(a, out)))

    def __len__(self) -> int:
        return len(self.norms)

    def __getitem__(self, rows) -> CompressedRows:
        if isinstance(rows, slice):
            begin, end, step = rows.indices(len(self))
            if step != 1:
                return self[np.arange(begin, end, step)]
            start = self.start[begin : max(begin, end) + 1]
            return replace(self, start=start, norms=self.norms[rows])
        rows = np.asarray(rows)
        if rows.dtype != np.int64 or (len(rows) and rows.min() < 0):  # NumPy's other indices
            rows = np.arange(len(self))[rows]
        start, index, value = _core.take_rows(self.start, self.index, self.value, rows)
        return CompressedRows(start, index, value, self.norms[rows], self.n_features)

    def tocsr(self) -> sp.csr_array:
        at = slice(self.start[0], self.start[-1])
        start = self.start - self.start[0]
        if start[-1] <= np.iinfo(np.int32).max:  # k-means takes nothing wider
            start = start.astype(np.int32)
        parts = (self.value[at], self.index[at], start)
        return sp.csr_array(parts, shape=(len(self), self.n_features))


@dataclass(frozen=True)
class Panels:
    """Rows laid out for products with compressed ones (see cpp/kernel_problem.hpp)."""

    values: np.ndarray  # (n_panels, n_features, PANEL)
    place: np.ndarray | None  # of each feature in the panels, where only some are there
    norms: np.ndarray  # padded to whole panels
    n: int

    @classmethod
    def of(cls, rows: CompressedRows) -> Panels:
        """Only the features present, where the rows have very many."""
        place, n_features = None, rows.n_features
        if n_features > _MANY_FEATURES:
            present = np.unique(rows.index[rows.start[0] : rows.start[-1]])
            place = np.full(n_features, -1, dtype=np.int32)
            place[present] = np.arange(len(present))
            n_features = len(present)
        values = _core.make_panels(rows.start, rows.index, rows.value, place, n_features)
        norms = np.zeros(len(values) * _core.PANEL, dtype=rows.norms.dtype)
        norms[: len(rows)] = rows.norms
        return cls(values, place, norms, len(rows))

    def __len__(self) -> int:
        return self.n

    def fill(
        self, rows: CompressedRows, out, name="linear", gamma=0.0, coef0=0.0, degree=0
    ) -> None:
        """Write kernel values, or inner products, with compressed rows to ``out``."""
        _core.sparse_block(
            rows.start, rows.index, rows.value, rows.norms, self.place, self.values, self.norms,
            name, gamma, coef0, degree, out,
        )  # fmt: skip


@dataclass(frozen=True)
class MatrixRows:
    """Rows of a given kernel matrix, and their numbers among its columns (-1: not training)."""

    matrix: np.ndarray | None
    at: np.ndarray
    column: np.ndarray

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows) -> MatrixRows:
        return replace(self, at=self.at[rows], column=self.column[rows])


class Kernel(Protocol):
    """What solver, partition and model ask of a kernel."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> type:
        """float32 or float64: the type of the values."""
        ...

    @property
    def cost(self) -> float:
        """Time for a value, in units of reading one that is cached; an estimate."""
        ...

    @property
    def tile(self) -> int:
        """Columns of a block at a time: few where a block goes through the cache twice."""
        ...

    def operand(self, X, *, training: bool = False) -> Rows:
        """Rows prepared for `fill`."""
        ...

    def left(self, a: Rows) -> Rows:
        """Rows prepared to be the first argument of many calls of `fill`."""
        ...

    def fill(self, a: Rows, b: Rows, out: np.ndarray) -> None:
        """Write k(a, b) to ``out``, whose rows are contiguous."""
        ...

    def diagonal(self, a: Rows) -> np.ndarray:
        """k(x, x) of every row, in double precision."""
        ...

    def vectors(self, a: Rows, support: np.ndarray) -> Rows:
        """What prediction needs of the support vectors."""
        ...


@dataclass(frozen=True)
class DotKernel:
    """Kernels of inner products: rbf, poly, sigmoid.

    Rows that are mostly zeros are compressed, whatever they came as.  Distances are |a|^2 + |b|^2 -
    2ab, so other data of the rbf kernel is centred first (distances do not change, cancellation
    does; compressed rows are near enough to zero) and the difference is clamped at zero.  The
    exponential is right to 3e-7 in single precision.
    """

    name: str
    gamma: float
    coef0: float = 0.0
    degree: int = 3
    dtype: type = np.float32
    compressed: bool = False
    centre: np.ndarray | None = None
    cost: float = 4.0

    @property
    def tile(self) -> int:
        return TILE_COMPRESSED if self.compressed else TILE

    def operand(self, X, *, training: bool = False) -> Operand | CompressedRows:
        if self.compressed:
            X = sp.csr_array(X, dtype=self.dtype, copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
            return _finite(CompressedRows.of(X))
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        X = np.ascontiguousarray(X if self.centre is None else X - self.centre, dtype=self.dtype)
        rows = Operand(X, np.zeros(len(X), dtype=self.dtype))
        norms = _norms(rows, lambda a, out: np.matmul(a.data, a.data.T, out=out))
        return _finite(Operand(X, norms))

    def left(self, a: Operand | CompressedRows) -> Operand | Panels:
        return Panels.of(a) if isinstance(a, CompressedRows) else a

    def fill(self, a: Operand | Panels, b: Rows, out: np.ndarray) -> None:
        parameters = (self.name, self.gamma, self.coef0, self.degree)
        if isinstance(a, Panels):
            a.fill(b, out, *parameters)
        else:
            np.matmul(a.data, b.data.T, out=out)
            _core.finish_block(out, a.norms, b.norms, *parameters)

    def diagonal(self, a: Operand | CompressedRows) -> np.ndarray:
        if self.name == "rbf":
            return np.ones(len(a))
        inner = self.gamma * a.norms.astype(np.float64) + self.coef0
        with np.errstate(over="ignore"):  # the estimator names the row
            return inner**self.degree if self.name == "poly" else np.tanh(inner)

    def vectors(self, a: Operand, support: np.ndarray) -> Operand:
        return a[support]


@dataclass(frozen=True)
class FunctionKernel:
    """Any function K(X, Z) -> (len(X), len(Z)), checked for shape and finiteness."""

    name: str
    function: Callable
    dtype: type = np.float32
    cost: float = 50.0
    tile: int = TILE
    given: bool = True  # by the user, not one of ours

    def operand(self, X, *, training: bool = False) -> Operand:
        if not self.given:  # a user's function gets what the user has
            X = np.ascontiguousarray(X, dtype=self.dtype)
        return Operand(X, np.zeros(X.shape[0]))

    def left(self, a: Operand) -> Operand:
        return a

    def fill(self, a: Operand, b: Operand, out: np.ndarray) -> None:
        K = np.asarray(self.function(a.data, b.data))
        if K.shape != out.shape:
            raise ValueError(
                f"kernel {self.name!r} returned shape {K.shape} for {len(a)} and {len(b)} rows; "
                f"it must return {out.shape}."
            )
        if not np.all(np.isfinite(K)):
            i, j = np.argwhere(~np.isfinite(K))[0]
            raise ValueError(f"kernel {self.name!r} returned {K[i, j]} at ({i}, {j}) of a block.")
        out[...] = K

    def diagonal(self, a: Operand) -> np.ndarray:
        values = np.empty(len(a))
        block = 64
        for begin in range(0, len(a), block):
            part = a[begin : begin + block]
            out = np.empty((len(part), len(part)))
            self.fill(part, part, out)
            values[begin : begin + block] = np.diag(out)
        return values

    def vectors(self, a: Operand, support: np.ndarray) -> Operand:
        return a[support]


@dataclass(frozen=True)
class PrecomputedKernel:
    """Kernel values given by the caller: the columns of every matrix are the training rows."""

    name: str = "precomputed"
    dtype: type = np.float32
    cost: float = 2.0
    tile: int = TILE

    def operand(self, X, *, training: bool = False) -> MatrixRows:
        at = np.arange(X.shape[0])
        return MatrixRows(np.asarray(X), at, at if training else np.full(len(at), -1))

    def left(self, a: MatrixRows) -> MatrixRows:
        return a

    def fill(self, a: MatrixRows, b: MatrixRows, out: np.ndarray) -> None:
        if b.matrix is None or np.all(b.column >= 0):
            assert a.matrix is not None
            out[...] = a.matrix[np.ix_(a.at, b.column)]
        else:
            out[...] = b.matrix[np.ix_(b.at, a.column)].T

    def diagonal(self, a: MatrixRows) -> np.ndarray:
        assert a.matrix is not None
        return a.matrix[a.at, a.column].astype(np.float64)

    def vectors(self, a: MatrixRows, support: np.ndarray) -> MatrixRows:
        return MatrixRows(None, np.arange(len(support)), a.column[support])


class WrappedKernel:
    """What a kernel made of another one has from it."""

    kernel: Kernel

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def dtype(self) -> type:
        return self.kernel.dtype

    @property
    def cost(self) -> float:
        return self.kernel.cost

    @property
    def tile(self) -> int:
        return self.kernel.tile


@dataclass(frozen=True)
class ShiftedKernel(WrappedKernel):
    """k + constant: the kernel of a model with a penalised intercept."""

    kernel: Kernel
    constant: float

    def operand(self, X, *, training: bool = False) -> Rows:
        return self.kernel.operand(X, training=training)

    def left(self, a: Rows) -> Rows:
        return self.kernel.left(a)

    def fill(self, a: Rows, b: Rows, out: np.ndarray) -> None:
        self.kernel.fill(a, b, out)
        out += self.constant

    def diagonal(self, a: Rows) -> np.ndarray:
        return self.kernel.diagonal(a) + self.constant

    def vectors(self, a: Rows, support: np.ndarray) -> Rows:
        return self.kernel.vectors(a, support)


def make_kernel(kernel, gamma: float, coef0: float, degree: int, X, dtype=np.float32) -> Kernel:
    """The kernel object that parameters stand for, for training data X."""
    if callable(kernel):
        return FunctionKernel(getattr(kernel, "__name__", "user function"), kernel, dtype)
    if kernel == "precomputed":
        return PrecomputedKernel(dtype=dtype)
    if kernel in ("laplacian", "chi2"):
        function = {"laplacian": laplacian_kernel, "chi2": chi2_kernel}[kernel]
        return FunctionKernel(kernel, partial(function, gamma=gamma), dtype, given=False)
    if kernel in ("rbf", "poly", "sigmoid"):
        share = _share_of_nonzeros(X)
        compressed = share < DENSE_FROM and not (kernel == "rbf" and _is_off_centre(X))
        cost = 2 + X.shape[1] * (share / 8 if compressed else 1 / 25)
        centre = None
        if kernel == "rbf" and not compressed:
            centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        parameters = (kernel, float(gamma), float(coef0), int(degree), dtype)
        return DotKernel(*parameters, compressed, centre, cost)
    raise ValueError(
        f"kernel={kernel!r} is not known. Use one of {', '.join(KERNELS)} or a function K(X, Z)."
    )


def _norms(rows, products: Callable) -> np.ndarray:
    """Squared norms by the sums that inner products use.

    Equal compressed rows are then at distance exactly 0; equal dense rows are wherever BLAS adds
    a block's products in the same order.
    """
    norms = np.empty(len(rows), dtype=rows.norms.dtype)
    for begin in range(0, len(rows), _core.PANEL):
        part = rows[begin : begin + _core.PANEL]
        out = np.empty((len(part), len(part)), dtype=norms.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # `_finite` names the row
            products(part, out)
        norms[begin : begin + _core.PANEL] = np.diag(out)
    return norms


def _finite(rows):
    """Refuse rows whose norms overflow: every distance would be wrong."""
    bad = np.flatnonzero(~np.isfinite(rows.norms))
    if len(bad):
        raise ValueError(
            f"Row {bad[0]} is too large for {rows.norms.dtype} arithmetic: its squared norm "
            "overflows. Scale the features first."
        )
    return rows


def squared_norms(X) -> np.ndarray:
    """In double precision, without a copy of dense data."""
    if sp.issparse(X):
        X = sp.csr_array(X)
        squares = sp.csr_array((np.square(X.data, dtype=np.float64), X.indices, X.indptr), X.shape)
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64, casting="unsafe")


def weighted_variance(X, share: np.ndarray) -> float:
    """Variance of all values, rows weighted by ``share``, without cancellation."""
    mean = float(share @ np.asarray(X.mean(axis=1, dtype=np.float64)).ravel())
    total = 0.0
    for begin in range(0, X.shape[0], _VARIANCE_ROWS):
        part, own = X[begin : begin + _VARIANCE_ROWS], share[begin : begin + _VARIANCE_ROWS]
        part = part.toarray() if sp.issparse(part) else part
        total += float(own @ np.square(part - mean).mean(axis=1))
    return total if total > 1e-24 * mean**2 else 0.0  # constant, but for rounding


def _is_off_centre(X) -> bool:
    """Whether distances between rows are small against their norms, so that they would cancel."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    spread = float(squared_norms(X).mean()) - float(mean @ mean)
    return float(mean @ mean) > OFF_CENTRE * spread


def _share_of_nonzeros(X) -> float:
    stored = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return stored / max(X.shape[0] * X.shape[1], 1)
