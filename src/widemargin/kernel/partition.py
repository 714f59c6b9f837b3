"""Clusters of rows, and the router that sends any row to its cluster.

One rule assigns training rows and test rows.  A cluster above a size cap is split by adding a
centre, never by moving rows away from their nearest centre, so the rule holds; a centre without
rows is dropped.

Two routers: plain k-means in input space, and DC-SVM's two-step kernel k-means.  By default the
first is for kernels of distances (`Traits.by_distance`), where near rows are similar and kernel
values are not needed, and the second for every other kernel.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from widemargin.kernel.backend import Backend
from widemargin.kernel.kernels import EPSILON, Kernel
from widemargin.kernel.lazy_rows import in_memory
from widemargin.kernel.nearest import Nearest, Scores, nearest
from widemargin.kernel.precision import TINY, TO_DOUBLE, in_single, rounding
from widemargin.kernel.tiles import Tiles
from widemargin.resources import one_openmp_thread

CLUSTERINGS = ("auto", "kmeans", "kernel_kmeans", "plain_kernel_kmeans", "random")
_ITERATIONS = 20
_SLACK = 2.0  # the cap, in units of the average size
_ROUNDS = 20  # of splitting; clusters that still exceed the cap have identical rows
_PATIENCE, _SMALLER = 3, 0.9  # rounds in which the largest cluster must shrink by that factor
_SAMPLED_AT_ONCE = 64
_KMEANS_ROWS = 20  # sampled rows per centre of plain k-means, at least


class Router(Protocol):
    """Sends any row to its nearest centre."""

    @property
    def n_clusters(self) -> int: ...

    def assign(self, rows: Any, tiles: Tiles) -> np.ndarray: ...

    def scores(self, rows: Any, centres: slice, *, double: bool) -> Scores | None: ...

    def split(self, clusters: np.ndarray, rows: Any, label, rng, backend: Backend) -> Router:
        """Replace each of these centres by two new ones, behind the others."""
        ...

    def only(self, clusters: np.ndarray) -> Router: ...

    def in_double(self) -> Router:
        """Return the router for a model in double precision."""
        ...

    def pack(self) -> dict[str, np.ndarray]:
        """The arrays that a model file stores."""
        ...


@dataclass(frozen=True)
class PointRouter:
    """Centres in input space."""

    centres: np.ndarray  # (k, d), in the precision of the rows

    @property
    def n_clusters(self) -> int:
        return len(self.centres)

    def assign(self, rows: Any, tiles: Tiles) -> np.ndarray:
        return nearest(self, rows, tiles).label

    def scores(self, rows: Any, centres: slice, *, double: bool) -> Scores:
        points = self.centres[centres].astype(np.float64)
        squares = np.einsum("kd,kd->k", points, points)
        # of a score: rounded rows and centres, a sum of products, minus half a square
        share = (TO_DOUBLE if double else 1.0) * 1.01 * EPSILON
        largest = float(np.sqrt(squares.max(initial=0.0)))

        def bound(part: Any, highest: np.ndarray) -> np.ndarray:
            lengths = np.sqrt(1.01 * part.norms.astype(np.float64))
            error = share * ((part.n_terms + 8) * lengths * largest + 2 * largest**2)
            return error + part.n_terms * TINY

        left = rows.like(points if double else points.astype(np.float32))
        return Scores(
            (lambda part: part.in_double()) if double else (lambda part: part.in_single()),
            lambda left, part, out: left.fill(part, out),
            [(left, slice(None), None)],
            (squares / 2).astype(np.float64 if double else np.float32),
            bound,
        )

    def split(self, clusters, rows, label, rng, backend) -> PointRouter:
        kept = np.delete(self.centres, clusters, axis=0)
        new = [kept]
        for c in clusters:
            own = np.flatnonzero(label == c)
            sample = rng.choice(own, min(len(own), 2000), replace=False)
            new.append(_kmeans(in_memory(rows[np.sort(sample)]), 2, rng))
        return PointRouter(np.vstack(new))

    def only(self, clusters) -> PointRouter:
        return PointRouter(self.centres[clusters])

    def in_double(self) -> PointRouter:
        return PointRouter(self.centres.astype(np.float64))

    def pack(self) -> dict[str, np.ndarray]:
        return {"centres": self.centres}


def _kmeans(rows: Any, k: int, rng) -> np.ndarray:
    seed = int(rng.integers(np.iinfo(np.int32).max))
    k = min(k, len(rows))
    data = rows.matrix
    # Sums over several threads depend on their order; fewer clusters than asked are fine.
    with one_openmp_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans = KMeans(k, n_init=1, max_iter=_ITERATIONS, random_state=seed).fit(data)
    return np.ascontiguousarray(kmeans.cluster_centers_, dtype=data.dtype)


@dataclass(frozen=True)
class KernelRouter:
    """Centres in feature space, in the direction of the mean of some sampled rows (see
    `_comparable`).

    |phi(x) - c|^2 = k(x, x) - 2 k(x, S) m_c + const_c, with m_c a column of ``members``.
    """

    kernel: Kernel
    sample: Any
    members: np.ndarray  # (n_sample, k)
    constants: np.ndarray  # (k,), squared norms of the centres
    plain: bool = False  # whether centres are means of any norm; matters to `split`

    @property
    def n_clusters(self) -> int:
        return self.members.shape[1]

    def assign(self, rows: Any, tiles: Tiles) -> np.ndarray:
        return nearest(self, rows, tiles).label

    def scores(self, rows: Any, centres: slice, *, double: bool) -> Scores | None:
        """Return scores from a few sampled rows at a time; they are sorted by centre, so that most
        centres have none of them.  None too where single precision cannot hold the centres."""
        kernel = self.kernel.in_double() if double else in_single(self.kernel)
        if kernel is None:
            return None
        # A common offset does not change comparisons, and small scores are more precise.
        same = 1.0 if kernel.traits.by_distance else 0.0
        half_squares = (self.constants[centres] - same) / 2
        largest = float(np.abs(half_squares).max(initial=0.0))
        if largest > float(np.finfo(kernel.dtype).max):
            return None
        used = np.flatnonzero(self.members[:, centres].any(axis=1))
        sample = self.sample[used].in_double() if double else self.sample[used].in_single()
        members: np.ndarray = self.members[used, centres].astype(kernel.dtype)
        parts: list[tuple[Any, Any, np.ndarray | None]] = []
        for begin in range(0, len(used), _SAMPLED_AT_ONCE):
            part = slice(begin, begin + _SAMPLED_AT_ONCE)
            own = np.flatnonzero(members[part].any(axis=0))
            weights = np.ascontiguousarray(members[part, own].T)
            parts.append((kernel.as_left(sample[part]), own, weights))
        known = in_single(self.kernel)
        total = float(members.sum(axis=0, dtype=np.float64).max(initial=0.0))

        def bound(part: Any, highest: np.ndarray) -> np.ndarray:
            """Return the error bound; kernel values of distances are positive, so inner products
            are their sums."""
            if known is None:  # then double precision decides
                return np.zeros(len(part))
            relative, absolute = rounding(known, part, sample, len(used) + 8)
            error = relative * np.maximum(highest + largest, 0.0) + absolute * total
            return (TO_DOUBLE if double else 1.0) * (error + 4 * EPSILON * largest)

        return Scores(
            (lambda part: part.in_double()) if double else (lambda part: part.in_single()),
            kernel.fill,
            parts,
            half_squares.astype(kernel.dtype),
            bound,
        )

    def by_centre(self) -> KernelRouter:
        """Return the same router with the sampled rows of a centre contiguous."""
        order = np.argsort(self.members.argmax(axis=1), kind="stable")
        return replace(self, sample=self.sample[order], members=self.members[order])

    def split(self, clusters, rows, label, rng, backend) -> KernelRouter:
        members = [np.delete(self.members, clusters, axis=1)]
        constants = [np.delete(self.constants, clusters)]
        for c in clusters:
            own = np.flatnonzero(self.members[:, c])
            halves = kernel_kmeans(self.kernel, self.sample[own], 2, rng, backend, plain=self.plain)
            columns = np.zeros((len(self.members), halves.n_clusters))
            columns[own] = halves.members
            members.append(columns)
            constants.append(halves.constants)
        return replace(self, members=np.hstack(members), constants=np.concatenate(constants))

    def only(self, clusters) -> KernelRouter:
        return replace(self, members=self.members[:, clusters], constants=self.constants[clusters])

    def in_double(self) -> KernelRouter:
        return replace(self, kernel=self.kernel.in_double(), sample=self.sample.in_double())

    def pack(self) -> dict[str, np.ndarray]:
        sample = {f"sample.{name}": array for name, array in self.sample.pack().items()}
        return {"members": self.members, "constants": self.constants, **sample}


def kernel_kmeans(
    kernel, rows: Any, k: int, rng, backend: Backend, *, plain: bool = False
) -> KernelRouter:
    """Run kernel k-means on a sample, seeded as k-means++; drop empty clusters."""
    double = rows.in_double()
    gram = backend.product(kernel.in_double(), double, double, np.eye(len(rows)))
    gram = (gram + gram.T) / 2
    diagonal = np.diag(gram)
    chosen = _seed(gram, diagonal, k, rng)
    label = np.argmin(diagonal[chosen] - 2 * gram[:, chosen], axis=1)
    unit = kernel.traits.by_distance and not plain
    for _ in range(_ITERATIONS):
        members = _averages(label)
        _, products, squares = _comparable(members, gram @ members, unit=unit)
        new = np.argmin(squares - 2 * products, axis=1)
        new = np.unique(new, return_inverse=True)[1]
        if np.array_equal(new, label):
            break
        label = new
    members = _averages(label)
    members, _, squares = _comparable(members, gram @ members, unit=unit)
    return KernelRouter(kernel, rows, members, squares, plain)


def _comparable(
    members: np.ndarray, products: np.ndarray, *, unit: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return centres, their inner products with sampled rows, and their squared norms.

    If all rows have norm 1 (kernels of distances), so have centres, unless plain means are asked
    for, as in DC-SVM.  A mean of dissimilar rows is near 0, which is nearer than any other centre
    to all rows that resemble none: with a narrow kernel most rows would be in one cluster, though
    k-means gains nothing by it.
    """
    squares = np.einsum("ic,ic->c", members, products)
    if not unit:
        return members, products, squares
    norms = np.sqrt(squares)
    return members / norms, products / norms, np.ones(len(norms))


