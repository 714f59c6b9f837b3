"""Divide and conquer (DC-SVM, Algorithm 1): clusters, then fewer and larger ones, then the whole.

At level l the rows are partitioned into branching^l clusters, each solved on its own from the
variables of the level below.  The centres of every level but the lowest are sampled from the
support vectors found so far (adaptive clustering).  The whole problem starts on these support
vectors alone (refinement) and then takes in all others that matter.

All problems of a multi-class fit go through the levels together: they share each level's
partition, the router and the kernel rows of a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from widemargin.engine import Threads, run_tasks
from widemargin.kernel.backend import Backend, Host
from widemargin.kernel.cache import CACHE_SHARES, tasks_at_once
from widemargin.kernel.checkpoint import Checkpoint, NoCheckpoint, Snapshots
from widemargin.kernel.clusters import ClusterSolution, ClusterTask, ClusterTasks, solve_cluster
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.kernels import Kernel
from widemargin.kernel.levels import (
    COUPLING_SAMPLE,
    Level,
    Measurement,
    across_mass,
    sampled_gram,
)
from widemargin.kernel.partition import Router, partition
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.whole import PathRows, ProblemTask, Whole
from widemargin.progress import Listener, NoProgress
from widemargin.resources import one_blas_thread

AUTO_ROWS = 2000  # levels="auto": rows of a cluster at the lowest level, about
AUTO_STRIDE = 2  # levels="auto": every other level is solved; the ones between do not pay
AUTO_COUPLING = 4.0  # levels="auto": no division where coupling times kernel cost is larger


@dataclass(frozen=True)
class Plan:
    """How to divide and when to stop."""

    levels: int
    branching: int
    sample_size: int
    early: int | None
    seed: int
    settings: SolverSettings
    level_tol: float = 1e-2  # relative gap of the clusters below the level that is kept
    record: bool | str = False  # keep each level's variables and clusters; "exact": and all pairs
    clustering: str = "auto"
    stride: int = 1  # from one level that is solved to the next above it

    @property
    def solved_levels(self) -> range:
        """From the lowest to the one that is kept, or the last before the whole."""
        return range(self.levels, 0, -self.stride)


@dataclass(frozen=True)
class Services:
    """What a fit works with, and whom it tells."""

    backend: Backend = field(default_factory=Host)
    executor: Threads | Executor = field(default_factory=Threads)
    checkpoint: Checkpoint | NoCheckpoint = field(default_factory=NoCheckpoint)
    progress: Listener = field(default_factory=NoProgress)


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a fit with their kernel: as the levels see them, and as the whole problem does.

    The two differ along a path of C only, where the whole problem shares kernel rows with the next
    one.  Pairs of classes, which are solved side by side, share theirs one by one in ``path``.
    """

    levels: KernelRows
    whole: KernelRows
    path: PathRows | None = None


@dataclass
class FitState:
    """Where a fit stands: variables per problem, the last level, the solutions of the whole."""

    alphas: list[np.ndarray]
    levels: list[Level] = field(default_factory=list)
    router: Router | None = None
    label: np.ndarray | None = None
    finest: np.ndarray | None = None  # every row's cluster on the lowest level
    solutions: list[Solution] = field(default_factory=list)
    n_iter: int = 0  # steps of the slowest problem
    double: bool = False  # whether any of them needed double precision
    stopped: bool = False  # a callback or Ctrl-C asked for it

    @property
    def rounding(self) -> float:
        """The share of the largest gap that double precision may hide."""
        return max((s.rounding for s in self.solutions), default=0.0)

    def should_stop(self, task: Listener, gap: float | None) -> bool:
        """Tell the callbacks of an epoch; whether any of them has asked to stop."""
        self.stopped |= task.epoch(gap=gap)
        return self.stopped


@dataclass(frozen=True)
class Division:
    """What is to be solved, how, and with what."""

    data: TrainingRows
    problems: list[Variables]
    plan: Plan
    services: Services


def divide_and_conquer(state: FitState, division: Division) -> None:
    """Solve level by level, to ``plan.early`` or to the whole; ``state`` says how far it got."""
    plan = division.plan
    for level in plan.solved_levels:
        _run_level(state, division, level)
        if plan.early == level or state.stopped:
            break
    else:
        _run_whole(state, division)
    if plan.record:
        _measure_levels(state, division)


