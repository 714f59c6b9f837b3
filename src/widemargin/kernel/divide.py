"""Divide and conquer (DC-SVM, Algorithm 1): clusters, then fewer and larger ones, then the whole.

At level l the rows are partitioned into branching^l clusters, each solved separately from the
variables of the level below.  The centres of every level but the lowest are sampled from the
current support vectors (adaptive clustering).  The whole problem starts on these support vectors
alone (refinement) and then adds all other rows that matter.

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
from widemargin.kernel.checkpoint import Checkpoint, NoCheckpoint, Snapshots
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
from widemargin.kernel.tasks import ClusterTasks, PathRows, ProblemTasks, Task
from widemargin.progress import Progress

AUTO_ROWS = 2000  # levels="auto": approximate rows of a cluster at the lowest level
AUTO_STRIDE = 2  # levels="auto": every other level is solved; those between do not pay
AUTO_COUPLING = 4.0  # levels="auto": no division if coupling times kernel cost is larger


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
    stride: int = 1  # from one solved level to the next above it
    lowest: tuple[Router | None, np.ndarray] | None = None  # its clusters, if known

    @property
    def solved_levels(self) -> list[int]:
        """Levels from the lowest to the one that is kept, or to the whole."""
        divided = list(range(self.levels, 0, -self.stride))
        return [*divided, 0] if self.early is None else divided[: divided.index(self.early) + 1]


@dataclass(frozen=True)
class Services:
    """Backend, executor and callbacks of a fit."""

    backend: Backend = field(default_factory=Host)
    executor: Threads | Executor = field(default_factory=Threads)
    checkpoint: Checkpoint | NoCheckpoint = field(default_factory=NoCheckpoint)
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a fit with their kernel, for the levels and for the whole problem.

    The two differ only along a path of C, where the whole problem shares kernel rows with the next
    one.  Pairs of classes, which are solved in parallel, share theirs individually in ``path``.
    """

    levels: KernelRows
    whole: KernelRows
    path: PathRows | None = None


@dataclass
class FitState:
    """The state of a fit: variables per problem, the last level, the solutions of the whole."""

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
        """Share of the largest gap that double precision may hide."""
        return max((s.rounding for s in self.solutions), default=0.0)

    def should_stop(self, task: Progress, gap: float | None) -> bool:
        """Tell the callbacks of an epoch; whether any of them has asked to stop."""
        self.stopped |= task.epoch(gap=gap)
        return self.stopped


@dataclass(frozen=True)
class Division:
    """What to solve, how, and with which services."""

    data: TrainingRows
    problems: list[Variables]
    plan: Plan
    services: Services


def divide_and_conquer(state: FitState, division: Division) -> None:
    """Solve level by level, to ``plan.early`` or to the whole; ``state`` records the progress."""
    for level in division.plan.solved_levels:
        _run_level(state, division, level)
        if state.stopped:
            break
    if division.plan.record:
        _measure_levels(state, division)


def _run_level(state: FitState, division: Division, level: int) -> None:
    """Run one pass of Algorithm 1's outer loop: partition the rows, solve every cluster.

    Level 0 is one cluster with all rows.
    """
    plan, started = division.plan, time.perf_counter()
    tasks: ClusterTasks | ProblemTasks
    if level > 0:
        router, label, mass = _clusters(state, division, level)
        clustered = time.perf_counter()
        tasks = _cluster_tasks(state, division, level, label)
    else:
        label, mass = np.zeros(len(division.data.whole), dtype=np.int64), 0.0
        clustered = time.perf_counter()
        tasks = _whole_tasks(state, division)
    solved = _solve(state, tasks, division.services)
    if level > 0:
        state.router, state.label = router, label
        state.finest = label if state.finest is None else state.finest
    else:
        state.solutions = [solution for (solution,) in solved]
    every = [solution for solutions in solved for solution in solutions]
    state.n_iter = max([state.n_iter, *(solution.n_iter for solution in every)])
    state.double |= any(solution.double for solution in every)
    sizes = np.bincount(label)
    state.levels.append(
        Level(
            level=level,
            n_clusters=len(sizes),
            sizes=sizes,
            seconds_clustering=clustered - started,
            seconds_training=time.perf_counter() - clustered,
            objective=float(sum(solution.dual for solution in every)),
            gap=max(solution.relative_gap for solution in every),
            n_support=len(support_of(state, division.problems, len(label))),
            across_mass=mass,
            alpha=state.alphas[0].copy() if plan.record else None,
            label=label if plan.record else None,
        )
    )


