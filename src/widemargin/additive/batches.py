"""Solve the outputs of a fit in independent batches of 16.

A batch takes data and returns arrays.  A thread writes its weights in place; another process sends
them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from widemargin.additive.problem import (
    LANES,
    BoxProblem,
    DualProblem,
    SharedProblem,
    SimplexProblem,
    aligned,
)
from widemargin.additive.solver import Outcome, Stopping, measured_sums, minimise
from widemargin.engine import Control, Threads, run_tasks
from widemargin.losses import Certificate
from widemargin.machine import FitRecord
from widemargin.progress import continued

FLOAT32_TOL = 1e-4
"""Relative gaps below this are certified in double precision."""


def precision(tol: float, c: np.ndarray, diagonal: np.ndarray, others: np.ndarray) -> type:
    """Return double for tight tolerances and for numbers outside float32's range."""
    sizes = np.concatenate([c, diagonal[diagonal > 0], others])
    moderate = sizes.min() > 1e-20 and sizes.max() < 1e20
    return np.float32 if tol >= FLOAT32_TOL and moderate else np.float64


@dataclass(frozen=True)
class Dual:
    """The signed dual variables of a fit, with its C and batches."""

    by_batch: list[np.ndarray]  # (n_rows, outputs of the batch) each
    C: float  # in the kernel's unit
    multi_class: str
    label: np.ndarray
    present: np.ndarray

    @cached_property
    def coef(self) -> np.ndarray:
        """Variables of all batches, (n_rows, n_outputs)."""
        return np.hstack(self.by_batch)

    def grown(self, C: float, dtype: type) -> np.ndarray:
        """Return start values for another C, in its precision."""
        return np.multiply(self.coef, C / self.C, dtype=dtype, casting="same_kind")


@dataclass(frozen=True)
class BatchTask:
    """A task: some of a fit's outputs."""

    number: int
    blocks: slice  # of the model's weights
    shared: SharedProblem
    targets: np.ndarray  # of each class, or of each row, (n, outputs of the batch)
    start: np.ndarray | None  # initial dual variables
    seed: np.random.SeedSequence
    stopping: Stopping
    n_threads: int = 1  # does not change the solution

    def in_double(self) -> BatchTask:
        assert self.shared.exact is not None
        return replace(self, shared=self.shared.exact)

    def of_rows(self, rows: slice, shared: SharedProblem) -> BatchTask:
        """Return the task of some rows, which share this; their own targets go with them."""
        if not shared.loss.by_row:
            return replace(self, shared=shared)
        shared = replace(shared, label=shared.label - np.int32(rows.start))
        return replace(self, shared=shared, targets=self.targets[rows])

    def problem(self, weights: np.ndarray) -> DualProblem:
        kind = SimplexProblem if self.shared.layout.simplex else BoxProblem
        return kind(self.shared, self.targets, weights, self.n_threads)

    def model_weights(self, problem: DualProblem) -> np.ndarray:
        """Return a copy of the weights of a model at the problem's variables."""
        weights = problem.weights
        if self.shared.of_features is not None:
            exact = self.in_double()
            on_features = exact.problem(exact.shared.tables.weights(self.targets.shape[1]))
            on_features.start(problem.coef, Control())
            weights = on_features.weights
        weights = weights.reshape(-1, *self.shared.model_tables.block_shape)
        return weights.astype(self.shared.layout.dtype)


@dataclass(frozen=True)
class BatchSolution:
    """The outputs of a batch."""

    weights: np.ndarray
    bias: np.ndarray
    coef: np.ndarray  # signed dual variables, (n_rows, n_outputs)
    outcome: Outcome