def _run_level(state: FitState, division: Division, level: int) -> None:
    """One pass of Algorithm 1's outer loop: partition the rows, solve every cluster."""
    data, problems, plan = division.data, division.problems, division.plan
    services = division.services
    started = time.perf_counter()
    router, label, mass = _clusters(state, division, level)
    clustered = time.perf_counter()
    tol = plan.settings.tol
    if plan.early != level:
        tol = max(tol, plan.level_tol)
    n_clusters = int(label.max()) + 1
    # Working sets are as large as the cache allows: its share is for the problem to say, not for
    # the threads.
    share = plan.settings.cache_bytes / min(n_clusters, CACHE_SHARES)
    settings = replace(plan.settings, tol=tol, cache_bytes=share)
    at_once = _at_once(np.bincount(label), division, share)
    # What the next level starts from needs no certificate.
    own = data.levels if plan.early == level else replace(data.levels, exact=None)
    own = own.regrouped(label, shared=not isinstance(services.executor, Threads))
    tasks = _tasks(state, division, level, label, own, settings)
    found = _solve_clusters(state, tasks, services, at_once)
    for solutions in found:
        for alpha, solution in zip(state.alphas, solutions, strict=True):
            alpha[solution.variables] = solution.alpha
    every = [solution for solutions in found for solution in solutions]
    state.router, state.label = router, label
    state.finest = label if state.finest is None else state.finest
    state.n_iter = max([state.n_iter, *(solution.n_iter for solution in every)])
    state.double = any(solution.double for solution in every)
    state.levels.append(
        Level(
            level=level,
            n_clusters=n_clusters,
            sizes=np.bincount(label),
            seconds_clustering=clustered - started,
            seconds_training=time.perf_counter() - clustered,
            objective=float(sum(solution.dual for solution in every)),
            gap=max(solution.gap for solution in every),
            n_support=len(support_of(state, problems, len(data.levels))),
            across_mass=mass,
            alpha=state.alphas[0].copy() if plan.record else None,
            label=label if plan.record else None,
        )
    )


def _tasks(
    state: FitState,
    division: Division,
    level: int,
    label: np.ndarray,
    data: KernelRows,
    settings: SolverSettings,
) -> ClusterTasks:
    """The clusters of a level, from the present variables."""
    tasks = ClusterTasks(level, label, data, settings)
    for variables, alpha in zip(division.problems, state.alphas, strict=True):
        tasks.add(replace(variables.in_clusters(state.finest), has_offset=False), alpha)
    return tasks


def certify_level(state: FitState, division: Division) -> None:
    """A certificate for the last level, which was meant as a start and has become the model."""
    level = state.levels[-1]
    assert state.label is not None
    tol = max(division.plan.settings.tol, division.plan.level_tol)
    settings = replace(division.plan.settings, tol=tol, max_iter=0)
    tasks = _tasks(state, division, level.level, state.label, division.data.levels, settings)
    services = Services(division.services.backend, division.services.executor)
    found = [s for solutions in _solve_clusters(state, tasks, services, 1) for s in solutions]
    dual, gap = float(sum(s.dual for s in found)), max(s.gap for s in found)
    state.levels[-1] = replace(level, objective=dual, gap=gap)


def _at_once(sizes: np.ndarray, division: Division, share: float) -> int:
    """How many clusters may be solved at once, if each needs its share of the cache or less."""
    matrices = 1 if len(division.problems) == 1 else 2  # a problem's own rows, and shared ones
    itemsize = np.dtype(division.data.levels.kernel.dtype).itemsize
    needed = min(share, matrices * itemsize * float(sizes.max()) ** 2)
    cache_bytes = division.plan.settings.cache_bytes
    return tasks_at_once(division.services.backend.n_threads, len(sizes), needed, cache_bytes)


def _clusters(
    state: FitState, division: Division, level: int
) -> tuple[Router | None, np.ndarray, float]:
    """Centres from the support vectors so far, if there are enough; and an estimate of D(pi)."""
    plan, kernel, rows = division.plan, division.data.levels.kernel, division.data.levels.rows
    rng = np.random.default_rng([plan.seed, level])
    k = plan.branching**level
    support = support_of(state, division.problems, len(rows))
    candidates = support if len(support) >= 2 * k else np.arange(len(rows))
    with division.services.backend as backend:
        how = (plan.sample_size, rng, backend, plan.clustering)
        router, label = partition(kernel, rows, k, candidates, *how)
        return router, label, across_mass(kernel, rows, label, rng, backend)


@dataclass(frozen=True)
class _TaskWatch:
    """Tells the callbacks of one cluster or problem."""

    state: FitState
    task: Listener
    look: Callable[[Callable[[], np.ndarray]], None] | None = None

    def epoch(self, state: Any = None, gap: float | None = None) -> bool:
        return self.state.should_stop(self.task, gap)

    def end(self) -> bool:
        return self.task.end()


def _solve_clusters(
    state: FitState, tasks: ClusterTasks, services: Services, at_once: int
) -> list[list[ClusterSolution]]:
    """What the clusters of a level found, some of them perhaps in a checkpoint."""
    report = services.progress.task(f"level {tasks.level}", n=len(tasks.members), ordered=False)
    order = tasks.order
    found = {c: services.checkpoint.load(tasks.name(c), tasks.problems) for c in order}
    tasks.leave_out({c for c, solutions in found.items() if solutions is not None})

    def watch(task: ClusterTask) -> _TaskWatch:
        return _TaskWatch(state, report.task(f"cluster {task.number}", task.number))

    def keep(task: ClusterTask, solutions: list[ClusterSolution]) -> None:
        if not state.stopped:
            services.checkpoint.save(task.name, solutions)

    function = partial(solve_cluster, backend=services.backend.for_tasks(at_once))
    executor = services.executor
    executor = Threads(at_once) if isinstance(executor, Threads) else executor
    with one_blas_thread():  # set once for all clusters
        solved = run_tasks(function, tasks, executor, watch=watch, on_result=keep)
    report.end()
    found |= dict(zip(tasks.order, solved, strict=True))
    return [found[c] for c in order]  # type: ignore[misc]


