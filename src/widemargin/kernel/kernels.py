"""Kernels k(X, Z) on blocks of rows: one matrix product and a fused finish.

A kernel prepares each data set once (`operand`) and then fills blocks of kernel values from two
operands; nothing here ever forms a whole n-by-n matrix.  Values are float32, which is what the
memory and the matrix product are sized for, or float64 for tight tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel

from widemargin import _core

KERNELS = ("rbf", "poly", "sigmoid", "laplacian", "chi2", "precomputed")
DENSE_FROM = 0.1  # stored share above which sparse rows are made dense: the product is faster
_MOST_DENSE_ROWS = 1 << 26  # values of a block of sparse rows that is made dense


class Rows(Protocol):
    """Rows as a kernel wants them; an index array or a slice selects some."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows) -> Any: ...


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

    Distances are |a|^2 + |b|^2 - 2ab, so dense data of the rbf kernel is centred first (distances
    do not change, cancellation does) and the difference is clamped at zero.  The exponential is
    right to 3e-7 in single precision.
    """

    name: str
    gamma: float
    coef0: float = 0.0
    degree: int = 3
    dtype: type = np.float32
    centre: np.ndarray | None = None

    def operand(self, X, *, training: bool = False) -> Operand:
        if sp.issparse(X):
            X = sp.csr_array(X, dtype=self.dtype)
            if X.nnz >= DENSE_FROM * X.shape[0] * X.shape[1]:
                X = X.toarray()
        if sp.issparse(X):
            return Operand(X, np.asarray(X.multiply(X).sum(axis=1), dtype=self.dtype).ravel())
        X = np.asarray(X)
        X = np.ascontiguousarray(X if self.centre is None else X - self.centre, dtype=self.dtype)
        return Operand(X, np.einsum("ij,ij->i", X, X))

    def left(self, a: Operand) -> Operand:
        """Sparse rows become the columns of a dense matrix, where that is not too large."""
        if not sp.issparse(a.data) or a.data.shape[0] * a.data.shape[1] > _MOST_DENSE_ROWS:
            return a
        return Operand(np.ascontiguousarray(a.data.toarray().T), a.norms)

    def fill(self, a: Operand, b: Operand, out: np.ndarray) -> None:
        if not sp.issparse(b.data):
            np.matmul(a.data, b.data.T, out=out)
        elif sp.issparse(a.data):
            out[...] = (a.data @ b.data.T).toarray()
        else:
            out[...] = (b.data @ a.data).T
        _core.finish_block(out, a.norms, b.norms, self.name, self.gamma, self.coef0, self.degree)

    def diagonal(self, a: Operand) -> np.ndarray:
        if self.name == "rbf":
            return np.ones(len(a))
        inner = self.gamma * a.norms.astype(np.float64) + self.coef0
        return inner**self.degree if self.name == "poly" else np.tanh(inner)

    def vectors(self, a: Operand, support: np.ndarray) -> Operand:
        return a[support]


@dataclass(frozen=True)
class FunctionKernel:
    """Any function K(X, Z) -> (len(X), len(Z)), checked for shape and finiteness."""

    name: str
    function: Callable
    dtype: type = np.float32

    def operand(self, X, *, training: bool = False) -> Operand:
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


@dataclass(frozen=True)
class ShiftedKernel:
    """k + constant: the kernel of a model with a penalised intercept."""

    kernel: Kernel
    constant: float

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def dtype(self) -> type:
        return self.kernel.dtype

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
        return FunctionKernel(kernel, lambda X, Z: function(X, Z, gamma=gamma), dtype)
    if kernel in ("rbf", "poly", "sigmoid"):
        centred = kernel == "rbf" and not sp.issparse(X)
        centre = np.asarray(X).mean(axis=0, dtype=np.float64) if centred else None
        return DotKernel(kernel, float(gamma), float(coef0), int(degree), dtype, centre)
    raise ValueError(
        f"kernel={kernel!r} is not known. Use one of {', '.join(KERNELS)} or a function K(X, Z)."
    )
