"""What a level of clusters did, and how near that is to the solution of the whole (DC-SVM, sec. 3).

Theorem 1 bounds the distance of a level's variables to the optimum by C^2 D(pi) / 2, where D(pi) is
the sum of |k| over pairs of rows in different clusters, and Theorem 3 by the same over support
vectors alone.  Both take the clusters' own problems to be solved; the gap that is left is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from widemargin.kernel.backend import Backend
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.kernels import Kernel
from widemargin.kernel.problem import gap_terms, gradient_of, turned_cost
from widemargin.kernel.problems import Variables

COUPLING_SAMPLE = 1000
_TILE = 2048


@dataclass(frozen=True)
class Level:
    """What one level did; the whole problem, where there is one, is level 0.

    Attributes
    ----------
    level, n_clusters, sizes
        The number of the level, its clusters and how many rows each holds.
    seconds_clustering, seconds_training : float
    objective : float
        Dual objective of the clusters' own problems (Lemma 1: with the kernel cut between
        clusters), summed over the binary problems.
    gap : float
        Largest relative duality gap of a cluster's own problem.
    n_support : int
        Rows that are support vectors of any binary problem.
    across_mass : float
        D(pi), the sum of |k| over pairs of rows in different clusters: an estimate from 1,000 rows,
        or with ``record_levels="exact"`` the sum over all pairs.
    whole_objective, precision, recall : float
        With ``record_levels``, of the first binary problem: the dual objective that the level's
        variables have in the whole problem; how many of its support vectors are final ones, and
        how many of those it found (NaN where there is no final solution).
    bound, support_bound : float
        Likewise, bounds on the distance of ``whole_objective`` to the optimum of the problem that
        the levels divide (the one without an intercept): C^2 D(pi) / 2 (Theorem 1), the same over
        rows that are support vectors here or in the final solution (Theorem 3), both plus the gap
        of the clusters' own problems.  As good as their D(pi): bounds with
        ``record_levels="exact"``, estimates else.
    alpha, label : ndarray or None
        With ``record_levels``, the variables of the first binary problem, and every row's cluster.
    """

    level: int
    n_clusters: int
    sizes: np.ndarray
    n_support: int
    seconds_clustering: float
    seconds_training: float
    objective: float
    gap: float
    across_mass: float
    whole_objective: float = float("nan")
    bound: float = float("nan")
    precision: float = float("nan")
    recall: float = float("nan")
    support_bound: float = float("nan")
    alpha: np.ndarray | None = field(default=None, repr=False)
    label: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Measurement:
    """How levels are measured: against which solution, and whether all pairs of rows count."""

    variables: Variables  # of the first binary problem
    final: np.ndarray | None  # its solution
    exact: bool
    seed: int
    backend: Backend

    def of(self, level: Level, data: KernelRows) -> Level:
        """Figures 1 and 2 of the paper, on the rows and the kernel of the level."""
        assert level.alpha is not None
        assert level.label is not None
        alpha, label, variables = level.alpha, level.label, self.variables
        data = data.in_double()
        support = np.flatnonzero(alpha)
        vectors = data.rows[variables.row[support]]
        coef = (alpha * variables.sign)[support]
        linear = variables.linear * alpha + turned_cost(alpha, variables.turn)
        with self.backend as backend:
            inner = backend.product(data.kernel, vectors, vectors, coef[:, None])[:, 0]
            slack = _own_gap(variables, alpha, label, data, backend)
            across = self._mass(data, label, np.arange(len(data)), level.level)
            among = float("nan")
            if self.final is not None:
                used = variables.row[(alpha != 0) | (self.final != 0)]
                among = self._mass(data, label, used, level.level)
        worst = 0.5 * float(variables.upper.max()) ** 2
        if variables.turn < np.inf:  # products of variables on two sides are as far apart again
            worst *= 2
        return replace(
            self._compared(level, support),
            across_mass=across if self.exact else level.across_mass,
            whole_objective=float(-linear.sum() - 0.5 * coef @ inner),
            bound=worst * across + slack,
            support_bound=worst * among + slack,
        )

    def _compared(self, level: Level, support: np.ndarray) -> Level:
        """With precision and recall."""
        if self.final is None:
            return level
        common = float(np.count_nonzero(self.final[support]))
        n_final = int(np.count_nonzero(self.final))
        return replace(
            level, precision=common / max(len(support), 1), recall=common / max(n_final, 1)
        )

    def _mass(self, data: KernelRows, label, used: np.ndarray, level: int) -> float:
        """D(pi) over some rows."""
        own, clusters = data[used], label[used]
        if self.exact:
            return _exact_mass(own, clusters)
        rng = np.random.default_rng([self.seed, level, 1])
        return across_mass(own.kernel, own.rows, clusters, rng, self.backend)


def across_mass(kernel: Kernel, rows, label, rng, backend, size: int = COUPLING_SAMPLE) -> float:
    """Estimate of D(pi) = sum of |k(x_i, x_j)| over pairs in different clusters (Theorem 1)."""
    sample, gram = sampled_gram(kernel, rows, rng, backend, size)
    across = label[sample][:, None] != label[sample][None, :]
    return float(gram[across].sum() * (len(rows) / max(len(sample), 1)) ** 2)


def sampled_gram(kernel, rows, rng, backend: Backend, size) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, and |k| on all pairs of them."""
    sample = np.sort(rng.choice(len(rows), min(size, len(rows)), replace=False))
    chosen = rows[sample]
    return sample, np.abs(backend.product(kernel, chosen, chosen, np.eye(len(sample))))


def _exact_mass(data: KernelRows, label: np.ndarray) -> float:
    """D(pi) over all pairs, a tile of the kernel matrix at a time."""
    kernel, total = data.kernel, 0.0
    for a in _tiles(len(data)):
        left = kernel.as_left(data.rows[a])
        for b in _tiles(len(data), a.start):
            values = np.empty((a.stop - a.start, b.stop - b.start), dtype=kernel.dtype)
            kernel.fill(left, data.rows[b], values)
            across = np.abs(values)[label[a][:, None] != label[b]].sum()
            total += float(across) * (1 if a.start == b.start else 2)
    return total


def _tiles(n: int, start: int = 0) -> Iterator[slice]:
    return (slice(begin, min(begin + _TILE, n)) for begin in range(start, n, _TILE))


def _own_gap(variables: Variables, alpha, label, data: KernelRows, backend: Backend) -> float:
    """Primal minus dual of the clusters' own problems, together."""
    cluster, total = label[variables.row], 0.0
    for c in np.unique(cluster):
        own = np.flatnonzero(cluster == c)
        problem = variables[own].problem(data)
        gradient = gradient_of(problem, alpha[own], np.arange(len(own)), backend)
        terms = gap_terms(alpha[own], gradient, problem.upper, problem.turn)
        total += float(terms.sum())
    return total
