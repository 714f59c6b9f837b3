"""Tasks of a fit: rows, and problems to solve on them.

On a level of clusters, a task is a cluster with the variables of every problem in it.  On level 0
it is one problem with all of its rows.  A task is data that pickles: `solve_task` gives the same
result in a thread, in another process and on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from widemargin.engine import Control, Threads
from widemargin.kernel.backend import Backend, Run
from widemargin.kernel.cache import CACHE_SHARES, cache_left, tasks_at_once
from widemargin.kernel.certificate import Judge, Limit
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.few_rows import AT_ONCE, FewRows
from widemargin.kernel.kernels import DotKernel
from widemargin.kernel.precision import Errors
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import Show, SolverSettings, solve


@dataclass(frozen=True)
class Part:
    """The variables of one problem in a task."""

    problem: int  # its number
    variables: Variables  # with row indices within the task
    alpha: np.ndarray  # start values


@dataclass(frozen=True)
class Task:
    """Rows and the problems on them; rows on disk are read by the process that solves the task."""

    name: str
    number: int
    data: KernelRows
    parts: list[Part]
    settings: SolverSettings
    is_large: bool = False  # uses all threads, even beside other tasks


def solve_task(
    task: Task, control: Control, backend: Backend, path: PathRows | None = None
) -> list[Solution]:
    """Solve the problems of a task, which shares only kernel rows along a path with others."""
    control.check()
    backend, data = backend.copy(), task.data.taken()
    problems = [part.variables for part in task.parts]
    if path is not None and not has_few(problems[0], backend):
        data = path.of(task.number, data, backend)
    sharing = problems if share_rows(len(data), problems, backend) else ()
    with closing(RowsSolver(data, backend, task.settings, sharing)) as rows:
        return _solve_parts(task, control, rows)


def _solve_parts(task: Task, control: Control, rows: RowsSolver) -> list[Solution]:
    control.check()
    return [rows.solve(p.variables, p.alpha, control.step, control.show) for p in task.parts]


class PathRows:
    """Kernel values that a fit of a path of C leaves to the next, for each pair of classes.

    Pairs are solved in parallel, so each has separate ones: the bits must not depend on threads.
    """

    def __init__(self, cache_bytes: float) -> None:
        self._cache_bytes = cache_bytes  # of each pair
        self._data: dict[int, KernelRows] = {}

    def of(self, number: int, data: KernelRows, backend: Backend) -> KernelRows:
        """Return the rows of a pair, which are ``data`` in the first fit."""
        if number not in self._data:
            shared = backend.share_rows(data.kernel, data.rows, self._cache_bytes)
            self._data[number] = KernelRows(*shared, data.exact)
        return self._data[number]


# ------------------------------------------------------------------ problems on the same rows


def has_few(variables: Variables, backend: Backend) -> bool:
    """Whether few_rows.py solves these variables, as it does all groups."""
    return variables.group is not None or backend.are_few(len(variables))


def share_rows(n_rows: int, problems: Sequence[Variables], backend: Backend) -> bool:
    """Whether problems have enough of n rows in common to share kernel rows.

    One class against the others has all rows.  Pairs of classes have few in common, but share them
    if there are few rows in all.
    """
    several = len(problems) > 1 or any(v.group is not None for v in problems)
    every = all(v.group is None and len(v) in (0, n_rows) for v in problems)
    return several and (every or backend.are_few(n_rows))


class RowsSolver:
    """Solves problems on the rows of some data; ``sharing`` problems have common kernel rows.

    Problems on few rows are solved in double precision.  Others are solved in single precision
    first; if their certificate shows that this did not suffice, the solver continues in double
    precision.

    Attributes
    ----------
    side_by_side : bool
        Whether threads may call `solve`, with the same results in any order.
    """

    def __init__(
        self,
        data: KernelRows,
        backend: Backend,
        settings: SolverSettings,
        sharing: Sequence[Variables] = (),
    ):
        self.backend, self.settings, self._share = backend, settings, bool(sharing)
        self.side_by_side = self._share and backend.are_few(len(data))
        if self.side_by_side:
            self._few = FewRows(data, backend.memory, sharing)
        else:
            self._use(data)

    def close(self) -> None:
        if self.side_by_side:
            self._few.close()

    def _use(self, data: KernelRows) -> None:
        kernel, rows = data.kernel, data.rows
        if self._share:
            kernel, rows = self.backend.share_rows(kernel, rows, self.settings.cache_bytes)
        self.data, self.shared = data, KernelRows(kernel, rows)
        self._cache_bytes = cache_left(kernel, self.settings.cache_bytes)

    def solve(
        self,
        variables: Variables,
        alpha: np.ndarray,
        on_step: Callable[[float], bool],
        show: Show = lambda present: None,
    ) -> Solution:
        """Minimise from ``alpha`` to a certified gap of ``settings.tol``.

        Problems on few rows finish before `show` would report them, and are not shown.
        """
        if len(variables) == 0:
            return Solution(np.empty(0), 0.0, 0.0, 0)
        if self.side_by_side:
            return self._few.solve(variables, alpha, self.settings, on_step)
        if has_few(variables, self.backend):
            return self._solve_few(variables, alpha, on_step)
        found = self._solve(variables, Solution(alpha, 0.0, 0.0, 0), on_step, show)
        ends = self.data.exact is None or found.double or found.stopped
        if found.relative_gap <= self.settings.tol or ends:
            return found
        # The most demanding problem determines the model's precision: later ones begin in double.
        self._use(self.data.in_double())
        return self._solve(variables, found, on_step, show).after(found)

    def _solve_few(self, variables: Variables, alpha: np.ndarray, on_step) -> Solution:
        own, rows = variables.on_own_rows(len(self.data))
        data = self.data if rows is None else self.data[rows]
        sharing = () if own.group is None else (own,)
        with closing(FewRows(data, self.backend.memory, sharing)) as few:
            return few.solve(own, alpha, self.settings, on_step)

    def _solve(self, variables: Variables, start: Solution, on_step, show: Show) -> Solution:
        """Solve in the precision of the data."""
        left = self.settings.max_iter - start.n_iter
        limits = SolverSettings(self.settings.tol, left, self._cache_bytes)
        problem, judge = variables.problem(self.shared), None
        if self.data.exact is not None:
            plain = variables.problem(self.data.exact)
            exact = problem if problem.kernel.dtype == np.float64 else plain
            known = self.data if isinstance(self.data.kernel, DotKernel) else self.data.exact
            errors = Errors.of(known.kernel, known.rows)[variables.row]
            limit = Limit(plain, errors, self.settings.tol)
            judge = Judge(variables.problem(self.data), exact, self.backend, limit)
        begin = (start.alpha, on_step, judge, show, float(start.offset[0]))
        return solve(problem, self.backend, limits, *begin)


# ------------------------------------------------------------------ the tasks of a level


class ClusterTasks(Sequence):
    """The clusters of a level, the largest first.

    A task is created when it is needed, so that few copies of rows exist.
    """

    kind = "cluster"

    def __init__(
        self,
        level: int,
        label: np.ndarray,
        data: KernelRows,
        settings: SolverSettings,
        problems: Sequence[Variables],
        alphas: Sequence[np.ndarray],
    ):
        n = int(label.max()) + 1
        self.level, self.data, self.members = level, data, _grouped(label, n)
        self.problems, self.alphas = problems, alphas
        self._cache_bytes = settings.cache_bytes
        # The cache determines the size of working sets, so its share may not depend on threads.
        self.settings = replace(settings, cache_bytes=self._cache_bytes / min(n, CACHE_SHARES))
        self.order = sorted(range(n), key=lambda c: (-len(self.members[c]), c))
        self._position = np.empty(len(label), dtype=np.int64)  # of each row, in its cluster
        for members in self.members:
            self._position[members] = np.arange(len(members))
        self._numbers = [_grouped(label[variables.row], n) for variables in problems]

    def name(self, cluster: int) -> str:
        return f"level{self.level}-cluster{cluster}"

    def places(self, cluster: int) -> list[tuple[int, Any]]:
        """Yield the index of each problem, and the positions of its variables in a cluster."""
        return [(p, numbers[cluster]) for p, numbers in enumerate(self._numbers)]

    def variables(self, cluster: int) -> list[Variables]:
        """Return each problem's variables in a cluster."""
        return [self.problems[p][numbers] for p, numbers in self.places(cluster)]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, k):
        cluster = self.order[k]
        parts = [
            Part(p, replace(own, row=self._position[own.row]), self.alphas[p][numbers])
            for own, (p, numbers) in zip(self.variables(cluster), self.places(cluster), strict=True)
        ]
        data = self.data.chosen(self.members[cluster])
        return Task(self.name(cluster), cluster, data, parts, self.settings)

    def solve(self, backend: Backend, executor: Threads | Executor, run: Run) -> list:
        """Solve as many clusters at once as fit; the cache holds at most its share of each."""
        matrices = 1 if len(self.problems) == 1 else 2  # a problem's own rows, and shared ones
        largest = max((len(self.members[c]) for c in self.order), default=0)
        n_bytes = matrices * np.dtype(self.data.kernel.dtype).itemsize * float(largest) ** 2
        needed = [min(self.settings.cache_bytes, n_bytes)] * len(self)
        return _side_by_side(self, needed, self._cache_bytes, backend, executor, run)


