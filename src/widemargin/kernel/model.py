"""A fitted kernel model: support vectors, coefficients, and the router of an early model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.kernel.kernels import Kernel, Operand
from widemargin.kernel.partition import Router
from widemargin.kernel.rows import Threads, kernel_product


@dataclass(frozen=True)
class KernelModel:
    """Decision values sum_i coef_ic k(x, x_i) + intercept_c over the support vectors.

    With a ``router`` (an early model) the sum runs over the support vectors of the cluster that x
    is routed to, DC-SVM eq. 11; ``cluster`` says which cluster each support vector belongs to.
    """

    kernel: Kernel
    vectors: Operand
    coef: np.ndarray  # (n_support, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    router: Router | None = None
    cluster: np.ndarray | None = None

    def decision(self, X, n_threads: int) -> np.ndarray:
        rows = self.kernel.operand(X)
        with Threads(n_threads) as threads:
            if self.router is None or self.cluster is None:
                scores = kernel_product(self.kernel, rows, self.vectors, self.coef, threads)
            else:
                scores = self._routed(rows, threads)
        return scores + self.intercept

    def _routed(self, rows: Operand, threads: Threads) -> np.ndarray:
        """Rows grouped by cluster, one blocked product each."""
        assert self.router is not None
        scores = np.zeros((len(rows), self.coef.shape[1]))
        label = self.router.assign(rows, threads)
        for c in np.unique(label):
            asked, own = np.flatnonzero(label == c), np.flatnonzero(self.cluster == c)
            if len(own):
                scores[asked] = kernel_product(
                    self.kernel, rows[asked], self.vectors[own], self.coef[own], threads
                )
        return scores
