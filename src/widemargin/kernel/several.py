"""The problems of a fit, or of one of its clusters, one after another on the same rows.

Each is solved in single precision first; where its certificate says that this was not enough, the
solver goes on from there in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from widemargin.kernel.backend import Backend
from widemargin.kernel.cache import cache_left
from widemargin.kernel.certificate import Judge
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import SolverSettings, solve


class SeveralProblems:
    """Problems that share rows, a cache of kernel rows, and the precision that they need."""

    def __init__(
        self, data: KernelRows, backend: Backend, settings: SolverSettings, n_problems: int
    ):
        self.backend, self.settings = backend, settings
        self._share = n_problems > 1
        self._use(data)

    def _use(self, data: KernelRows) -> None:
        kernel, rows = data.kernel, data.rows
        if self._share:
            kernel, rows = self.backend.share_rows(kernel, rows, self.settings.cache_bytes)
        self.data, self.shared = data, KernelRows(kernel, rows)
        self._cache_bytes = cache_left(kernel, self.settings.cache_bytes)

    def solve(
        self, variables: Variables, alpha: np.ndarray, on_step: Callable[[], bool]
    ) -> Solution:
        """Minimise from ``alpha`` to a certified gap of ``settings.tol``.

        Once a problem has needed double precision, the others begin with it: the model will be
        that of the most demanding one.
        """
        found = self._solve(variables, alpha, on_step, 0)
        hopeless = self.data.exact is None or found.double or found.stopped
        if found.relative_gap <= self.settings.tol or hopeless:
            return found
        self._use(self.data.in_double())
        again = self._solve(variables, found.alpha, on_step, found.n_iter)
        history = found.history + again.history
        return replace(again, n_iter=found.n_iter + again.n_iter, history=history)

    def _solve(
        self, variables: Variables, alpha: np.ndarray, on_step: Callable[[], bool], n_iter: int
    ) -> Solution:
        limits = SolverSettings(
            self.settings.tol, self.settings.max_iter - n_iter, self._cache_bytes
        )
        problem, judge = variables.problem(self.shared), None
        if self.data.exact is not None:
            double = problem.kernel.dtype == np.float64
            exact = problem if double else variables.problem(self.data.exact)
            judge = Judge(variables.problem(self.data), exact, self.backend)
        return solve(problem, self.backend, limits, alpha, on_step, judge)