def _run_whole(state: FitState, division: Division) -> None:
    """The last pass: all rows, from what the levels have found."""
    problems, services, settings = division.problems, division.services, division.plan.settings
    checkpoint, started = services.checkpoint, time.perf_counter()
    report = services.progress.task("level 0", n=len(problems), ordered=False)
    found = {k: checkpoint.load_solution(f"whole{k}", v) for k, v in enumerate(problems)}

    def watch(task: ProblemTask) -> _TaskWatch:
        own = report.task(f"problem {task.number}", task.number)
        return _TaskWatch(state, own, Snapshots(checkpoint, f"whole{task.number}").take)

    def keep(task: ProblemTask, solution: Solution) -> None:
        name = f"whole{task.number}"
        if not state.stopped:
            checkpoint.save_solution(name, solution)
        elif np.any(solution.alpha):
            checkpoint.save_begun(name, solution.alpha)

    def start(k: int) -> np.ndarray:
        begun = checkpoint.load_begun(f"whole{k}", problems[k])
        return state.alphas[k] if begun is None else begun

    data = division.data.whole
    left = [(k, v) for k, v in enumerate(problems) if found[k] is None]
    own = [(k, v.in_clusters(state.finest)) for k, v in left]
    todo = [ProblemTask(k, v, start(k), data, settings) for k, v in own]
    path = division.data.path
    whole = Whole(todo, data, settings, services.backend, services.executor, watch, keep, path)
    found |= {task.number: s for task, s in zip(todo, whole.solve(), strict=True)}
    state.solutions = list(found.values())  # type: ignore[arg-type]
    state.n_iter = max([state.n_iter, *(s.n_iter for s in state.solutions)])
    state.double |= any(s.double for s in state.solutions)
    state.alphas = [solution.alpha for solution in state.solutions]
    n, record = len(division.data.whole), division.plan.record
    state.levels.append(
        Level(
            level=0,
            n_clusters=1,
            sizes=np.array([n]),
            seconds_clustering=0.0,
            seconds_training=time.perf_counter() - started,
            objective=float(sum(s.dual for s in state.solutions)),
            gap=max(s.relative_gap for s in state.solutions),
            n_support=len(support_of(state, problems, n)),
            across_mass=0.0,
            alpha=state.alphas[0].copy() if record else None,
            label=np.zeros(n, dtype=np.int64) if record else None,
        )
    )
    report.end()


def _measure_levels(state: FitState, division: Division) -> None:
    """How near each level's variables are to the final ones."""
    plan, data = division.plan, division.data
    final = state.alphas[0] if state.solutions else None
    exact, backend = plan.record == "exact", division.services.backend
    measurement = Measurement(division.problems[0], final, exact, plan.seed, backend)
    state.levels[:] = [
        measurement.of(level, data.levels if level.level else data.whole) for level in state.levels
    ]


def support_of(state: FitState, problems: list[Variables], n: int) -> np.ndarray:
    """Rows that are support vectors of any problem."""
    used = np.zeros(n, dtype=bool)
    for variables, alpha in zip(problems, state.alphas, strict=True):
        used[variables.row[alpha > 0]] = True
    return used.nonzero()[0]


def auto_levels(
    kernel: Kernel, rows: Any, problems: list[Variables], plan: Plan, backend: Backend
) -> int:
    """How deep to divide: `AUTO_ROWS` or so of the largest problem's rows in a cluster, if
    clusters hold enough of the kernel.

    Clusters hide the kernel values between them from each other.  The share of the kernel's mass
    off its diagonal that lies across clusters, D(pi) over its total on a sample, says how much;
    where it is large (small gamma) the clusters' variables are a poorer start.  That start is
    paid for in kernel values, so it is refused where these are expensive as well.
    """
    largest = max(variables.largest for variables in problems)
    levels = round(np.log(max(largest / AUTO_ROWS, 1)) / np.log(plan.branching))
    if levels == 0:
        return 0
    rng = np.random.default_rng([plan.seed, 0])
    with backend:
        while levels > 0:
            if kernel.cost * _coupling(kernel, rows, levels, plan, rng, backend) <= AUTO_COUPLING:
                break
            levels -= 1
    return levels


def _coupling(kernel, rows, level: int, plan: Plan, rng, backend) -> float:
    """Share of the off-diagonal kernel mass between clusters of a level."""
    k = plan.branching**level
    everything = np.arange(len(rows))
    how = (plan.sample_size, rng, backend, plan.clustering)
    _, label = partition(kernel, rows, k, everything, *how)
    sample, gram = sampled_gram(kernel, rows, rng, backend, COUPLING_SAMPLE)
    np.fill_diagonal(gram, 0.0)
    across = label[sample][:, None] != label[sample][None, :]
    return float(gram[across].sum() / max(gram.sum(), np.finfo(np.float64).tiny))
