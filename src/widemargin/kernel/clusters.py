"""One cluster as a task: its rows and what each problem has of them in, dual variables out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from widemargin.engine import Control
from widemargin.kernel.backend import Backend
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.problems import Variables
from widemargin.kernel.several import SeveralProblems, shares_rows
from widemargin.kernel.solver import SolverSettings


@dataclass(frozen=True)
class ClusterPart:
    """What one problem has of a cluster."""

    numbers: np.ndarray  # of the variables, in the problem
    variables: Variables  # their rows by number in the cluster
    alpha: np.ndarray  # from the level below


@dataclass(frozen=True)
class ClusterTask:
    """A cluster to solve: arrays and a kernel, all that another process needs.

    Of rows on disk it has the numbers; whoever solves the cluster reads them.
    """

    name: str
    number: int
    data: KernelRows
    parts: list[ClusterPart]
    settings: SolverSettings


class ClusterSolution(NamedTuple):
    """What a cluster found for one problem."""

    variables: np.ndarray  # their numbers in the problem
    alpha: np.ndarray
    dual: float
    gap: float
    n_iter: int
    double: bool  # whether single precision was not enough


def solve_cluster(task: ClusterTask, control: Control, backend: Backend) -> list[ClusterSolution]:
    """Every problem on the rows of one cluster, from the variables of the level below."""
    control.check()
    backend, data = backend.copy(), task.data.taken()
    problems = [part.variables for part in task.parts]
    sharing = problems if shares_rows(len(data), problems) else ()
    solutions = []
    with closing(SeveralProblems(data, backend, task.settings, sharing)) as several:
        for part in task.parts:
            if len(part.numbers) == 0:
                solutions.append(ClusterSolution(part.numbers, np.empty(0), 0.0, 0.0, 0, False))
                continue
            found = several.solve(part.variables, part.alpha, control.step)
            sums = (found.dual, found.relative_gap, found.n_iter, found.double)
            solutions.append(ClusterSolution(part.numbers, found.alpha, *sums))
    return solutions


class ClusterTasks(Sequence):
    """The tasks of a level, each made when its turn comes, so that few copies of rows exist."""

    def __init__(self, level: int, label: np.ndarray, data: KernelRows, settings: SolverSettings):
        self.level, self.data, self.settings = level, data, settings
        self.members = _grouped(label, int(label.max()) + 1)
        self.label = label
        self.order = sorted(range(len(self.members)), key=lambda c: (-len(self.members[c]), c))
        self._position = np.empty(len(label), dtype=np.int64)  # of each row, in its cluster
        for members in self.members:
            self._position[members] = np.arange(len(members))
        self._problems: list[tuple[Variables, np.ndarray, list[np.ndarray]]] = []

    def add(self, variables: Variables, alpha: np.ndarray) -> None:
        """A problem that the clusters are to solve, and where it starts."""
        numbers = _grouped(self.label[variables.row], len(self.members))
        self._problems.append((variables, alpha, numbers))

    @property
    def problems(self) -> list[Variables]:
        return [variables for variables, _, _ in self._problems]

    def name(self, cluster: int) -> str:
        return f"level{self.level}-cluster{cluster}"

    def leave_out(self, clusters: set[int]) -> None:
        """Clusters that are solved already."""
        self.order = [c for c in self.order if c not in clusters]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, k):
        """The largest first."""
        cluster = self.order[k]
        parts = []
        for variables, alpha, numbers in self._problems:
            mine = variables[numbers[cluster]]
            mine = replace(mine, row=self._position[mine.row])
            parts.append(ClusterPart(numbers[cluster], mine, alpha[numbers[cluster]]))
        own = self.data.chosen(self.members[cluster])
        return ClusterTask(self.name(cluster), cluster, own, parts, self.settings)


def _grouped(label: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """The numbers with each label, ascending."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=n_groups))[:-1])