def _seed(gram, diagonal, k, rng) -> list[int]:
    chosen = [int(rng.integers(len(gram)))]
    nearest = diagonal + diagonal[chosen[0]] - 2 * gram[:, chosen[0]]
    while len(chosen) < k and nearest.max() > 0:
        weight = np.maximum(nearest, 0)
        chosen.append(int(rng.choice(len(gram), p=weight / weight.sum())))
        to_new = diagonal + diagonal[chosen[-1]] - 2 * gram[:, chosen[-1]]
        nearest = np.minimum(nearest, to_new)
    return chosen


def _averages(label: np.ndarray) -> np.ndarray:
    label = np.unique(label, return_inverse=True)[1]
    members = np.zeros((len(label), label.max() + 1))
    members[np.arange(len(label)), label] = 1.0
    return members / members.sum(axis=0)


def partition(
    kernel: Kernel,
    rows: Any,
    k: int,
    candidates: np.ndarray,
    sample_size: int,
    rng: np.random.Generator,
    backend: Backend,
    clustering: str = "auto",
) -> tuple[Router | None, np.ndarray]:
    """Cluster a sample of the candidate rows, then assign every row.

    Returns the router and the cluster of each row.  There can be more than k clusters (large ones
    are split) or fewer (if too few rows are distinct).  A random partition has even clusters and no
    router, because it cannot assign other rows.
    """
    if clustering == "random":
        return None, np.unique(rng.permutation(len(rows)) % k, return_inverse=True)[1]
    points = kernel.traits.by_distance if clustering == "auto" else clustering == "kmeans"
    size = min(max(sample_size, (_KMEANS_ROWS if points else 2) * k), len(candidates))
    sample = in_memory(rows[np.sort(rng.choice(candidates, size, replace=False))])
    router: Router
    if points:
        router = PointRouter(_kmeans(sample, k, rng))
    else:
        plain = clustering == "plain_kernel_kmeans"
        router = kernel_kmeans(kernel, sample, k, rng, backend, plain=plain).by_centre()
    found = backend.nearest(router, rows)
    largest: list[int] = []  # cluster, in each round
    for _ in range(_ROUNDS):
        router, found = _without_empty(router, found)
        sizes = np.bincount(found.label)
        crowded = np.flatnonzero(sizes > _SLACK * len(rows) / k)
        largest.append(int(sizes.max()))
        if len(crowded) == 0 or _in_vain(largest):
            break
        split = router.split(crowded, rows, found.label, rng, backend)
        if split.n_clusters == router.n_clusters:
            break
        kept = np.delete(np.arange(router.n_clusters), crowded)
        found = _renumbered(found, kept, router.n_clusters)
        router, found = split, backend.nearest(split, rows, found, len(kept))
    router, found = _without_empty(router, found)
    return router, found.label


def _in_vain(largest: list[int]) -> bool:
    """Whether splitting has not reduced the largest cluster for some rounds.

    Rows whose kernel values with all sampled rows are 0 (a very narrow kernel underflows) all go to
    one centre, and to the next one when that is split.
    """
    return len(largest) > _PATIENCE and largest[-1] > _SMALLER * largest[-1 - _PATIENCE]


def _without_empty(router: Router, found: Nearest) -> tuple[Router, Nearest]:
    used = np.flatnonzero(np.bincount(found.label, minlength=router.n_clusters))
    if len(used) == router.n_clusters:
        return router, found
    return router.only(used), _renumbered(found, used, router.n_clusters)


def _renumbered(found: Nearest, kept: np.ndarray, n_clusters: int) -> Nearest:
    """Renumber clusters by their position in ``kept``; rows of other clusters are in none."""
    place = np.full(n_clusters, -1)
    place[kept] = np.arange(len(kept))
    return replace(found, label=place[found.label])