def make_batches(
    shared: SharedProblem,
    targets: np.ndarray,
    *,
    start: np.ndarray | None,
    seed: int,
    stopping: Stopping,
) -> list[BatchTask]:
    """Return a task per 16 outputs, or a single task if all classes are trained together."""
    n = targets.shape[1]
    size = n if shared.layout.simplex else LANES
    outputs = [slice(k, min(k + size, n)) for k in range(0, n, size)]
    seeds = np.random.SeedSequence(seed).spawn(len(outputs))
    n_blocks = -(-n // shared.layout.lanes)
    return [
        BatchTask(
            number=k,
            blocks=slice(n_blocks) if shared.layout.simplex else slice(k, k + 1),
            shared=shared.of_outputs(columns),
            targets=targets[:, columns],
            start=None if start is None else start[:, columns],
            seed=seeds[k],
            stopping=stopping,
        )
        for k, columns in enumerate(outputs)
    ]


def solve_batch(
    task: BatchTask, control: Control, weights: np.ndarray | None = None
) -> BatchSolution:
    """Solve the task, writing to ``weights`` (zeros) if given."""
    n_outputs = task.targets.shape[1]
    if weights is None:
        weights = task.shared.model_tables.weights(n_outputs)
    on_matrix = task.shared.of_features is not None
    swept = task.shared.tables.weights(n_outputs) if on_matrix else weights
    problem, rng = task.problem(swept), np.random.default_rng(task.seed)
    if task.start is not None:
        problem.start(task.start, control)
    judge = Judge(task.in_double(), problem, control)
    if not task.shared.symmetric:  # no objective: that of symmetric tables judges the variables
        outcome = minimise(problem, task.stopping, rng, control)
        outcome = _judged(outcome, judge())
        return BatchSolution(weights, problem.bias, problem.coef, outcome)
    outcome = minimise(problem, task.stopping, rng, control, judge, own_first=on_matrix)
    coef = problem.coef
    if outcome.needs_double:
        exact = judge.problem()
        outcome, coef = _go_on(outcome, exact, task.stopping, rng, control), exact.coef
    weights[...] = judge.weights
    return BatchSolution(weights, judge.bias, coef, outcome)


class Judge:
    """Measures a problem in double precision, from its variables alone.

    Weights accumulate rounding errors in single precision, so they are recomputed, also for the
    model.  Variables are converted to double a few rows at a time, to save memory.
    """

    def __init__(self, exact: BatchTask, single: DualProblem, control: Control):
        self._exact, self._single, self._control = exact, single, control
        self.weights = exact.shared.tables.weights(exact.targets.shape[1])
        self.bias = aligned(single.bias.shape, np.float64)

    def __call__(self) -> Certificate:
        self.weights[...], self.bias[...] = 0, 0
        for rows, problem in self._slices():
            problem.start(self._single.coef[rows], self._control)
        sums = measured_sums(self._placed_slices(), self._control)
        return Certificate.from_account(sums, self._single.n_problems)

    def problem(self) -> DualProblem:
        """Return the double problem of all rows, at the last measurement."""
        problem = self._of(self._exact)
        problem.assign(self._single.coef)
        return problem

    def _of(self, task: BatchTask) -> DualProblem:
        problem = task.problem(self.weights)
        problem.bias = self.bias
        return problem

    def _slices(self) -> Iterator[tuple[slice, DualProblem]]:
        for rows, shared in self._exact.shared.slices():
            yield rows, self._of(self._exact.of_rows(rows, shared))

    def _placed_slices(self) -> Iterator[DualProblem]:
        for rows, problem in self._slices():
            problem.assign(self._single.coef[rows])
            yield problem


def _judged(outcome: Outcome, certificate: Certificate) -> Outcome:
    """Return the outcome with another certificate's objectives and its own violation."""
    certificate = replace(certificate, violation=outcome.certificate.violation)
    objectives = {"primal": certificate.primal.sum(), "dual": certificate.dual.sum()}
    last = [{**record, **objectives} for record in outcome.history[-1:]]
    return replace(outcome, certificate=certificate, history=outcome.history[:-1] + last)


def _go_on(
    outcome: Outcome,
    exact: DualProblem,
    stopping: Stopping,
    rng: np.random.Generator,
    control: Control,
) -> Outcome:
    """Continue in double precision, because single precision hid a gap."""
    left = stopping.max_iter - outcome.n_iter
    if left <= 0:
        return outcome
    again = minimise(exact, replace(stopping, max_iter=left), rng, control)
    history = outcome.history + continued(outcome.history, again.history)
    return replace(again, n_iter=outcome.n_iter + again.n_iter, history=history)


def solve_batches(
    tasks: list[BatchTask], weights: np.ndarray, executor: Threads | Executor, watch: Callable
) -> list[BatchSolution]:
    """Solve all tasks and fill ``weights`` with their blocks."""
    if isinstance(executor, Threads):  # threads share memory: no copies
        n_threads = max(executor.n_cores // len(tasks), 1)
        return run_tasks(
            lambda task, control: solve_batch(task, control, weights[task.blocks]),
            [replace(task, n_threads=n_threads) for task in tasks],
            executor,
            watch=watch,
        )
    solutions = run_tasks(solve_batch, tasks, executor, watch=watch)
    for task, solution in zip(tasks, solutions, strict=True):
        weights[task.blocks] = solution.weights
    return solutions


def fit_record(
    solutions: list[BatchSolution], shared: SharedProblem, seconds: float, unit: Any = 1.0
) -> FitRecord:
    """Summarise the batches: the worst gap, and the sum of the objectives, each in its unit."""
    outcomes = [solution.outcome for solution in solutions]
    certificates = [outcome.certificate for outcome in outcomes]
    gap = max(float(c.relative_gap.max()) for c in certificates)
    objectives = np.concatenate([c.primal for c in certificates])
    return FitRecord(
        n_rows=shared.codes.n_rows,
        seconds=seconds,
        n_iter=max(outcome.n_iter for outcome in outcomes),
        gap=gap,
        objective=float((unit * objectives).sum()),
        violation=max(float(c.violation.max()) for c in certificates),
        history=[outcome.history for outcome in outcomes],
    )