def _cluster_tasks(
    state: FitState, division: Division, level: int, label: np.ndarray
) -> ClusterTasks:
    """Return the clusters of a level, from the current variables."""
    plan, data, executor = division.plan, division.data.levels, division.services.executor
    settings = plan.settings
    if plan.early != level:  # a start for the next level needs no certificate
        data = replace(data, exact=None)
        settings = replace(settings, tol=max(settings.tol, plan.level_tol))
    data = data.regrouped(label, shared=not isinstance(executor, Threads))
    problems = _without_intercept(state, division)
    return ClusterTasks(level, label, data, settings, problems, state.alphas)


def _without_intercept(state: FitState, division: Division) -> list[Variables]:
    """Return the problems without an intercept, whose constraint would couple the clusters."""
    return [replace(v.in_clusters(state.finest), has_offset=False) for v in division.problems]


def _whole_tasks(state: FitState, division: Division) -> ProblemTasks:
    """Return all problems on all rows, started from the levels or an interrupted fit."""
    services, data = division.services, division.data
    for k, variables in enumerate(division.problems):
        begun = services.checkpoint.load_begun(f"whole{k}", variables)
        if begun is not None:
            state.alphas[k] = begun
    problems = [variables.in_clusters(state.finest) for variables in division.problems]
    how = (division.plan.settings, problems, state.alphas, services.backend, data.path)
    return ProblemTasks(data.whole, *how)


def certify_level(state: FitState, division: Division) -> None:
    """Certify the last level, which was a start and has become the model."""
    level, services = state.levels[-1], division.services
    tol = max(division.plan.settings.tol, division.plan.level_tol)
    settings = replace(division.plan.settings, tol=tol, max_iter=0)
    assert state.label is not None
    problems, data = _without_intercept(state, division), division.data.levels
    tasks = ClusterTasks(level.level, state.label, data, settings, problems, state.alphas)
    solved = _solve(state, tasks, Services(services.backend, services.executor))
    found = [solution for solutions in solved for solution in solutions]
    dual, gap = float(sum(s.dual for s in found)), max(s.relative_gap for s in found)
    state.levels[-1] = replace(level, objective=dual, gap=gap)


def _clusters(
    state: FitState, division: Division, level: int
) -> tuple[Router | None, np.ndarray, float]:
    """Cluster around the current support vectors, if there are enough; estimate D(pi)."""
    plan, kernel, rows = division.plan, division.data.levels.kernel, division.data.levels.rows
    support = support_of(state, division.problems, len(rows))
    with division.services.backend as backend:
        if plan.lowest is not None and level == plan.levels:
            router, label = plan.lowest
        else:
            router, label = _partition(kernel, rows, level, plan, backend, support)
        rng = np.random.default_rng([plan.seed, level, 2])
        return router, label, across_mass(kernel, rows, label, rng, backend)


def _partition(
    kernel: Kernel, rows: Any, level: int, plan: Plan, backend: Backend, support: Any = ()
) -> tuple[Router | None, np.ndarray]:
    """Cluster the rows of a level around the support vectors, or all rows if these are few."""
    k, rng = plan.branching**level, np.random.default_rng([plan.seed, level])
    candidates = support if len(support) >= 2 * k else np.arange(len(rows))
    return partition(kernel, rows, k, candidates, plan.sample_size, rng, backend, plan.clustering)


@dataclass(frozen=True)
class _TaskWatch:
    """Reports one cluster or problem to the callbacks."""

    state: FitState
    task: Progress
    look: Callable[[Callable[[], np.ndarray]], None] | None = None

    def epoch(self, state: Any = None, gap: float | None = None) -> bool:
        return self.state.should_stop(self.task, gap)

    def end(self) -> bool:
        return self.task.end()


