"""Problems on few rows: all kernel rows that they ask for are kept, and the core does the rest.

In double precision, where a certificate is wanted: the gap of the solver is then that of the model.
Most fits of many classes consist of such problems.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from widemargin import _core
from widemargin.history import continued
from widemargin.kernel.active_set import INNER_TOL
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.problem import Solution, away_from_zero, dual_value, gap_terms
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.tiles import Memory

MOST_ROWS = 2048
AT_ONCE = 320  # rows up to which the whole matrix is computed before anybody asks
WORKING_SET = 256  # smaller than elsewhere: kernel rows are all that costs here
START_TOL = 1e-2
_STEPS = 16  # between two looks at whether to stop
_TILE = 128


def are_few(n_rows: int) -> bool:
    """Whether a problem on so many rows is solved here."""
    return n_rows <= MOST_ROWS


class KeptRows:
    """Kernel rows over n variables, from the first that was asked for to the last."""

    def __init__(self, n: int, dtype, memory: Memory):
        self.memory = memory
        self._buffer = memory.take(n * n, n * n, dtype)
        self.pool = self._buffer.reshape(n, n)
        self.slots = np.full(n, -1)
        self.n_used = 0

    @property
    def has_all(self) -> bool:
        return self.n_used == len(self.slots)

    def compute(self, data: KernelRows, missing: np.ndarray) -> None:
        if len(missing) == 0:
            return
        first, self.n_used = self.n_used, self.n_used + len(missing)
        kernel, rows = data.kernel, data.rows
        kernel.fill(kernel.as_left(rows[missing]), rows, self.pool[first : self.n_used])
        self.slots[missing] = np.arange(first, self.n_used)

    def compute_all(self, data: KernelRows) -> None:
        """The matrix is symmetric: one half is computed."""
        kernel, rows, values = data.kernel, data.rows, self.pool
        for begin in range(0, len(rows), _TILE):
            end = min(begin + _TILE, len(rows))
            kernel.fill(kernel.as_left(rows[begin:end]), rows[begin:], values[begin:end, begin:])
            values[end:, begin:end] = values[begin:end, end:].T
        self._have_all()

    def part(self, row: np.ndarray) -> KeptRows:
        """Those of some rows, where all are there."""
        own, one = KeptRows(len(row), self.pool.dtype, self.memory), np.ones(len(row))
        _core.gather(self.pool, row, row, one, one, own.pool)
        own._have_all()
        return own

    def _have_all(self) -> None:
        self.slots, self.n_used = np.arange(len(self.slots)), len(self.slots)

    def close(self) -> None:
        """Hand the memory back for the next problem."""
        self.memory.give(self._buffer)


class FewRows:
    """Solves every problem on the rows of some data.

    Parameters
    ----------
    data : KernelRows
    memory : Memory
        Where buffers for kernel rows come from.
    sharing : sequence of Variables
        Problems that share the whole matrix, in any number of threads.
    """

    def __init__(self, data: KernelRows, memory: Memory, sharing: Sequence[Variables] = ()):
        self.data = data if data.exact is None else data.in_double()
        self._kept = KeptRows(len(data), self.data.kernel.dtype, memory)
        self._diagonal = self.data.kernel.diagonal(self.data.rows)
        order = _neighbours(len(data), sharing) if sharing else np.arange(len(data))
        self._place = np.argsort(order)  # of each row in the matrix
        self._in_order = bool(np.all(order == np.arange(len(data))))
        if sharing or len(data) <= AT_ONCE:
            self._kept.compute_all(self.data if self._in_order else self.data[order])

    def close(self) -> None:
        self._kept.close()

    def solve(
        self,
        variables: Variables,
        alpha: np.ndarray,
        settings: SolverSettings,
        on_step: Callable[[float], bool],
    ) -> Solution:
        """Minimise from ``alpha`` to a relative duality gap of ``settings.tol``."""
        if len(variables) < len(self._diagonal) or not self._in_order:
            with closing(self._kept.part(self._place[variables.row])) as part:
                return self._solve(part, variables, alpha, settings, on_step)
        if self._kept.has_all or alpha.any():
            return self._solve(self._kept, variables, alpha, settings, on_step)
        start = self._start(variables, settings, on_step)
        left = replace(settings, max_iter=settings.max_iter - start.n_iter)
        found = self._solve(self._kept, variables, start.alpha, left, on_step)
        history = continued(start.history, found.history)
        return replace(found, n_iter=start.n_iter + found.n_iter, history=history)

    def _start(self, variables: Variables, settings, on_step) -> Solution:
        """The solution on some of the rows: most of their support vectors stay such."""
        some = np.linspace(0, len(variables) - 1, AT_ONCE).astype(np.int64)
        roughly = replace(settings, tol=max(settings.tol, START_TOL))
        with closing(KeptRows(len(some), self._kept.pool.dtype, self._kept.memory)) as kept:
            kept.compute_all(self.data[some])
            found = self._solve(kept, variables[some], np.zeros(len(some)), roughly, on_step)
        alpha = np.zeros(len(variables))
        alpha[some] = found.alpha
        return replace(found, alpha=alpha)

    def _solve(self, kept: KeptRows, variables, alpha, settings, on_step) -> Solution:
        started = time.perf_counter()
        diagonal = away_from_zero(self._diagonal[variables.row])
        alpha, gradient = np.minimum(alpha, variables.upper), np.empty(len(variables))
        active = _core.WorkingSet(alpha, gradient, variables.sign, variables.upper, diagonal)
        support = np.flatnonzero(alpha)
        kept.compute(self.data, support[kept.slots[support] < 0])
        n_steps, stopped, history = 0, False, []
        while True:
            dual, gap = _fresh(kept, variables, alpha, gradient)
            record = {"step": n_steps, "gap": gap, "dual": dual, "active": len(variables)}
            seconds = time.perf_counter() - started
            history.append({**record, "rows": kept.n_used, "seconds": seconds})
            primal = max(dual + gap, np.finfo(np.float64).tiny)
            if gap <= settings.tol * primal:
                break
            stopped = on_step(gap / primal) or n_steps >= settings.max_iter
            if stopped:
                break
            steps = self._descend(kept, active, dual, settings, settings.max_iter - n_steps)
            n_steps += steps
            if steps == 0:  # at the limit of the arithmetic; the caller warns
                break
        return Solution(alpha, dual + gap, dual, n_steps, history, stopped=stopped)

    def _descend(self, kept: KeptRows, active, dual: float, settings, left: int) -> int:
        """A few steps, for which missing rows are computed; returns how many."""
        done, most = 0, min(left, _STEPS)
        while True:
            limits = (settings.tol, INNER_TOL, most - done, WORKING_SET)
            dual, _, steps, missing = active.descend(kept.pool, kept.slots, dual, *limits)
            done += steps
            if len(missing) == 0 or done == most:
                return done
            kept.compute(self.data, missing)


def _neighbours(n_rows: int, problems: Sequence[Variables]) -> np.ndarray:
    """An order in which the rows of a problem of two classes are in two places, not all over."""
    first, last = np.full(n_rows, -1), np.full(n_rows, -1)
    for number, variables in enumerate(problems):
        last[variables.row] = number
    for number in reversed(range(len(problems))):
        first[problems[number].row] = number
    return np.lexsort((last, first))


def _fresh(kept: KeptRows, variables: Variables, alpha, gradient) -> tuple[float, float]:
    """The gradient from the variables themselves, without what many sums have rounded.

    Returns the dual objective and the gap.
    """
    support = np.flatnonzero(alpha)
    gradient[:] = variables.linear
    coef = (alpha * variables.sign)[support]
    slots = kept.slots[support]
    _core.add_rows(kept.pool, slots, coef, variables.sign, 0, len(alpha), gradient)
    dual = dual_value(alpha, gradient, variables.linear)
    return dual, float(gap_terms(alpha, gradient, variables.upper).sum())
