"""Problems on few rows: all kernel rows in use are kept, and the core does the rest.

In double precision if a certificate is needed: the solver's gap is then that of the model.  Most
fits of many classes consist of such problems.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from widemargin import _core
from widemargin.kernel.active_set import INNER_TOL
from widemargin.kernel.certificate import with_rounding
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.precision import Errors
from widemargin.kernel.problem import TINY, Patience, Solution, away_from_zero
from widemargin.kernel.problems import Group, Variables
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.tiles import Memory

AT_ONCE = 320  # up to this many rows, compute the whole matrix at the start
WORKING_SET = 128  # smaller than elsewhere, because only kernel rows are expensive here
START_ROWS, START_TOL = 192, 1e-2  # on which a problem begins
MOST = 0.7  # share of support vectors among these from which all kernel rows are computed at once
_STEPS = 16  # between two checks for a stop
_SLICE = 0.1  # seconds, likewise for many problems
_TILE = 128


class KeptRows:
    """Kernel rows over n variables, kept once computed.

    The core computes those of ``data`` if it can.
    """

    def __init__(self, n: int, dtype, memory: Memory, data: KernelRows | None = None):
        self.memory, self.data = memory, data
        self._buffer = memory.take(n * n, n * n, dtype)
        self.pool = self._buffer.reshape(n, n)
        kernel = None if data is None else data.kernel.in_core(data.rows)
        self.core = _core.KeptRows(self.pool, kernel)

    @classmethod
    def of_data(cls, data: KernelRows, memory: Memory) -> KeptRows:
        """Return an empty set of rows."""
        return cls(len(data), data.kernel.dtype, memory, data)

    @property
    def has_all(self) -> bool:
        return self.core.n_used == len(self.pool)

    def compute(self, missing: np.ndarray) -> None:
        """Compute rows that the core cannot."""
        assert self.data is not None
        kernel, rows, first = self.data.kernel, self.data.rows, self.core.add(missing)
        values = self.pool[first : first + len(missing)]
        kernel.fill(kernel.as_left(rows[missing]), rows, values)

    def compute_all(self) -> None:
        """Compute the whole symmetric matrix from one half."""
        if self.core.ask_all():
            return
        assert self.data is not None
        kernel, rows, values = self.data.kernel, self.data.rows, self.pool
        for begin in range(0, len(rows), _TILE):
            end = min(begin + _TILE, len(rows))
            kernel.fill(kernel.as_left(rows[begin:end]), rows[begin:], values[begin:end, begin:])
            values[end:, begin:end] = values[begin:end, end:].T
        self.core.add(np.arange(len(rows)))

    def part(self, row: np.ndarray) -> KeptRows:
        """Return the matrix of some rows, if all are computed."""
        own = KeptRows(len(row), self.pool.dtype, self.memory)
        _core.gather(self.pool, row, row, own.pool)
        own.core.add(np.arange(len(row)))
        return own

    def close(self) -> None:
        """Release the memory for the next problem."""
        self.memory.give(self._buffer)


class FewRows:
    """Solves every problem on the rows of some data.

    Parameters
    ----------
    data : KernelRows
    memory : Memory
        Provides buffers for kernel rows.
    sharing : sequence of Variables
        Problems that share the whole matrix, in any number of threads; groups of them always do.
    """

    def __init__(self, data: KernelRows, memory: Memory, sharing: Sequence[Variables] = ()):
        self.data = data if data.exact is None else data.in_double()
        self._diagonal = away_from_zero(self.data.kernel.diagonal(self.data.rows))
        self._largest = Errors.largest(self.data.kernel, self.data.rows)
        self._place, kept = None, self.data
        if sharing and len(data) > AT_ONCE:  # a smaller matrix is in the cache anyway
            order = _neighbours(len(data), sharing)
            self._place, kept = np.argsort(order), self.data[order]
        self._kept = KeptRows.of_data(kept, memory)
        if sharing or len(data) <= AT_ONCE:
            self._kept.compute_all()

    def close(self) -> None:
        self._kept.close()

    def solve(
        self,
        variables: Variables,
        alpha: np.ndarray,
        settings: SolverSettings,
        on_step: Callable[[float], bool],
    ) -> Solution:
        """Minimise from ``alpha`` to a relative duality gap of ``settings.tol``, rounding included.

        If rounding alone keeps the gap above it, the solver continues once, to a smaller one.
        """
        rounded = (variables, self.data, self._largest, settings.tol)
        found = with_rounding(self._solved(variables, alpha, settings, on_step), *rounded)
        gap = found.relative_gap
        if found.stopped or not gap - found.rounding <= settings.tol < gap:
            return found
        tol = max(settings.tol - 2 * found.rounding, settings.tol / 4)
        nearer = replace(settings, tol=tol, max_iter=settings.max_iter - found.n_iter)
        again = self._solved(variables, found.alpha, nearer, on_step).after(found)
        return with_rounding(again, *rounded)

    def _solved(
        self,
        variables: Variables,
        alpha: np.ndarray,
        settings: SolverSettings,
        on_step: Callable[[float], bool],
    ) -> Solution:
        if variables.group is not None:
            return self._solve_each(variables, variables.group, alpha, settings, on_step)
        if len(variables) < len(self._diagonal) or self._place is not None:
            row = variables.row if self._place is None else self._place[variables.row]
            with closing(self._kept.part(row)) as part:
                return self._solve(part, variables, alpha, settings, on_step)
        if self._kept.has_all or alpha.any() or variables.total:  # which some rows cannot add up to
            return self._solve(self._kept, variables, alpha, settings, on_step)
        start = self._start(variables, settings, on_step)
        if np.count_nonzero(start.alpha) > MOST * START_ROWS:  # half of a matrix will do
            self._kept.compute_all()
        left = replace(settings, max_iter=settings.max_iter - start.n_iter)
        begin = (variables, start.alpha, left, on_step, float(start.offset[0]))
        return self._solve(self._kept, *begin).after(start)

    def _solve_each(self, variables: Variables, group: Group, alpha, settings, on_step) -> Solution:
        """Solve the problems of a group, whose whole matrix is computed."""
        started = time.perf_counter()
        row, diagonal = variables.row, self._diagonal
        if self._place is not None:
            row, diagonal = self._place[row], diagonal[np.argsort(self._place)]
        alpha, found = np.minimum(alpha, variables.upper), np.zeros((len(group.start) - 1, 4))
        found[:, 1] = group.sums(variables.upper)  # the gap of zeros, until a problem is solved
        given = (row, group.start, alpha, variables.sign, variables.linear, variables.upper)
        problems = _core.SmallProblems(self._kept.core, *given, diagonal)
        how = {"tol": settings.tol, "inner_tol": INNER_TOL, "size": WORKING_SET, "found": found}
        how["has_offset"] = variables.has_offset
        history: list[dict] = []

        def record() -> float:
            """Return a record of all problems, and the largest relative gap."""
            dual, gap, steps, _ = found.T
            sums = {"step": int(steps.max()), "gap": float(gap.sum()), "dual": float(dual.sum())}
            seconds = time.perf_counter() - started
            held = {"active": len(variables), "rows": len(self._diagonal), "seconds": seconds}
            history.append(sums | held)
            return float((gap / np.maximum(dual + gap, TINY)).max())

        done, stopped = 0, on_step(record())
        while done < len(found) and not stopped:
            done = problems.solve(done, max_steps=settings.max_iter, seconds=_SLICE, **how)
            stopped = on_step(record()) and done < len(found)
        if stopped:  # the other problems stay as they are
            problems.solve(done, max_steps=0, seconds=np.inf, **how)
        dual, gap, steps, offset = found.T.copy()
        each, n_iter = np.array([dual + gap, dual]).T, int(steps.max(initial=0))
        primal = float(each[:, 0].sum())
        sums = (primal, float(dual.sum()), n_iter, offset)
        return Solution(alpha, *sums, history, stopped=stopped, each=each)

    def _start(self, variables: Variables, settings, on_step) -> Solution:
        """Solve on some of the rows, most of whose support vectors remain support vectors."""
        some = np.arange(START_ROWS) * (len(variables) - 1) // (START_ROWS - 1)
        roughly = replace(settings, tol=max(settings.tol, START_TOL))
        data = KernelRows(self.data.kernel, self.data.rows[some])
        with closing(KeptRows.of_data(data, self._kept.memory)) as kept:
            kept.compute_all()
            found = self._solve(kept, variables[some], np.zeros(len(some)), roughly, on_step)
        alpha = np.zeros(len(variables))
        alpha[some] = found.alpha
        return replace(found, alpha=alpha)

    def _solve(
        self, kept: KeptRows, variables, alpha, settings, on_step, offset: float = 0.0
    ) -> Solution:
        started = time.perf_counter()
        diagonal = self._diagonal[variables.row]
        alpha, gradient = variables.within(alpha), np.empty(len(variables))
        arrays = (alpha, gradient, variables.sign, variables.upper, diagonal)
        active = _core.WorkingSet(*arrays, variables.has_offset, offset, variables.turn)
        active.set_rest(0.0, variables.total)
        n_steps, ends, stopped, history, patience = 0, False, False, [], Patience()
        while True:
            dual, gap, slack, missing = active.refresh(kept.core, variables.linear)
            if len(missing):  # of the first variables
                kept.compute(missing)
                continue
            certified = {"gap": gap + slack, "dual": dual - slack}
            record = {"step": n_steps, **certified, "active": len(variables)}
            seconds = time.perf_counter() - started
            history.append({**record, "rows": kept.core.n_used, "seconds": seconds})
            primal = max(dual + gap, TINY)
            if ends or gap + slack <= settings.tol * primal:
                break
            stopped = on_step(gap / primal) or n_steps >= settings.max_iter
            steps = 0
            if not stopped:
                steps = _descend(kept, active, dual, settings, settings.max_iter - n_steps)
            n_steps += steps
            # Stopped, at the limit of the arithmetic, or without progress; the caller warns.
            ends = steps == 0 or patience.is_over(n_steps, dual, gap)
            while ends and len(missing := active.meet_constraint_on(kept.core)):
                kept.compute(missing)
        solved = (n_steps, np.array([active.offset]), history)
        primal, dual = dual + gap, dual - slack
        return Solution(alpha, primal, dual, *solved, stopped=stopped, gradient=gradient)


def _descend(kept: KeptRows, active, dual: float, settings, left: int) -> int:
    """Take a few steps, computing missing rows; return the number of steps."""
    done, most = 0, min(left, _STEPS)
    while True:
        limits = (settings.tol, INNER_TOL, most - done, WORKING_SET)
        dual, _, steps, missing = active.descend(kept.core, dual, *limits)
        done += steps
        if len(missing) == 0 or done == most:
            return done
        kept.compute(missing)


def _neighbours(n_rows: int, problems: Sequence[Variables]) -> np.ndarray:
    """Return an order in which the rows of a pair of classes are in two contiguous parts.

    It is the order of occurrence: pairs have the rows of one class, then those of the other.
    """
    row = np.concatenate([*(variables.row for variables in problems), np.arange(n_rows)])
    first = np.empty(n_rows, dtype=np.int64)
    first[row[::-1]] = np.arange(len(row))[::-1]  # the last one that is written stays
    return np.argsort(first)
