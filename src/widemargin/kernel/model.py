"""A fitted kernel model: support vectors, coefficients, and the router of an early model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from widemargin.kernel.backend import Backend
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import DotKernel, Kernel
from widemargin.kernel.partition import Router
from widemargin.kernel.precision import in_single
from widemargin.kernel.rows import RangeError, Rows
from widemargin.multiclass import Coding

COMBINATIONS = ("routed", "sum", "bcm")
_AT_ONCE = 1 << 26  # decision values
_FEW = 128  # rows for which a model in double precision is not converted
_SMALL = 1 << 24  # numbers in the support vectors, or coefficients of all outputs
_MANY, _PROBED = 1024, 64  # from this many rows on, a probe decides whether single precision pays


@dataclass(frozen=True)
class KernelModel:
    """Decision values sum_i coef_ic k(x, x_i) + intercept_c over the support vectors.

    Vectors of pairs of classes are sorted by class (see `Coefficients`).

    An early model has a ``router``, and ``cluster`` is the cluster of each support
    vector.  Its ``combination`` of the clusters' models is "routed" (DC-SVM eq. 11: only the
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
        """Apply ``finish`` to decision values, which have the kernel's precision."""
        with backend:
            rows = self.kernel.prepare(X)
            label, found = self._clusters(rows, backend), []
            for own in self._parts(len(rows)):
                outputs = self._outputs(rows[own], label[own], backend)
                found.append(finish(self._checked(outputs, own.start)))
            return found[0] if len(found) == 1 else np.concatenate(found)

    def scores(self, X, coding: Coding, backend: Backend) -> np.ndarray:
        """Return scores of classes; `classes` has the highest."""
        if X.shape[0] <= _FEW and self._small is not None:
            return coding.scores(self._of_few(X, backend))
        if self.kernel.dtype == np.float64 or self._single is None:
            return self.in_double().decision(X, backend, coding.scores)
        return self._certain(X, coding, backend)

    def classes(self, X, coding: Coding, backend: Backend) -> np.ndarray:
        """Return the index of each row's class, as in double precision."""
        few = X.shape[0] <= _FEW and (self.kernel.dtype == np.float64 or self._small is not None)
        scores = self.scores if few or self._single is None else self._certain
        return coding.classes(scores(X, coding, backend))

    @cached_property
    def _small(self) -> tuple[Kernel, Any, np.ndarray] | None:
        """Kernel, support vectors and coefficients for a few rows, in double precision.

        For a few rows, converting support vectors and bounding errors takes longer than computing
        in double precision; a model in double precision is not copied.
        """
        if self._single is None or self._is_routed:
            return None
        n, most = len(self.vectors), max(self.coef.n_outputs, self.vectors.n_terms)
        if n * most > _SMALL:
            return None
        double = self.in_double()
        return double.kernel, double.vectors, self.coef.dense()

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _of_few(self, X, backend: Backend) -> np.ndarray:
        """Return decision values of a small model in double precision."""
        assert self._small is not None
        kernel, vectors, coef = self._small
        with backend:
            rows = kernel.prepare(X)
            values = np.empty((len(rows), len(vectors)))
            kernel.fill(kernel.as_left(rows), vectors, values)
            with np.errstate(all="ignore"):  # the check names the row
                return self._checked(values @ coef + self.intercept, 0)

    @property
    def _is_routed(self) -> bool:
        return self.router is not None and self.combination == "routed"

    @property
    def _single(self) -> DotKernel | None:
        """Return the kernel in single precision if its errors are bounded; a committee's are
        not."""
        return None if self.router and self.combination == "bcm" else in_single(self.kernel)

    def in_double(self) -> KernelModel:
        if self.kernel.dtype == np.float64:
            return self
        return replace(self, kernel=self.kernel.in_double(), vectors=self.vectors.in_double())

    def _certain(self, X, coding: Coding, backend: Backend) -> np.ndarray:
        """Return scores of classes: in single precision, or in double if rounding could change the
        class.

        All are in double precision if half of a probe would be.
        """
        double, kernel = self.in_double(), self._single
        assert kernel is not None
        single = replace(self, kernel=kernel, vectors=self.vectors.in_single())
        with backend:
            try:
                rows = kernel.prepare(X)
            except RangeError:
                return double.decision(X, backend, coding.scores)
            own_rows = self.kernel.prepare(X) if self._is_routed else rows
            label, n, found = self._clusters(own_rows, backend), len(rows), []
            if n > _MANY:
                some = np.arange(0, n, n // _PROBED)
                probe = single._bounded(rows[some], label[some], backend)
                if coding.are_certain(*probe).mean() < 0.5:
                    return double.decision(X, backend, coding.scores)
            for own in self._parts(n):
                outputs, error = single._bounded(rows[own], label[own], backend)
                scores = coding.scores(outputs)
                again = own.start + np.flatnonzero(~coding.are_certain(outputs, error))
                if len(again):
                    asked = double.kernel.prepare(X[again])
                    outputs = double._outputs(asked, label[again], backend)
                    scores[again - own.start] = coding.scores(double._checked(outputs, again))
                found.append(scores)
            return found[0] if len(found) == 1 else np.concatenate(found)

    def _parts(self, n: int) -> list[slice]:
        """Yield some rows at a time, because pairs of many classes have too many values."""
        step = max(1, _AT_ONCE // max(1, self.coef.n_outputs))
        return [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]

    def _clusters(self, rows: Rows, backend: Backend) -> np.ndarray:
        """Return the cluster that each row is routed to; 0 without routing."""
        if not self._is_routed:
            return np.zeros(len(rows), dtype=np.int64)
        return backend.nearest(self.router, rows).label

    def _outputs(self, rows: Rows, label: np.ndarray, backend: Backend) -> np.ndarray:
        """Return decision values of rows in these clusters."""
        if self.router and self.combination == "bcm":
            return self._committee(rows, backend) + self.intercept
        outputs = np.tile(self.intercept, (len(rows), 1))
        for asked, vectors, coef in self._by_cluster(label):
            outputs[asked] += backend.product(self.kernel, rows[asked], vectors, coef)
        return outputs

    def _bounded(
        self, rows: Rows, label: np.ndarray, backend: Backend
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same in single precision, with error bounds."""
        outputs = np.tile(self.intercept, (len(rows), 1))
        error = np.zeros_like(outputs)
        for asked, vectors, coef in self._by_cluster(label):
            own = backend.bounded_product(self.kernel, rows[asked], vectors, coef)
            outputs[asked] += own[0]
            error[asked] = own[1]
        return outputs, error

    def _by_cluster(self, label: np.ndarray) -> Iterator[tuple[Any, Rows, Coefficients]]:
        """Yield the rows of each cluster with the support vectors for them."""
        if not self._is_routed:
            yield slice(None), self.vectors, self.coef
            return
        for c in np.unique(label):
            own = np.flatnonzero(self.cluster == c)
            if len(own):
                yield np.flatnonzero(label == c), self.vectors[own], self.coef[own]

    def _checked(self, outputs: np.ndarray, number: Any) -> np.ndarray:
        """Check that decision values are finite, for rows with these indices or from this one
        on."""
        bad = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
        if len(bad):
            row = number + bad[0] if np.isscalar(number) else number[bad[0]]
            raise ValueError(
                f"Row {row} is too large for this model: its decision values overflow "
                f"in {np.dtype(self.kernel.dtype).name} arithmetic."
            )
        return outputs

    def _committee(self, rows: Rows, backend: Backend) -> np.ndarray:
        """Return every cluster's decision, weighted by its certainty.

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
