"""How `KernelSVC` fits with kernel="linear": no kernel values, no clusters."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from widemargin.digest import digest
from widemargin.engine import Control, Threads, run_tasks
from widemargin.errors import Parameter, ParameterError
from widemargin.kernel.attributes import coefficients, iterations
from widemargin.kernel.divide import FitState, support_of
from widemargin.kernel.input import read_data
from widemargin.kernel.linear import LinearModel, LinearProblem, LinearRows, solve_linear
from widemargin.kernel.machine import KernelMachine
from widemargin.kernel.problems import Variables, binary_problems
from widemargin.kernel.warm_start import Dual
from widemargin.machine import near
from widemargin.multiclass import Targets
from widemargin.progress import progress_of
from widemargin.stored import Store
from widemargin.validation import check_sums

CLUSTERED = {"early": False, "levels": "auto", "checkpoint": None, "record_levels": False}


@dataclass(frozen=True)
class LinearTraining:
    """All of a fit that does not depend on C."""

    rows: LinearRows
    targets: Targets
    X: Any
    y: Any
    gamma: float = 1.0

    def data_digest(self) -> str:
        t = self.targets
        return digest(self.X, t.label, *t.fitted.values(), t.weight, t.present)


@dataclass(frozen=True)
class LinearTask:
    """One output."""

    number: int
    variables: Variables
    alpha: np.ndarray


class LinearFit(KernelMachine):
    """A `KernelMachine` that solves a linear kernel on the weights."""

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _check_linear(self) -> None:
        """What does not go with a machine that has no clusters."""
        for name, default in CLUSTERED.items():
            value = getattr(self, name)
            if value not in (default, 0):
                raise ParameterError(
                    name,
                    value,
                    "is of clusters, which {kernel} does not make: it is solved on the weights. "
                    "Leave {left} out.",
                    kernel=Parameter("kernel", "linear"),
                    left=Parameter(name),
                )

    def _prepare(self, X, y, sample_weight, *, several: bool = False) -> Any:
        if not self._is_linear():
            return super()._prepare(X, y, sample_weight, several=several)
        self._check_linear()
        if isinstance(X, Store):
            raise ValueError(
                "kernel='linear' takes data in memory, not a store. Use AdditiveSVC('linear')."
            )
        X, y, targets, given = read_data(self, X, y, sample_weight)
        rows = LinearRows.of(targets.X)
        diagonal, constant = rows.diagonal(), 0.0
        check_sums(self.C, targets.weight, float(diagonal.max(initial=0.0)))
        if self._has_intercept():
            constant = float((diagonal * given).sum() / given.sum()) or 1.0
        return LinearTraining(LinearRows(rows.X, constant**0.5), targets, X, y)

    def _solve(self, training: Any, start: Dual | None) -> Dual:
        if not self._is_linear():
            return super()._solve(training, start)
        started, targets = time.perf_counter(), training.targets
        upper = self.C * targets.weight
        problems = binary_problems(targets.label, targets.coding, upper, grouped=False)
        key = self._key(training) if self.warm_start else ""
        start = near(start or (self._remembered().get(key) if self.warm_start else None), self.C)
        warm = start is not None and start.fits(problems)
        alphas = start.grown(self.C, problems) if warm else [np.zeros(len(p)) for p in problems]
        n = len(problems)
        context = self._init_callback_context(max_subtasks=n, sequential_subtasks=False)
        context.call_on_fit_task_begin(estimator=self, X=training.X, y=training.y)
        progress = progress_of(self, context, training.X, training.y)
        tasks = [LinearTask(k, p, a) for k, (p, a) in enumerate(zip(problems, alphas, strict=True))]
        solutions = run_tasks(
            partial(
                _solve_task, rows=training.rows, tol=float(self.tol), max_iter=self._most_steps()
            ),
            tasks,
            Threads(self.n_jobs),
            watch=lambda task: progress.task(f"problem {task.number}", task.number),
        )
        state = FitState(
            [s.alpha for s in solutions],
            solutions=solutions,
            n_iter=max(s.n_iter for s in solutions),
            stopped=any(s.stopped and s.n_iter < self._most_steps() for s in solutions),
        )
        self._keep_linear(training, problems, state, [s.weights for s in solutions])
        seconds = time.perf_counter() - started
        self._record(state, targets, seconds, is_certificate=True)
        self.n_iter_ = iterations(problems, state, targets.coding)
        dual = Dual([alpha.copy() for alpha in state.alphas], float(self.C))
        if self.warm_start:
            self._remembered().put(key, dual)
        context.call_on_fit_task_end(
            estimator=self, X=training.X, y=training.y, reconstruction_attributes=dict
        )
        self._report(stopped=state.stopped, rounding=state.rounding)
        return dual

    def _keep_linear(
        self, training: LinearTraining, problems: list[Variables], state: FitState, each: list
    ) -> None:
        targets = training.targets
        support = support_of(state, problems, len(training.rows))
        support = support[np.argsort(targets.label[support], kind="stable")]
        for name, value in targets.fitted.items():
            setattr(self, name, value)
        weights = np.stack(each)
        self.gamma_, self.levels_ = training.gamma, []
        self.model_ = LinearModel(
            np.ascontiguousarray(weights[:, :-1]),
            training.rows.constant * weights[:, -1],
            coefficients(targets, problems, state.alphas, support),
        )
        self._keep_support(training, support)


def _solve_task(task: LinearTask, control: Control, rows: LinearRows, tol: float, max_iter: int):
    problem = LinearProblem(rows, task.variables, np.zeros(len(task.variables)))
    return solve_linear(problem, task.alpha, tol, max_iter, control.step)
