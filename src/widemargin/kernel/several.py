"""The problems of a fit, or of one of its clusters, on the same rows.

Those on few rows are solved in double precision. Others are in single precision first; where their
certificate says that this was not enough, the solver goes on from there in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np

from widemargin.history import continued
from widemargin.kernel.backend import Backend
from widemargin.kernel.cache import cache_left
from widemargin.kernel.certificate import Judge, Limit
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.few_rows import FewRows, are_few, has_few
from widemargin.kernel.kernels import DotKernel
from widemargin.kernel.precision import Errors
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import Show, SolverSettings, solve


def shares_rows(n_rows: int, problems: Sequence[Variables]) -> bool:
    """Whether problems have enough of n rows in common to share kernel rows.

    Those of one class against the others have all of them; pairs of classes have few, which still
    are all that there is where rows are few.
    """
    several = len(problems) > 1 or any(v.group is not None for v in problems)
    every = all(v.group is None and len(v) in (0, n_rows) for v in problems)
    return several and (every or are_few(n_rows))


class SeveralProblems:
    """Problems on the rows of some data; those that are ``sharing`` have kernel rows in common.

    Attributes
    ----------
    side_by_side : bool
        Whether threads may call `solve`, which then gives the same in any order.
    """

    def __init__(
        self,
        data: KernelRows,
        backend: Backend,
        settings: SolverSettings,
        sharing: Sequence[Variables] = (),
    ):
        self.backend, self.settings, self._share = backend, settings, bool(sharing)
        self.side_by_side = self._share and are_few(len(data))
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

        Problems on few rows are solved before anybody would look, and do not `show`.
        """
        if self.side_by_side:
            return self._few.solve(variables, alpha, self.settings, on_step)
        if not has_few(variables):
            return self._solve_by_precision(variables, alpha, on_step, show)
        own, rows = variables.on_own_rows(len(self.data))
        data = self.data if rows is None else self.data[rows]
        sharing = () if own.group is None else (own,)
        with closing(FewRows(data, self.backend.memory, sharing)) as few:
            return few.solve(own, alpha, self.settings, on_step)

    def _solve_by_precision(
        self, variables: Variables, alpha: np.ndarray, on_step: Callable[[float], bool], show: Show
    ) -> Solution:
        """Single, then double.

        Once a problem has needed double precision, the others begin with it: the model will be
        that of the most demanding one.
        """
        find = partial(self._solve, variables, on_step=on_step, show=show)
        found = find(alpha, n_iter=0, offset=0.0)
        hopeless = self.data.exact is None or found.double or found.stopped
        if found.relative_gap <= self.settings.tol or hopeless:
            return found
        self._use(self.data.in_double())
        again = find(found.alpha, n_iter=found.n_iter, offset=float(found.offset[0]))
        history = found.history + continued(found.history, again.history)
        return replace(again, n_iter=found.n_iter + again.n_iter, history=history)

    def _solve(
        self,
        variables: Variables,
        alpha: np.ndarray,
        *,
        on_step: Callable[[float], bool],
        show: Show,
        n_iter: int,
        offset: float,
    ) -> Solution:
        limits = SolverSettings(
            self.settings.tol, self.settings.max_iter - n_iter, self._cache_bytes
        )
        problem, judge = variables.problem(self.shared), None
        if self.data.exact is not None:
            plain = variables.problem(self.data.exact)
            exact = problem if problem.kernel.dtype == np.float64 else plain
            known = self.data if isinstance(self.data.kernel, DotKernel) else self.data.exact
            errors = Errors.of(known.kernel, known.rows)[variables.row]
            limit = Limit(plain, errors, self.settings.tol)
            judge = Judge(variables.problem(self.data), exact, self.backend, limit)
        return solve(problem, self.backend, limits, alpha, on_step, judge, show, offset)
