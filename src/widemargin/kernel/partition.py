"""Clusters of rows, and the router that sends any row, old or new, to its cluster.

One rule assigns training rows and test rows alike.  Clusters above a size cap are split by adding
a centre, never by moving rows away from their nearest one, so the rule stays true; a centre that
attracts no row is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.kernel.kernels import Operand
from widemargin.kernel.solver import Threads, kernel_product

_ITERATIONS = 20
_SLACK = 2.0  # the cap, in units of the average size


@dataclass(frozen=True)
class Router:
    """Assigns a row to the nearest of ``k`` centres in the kernel's feature space.

    A centre is the mean of a few sampled rows, |phi(x) - c|^2 = k(x, x) - 2 k(x, S) m + const, with
    column c of ``members`` averaging the sample's rows of that cluster.
    """

    kernel: object
    sample: Operand
    members: np.ndarray  # (n_sample, k), columns sum to 1
    constants: np.ndarray  # (k,), squared norms of the centres

    @property
    def n_clusters(self) -> int:
        return self.members.shape[1]

    def assign(self, rows: Operand, threads: Threads) -> np.ndarray:
        inner = kernel_product(self.kernel, rows, self.sample, self.members, threads)
        return np.argmin(self.constants - 2 * inner, axis=1)


def kernel_kmeans(kernel, rows: Operand, k: int, rng: np.random.Generator, threads) -> Router:
    """Kernel k-means on a sample (step one of the paper's two), seeded as k-means++."""
    n = len(rows)
    gram = kernel_product(kernel, rows, rows, np.eye(n), threads)
    gram = (gram + gram.T) / 2
    diagonal = np.diag(gram)
    label = np.argmin(_distances_to_rows(gram, diagonal, _seed(gram, diagonal, k, rng)), axis=1)
    for _ in range(_ITERATIONS):
        members = _averages(label)
        constants = np.einsum("ic,ic->c", members, gram @ members)
        new = np.argmin(constants - 2 * gram @ members, axis=1)
        if np.array_equal(new, label):
            break
        label = np.unique(new, return_inverse=True)[1]  # a centre without rows is dropped
    members = _averages(label)
    return Router(kernel, rows, members, np.einsum("ic,ic->c", members, gram @ members))


def partition(
    kernel,
    rows: Operand,
    k: int,
    candidates: np.ndarray,
    sample_size: int,
    rng: np.random.Generator,
    threads: Threads,
) -> tuple[Router, np.ndarray]:
    """Two-step kernel k-means: cluster a sample of the candidates, then assign every row.

    Returns the router and the cluster of each row.
    """
    size = min(max(sample_size, 2 * k), len(candidates))
    sample = np.sort(rng.choice(candidates, size, replace=False))
    router = kernel_kmeans(kernel, rows[sample], min(k, size), rng, threads)
    label = router.assign(rows, threads)
    cap = _SLACK * len(rows) / k
    for _ in range(8):
        crowded = np.flatnonzero(np.bincount(label, minlength=router.n_clusters) > cap)
        split = [c for c in crowded if np.count_nonzero(router.members[:, c]) > 1]
        if not split:
            break
        router = _split(router, split, rng, threads)
        label = router.assign(rows, threads)
    return _without_empty(router, label)


def _split(router: Router, clusters, rng, threads) -> Router:
    """Two centres in place of one, for each of the given clusters."""
    columns = [router.members[:, c] for c in range(router.n_clusters) if c not in clusters]
    for c in clusters:
        own = np.flatnonzero(router.members[:, c])
        halves = kernel_kmeans(router.kernel, router.sample[own], 2, rng, threads)
        for h in range(halves.n_clusters):
            column = np.zeros(len(router.members))
            column[own] = halves.members[:, h]
            columns.append(column)
    members = np.stack(columns, axis=1)
    inner = kernel_product(router.kernel, router.sample, router.sample, members, threads)
    return Router(router.kernel, router.sample, members, np.einsum("ic,ic->c", members, inner))


def _without_empty(router: Router, label: np.ndarray) -> tuple[Router, np.ndarray]:
    used, dense = np.unique(label, return_inverse=True)
    members, constants = router.members[:, used], router.constants[used]
    return Router(router.kernel, router.sample, members, constants), dense


def _seed(gram, diagonal, k, rng) -> list[int]:
    """k-means++ in feature space."""
    chosen = [int(rng.integers(len(gram)))]
    nearest = diagonal + diagonal[chosen[0]] - 2 * gram[:, chosen[0]]
    while len(chosen) < k:
        weight = np.maximum(nearest, 0)
        if weight.sum() <= 0:
            break  # fewer distinct rows than clusters
        chosen.append(int(rng.choice(len(gram), p=weight / weight.sum())))
        nearest = np.minimum(
            nearest, diagonal + diagonal[chosen[-1]] - 2 * gram[:, chosen[-1]]
        )
    return chosen


def _distances_to_rows(gram, diagonal, chosen) -> np.ndarray:
    return diagonal[chosen] - 2 * gram[:, chosen]


def _averages(label: np.ndarray) -> np.ndarray:
    members = np.zeros((len(label), label.max() + 1))
    members[np.arange(len(label)), label] = 1.0
    return members / np.maximum(members.sum(axis=0), 1.0)


def across_mass(
    kernel, rows: Operand, label: np.ndarray, rng: np.random.Generator, threads, size: int = 1000
) -> float:
    """Estimate of D(pi) = sum of |k(x_i, x_j)| over pairs in different clusters (Theorem 1)."""
    sample = rng.choice(len(rows), min(size, len(rows)), replace=False)
    gram = np.abs(kernel_product(kernel, rows[sample], rows[sample], np.eye(len(sample)), threads))
    across = label[sample][:, None] != label[sample][None, :]
    return float(gram[across].sum() * (len(rows) / len(sample)) ** 2)


