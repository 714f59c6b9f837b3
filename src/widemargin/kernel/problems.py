"""The problems of a fit: which variables there are, and the row that each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

import numpy as np

from widemargin.kernel.exact import KernelRows
from widemargin.kernel.problem import Problem, Solution, lower_bound, turned_cost
from widemargin.multiclass import Coding, every_pair, pair_numbers

MULTI_CLASS = ("ovr", "ovo")
SMALL_CLASS = 128  # rows up to which pairs of classes are solved in groups
GROUP_ROWS = 512  # of classes that meet those of another such set, or each other


@dataclass(frozen=True)
class Group:
    """Several problems that have nothing in common but rows, and are solved in one go."""

    start: np.ndarray  # where the variables of each begin, and where the last end
    n_rows: int  # rows that have a variable, or more

    @property
    def largest(self) -> int:
        """Variables of the largest problem."""
        return int((self.start[1:] - self.start[:-1]).max(initial=0))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Of the variables of each problem."""
        number = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        return np.bincount(number, values, minlength=len(self.start) - 1)


@dataclass(frozen=True)
class Variables:
    """The variables of one `Problem`, before it has a kernel, or of a `Group` of small ones.

    Several problems share the rows.
    """

    row: np.ndarray  # of the data, for each variable
    sign: np.ndarray
    linear: np.ndarray
    upper: np.ndarray
    output: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))  # per problem
    group: Group | None = None
    has_offset: bool = False  # an intercept
    cluster: np.ndarray | None = None  # of each variable's row
    turn: float = np.inf  # of variables on two sides

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, which: np.ndarray) -> Variables:
        """Some of them, in ascending order."""
        some = {name: getattr(self, name)[which] for name in ("row", "sign", "linear", "upper")}
        if self.group is not None:
            some["group"] = replace(self.group, start=np.searchsorted(which, self.group.start))
        if self.cluster is not None:
            some["cluster"] = self.cluster[which]
        return replace(self, **some)

    def alone(self, one: slice) -> Variables:
        """Those of one problem of a group."""
        own = (self.row[one], self.sign[one], self.linear[one], self.upper[one])
        return Variables(*own, has_offset=self.has_offset, turn=self.turn)

    def in_clusters(self, label: np.ndarray | None) -> Variables:
        """With the cluster of each row, out of every row's."""
        return self if label is None else replace(self, cluster=label[self.row])

    def within(self, alpha: np.ndarray) -> np.ndarray:
        """Variables clipped to their bounds."""
        return np.clip(alpha, lower_bound(self.upper, self.turn), self.upper)

    @property
    def n_rows(self) -> int:
        """Rows that a solver has to do with."""
        return len(self) if self.group is None else self.group.n_rows

    @property
    def largest(self) -> int:
        return len(self) if self.group is None else self.group.largest

    @property
    def output_of(self) -> np.ndarray:
        """The output of every variable."""
        if self.group is None:
            return np.repeat(self.output, len(self))
        return np.repeat(self.output, np.diff(self.group.start))

    def least_quadratic(self, solution: Solution) -> float:
        """The least a'Qa of the problems, from their dual objectives, at most."""
        linear = self.linear * solution.alpha + turned_cost(solution.alpha, self.turn)
        if self.group is None or solution.each is None:
            dual, sums = np.array([solution.dual]), np.array([linear.sum()])
        else:
            dual, sums = solution.each[:, 1], self.group.sums(linear)
        rounding = 1e-12 * (np.abs(dual) + np.abs(sums))
        return float((-2 * (dual + sums) + rounding).min(initial=np.inf))

    def on_own_rows(self, n: int) -> tuple[Variables, np.ndarray | None]:
        """With rows by number among their own; and which of n these are, if not all."""
        if self.group is None:
            own = np.arange(len(self))
            every = len(self) == n and np.array_equal(self.row, own)
            return replace(self, row=own), None if every else self.row
        if self.group.n_rows == n:
            return self, None
        used = np.zeros(n, dtype=bool)
        used[self.row] = True
        return replace(self, row=np.cumsum(used)[self.row] - 1), used.nonzero()[0]

    def problem(self, data: KernelRows) -> Problem:
        """With the rows of the data."""
        assert self.group is None
        rows = data.rows
        every = len(self) == len(rows) and np.array_equal(self.row, np.arange(len(rows)))
        own = rows if every else rows[self.row]
        more = (self.sign, self.linear, self.upper, self.has_offset, self.cluster, self.turn)
        return Problem(data.kernel, own, *more)


