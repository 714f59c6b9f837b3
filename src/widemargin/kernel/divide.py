"""Divide and conquer (DC-SVM, Algorithm 1): clusters, then fewer and larger ones, then the whole.

At level l the rows are partitioned into branching^l clusters, each solved on its own from the
variables of the level below.  The centres of every level but the lowest are sampled from the
support vectors found so far (adaptive clustering).  The whole problem starts on these support
vectors alone (refinement) and then takes in all others that matter.

All binary problems of a multi-class fit go through the levels together: they share each level's
partition, the router and the kernel rows of a cluster.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from widemargin.engine import Threads as TaskThreads
from widemargin.engine import run_tasks
from widemargin.kernel.checkpoint import NoCheckpoint
from widemargin.kernel.kernels import Kernel, Rows
from widemargin.kernel.partition import Router, partition
from widemargin.kernel.problems import Binary
from widemargin.kernel.rows import (
    SHARED_MEMORY,
    Memory,
    SharedRows,
    Threads,
    kernel_product,
    share_rows,
)
from widemargin.kernel.solver import Part, Solution, solve
from widemargin.progress import NoProgress, Progress
from widemargin.resources import one_blas_thread

LOCAL_TOL = 1e-2  # relative gap of the clusters below the level that is kept
AUTO_ROWS = 4000  # levels="auto": rows of a cluster at the lowest level, about
AUTO_COUPLING = 4.0  # levels="auto": no division where coupling times kernel cost is larger
COUPLING_SAMPLE = 1000


@dataclass(frozen=True)
class Plan:
    """How to divide and when to stop."""

    levels: int
    branching: int
    sample_size: int
    early: int | None
    tol: float
    max_iter: int
    cache_bytes: float
    n_jobs: int | None
    n_threads: int
    seed: int
    record: bool = False  # keep each level's variables and clusters


@dataclass
class Level:
    """What one level did.

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
        Estimate of D(pi), the sum of |k| over pairs in different clusters.
    whole_objective, bound, precision, recall : float
        With ``record_levels=True``, of the first binary problem: the dual objective that the
        level's variables have in the whole problem; Theorem 1's bound on its distance to the
        optimum; how many of its support vectors are final ones, and how many of those it found
        (NaN where there is no final solution).
    """

    level: int
    n_clusters: int
    sizes: np.ndarray
    seconds_clustering: float
    seconds_training: float
    objective: float
    gap: float
    n_support: int
    across_mass: float
    whole_objective: float = float("nan")
    bound: float = float("nan")
    precision: float = float("nan")
    recall: float = float("nan")
    alpha: np.ndarray | None = field(default=None, repr=False)
    label: np.ndarray | None = field(default=None, repr=False)


@dataclass
class Divided:
    """Where a fit stands: variables per problem, the last level, the solutions of the whole."""

    alphas: list[np.ndarray]
    levels: list[Level] = field(default_factory=list)
    router: Router | None = None
    label: np.ndarray | None = None
    solutions: list[Solution] = field(default_factory=list)
    n_iter: int = 0  # blocks of the slowest problem
    stopped: bool = False  # a callback or Ctrl-C asked for it

    def ask(self, task: Progress | NoProgress) -> bool:
        """Tell the callbacks of an epoch; whether any of them has asked to stop."""
        self.stopped |= task.epoch()
        return self.stopped


def divide_and_conquer(
    state: Divided,
    kernel: Kernel,
    rows: Rows,
    problems: list[Binary],
    plan: Plan,
    *,
    whole: tuple[Kernel, Rows],
    checkpoint=NoCheckpoint(),  # noqa: B008
    progress: Progress | NoProgress = NoProgress(),  # noqa: B008
    memory: Memory | None = None,
) -> None:
    """Solve level by level, to level ``plan.early`` or to the whole; ``state`` says how far it got.

    ``whole`` is the kernel, with its rows, of the whole problem.  It may differ: a penalised
    intercept would make all clusters alike, so the levels do without it.
    """
    for level in range(plan.levels, 0, -1):
        keep = plan.early == level
        tol = plan.tol if keep else max(plan.tol, LOCAL_TOL)
        _run_level(state, kernel, rows, problems, level, plan, tol, checkpoint, progress)
        if keep or state.stopped:
            break
    else:
        _run_whole(state, *whole, problems, plan, checkpoint, progress, memory or Memory())
    if plan.record:
        final = state.alphas[0] if state.solutions else None
        with Threads(plan.n_threads) as threads:
            for record in state.levels:
                _measure(record, kernel, rows, problems[0], final, plan, threads)


def _run_level(state, kernel, rows, problems, level, plan, tol, checkpoint, progress) -> None:
    """One pass of Algorithm 1's outer loop: partition the rows, solve every cluster."""
    started = time.perf_counter()
    router, label, mass = _clusters(state, kernel, rows, problems, level, plan)
    clustered = time.perf_counter()
    order = np.argsort(label, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(label))[:-1])
    at_once = min(plan.n_threads, len(members))
    task_plan = replace(
        plan,
        tol=tol,
        cache_bytes=plan.cache_bytes / at_once,
        n_threads=max(1, plan.n_threads // at_once),
    )
    memory = Memory()
    report = progress.task(f"level {level}", n=len(members), ordered=False)

    def train(cluster: int, control) -> list[Part]:
        control.check()
        name = f"level{level}-cluster{cluster}"
        stored = checkpoint.load(name)
        if stored is not None:
            return stored
        task = report.task(f"cluster {cluster}", cluster)

        def on_step() -> bool:
            control.check()
            return state.ask(task)

        own = members[cluster]
        parts = _solve_cluster(state, kernel, rows[own], own, problems, task_plan, memory, on_step)
        task.end()
        if not state.stopped:
            checkpoint.save(name, parts)
        return parts

    largest_first = sorted(range(len(members)), key=lambda c: (-len(members[c]), c))
    with one_blas_thread:  # set once for all clusters
        results = run_tasks(train, largest_first, TaskThreads(plan.n_jobs))
    report.end()
    for parts in results:
        for alpha, part in zip(state.alphas, parts, strict=True):
            alpha[part.at] = part.alpha
    every = [part for parts in results for part in parts]
    state.router, state.label = router, label
    state.n_iter = max([state.n_iter, *(part.n_iter for part in every)])
    state.levels.append(
        Level(
            level=level,
            n_clusters=len(members),
            sizes=np.bincount(label),
            seconds_clustering=clustered - started,
            seconds_training=time.perf_counter() - clustered,
            objective=float(sum(part.dual for part in every)),
            gap=max(part.gap for part in every),
            n_support=len(_support(state, problems, len(rows))),
            across_mass=mass,
            alpha=state.alphas[0].copy() if plan.record else None,
            label=label if plan.record else None,
        )
    )


def _clusters(state, kernel, rows, problems, level, plan) -> tuple[Router, np.ndarray, float]:
    """Centres from the support vectors so far, if there are enough; and an estimate of D(pi)."""
    rng = np.random.default_rng([plan.seed, level])
    k = plan.branching**level
    support = _support(state, problems, len(rows))
    candidates = support if len(support) >= 2 * k else np.arange(len(rows))
    with Threads(plan.n_threads) as threads:
        router, label = partition(kernel, rows, k, candidates, plan.sample_size, rng, threads)
        return router, label, across_mass(kernel, rows, label, rng, threads)


def _solve_cluster(state, kernel, rows, own, problems, plan, memory, on_step) -> list[Part]:
    """Every binary problem on the rows of one cluster, from the variables of the level below."""
    if len(problems) > 1:
        kernel, rows = share_rows(kernel, rows, plan.cache_bytes, plan.n_threads)
    parts = []
    for problem, alpha in zip(problems, state.alphas, strict=True):
        at, position = _inside(problem, own)
        if len(at) == 0:
            parts.append(Part(at, np.empty(0), 0.0, 0.0, 0))
            continue
        s = _solve(kernel, rows[position], problem.y[at], problem.upper[at], alpha[at], plan,
                   memory, on_step)  # fmt: skip
        parts.append(Part(at, s.alpha, s.dual, s.relative_gap, s.n_iter))
    return parts


def _run_whole(state, kernel, rows, problems, plan, checkpoint, progress, memory) -> None:
    if len(problems) > 1:
        kernel, rows = share_rows(kernel, rows, plan.cache_bytes, plan.n_threads)
    report = progress.task("level 0", n=len(problems))
    for k, problem in enumerate(problems):
        solution = checkpoint.load_solution(f"whole{k}")
        if solution is None:
            task = report.task(f"problem {k}")
            solution = _solve(
                kernel, rows[problem.rows] if len(problem.rows) < len(rows) else rows, problem.y,
                problem.upper, state.alphas[k], plan, memory, lambda task=task: state.ask(task),
            )  # fmt: skip
            task.end()
            if not state.stopped:
                checkpoint.save_solution(f"whole{k}", solution)
        state.solutions.append(solution)
        state.n_iter = max(state.n_iter, solution.n_iter)
    state.alphas = [s.alpha for s in state.solutions]
    report.end()


def _solve(kernel, rows, y, upper, alpha, plan, memory, on_step) -> Solution:
    """`solve` as the plan says, with the cache that shared rows leave."""
    kept = SHARED_MEMORY if isinstance(kernel, SharedRows) else 0.0
    return solve(
        kernel, rows, y, upper, alpha=alpha, tol=plan.tol, max_iter=plan.max_iter,
        cache_bytes=(1 - kept) * plan.cache_bytes, n_threads=plan.n_threads, memory=memory,
        on_step=on_step,
    )  # fmt: skip


def _inside(problem: Binary, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a cluster that a problem has: their numbers in the problem and the cluster."""
    position = np.searchsorted(problem.rows, own)
    inside = np.flatnonzero(problem.rows[np.minimum(position, len(problem.rows) - 1)] == own)
    return position[inside], inside


def _support(state: Divided, problems, n: int) -> np.ndarray:
    used = np.zeros(n, dtype=bool)
    for problem, alpha in zip(problems, state.alphas, strict=True):
        used[problem.rows[alpha > 0]] = True
    return np.flatnonzero(used)


def across_mass(kernel, rows, label, rng, threads: Threads, size: int = COUPLING_SAMPLE) -> float:
    """Estimate of D(pi) = sum of |k(x_i, x_j)| over pairs in different clusters (Theorem 1)."""
    sample, gram = _sampled_gram(kernel, rows, rng, threads, size)
    across = label[sample][:, None] != label[sample][None, :]
    return float(gram[across].sum() * (len(rows) / len(sample)) ** 2)


def _sampled_gram(kernel, rows, rng, threads, size) -> tuple[np.ndarray, np.ndarray]:
    sample = np.sort(rng.choice(len(rows), min(size, len(rows)), replace=False))
    chosen = rows[sample]
    return sample, np.abs(kernel_product(kernel, chosen, chosen, np.eye(len(sample)), threads))


def auto_levels(kernel, rows: Rows, plan: Plan) -> int:
    """How deep to divide: clusters of about `AUTO_ROWS` rows, if they hold enough of the kernel.

    Clusters hide the kernel values between them from each other.  The share of the kernel's mass
    off its diagonal that lies across clusters, D(pi) over its total on a sample, says how much;
    where it is large (small gamma) the clusters' variables are a poorer start.  That start is
    paid for in kernel values, so it is refused where these are dear as well.
    """
    n = len(rows)
    levels = round(np.log(max(n / AUTO_ROWS, 1)) / np.log(plan.branching))
    rng = np.random.default_rng([plan.seed, 0])
    if levels == 0:
        return 0
    with Threads(plan.n_threads) as threads:
        while levels > 0:
            if kernel.cost * _coupling(kernel, rows, levels, plan, rng, threads) <= AUTO_COUPLING:
                break
            levels -= 1
    return levels


def _coupling(kernel, rows, level, plan, rng, threads) -> float:
    """Share of the off-diagonal kernel mass between clusters of a level."""
    k = plan.branching**level
    everything = np.arange(len(rows))
    _, label = partition(kernel, rows, k, everything, plan.sample_size, rng, threads)
    sample, gram = _sampled_gram(kernel, rows, rng, threads, COUPLING_SAMPLE)
    np.fill_diagonal(gram, 0.0)
    across = label[sample][:, None] != label[sample][None, :]
    return float(gram[across].sum() / max(gram.sum(), np.finfo(np.float64).tiny))


def _measure(level: Level, kernel, rows, problem: Binary, final, plan, threads) -> None:
    """Figures 1 and 2 of the paper: how near a level's variables are to the final ones."""
    assert level.alpha is not None
    assert level.label is not None
    support = np.flatnonzero(level.alpha)
    if final is not None:
        common = float(np.count_nonzero(final[support]))
        level.precision = common / max(len(support), 1)
        level.recall = common / max(int(np.count_nonzero(final)), 1)
    vectors = rows[problem.rows[support]]
    coef = (level.alpha * problem.y)[support]
    squared = coef @ kernel_product(kernel, vectors, vectors, coef[:, None], threads)[:, 0]
    level.whole_objective = float(level.alpha.sum() - 0.5 * squared)
    rng = np.random.default_rng([plan.seed, level.level, 1])
    mass = across_mass(kernel, rows, level.label, rng, threads)
    level.bound = 0.5 * float(problem.upper.max()) ** 2 * mass
