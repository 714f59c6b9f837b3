"""Divide and conquer (DC-SVM, Algorithm 1): clusters, then fewer and larger ones, then the whole.

At level l the rows are partitioned into branching^l clusters, each solved on its own from the
variables of the level below.  The centres of every level but the lowest are sampled from the
support vectors found so far (adaptive clustering).  Before the whole problem, the solution is
refined on the support vectors alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin.engine import Stop, run_tasks
from widemargin.kernel.kernels import Operand
from widemargin.kernel.partition import Router, across_mass, partition
from widemargin.kernel.rows import Threads
from widemargin.kernel.solver import Solution, solve

LOCAL_TOL = 1e-2  # relative gap of the clusters below the level that is kept


@dataclass
class Level:
    """What one level did."""

    level: int
    n_clusters: int
    largest: int
    seconds_clustering: float
    seconds_training: float
    n_support: int
    across_mass: float
    local_gap: float  # largest relative gap of a cluster's own problem


@dataclass
class Divided:
    """The result: dual variables, the records, and where they stop before the whole problem."""

    alpha: np.ndarray
    levels: list[Level] = field(default_factory=list)
    router: Router | None = None  # of an early model
    label: np.ndarray | None = None
    solution: Solution | None = None  # of the whole problem


def divide_and_conquer(
    kernel,
    rows: Operand,
    y: np.ndarray,
    upper: np.ndarray,
    *,
    levels: int,
    branching: int,
    sample_size: int,
    early: int | None,
    tol: float,
    max_iter: int,
    cache_bytes: float,
    n_jobs: int | None,
    n_threads: int,
    rng: np.random.Generator,
    alpha: np.ndarray | None = None,
    on_step: Callable[[], bool] = lambda: False,
) -> Divided:
    """Solve level by level; stop at level ``early`` if it is given."""
    n = len(y)
    result = Divided(np.zeros(n) if alpha is None else np.clip(alpha, 0, upper))
    for level in range(levels, 0, -1):
        keep = early == level
        router, label = _run_level(
            result, kernel, rows, y, upper, level, branching, sample_size,
            tol if keep else max(tol, LOCAL_TOL), max_iter, cache_bytes, n_jobs, n_threads, rng,
        )  # fmt: skip
        if keep:
            result.router, result.label = router, label
            return result
    whole: dict[str, Any] = {
        "max_iter": max_iter,
        "cache_bytes": cache_bytes,
        "n_threads": n_threads,
        "on_step": on_step,
    }
    result.solution = solve(kernel, rows, y, upper, alpha=result.alpha, tol=tol, **whole)
    result.alpha = result.solution.alpha
    return result


def _run_level(
    result, kernel, rows, y, upper, level, branching, sample_size, tol, max_iter, cache_bytes,
    n_jobs, n_threads, rng,
) -> tuple[Router, np.ndarray]:  # fmt: skip
    started = time.perf_counter()
    support = np.flatnonzero(result.alpha)
    k = branching**level
    candidates = support if len(support) >= 2 * k else np.arange(len(y))
    with Threads(n_threads) as threads:
        router, label = partition(kernel, rows, k, candidates, sample_size, rng, threads)
        mass = across_mass(kernel, rows, label, rng, threads)
    clustered = time.perf_counter()

    def train(cluster: int, stop: Stop) -> Solution:
        stop.check()
        own = members[cluster]

        def cancelled() -> bool:
            stop.check()
            return False

        return solve(
            kernel, rows[own], y[own], upper[own], alpha=result.alpha[own], tol=tol,
            max_iter=max_iter, cache_bytes=cache_bytes, on_step=cancelled,
        )  # fmt: skip

    order = np.argsort(label, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(label))[:-1])
    largest_first = sorted(range(len(members)), key=lambda c: (-len(members[c]), c))
    solved = run_tasks(train, [(c,) for c in largest_first], n_jobs)
    for cluster, solution in zip(largest_first, solved, strict=True):
        result.alpha[members[cluster]] = solution.alpha
    result.levels.append(
        Level(
            level=level,
            n_clusters=len(members),
            largest=max(len(m) for m in members),
            seconds_clustering=clustered - started,
            seconds_training=time.perf_counter() - clustered,
            n_support=int(np.count_nonzero(result.alpha)),
            across_mass=mass,
            local_gap=max(s.relative_gap for s in solved),
        )
    )
    return router, label
