"""The last pass of a fit: every problem on all of its rows, several side by side in threads.

Problems that have the same rows (one class against the others) share kernel rows and so take turns.
Those of pairs of classes have little in common but rows within a class: each is a task of its own,
and so is each group of pairs of small classes; the few that are large get all threads one after
another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from widemargin.engine import Control, Threads, run_tasks
from widemargin.kernel.backend import Backend
from widemargin.kernel.cache import CACHE_SHARES, tasks_at_once
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.few_rows import AT_ONCE, has_few
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.kernel.several import SeveralProblems, shares_rows
from widemargin.kernel.solver import SolverSettings
from widemargin.resources import one_blas_thread


@dataclass(frozen=True)
class ProblemTask:
    """One problem to solve, from some variables."""

    number: int
    variables: Variables
    alpha: np.ndarray
    data: KernelRows  # that the rows of the variables are numbers of
    settings: SolverSettings

    def on_few_rows(self, prepared: KernelRows) -> ProblemTask:
        """With data in double precision, if that is what will be solved with."""
        return replace(self, data=prepared) if has_few(self.variables) else self

    def matrix_bytes(self) -> float:
        """Of its kernel matrix."""
        n, few = self.variables.n_rows, has_few(self.variables)
        dtype = np.float64 if few else self.data.kernel.dtype
        return float(np.dtype(dtype).itemsize) * n**2

    def on_own_rows(self) -> ProblemTask:
        """With no rows but its own, of which those on disk are not read yet."""
        own, rows = self.variables.on_own_rows(len(self.data))
        data = self.data if rows is None else self.data.chosen(rows)
        return replace(self, variables=own, data=data)


class PathRows:
    """The rows of pairs of classes along a path of C, with kernel values that fits have left.

    Each pair has its own, since pairs are solved side by side: who computes what, and with which
    other values, must not hang on the threads.
    """

    def __init__(self, cache_bytes: float) -> None:
        self._cache_bytes = cache_bytes  # of each pair
        self._data: dict[int, KernelRows] = {}

    def of(self, number: int, data: KernelRows, backend: Backend) -> KernelRows:
        """Those of a pair, which are ``data`` in the first fit."""
        if number not in self._data:
            shared = backend.share_rows(data.kernel, data.rows, self._cache_bytes)
            self._data[number] = KernelRows(*shared, data.exact)
        return self._data[number]


def solve_problem(
    task: ProblemTask, control: Control, backend: Backend, path: PathRows | None = None
) -> Solution:
    """On a copy of its rows, with nothing shared but along a path."""
    control.check()
    backend, own = backend.copy(), task.on_own_rows()
    data = own.data if own.data is task.data else own.data.taken()
    if path is not None and not has_few(own.variables):
        data = path.of(task.number, data, backend)
    with closing(SeveralProblems(data, backend, task.settings)) as several:
        return several.solve(own.variables, task.alpha, control.step, control.show)


def _solve_elsewhere(task: ProblemTask, control: Control, backend: Backend) -> Solution:
    """One that has come with its own rows, or with their numbers."""
    return solve_problem(replace(task, data=task.data.taken()), control, backend)


def _solve_shared(task: ProblemTask, control: Control, several: SeveralProblems) -> Solution:
    control.check()
    return several.solve(task.variables, task.alpha, control.step, control.show)


@dataclass(frozen=True)
class Whole:
    """The problems of a fit that are still to be solved, and what with."""

    tasks: Sequence[ProblemTask]
    data: KernelRows
    settings: SolverSettings
    backend: Backend
    executor: Threads | Executor
    watch: Callable[[Any], Any]
    on_result: Callable[[ProblemTask, Solution], None]
    path: PathRows | None = None

    def solve(self) -> list[Solution]:
        """In the order of the tasks."""
        problems = [task.variables for task in self.tasks]
        share = shares_rows(len(self.data), problems)
        with one_blas_thread():  # set once for all problems
            return self._sharing(problems) if share else self._apart()

    def _run(self, function: Callable, tasks: Sequence, executor: Threads | Executor) -> list:
        return run_tasks(function, tasks, executor, watch=self.watch, on_result=self.on_result)

    def _sharing(self, problems: Sequence[Variables]) -> list[Solution]:
        with closing(SeveralProblems(self.data, self.backend, self.settings, problems)) as several:
            many = several.side_by_side and len(self.data) > AT_ONCE  # else threads cost more
            at_once = self.backend.n_threads if many else 1
            return self._run(partial(_solve_shared, several=several), self.tasks, Threads(at_once))

    def _apart(self) -> list[Solution]:
        """Whether a problem is large is for the problem to say, not for the threads."""
        cache_bytes = self.settings.cache_bytes
        share = cache_bytes / CACHE_SHARES
        needed = {k: task.matrix_bytes() for k, task in enumerate(self.tasks)}
        order = sorted(needed, key=lambda k: (-needed[k], k))
        large = [k for k in order if needed[k] > share or len(order) == 1]
        small = order[len(large) :]
        settings = replace(self.settings, cache_bytes=share)
        beside = [replace(self.tasks[k], settings=settings) for k in small]
        function: Callable = partial(solve_problem, path=self.path)
        alone = [self.tasks[k] for k in large]
        found = self._run(partial(function, backend=self.backend), alone, Threads(1))
        if not isinstance(self.executor, Threads):
            function, beside = _solve_elsewhere, [task.on_own_rows() for task in beside]
        elif any(has_few(task.variables) for task in beside):
            prepared = self.data.in_double()  # once for all of them
            beside = [task.on_few_rows(prepared) for task in beside]
        most = max((needed[k] for k in small), default=share)
        at_once = tasks_at_once(self.backend.n_threads, len(small), most, cache_bytes)
        executor = Threads(at_once) if isinstance(self.executor, Threads) else self.executor
        share_of = self.backend.for_tasks(at_once)
        found += self._run(partial(function, backend=share_of), beside, executor)
        by_number = dict(zip(large + small, found, strict=True))
        return [by_number[k] for k in range(len(found))]
