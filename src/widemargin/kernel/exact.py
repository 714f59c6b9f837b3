"""Training rows in double precision, for the certificate of a fit in single precision.

Large data are prepared a few rows at a time, when kernel values are asked for: a second copy of all
rows would take twice the memory of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.kernel.kernels import Kernel, ShiftedKernel, WrappedKernel
from widemargin.kernel.rows import Rows

COPIED = 256 << 20  # bytes, up to which all rows are prepared at once


@dataclass(frozen=True)
class UnpreparedRows:
    """Some rows of the training data, by number."""

    kernel: Kernel
    X: Any
    number: np.ndarray

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, which) -> UnpreparedRows:
        return replace(self, number=self.number[which])

    def prepared(self) -> Any:
        return self.kernel.training_rows(self.X, self.number)

    def __reduce__(self):
        """Another process gets no other rows; a kernel matrix has all columns in any case."""
        if self.kernel.traits.pairwise:
            return UnpreparedRows, (self.kernel, self.X, self.number)
        return UnpreparedRows, (self.kernel, self.X[self.number], np.arange(len(self)))


@dataclass(frozen=True)
class PreparingKernel(WrappedKernel):
    """A kernel that takes `UnpreparedRows`."""

    kernel: Kernel

    def as_left(self, a: UnpreparedRows) -> Any:
        return self.kernel.as_left(a.prepared())

    def fill(self, a: Any, b: UnpreparedRows, out: np.ndarray) -> None:
        self.kernel.fill(a, b.prepared(), out)

    def diagonal(self, a: UnpreparedRows) -> np.ndarray:
        return self.kernel.diagonal(a.prepared())

    def vectors(self, a: UnpreparedRows, support: np.ndarray) -> Rows:
        prepared = a[support].prepared()
        return self.kernel.vectors(prepared, np.arange(len(prepared)))


@dataclass(frozen=True)
class KernelRows:
    """A kernel and the rows it takes, in the precision of a fit; ``exact`` has them in double.

    Where there is no ``exact``, what is found is a start for something else and needs no
    certificate.
    """

    kernel: Kernel
    rows: Any
    exact: KernelRows | None = None

    @classmethod
    def of_data(cls, kernel: Kernel, rows: Any, X, present: np.ndarray) -> KernelRows:
        """The rows of X that are present, prepared already in the precision of the fit."""
        double = kernel.in_double()
        if kernel.dtype == np.float64:
            return cls(kernel, rows, cls(double, rows))
        if 8 * _size(X) <= COPIED:
            return cls(kernel, rows, cls(double, double.training_rows(X, present)))
        return cls(kernel, rows, cls(PreparingKernel(double), UnpreparedRows(double, X, present)))

    def shifted(self, constant: float) -> KernelRows:
        """The same rows with the kernel of a model that has an intercept."""
        kernel, rows = ShiftedKernel(self.kernel, constant), self.rows
        exact = None if self.exact is None else self.exact.shifted(constant)
        if not isinstance(rows, UnpreparedRows):
            return KernelRows(kernel, rows, exact)
        own = ShiftedKernel(rows.kernel, constant)
        return KernelRows(PreparingKernel(own), replace(rows, kernel=own), exact)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which) -> KernelRows:
        exact = None if self.exact is None else self.exact[which]
        return replace(self, rows=self.rows[which], exact=exact)

    def diagonal(self) -> np.ndarray:
        """k(x, x), of rows in double precision where they are prepared."""
        copied = self.exact is not None and not isinstance(self.exact.rows, UnpreparedRows)
        best = self.exact if copied and self.exact is not None else self
        return best.kernel.diagonal(best.rows)

    def in_double(self) -> KernelRows:
        """Prepared in double precision, to solve with."""
        assert self.exact is not None
        kernel, rows = self.exact.kernel, self.exact.rows
        if isinstance(rows, UnpreparedRows):
            kernel, rows = rows.kernel, rows.prepared()
        return KernelRows(kernel, rows, self.exact)


def _size(X) -> int:
    """Values that are stored; of a sparse matrix, with their indices."""
    return int(2 * X.nnz if sp.issparse(X) else np.prod(np.shape(X)))