def _solve(
    state: FitState, tasks: ClusterTasks | ProblemTasks, services: Services
) -> list[list[Solution]]:
    """Solve the tasks of a level that are not in a checkpoint; write all solutions to the state."""
    checkpoint = services.checkpoint
    report = services.progress.task(f"level {tasks.level}", n=len(tasks), ordered=False)
    found: dict[int, list[Solution]] = {}
    for number in tasks.order:
        known = checkpoint.load(tasks.name(number), partial(tasks.variables, number))
        if known is not None:
            found[number] = known
    every = sorted(tasks.order)
    tasks.order = [number for number in tasks.order if number not in found]

    def watch(task: Task) -> _TaskWatch:
        own = report.task(f"{tasks.kind} {task.number}", task.number)
        look = Snapshots(checkpoint, task.name).take if tasks.level == 0 else None
        return _TaskWatch(state, own, look)

    def keep(task: Task, solutions: list[Solution]) -> None:
        if not state.stopped:
            checkpoint.save(task.name, solutions)
        elif tasks.level == 0 and np.any(solutions[0].alpha):
            checkpoint.save_begun(task.name, solutions[0].alpha)

    run = partial(run_tasks, watch=watch, on_result=keep)
    solved = tasks.solve(services.backend, services.executor, run)
    report.end()
    found |= dict(zip(tasks.order, solved, strict=True))
    for number, solutions in found.items():
        for (problem, members), solution in zip(tasks.places(number), solutions, strict=True):
            state.alphas[problem][members] = solution.alpha
    return [found[number] for number in every]


def _measure_levels(state: FitState, division: Division) -> None:
    """Measure the distance of each level's variables from the final ones."""
    plan, data = division.plan, division.data
    final = state.alphas[0] if state.solutions else None
    exact, backend = plan.record == "exact", division.services.backend
    measurement = Measurement(division.problems[0], final, exact, plan.seed, backend)
    state.levels[:] = [
        measurement.of(level, data.levels if level.level else data.whole) for level in state.levels
    ]


def support_of(state: FitState, problems: list[Variables], n: int) -> np.ndarray:
    """Return the rows that are support vectors of any problem."""
    used = np.zeros(n, dtype=bool)
    for variables, alpha in zip(problems, state.alphas, strict=True):
        used[variables.row[alpha != 0]] = True
    return used.nonzero()[0]


def with_levels(
    plan: Plan, kernel: Kernel, rows: Any, problems: list[Variables], backend: Backend
) -> Plan:
    """Choose the number of levels: about `AUTO_ROWS` of the largest problem's rows per cluster.

    Clusters ignore the kernel values between them.  If those have a large share of the off-diagonal
    kernel mass (D(pi) over its total on a sample; small gamma), the clusters' variables are a poor
    start.  The start costs kernel values, so it is skipped if these are expensive too.  The
    clusters that pass are kept for the lowest level.
    """
    largest = max(variables.largest for variables in problems)
    levels = round(np.log(max(largest / AUTO_ROWS, 1)) / np.log(plan.branching))
    if levels > 0:
        with backend:
            for level in range(levels, 0, -1):
                clusters = _partition(kernel, rows, level, plan, backend)
                if (
                    kernel.cost * _coupling(kernel, rows, clusters[1], plan, backend)
                    <= AUTO_COUPLING
                ):
                    return replace(plan, levels=level, lowest=clusters)
    return replace(plan, levels=0)


def _coupling(kernel, rows, label: np.ndarray, plan: Plan, backend) -> float:
    """Return the share of the off-diagonal kernel mass between clusters."""
    rng = np.random.default_rng([plan.seed, 0])
    sample, gram = sampled_gram(kernel, rows, rng, backend, COUPLING_SAMPLE)
    np.fill_diagonal(gram, 0.0)
    across = label[sample][:, None] != label[sample][None, :]
    return float(gram[across].sum() / max(gram.sum(), np.finfo(np.float64).tiny))