def binary_problems(
    label: np.ndarray,
    coding: Coding,
    upper: np.ndarray,
    *,
    grouped: bool = True,
    has_offset: bool = False,
) -> list[Variables]:
    """A variable for each row whose class takes part in an output.

    One problem per output; pairs of small classes are ``grouped``, if they may be.
    """
    if coding.votes:
        classes = _ByClass(label, coding.n_classes, upper, has_offset)
        return list(_pairs(classes, grouped=grouped))
    rows, linear = np.arange(len(label)), np.full(len(label), -1.0)
    return [
        Variables(rows, target[label], linear, upper, np.array([output]), None, has_offset)
        for output, target in enumerate(coding.targets.T)
    ]


def number_problems(value: np.ndarray, upper: np.ndarray, epsilon: np.ndarray) -> list[Variables]:
    """A variable on two sides for each row, in a problem for each column of targets.

    ``upper`` and ``epsilon`` are those of each problem.
    """
    rows, sign = np.arange(len(value)), np.ones(len(value))
    return [
        Variables(rows, sign, e - y, u, np.array([output]), turn=2 * float(e))
        for output, (y, u, e) in enumerate(zip(value.T, upper.T, epsilon, strict=True))
    ]


class _ByClass:
    """Rows in the order of their classes, with their bounds."""

    def __init__(self, label: np.ndarray, n_classes: int, upper: np.ndarray, has_offset: bool):
        self.rows = label.argsort(kind="stable")
        self.size = np.bincount(label, minlength=n_classes)
        self.begin = self.size.cumsum() - self.size
        self.upper, self.has_offset = upper, has_offset

    def pairs(
        self, first: np.ndarray, second: np.ndarray, group_rows: int | None = None
    ) -> Variables:
        """Of some pairs of classes: the rows of the first, then those of the second."""
        ends = np.array([first, second]).T.ravel()
        size, begin = self.size[ends], self.begin[ends]
        after = size.cumsum()
        row = self.rows[(begin - after + size).repeat(size) + np.arange(after[-1])]
        sign, linear = np.where(np.arange(len(ends)) % 2, 1.0, -1.0), np.full(len(row), -1.0)
        output = pair_numbers(first, second, len(self.size))
        group = None
        if group_rows is not None:
            group = Group(np.concatenate([[0], after[1::2]]), group_rows)
        own = (row, sign.repeat(size), linear, self.upper[row], output)
        return Variables(*own, group, self.has_offset)

    def group(self, some: np.ndarray, others: np.ndarray) -> Variables:
        """Of classes that meet those of another set, or (where it is the same) each other."""
        n_rows = int(self.size[some].sum())
        if some is others:
            first, second = every_pair(len(some))
            return self.pairs(some[first], some[second], n_rows)
        first, second = some.repeat(len(others)), np.tile(others, len(some))
        return self.pairs(first, second, n_rows + int(self.size[others].sum()))


def _pairs(classes: _ByClass, *, grouped: bool) -> Iterator[Variables]:
    """Groups of pairs of small classes; then every other pair on its own."""
    small = classes.size <= (SMALL_CLASS if grouped else 0)
    for some, others in combinations_with_replacement(_sets(classes.size, small), 2):
        if some is not others or len(some) > 1:
            yield classes.group(some, others)
    if small.all():
        return
    first, second = every_pair(len(classes.size))
    alone = (~(small[first] & small[second])).nonzero()[0]
    for k in alone:
        yield classes.pairs(first[k : k + 1], second[k : k + 1])


def _sets(size: np.ndarray, small: np.ndarray) -> list[np.ndarray]:
    """Small classes, as many at a time as have `GROUP_ROWS` together."""
    sets: list[list[int]] = []
    n_rows = GROUP_ROWS
    for number in np.flatnonzero(small).tolist():
        n_rows += size[number]
        if n_rows > GROUP_ROWS:
            sets.append([])
            n_rows = size[number]
        sets[-1].append(number)
    return [np.array(numbers) for numbers in sets]
