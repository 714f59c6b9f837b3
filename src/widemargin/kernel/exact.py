"""Training rows in double precision, prepared when a kernel value is asked for.

The certificate of a fit in single precision needs double-precision kernel values of few rows at a
time; a second copy of all rows would take twice the memory of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.kernel.kernels import Kernel, WrappedKernel
from widemargin.kernel.rows import Rows


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
        exact = cls(PreparingKernel(double), UnpreparedRows(double, X, present))
        return cls(kernel, rows, exact)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which) -> KernelRows:
        exact = None if self.exact is None else self.exact[which]
        return replace(self, rows=self.rows[which], exact=exact)

    def in_double(self) -> KernelRows:
        """Prepared in double precision, to solve with."""
        if self.kernel.dtype == np.float64 and not isinstance(self.rows, UnpreparedRows):
            return self
        assert self.exact is not None
        return KernelRows(self.exact.rows.kernel, self.exact.rows.prepared(), self.exact)