class ProblemTasks(Sequence):
    """The problems of level 0, each on all of its rows.

    Problems on the same rows (one class against the others) share kernel rows and are solved in
    turn.  Pairs of classes share only rows of a class: each pair is solved on a copy of its rows,
    and so is each group of pairs of small classes.
    """

    kind, level = "problem", 0

    def __init__(
        self,
        data: KernelRows,
        settings: SolverSettings,
        problems: Sequence[Variables],
        alphas: Sequence[np.ndarray],
        backend: Backend,
        path: PathRows | None = None,
    ):
        self.data, self.settings, self.backend, self.path = data, settings, backend, path
        self._share = replace(settings, cache_bytes=settings.cache_bytes / CACHE_SHARES)
        self.problems, self.alphas = problems, alphas
        self._bytes = [self._matrix_bytes(variables) for variables in problems]
        self.order = list(range(len(problems)))
        self.shared = share_rows(len(data), problems, backend)
        self._double: KernelRows | None = None

    def name(self, problem: int) -> str:
        return f"whole{problem}"

    def places(self, problem: int) -> list[tuple[int, Any]]:
        return [(problem, slice(None))]

    def variables(self, problem: int) -> list[Variables]:
        return [self.problems[problem]]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, k):
        number = self.order[k]
        own, data, is_large = self.problems[number], self.data, self._is_large(number)
        settings = self.settings if self.shared or is_large else self._share
        if not self.shared:
            if self._double is not None and has_few(own, self.backend):
                data = self._double
            own, rows = own.on_own_rows(len(data))
            data = data if rows is None else data.chosen(rows)
        part = Part(number, own, self.alphas[number])
        return Task(self.name(number), number, data, [part], settings, is_large)

    def solve(self, backend: Backend, executor: Threads | Executor, run: Run) -> list:
        """Solve in the order of `order`, which this may change."""
        if not self.shared:
            return self._solve_apart(backend, executor, run)
        with closing(RowsSolver(self.data, backend, self.settings, self.problems)) as rows:
            many = rows.side_by_side and len(self.data) > AT_ONCE  # else threads cost more
            at_once = backend.n_threads if many else 1
            return run(partial(_solve_parts, rows=rows), self, Threads(at_once))

    def _solve_apart(self, backend: Backend, executor: Threads | Executor, run: Run) -> list:
        """Solve all in parallel, the largest first; or the large ones first, if memory is short."""
        self.order.sort(key=lambda k: (-self._bytes[k], k))
        large = [k for k in self.order if self._is_large(k)]
        small = self.order[len(large) :]
        if isinstance(executor, Threads) and any(has_few(self.problems[k], backend) for k in small):
            self._double = self.data.in_double()  # once for all of them
        cache_bytes, local = self.settings.cache_bytes, isinstance(executor, Threads)
        every = self._needed(self.order)
        most = min(backend.n_threads, len(every))
        fits = tasks_at_once(most, every, cache_bytes) == most
        found = []
        for order in [self.order] if local and fits else [large, small]:
            where = executor if local or order is small else Threads(1)
            how = (self._needed(order), cache_bytes, backend, where, run, self.path)
            found += _side_by_side(self._some(order), *how)
        return found

    def _needed(self, order: list[int]) -> list[float]:
        """Return the bytes of the cache that each problem needs."""
        return [min(self._bytes[k], self.settings.cache_bytes) for k in order]

    def _some(self, order: list[int]) -> ProblemTasks:
        some = copy(self)
        some.order = order
        return some

    def _matrix_bytes(self, variables: Variables) -> float:
        """Return the bytes of a problem's kernel matrix."""
        dtype = np.float64 if has_few(variables, self.backend) else self.data.kernel.dtype
        return np.dtype(dtype).itemsize * float(variables.n_rows) ** 2

    def _is_large(self, k: int) -> bool:
        """Whether a problem is large; this depends on the problem, not on the threads."""
        return len(self.problems) == 1 or self._bytes[k] > self._share.cache_bytes


def _side_by_side(
    tasks: Sequence,
    needed: Sequence[float],
    cache_bytes: float,
    backend: Backend,
    executor: Threads | Executor,
    run: Run,
    path: PathRows | None = None,
) -> list:
    """Return how many tasks fit in the cache at once, given the bytes of each in descending
    order."""
    if len(tasks) == 0:
        return []
    at_once = tasks_at_once(backend.n_threads, needed, cache_bytes)
    if isinstance(executor, Threads):
        return backend.solve_tasks(partial(solve_task, path=path), tasks, at_once, run)
    return run(partial(solve_task, backend=backend.for_tasks(at_once)), tasks, executor)


def _grouped(label: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """Return the indices with each label, ascending."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=n_groups))[:-1])
