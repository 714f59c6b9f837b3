"""The exact solver of a `Problem`: working sets, shrinking, and a stop that counts every variable.

Variables that rest at a bound leave the active set, whose kernel rows are then shorter; no stop is
believed before the gradient of all variables is known, or bounded on the safe side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.kernel.backend import Backend
from widemargin.kernel.problem import Problem, Solution, dual_value, gap_terms

SHRINK_SHARE = 0.25  # of the active variables that must be able to leave before they do
LOOSE = 10.0  # multiple of tol at which all variables are checked for the first time
_PATIENCE = 1000  # steps in which neither objective nor gap gain: rounding can hide a little
_REFRESH_EVERY = 1000  # steps after which the gradient is computed afresh before a stop


@dataclass(frozen=True)
class SolverSettings:
    """When to stop, and how many bytes kernel rows may take."""

    tol: float = 1e-3  # relative duality gap
    max_iter: int = 100_000
    cache_bytes: float = 1 << 30


def solve(
    problem: Problem,
    backend: Backend,
    settings: SolverSettings,
    alpha: np.ndarray | None = None,
    on_step: Callable[[], bool] = lambda: False,
) -> Solution:
    """Minimise to a relative duality gap of ``settings.tol``.

    Parameters
    ----------
    problem : Problem
    backend : Backend
        Where kernel rows are computed and kept.
    settings : SolverSettings
    alpha : ndarray, default=None
        A start, clipped to the bounds.  Its support vectors alone are active at first (DC-SVM's
        refinement).
    on_step : callable
        Called once per step; a true result ends the fit.
    """
    alpha = np.zeros(len(problem)) if alpha is None else np.clip(alpha, 0, problem.upper)
    with backend:
        descent = Descent(problem, backend, settings, alpha)
        try:
            return descent.run(on_step)
        finally:
            descent.active.close()


def first_active(alpha: np.ndarray) -> np.ndarray:
    """The support vectors of a start; all variables without one."""
    support = np.flatnonzero(alpha)
    return support if len(support) else np.arange(len(alpha))


class Descent:
    """Descend on the active variables, check all of them, reactivate violators, and again.

    After every check ``gradient`` is exact for active variables, and for the others exact or a
    bound on the safe side: when w moves by |dw|, g_i moves by no more than |dw| sqrt(k_ii), so a
    variable held at its bound by more than that needs no kernel values.
    """

    def __init__(
        self, problem: Problem, backend: Backend, settings: SolverSettings, alpha: np.ndarray
    ):
        self.problem, self.backend, self.settings = problem, backend, settings
        self.alpha = alpha
        self.gradient = problem.linear.copy()
        n = len(problem)
        self.is_bound = np.zeros(n, dtype=bool)  # where ``gradient`` is a bound only
        self.synced_alpha = np.zeros(n)  # the variables that ``gradient`` belongs to
        ids = first_active(alpha)
        self.inactive = np.setdiff1d(np.arange(n), ids, assume_unique=True)
        self.all_checked = len(self.inactive) == 0
        self.caution = 1.0  # grows whenever a variable left too early
        self.active = backend.active_set(problem, ids, alpha, settings.cache_bytes)
        self.dual = dual_value(self.active.alpha, self.active.gradient, problem.linear[ids])
        self.history: list[dict] = []
        self.n_steps = self._idle = 0
        self._least_gap = np.inf  # since the active set last grew

    def run(self, on_step: Callable[[], bool]) -> Solution:
        refreshed_at, stopped = 0, False
        while True:
            stopped = stopped or self._descend(on_step)
            gap = self.check_all()
            violators = self.violators()
            stuck = self._idle > _PATIENCE and len(violators) == 0
            if not (stopped or stuck or self.close_enough(gap)):
                self.reactivate(violators)
                self._least_gap = np.inf
            elif self.n_steps - refreshed_at >= _REFRESH_EVERY:
                # Many sums later: once more from the support vectors alone, then check again.
                refreshed_at = self.n_steps
                self._compute_gradient(np.arange(len(self.problem)))
                self.active.reset_gradient(self.gradient[self.active.ids])
            else:
                break
        return Solution(self.alpha, self.dual + gap, self.dual, self.n_steps, self.history)

    def _descend(self, on_step: Callable[[], bool]) -> bool:
        """Steps on the active set until it is good enough, or stuck; whether to end the fit.

        Before all variables have been checked once, good enough is `LOOSE`: which variables the
        start has missed is better known early.
        """
        active = self.active
        while True:
            gap = active.select()
            self.history.append(
                {
                    "step": self.n_steps,
                    "gap": gap,
                    "dual": self.dual,
                    "active": len(active),
                    "rows": active.n_computed,
                }
            )
            if self.close_enough(gap, 1.0 if self.all_checked else LOOSE):
                return False
            if self.n_steps >= self.settings.max_iter:
                return True
            gain = active.step()
            better = self.dual + gain > self.dual or gap < 0.9 * self._least_gap
            self._idle = 0 if better else self._idle + 1
            self._least_gap = min(gap, self._least_gap) if better else self._least_gap
            self.dual += gain
            self.n_steps += 1
            if on_step():
                return True
            if self._idle > _PATIENCE:  # at the limit of the arithmetic; the caller warns
                return False
            self.shrink()

    def close_enough(self, gap: float, factor: float = 1.0) -> bool:
        primal = max(self.dual + gap, np.finfo(np.float64).tiny)
        return gap <= factor * self.settings.tol * primal

    def shrink(self) -> None:
        """Let variables go that rest at a bound, if they are many and have cost enough.

        To check a variable again takes a kernel value per support vector; to keep it, one addition
        per changed variable and step.  As in renting skis, the cheapest policy without knowing the
        future is to let it go when keeping it has cost as much as checking it again.
        """
        active = self.active
        check_again = self.problem.kernel.cost * np.count_nonzero(active.alpha)
        if active.n_added < check_again:
            return
        rest = active.at_rest(self.caution * active.violation)
        if rest.sum() <= SHRINK_SHARE * len(active):
            return
        active.n_added = 0
        self._sync()
        self.inactive = np.concatenate([self.inactive, active.ids[rest]])
        active.keep(np.flatnonzero(~rest))

    def check_all(self) -> float:
        """Gradients of all variables, as far as needed; returns the gap."""
        self._sync()
        inactive = self.inactive
        loose = inactive[self._slack_at_bound(inactive) <= 0] if self.all_checked else inactive
        self._compute_gradient(loose)
        self.all_checked = True
        return float(gap_terms(self.alpha, self.gradient, self.problem.upper).sum())

    def _slack_at_bound(self, variables: np.ndarray) -> np.ndarray:
        """How firmly the gradient holds variables at their bounds."""
        gradient = self.gradient[variables]
        return np.where(self.alpha[variables] <= 0, gradient, -gradient)

    def _sync(self) -> None:
        """Gradients at the present variables: exact for active ones, a bound for the others."""
        active, inactive = self.active, self.inactive
        change = active.alpha - self.synced_alpha[active.ids]
        # |dw|^2 = da'Q da, and Q da is how far the gradient has moved.
        squared = max(change @ (active.gradient - self.gradient[active.ids]), 0.0)
        moved = np.sqrt(squared * self.problem.diagonal[inactive]) * (1 + 1e-6) + 1e-9
        self.gradient[inactive] -= np.where(self.alpha[inactive] <= 0, moved, -moved)
        self.is_bound[inactive] = True
        self.gradient[active.ids] = active.gradient
        self.synced_alpha[active.ids] = self.alpha[active.ids] = active.alpha

    def _compute_gradient(self, variables: np.ndarray) -> None:
        """The gradient of some variables from all support vectors."""
        p = self.problem
        support = np.flatnonzero(self.alpha)
        self.gradient[variables] = p.linear[variables]
        self.is_bound[variables] = False
        if len(variables) and len(support):
            coef = (self.alpha * p.sign)[support, None]
            inner = self.backend.product(p.kernel, p.rows[variables], p.rows[support], coef)[:, 0]
            self.gradient[variables] += p.sign[variables] * inner

    def violators(self) -> np.ndarray:
        """Inactive variables that should move, and those held so loosely that they soon might."""
        slack = self._slack_at_bound(self.inactive)
        if len(slack) == 0 or slack.min() >= 0:
            return self.inactive[:0]
        return self.inactive[slack < self.active.violation]

    def reactivate(self, violators: np.ndarray) -> None:
        """Unshrink: violators become active again, with exact gradients."""
        if len(violators) == 0:
            return
        self._compute_gradient(violators[self.is_bound[violators]])
        self.caution *= 2
        self.active.n_added = 0
        self.inactive = np.setdiff1d(self.inactive, violators, assume_unique=True)
        self.active.extend(violators, self.alpha[violators], self.gradient[violators])
