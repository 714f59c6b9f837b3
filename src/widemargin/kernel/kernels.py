"""Kernels k(X, Z) on blocks of rows: float32 values, one matrix product and a fused finish.

A kernel prepares each data set once (`operand`) and then fills blocks of kernel values from two
operands; nothing here ever forms a whole n-by-n matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel

from widemargin import _core

KERNELS = ("rbf", "poly", "sigmoid", "laplacian", "chi2", "precomputed")


@dataclass(frozen=True)
class Operand:
    """Rows as a kernel wants them: float32 data and, where it needs them, squared norms."""

    data: np.ndarray | sp.csr_array
    norms: np.ndarray

    def __len__(self) -> int:
        return self.data.shape[0]

    def __getitem__(self, rows) -> Operand:
        return Operand(self.data[rows], self.norms[rows])


class Kernel(Protocol):
    """What solver, partition and model ask of a kernel."""

    @property
    def name(self) -> str: ...

    def fitted(self, X) -> Kernel:
        """This kernel with what it learns from its training data."""
        ...

    def operand(self, X, *, training: bool = False) -> Operand:
        """Rows prepared for `fill`."""
        ...

    def fill(self, a: Operand, b: Operand, out: np.ndarray) -> None:
        """Write k(a, b) to ``out``, float32 with contiguous rows."""
        ...

    def diagonal(self, a: Operand) -> np.ndarray:
        """k(x, x) of every row."""
        ...


@dataclass(frozen=True)
class DotKernel:
    """Kernels of inner products: rbf, poly, sigmoid.

    Distances are |a|^2 + |b|^2 - 2ab, so dense data of the rbf kernel is centred first (distances
    do not change, cancellation does) and the difference is clamped at zero.
    """

    name: str
    gamma: float
    coef0: float = 0.0
    degree: int = 3
    centre: np.ndarray | None = None

    def fitted(self, X) -> DotKernel:
        if self.name != "rbf" or sp.issparse(X):
            return self
        centre = np.asarray(X).mean(axis=0, dtype=np.float64)
        return DotKernel(self.name, self.gamma, self.coef0, self.degree, centre)

    def operand(self, X, *, training: bool = False) -> Operand:
        if sp.issparse(X):
            data = sp.csr_array(X, dtype=np.float32)
            norms = np.asarray(data.multiply(data).sum(axis=1), dtype=np.float32).ravel()
            return Operand(data, norms)
        X = np.asarray(X)
        data = np.ascontiguousarray(X if self.centre is None else X - self.centre, dtype=np.float32)
        return Operand(data, np.einsum("ij,ij->i", data, data))

    def fill(self, a: Operand, b: Operand, out: np.ndarray) -> None:
        if sp.issparse(a.data) or sp.issparse(b.data):
            out[...] = (a.data @ b.data.T).toarray() if sp.issparse(b.data) else a.data @ b.data.T
        elif out.flags.c_contiguous:
            np.matmul(a.data, b.data.T, out=out)
        else:
            out[...] = a.data @ b.data.T
        _core.finish_block(out, a.norms, b.norms, self.name, self.gamma, self.coef0, self.degree)

    def diagonal(self, a: Operand) -> np.ndarray:
        if self.name == "rbf":
            return np.ones(len(a))
        dots = a.norms.astype(np.float64)
        inner = self.gamma * dots + self.coef0
        return inner**self.degree if self.name == "poly" else np.tanh(inner)


@dataclass(frozen=True)
class FunctionKernel:
    """Any function K(X, Z) -> (len(X), len(Z)), checked for shape and finiteness."""

    name: str
    function: Callable

    def fitted(self, X) -> FunctionKernel:
        return self

    def operand(self, X, *, training: bool = False) -> Operand:
        return Operand(X, np.zeros(X.shape[0], dtype=np.float32))

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
        out = np.empty((1, 1), dtype=np.float32)
        values = np.empty(len(a))
        for i in range(len(a)):
            self.fill(a[i : i + 1], a[i : i + 1], out)
            values[i] = out[0, 0]
        return values


@dataclass(frozen=True)
class PrecomputedKernel:
    """Kernel values given by the caller: the columns of every matrix are the training rows.

    In place of norms an operand holds the numbers of its rows among the training rows, or -1.
    """

    name: str = "precomputed"

    def fitted(self, X) -> PrecomputedKernel:
        return self

    def operand(self, X, *, training: bool = False) -> Operand:
        n = X.shape[0]
        return Operand(np.asarray(X), np.arange(n) if training else np.full(n, -1))

    def fill(self, a: Operand, b: Operand, out: np.ndarray) -> None:
        training = len(b) == 0 or b.norms[0] >= 0
        out[...] = a.data[:, b.norms] if training else b.data[:, a.norms].T

    def diagonal(self, a: Operand) -> np.ndarray:
        return a.data[np.arange(len(a)), a.norms].astype(np.float64)


def make_kernel(kernel, gamma: float, coef0: float, degree: int) -> Kernel:
    """The kernel object that parameters stand for."""
    if callable(kernel):
        return FunctionKernel(getattr(kernel, "__name__", "user function"), kernel)
    if kernel == "precomputed":
        return PrecomputedKernel()
    if kernel == "laplacian":
        return FunctionKernel("laplacian", lambda X, Z: laplacian_kernel(X, Z, gamma=gamma))
    if kernel == "chi2":
        return FunctionKernel("chi2", lambda X, Z: chi2_kernel(X, Z, gamma=gamma))
    if kernel in ("rbf", "poly", "sigmoid"):
        return DotKernel(kernel, float(gamma), float(coef0), int(degree))
    raise ValueError(
        f"kernel={kernel!r} is not known. Use one of {', '.join(KERNELS)} or a function K(X, Z)."
    )
