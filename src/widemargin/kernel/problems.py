"""The problems of a fit: which variables there are, and the row that each belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.kernel.exact import KernelRows
from widemargin.kernel.problem import Problem
from widemargin.multiclass import Coding

MULTI_CLASS = ("ovr", "ovo")


@dataclass(frozen=True)
class Variables:
    """The variables of one `Problem`, before it has a kernel; several of them share the rows."""

    row: np.ndarray  # of the data, for each variable
    sign: np.ndarray
    linear: np.ndarray
    upper: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, which) -> Variables:
        return Variables(self.row[which], self.sign[which], self.linear[which], self.upper[which])

    def problem(self, data: KernelRows) -> Problem:
        """With the rows of the data."""
        rows = data.rows
        every = len(self) == len(rows) and np.array_equal(self.row, np.arange(len(rows)))
        own = rows if every else rows[self.row]
        return Problem(data.kernel, own, self.sign, self.linear, self.upper)


def binary_problems(label: np.ndarray, coding: Coding, upper: np.ndarray) -> list[Variables]:
    """One problem per output: a variable for each row whose class takes part in it."""
    every = np.arange(len(label))
    of_class = [(label == c).nonzero()[0] for c in range(coding.n_classes)]
    problems = []
    for target in coding.targets.T:
        part = target.nonzero()[0]
        rows = every if len(part) == coding.n_classes else _merged(of_class, part)
        linear = np.full(len(rows), -1.0)
        problems.append(Variables(rows, target[label[rows]], linear, upper[rows]))
    return problems


def _merged(of_class: list[np.ndarray], part: np.ndarray) -> np.ndarray:
    rows = np.concatenate([of_class[c] for c in part])
    rows.sort()
    return rows
