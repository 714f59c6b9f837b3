"""Training rows in double precision, for the certificate of a fit in single precision.

Large data are prepared a few rows at a time: a second copy of all rows would take twice the memory
of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.kernel.kernels import Kernel
from widemargin.kernel.lazy_rows import LazyRows, chosen, in_memory, taken
from widemargin.stored import StoredMatrix

COPIED = 256 << 20  # bytes, up to which all rows are prepared at once


@dataclass(frozen=True)
class KernelRows:
    """A kernel and the rows it takes, in the precision of a fit; ``exact`` has them in double.

    Without ``exact``, the solution is only a start for another problem and needs no certificate.
    """

    kernel: Kernel
    rows: Any
    exact: KernelRows | None = None

    @classmethod
    def of_data(cls, kernel: Kernel, rows: Any, X, present: np.ndarray) -> KernelRows:
        """Return the present rows of X, already prepared in the precision of the fit."""
        double = kernel.in_double()
        if kernel.dtype == np.float64:
            return cls(kernel, rows, cls(double, rows))
        lazily = isinstance(X, StoredMatrix) or 8 * _size(X) > COPIED
        if lazily and not kernel.traits.pairwise:  # a kernel matrix is never copied
            return cls(kernel, rows, cls(double, LazyRows(double, X, present)))
        return cls(kernel, rows, cls(double, double.training_rows(X, present)))

    def regrouped(self, label: np.ndarray, *, shared: bool = False) -> KernelRows:
        """Copy rows on disk so that each cluster is contiguous; return rows in memory unchanged.

        A ``shared`` copy can be read by other processes.
        """
        if not (isinstance(self.rows, LazyRows) and self.rows.stored):
            return self
        rows, exact = self.rows.regrouped(label, shared=shared), self.exact
        if exact is not None:
            known = rows.known if exact.rows.kernel.dtype == rows.kernel.dtype else None
            lazy = replace(rows, kernel=exact.rows.kernel, known=known)
            exact = replace(exact, rows=lazy)
        return replace(self, rows=rows, exact=exact)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which) -> KernelRows:
        return self._of(itemgetter(which))

    def chosen(self, which) -> KernelRows:
        """Select rows; those on disk are read later, by `taken`, in any process."""
        return self._of(lambda rows: chosen(rows, which))

    def taken(self) -> KernelRows:
        """Read rows on disk, unless they are too many for memory."""
        return self._of(taken)

    def _of(self, some: Callable[[Any], Any]) -> KernelRows:
        rows, exact = some(self.rows), self.exact
        if exact is not None:  # it may have the same rows
            same = exact.rows is self.rows
            exact = KernelRows(exact.kernel, rows, exact.exact) if same else exact._of(some)
        return KernelRows(self.kernel, rows, exact)

    def diagonal(self) -> np.ndarray:
        """k(x, x), from rows in double precision if they are prepared."""
        copied = self.exact is not None and not isinstance(self.exact.rows, LazyRows)
        best = self.exact if copied and self.exact is not None else self
        return best.kernel.diagonal(best.rows)

    def in_memory(self) -> KernelRows:
        """Prepare all rows, however many they are."""
        return KernelRows(self.kernel, in_memory(self.rows), self.exact)

    def in_double(self) -> KernelRows:
        """Return the rows prepared in double precision, for solving; many rows stay on disk."""
        assert self.exact is not None
        rows = self.exact.rows
        if isinstance(rows, LazyRows) and not rows.many:
            rows = rows.prepared()
        return KernelRows(self.exact.kernel, rows, self.exact)


def _size(X) -> int:
    """Return the bytes of the stored values, with their indices if sparse."""
    return 2 * X.nnz if sp.issparse(X) else math.prod(X.shape)
