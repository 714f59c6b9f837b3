"""A fitted kernel model: support vectors, coefficients, and the router of an early model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from widemargin.kernel.backend import Backend
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import Kernel
from widemargin.kernel.partition import Router
from widemargin.kernel.rows import Rows

COMBINATIONS = ("routed", "sum", "bcm")
_AT_ONCE = 1 << 26  # decision values


@dataclass(frozen=True)
class KernelModel:
    """Decision values sum_i coef_ic k(x, x_i) + intercept_c over the support vectors.

    Vectors of pairs of classes are sorted by class (see `Coefficients`).

    An early model has a ``router``, and ``cluster`` says which cluster each support vector is
    from.  Its ``combination`` of the clusters' models is "routed" (DC-SVM eq. 11: only the
    cluster that x belongs to), "sum" (eq. 10: all of them) or "bcm" (Tresp's Bayesian committee
    machine), the two that the paper compares with.
    """

    kernel: Kernel
    vectors: Rows
    coef: Coefficients
    intercept: np.ndarray  # (n_outputs,)
    router: Router | None = None
    cluster: np.ndarray | None = None
    combination: str = "routed"
    noise: float = 1.0  # variance of the committee's observations, 1 / C

    def decision(
        self, X, backend: Backend, finish: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> np.ndarray:
        """What ``finish`` makes of decision values.

        Some rows at a time: of many classes, pairs have too many values to keep those of all rows.
        """
        rows, step = self.kernel.prepare(X), max(1, _AT_ONCE // max(1, self.coef.n_outputs))
        with backend:
            if len(rows) <= step:
                return finish(self._outputs(rows, 0, backend))
            begins = range(0, len(rows), step)
            parts = (self._outputs(rows[b : b + step], b, backend) for b in begins)
            return np.concatenate([finish(part) for part in parts])

    def _outputs(self, rows: Rows, begin: int, backend: Backend) -> np.ndarray:
        """Decision values of rows, the first of which a message calls ``begin``."""
        if self.router is None or self.combination == "sum":
            scores = backend.product(self.kernel, rows, self.vectors, self.coef)
        elif self.combination == "routed":
            scores = self._routed(rows, backend)
        else:
            scores = self._committee(rows, backend)
        scores += self.intercept
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(bad):
            raise ValueError(
                f"Row {begin + bad[0]} is too large for this model: its decision values overflow "
                f"in {np.dtype(self.kernel.dtype).name} arithmetic."
            )
        return scores

    def _routed(self, rows: Rows, backend: Backend) -> np.ndarray:
        """Rows grouped by cluster, one blocked product each."""
        assert self.router is not None
        scores = np.zeros((len(rows), self.coef.n_outputs))
        label = self.router.assign(rows, backend)
        for c in np.unique(label):
            asked, own = np.flatnonzero(label == c), np.flatnonzero(self.cluster == c)
            if len(own):
                scores[asked] = backend.product(
                    self.kernel, rows[asked], self.vectors[own], self.coef[own]
                )
        return scores

    def _committee(self, rows: Rows, backend: Backend) -> np.ndarray:
        """Every cluster's decision, weighted by how certain it is.

        A cluster's certainty at x is the inverse posterior variance of a Gaussian process with
        this kernel, its support vectors and noise 1 / C.  The prior, counted once per member, is
        taken off again (Tresp 2000, eq. 13).  Costs the cube of a cluster's support vectors.
        """
        assert self.cluster is not None
        prior = 1 / np.maximum(self.kernel.diagonal(rows), 1e-12)
        members = np.unique(self.cluster)
        weighted = np.zeros((len(rows), self.coef.n_outputs))
        total = -(len(members) - 1) * prior
        for c in members:
            own = np.flatnonzero(self.cluster == c)
            vectors = self.vectors[own]
            gram = backend.product(self.kernel, vectors, vectors, np.eye(len(own)))
            factor = cho_factor((gram + gram.T) / 2 + self.noise * np.eye(len(own)))
            cross = backend.product(self.kernel, rows, vectors, np.eye(len(own)))
            explained = np.einsum("ij,ji->i", cross, cho_solve(factor, cross.T))
            certainty = 1 / np.maximum(1 / prior - explained, 1e-12)
            weighted += certainty[:, None] * self.coef[own].applied(cross)
            total += certainty
        return weighted / total[:, None]
