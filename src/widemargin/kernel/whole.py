"""The last pass of a fit: every problem on all of its rows, several side by side in threads.

Problems that have the same rows (one class against the others) share kernel rows and so take turns.
Those of pairs of classes have little in common but rows within a class: unless one class holds most
rows, each is a task of its own, and the few that are large get all threads one after another.
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
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.few_rows import AT_ONCE, are_few
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.kernel.several import SeveralProblems, shares_rows
from widemargin.kernel.solver import SolverSettings
from widemargin.resources import one_blas_thread

PAYS = 1.2  # times the kernel values that sharing computes: it does without side by side
CACHE_SHARES = 4  # of the cache: so many tasks at once it serves, however large they are


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
        few = are_few(len(self.variables))
        return replace(self, data=prepared) if few else self

    def own_rows(self) -> KernelRows:
        every = len(self.variables) == len(self.data)
        return self.data if every else self.data[self.variables.row]


def solve_problem(task: ProblemTask, control: Control, backend: Backend) -> Solution:
    """On a copy of its rows, with nothing shared."""
    control.check()
    backend = backend.copy()
    own = replace(task.variables, row=np.arange(len(task.variables)))
    with closing(SeveralProblems(task.own_rows(), backend, task.settings)) as several:
        return several.solve(own, task.alpha, control.epoch)


def _solve_shared(task: ProblemTask, control: Control, several: SeveralProblems) -> Solution:
    control.check()
    return several.solve(task.variables, task.alpha, control.epoch)


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

    def solve(self) -> list[Solution]:
        """In the order of the tasks."""
        share = shares_rows(len(self.data), [task.variables for task in self.tasks])
        share = share or self._sharing_pays()
        with one_blas_thread():  # set once for all problems
            return self._sharing() if share else self._apart()

    def _sharing_pays(self) -> bool:
        """Whether all support vectors' rows at full length are fewer kernel values than each
        problem's own, going by the support vectors so far.

        A class that holds most rows has its inner kernel values in every pair that it is in.
        """
        apart = sum(np.count_nonzero(t.alpha) * len(t.variables) for t in self.tasks)
        support = np.zeros(len(self.data), dtype=bool)
        for task in self.tasks:
            support[task.variables.row[task.alpha > 0]] = True
        return apart > PAYS * support.sum() * len(self.data) > 0

    def _run(self, function: Callable, tasks: Sequence, executor: Threads | Executor) -> list:
        return run_tasks(function, tasks, executor, watch=self.watch, on_result=self.on_result)

    def _sharing(self) -> list[Solution]:
        with closing(
            SeveralProblems(self.data, self.backend, self.settings, share=True)
        ) as several:
            many = several.side_by_side and len(self.data) > AT_ONCE  # else threads cost more
            at_once = self.backend.n_threads if many else 1
            return self._run(partial(_solve_shared, several=several), self.tasks, Threads(at_once))

    def _apart(self) -> list[Solution]:
        """Whether a problem is large is for the problem to say, not for the threads."""
        share = self.settings.cache_bytes / CACHE_SHARES
        itemsize = np.dtype(self.data.kernel.dtype).itemsize
        order = sorted(range(len(self.tasks)), key=lambda k: (-len(self.tasks[k].variables), k))
        large = [k for k in order if itemsize * len(self.tasks[k].variables) ** 2 > share]
        if len(self.tasks) == 1:
            large = order
        small = order[len(large) :]
        alone = [self.tasks[k] for k in large]
        settings = replace(self.settings, cache_bytes=share)
        beside = [replace(self.tasks[k], settings=settings) for k in small]
        if any(are_few(len(task.variables)) for task in beside):
            prepared = self.data.in_double()  # once for all of them
            beside = [task.on_few_rows(prepared) for task in beside]
        at_once = max(min(self.backend.n_threads, len(small), CACHE_SHARES), 1)
        executor = Threads(at_once) if isinstance(self.executor, Threads) else self.executor
        found = self._run(partial(solve_problem, backend=self.backend), alone, Threads(1))
        share_of = self.backend.for_tasks(at_once)
        found += self._run(partial(solve_problem, backend=share_of), beside, executor)
        return [
            solution for _, solution in sorted(zip(large + small, found, strict=True), key=_first)
        ]


def _first(pair: tuple) -> int:
    return pair[0]
