"""The exact solver of a `Problem`: working sets, shrinking, and a stop that counts every variable.

Variables that rest at a bound leave the active set, whose kernel rows are then shorter; no stop is
believed before the gradient of all variables is known, or bounded on the safe side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.kernel.backend import Backend
from widemargin.kernel.certificate import Found, Judge
from widemargin.kernel.problem import (
    TINY,
    Patience,
    Problem,
    Solution,
    firmness,
    gap_terms,
    gradient_of,
    loosened,
    lower_bound,
    relative_gap,
)

Show = Callable[[Callable[[], np.ndarray]], None]
SHRINK_SHARE = 0.25  # of the active variables that must be able to leave before they do
LOOSE = 10.0  # multiple of tol at which all variables are checked for the first time
VERDICTS = 8  # asked for at most
LOST = 0.3  # of tol: what rounding may hide of a gap before the gradient is refined
SPARE = 0.95  # of tol: what to aim for once a verdict has disappointed
NARROW = 1e-6  # more than the relative error of k(x, x) in single precision
_PATIENCE = 1000  # steps in which neither objective nor gap gain: rounding can hide a little


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
    on_step: Callable[[float], bool] = lambda gap: False,
    judge: Judge | None = None,
    show: Show = lambda present: None,
    offset: float = 0.0,
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
        Called once per step with the relative gap before it; a true result ends the fit.
    judge : Judge, default=None
        Certifies the gap in double precision; without one, it is that of the problem's arithmetic.
    show : callable
        Called once per step with a function that copies the present variables.
    offset : float, default=0
        The intercept to begin with, where the problem has one.
    """
    if alpha is None:
        alpha = np.zeros(len(problem))
    alpha = np.clip(alpha, lower_bound(problem.upper, problem.turn), problem.upper)
    with backend:
        descent = Descent(problem, backend, settings, alpha, judge, offset)
        try:
            return descent.run(on_step, show)
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
        self,
        problem: Problem,
        backend: Backend,
        settings: SolverSettings,
        alpha: np.ndarray,
        judge: Judge | None = None,
        offset: float = 0.0,
    ):
        self.problem, self.backend, self.settings = problem, backend, settings
        self.judge, self.aim = judge, settings.tol
        self.refined_alpha: np.ndarray | None = None  # where the gradient was refined last
        self.alpha = alpha
        self.gradient = problem.linear_at(offset).copy()
        n = len(problem)
        self.is_bound = np.zeros(n, dtype=bool)  # where ``gradient`` is a bound only
        self.synced_alpha = np.zeros(n)  # the variables that ``gradient`` belongs to
        self.synced_offset = offset  # and the intercept
        ids = first_active(alpha)
        self.inactive = np.setdiff1d(np.arange(n), ids, assume_unique=True)
        self.all_checked = len(self.inactive) == 0
        self.caution = 1.0  # grows whenever a variable left too early
        self.active = backend.active_set(problem, ids, alpha, settings.cache_bytes, offset)
        self.gradient[ids] = self.active.gradient  # zero variables do not count
        self.dual = problem.dual_value(alpha, self.gradient, offset)
        self.gradient[ids] = problem.linear_at(offset)[ids]
        self.history: list[dict] = []
        self._started = time.perf_counter()
        self.n_steps = self._idle = 0
        self._patience = Patience()
        self._least_gap = np.inf  # since the active set last grew

    def run(self, on_step: Callable[[float], bool], show: Show = lambda present: None) -> Solution:
        stopped, n_verdicts, rounding = False, 0, 0.0
        while True:
            stopped = stopped or self._descend(on_step, show)
            if stopped and self.active.missed:
                self.dual += self.active.meet_constraint()
            gap = self.check_all()
            violators = self.violators()
            stuck = self._idle > _PATIENCE and len(violators) == 0
            if not (stopped or stuck or self.close_enough(gap)):
                self.reactivate(violators)
                self._least_gap = np.inf
                continue
            primal = self.dual + gap
            slack = self.problem.slack(self.alpha, primal, self.active.offset)
            dual = self.dual - slack
            if self.judge is None:
                break
            found = self._found(gap)
            verdict = self.judge.verdict(found)
            slack = self.problem.slack(self.alpha, verdict.primal, self.active.offset)
            primal, n_verdicts = verdict.primal, n_verdicts + 1
            dual = verdict.dual - slack * (1 + NARROW)  # of rounded kernel values
            rounding = verdict.rounding
            certified = relative_gap(primal, dual) <= self.settings.tol
            if stopped or certified or n_verdicts == VERDICTS:
                break
            lost = relative_gap(primal, dual) - gap / max(self.dual + gap, TINY)
            if stuck or not lost <= LOST * self.settings.tol:
                self._refine(found)
                lost = 0.0
            self.aim = SPARE * (self.settings.tol - max(lost, 0.0))
        self.history[-1].update(gap=primal - dual, dual=dual)
        double = self.problem.kernel.dtype == np.float64
        offset, steps = np.array([self.active.offset]), self.n_steps
        solved = (self.alpha, primal, dual, steps, offset, self.history, double, stopped)
        return Solution(*solved, rounding=rounding)

    def _found(self, gap: float) -> Found:
        found = (self.alpha, self.gradient, self.dual, gap, self.is_bound, self.refined_alpha)
        return Found(*found, self.active.offset)

    def _refine(self, found: Found) -> None:
        """On with the judge's gradient (iterative refinement)."""
        assert self.judge is not None
        refined = self.judge.refined(found)
        self.gradient, self.is_bound, self.dual = refined.gradient, refined.is_bound, refined.dual
        self.refined_alpha = self.alpha.copy()
        self._idle, self._least_gap = 0, np.inf
        self.active.reset_gradient(self.gradient[self.active.ids])
        self.reactivate(self.violators())

    def _present(self) -> np.ndarray:
        alpha = self.alpha.copy()
        alpha[self.active.ids] = self.active.alpha
        return alpha

    def _descend(self, on_step: Callable[[float], bool], show: Show) -> bool:
        """Steps on the active set until it is good enough, or stuck; whether to end the fit.

        Before all variables have been checked once, good enough is `LOOSE`: which variables the
        start has missed is better known early.
        """
        active = self.active
        while True:
            gap, gain = active.select()
            self.dual += gain
            self.history.append(
                {
                    "step": self.n_steps,
                    "gap": gap,
                    "dual": self.dual,
                    "active": len(active),
                    "rows": active.n_computed,
                    "seconds": time.perf_counter() - self._started,
                }
            )
            aim = self.aim * (1.0 if self.all_checked else LOOSE) * (self.dual + gap)
            missed = active.must_be_met(gap, self.dual + gap, aim)
            if self.close_enough(gap, 1.0 if self.all_checked else LOOSE) and not missed:
                return False
            if self.n_steps >= self.settings.max_iter:
                return True
            relative = gap / max(self.dual + gap, TINY)
            gain = active.meet_constraint() if missed else active.step()
            better = self.dual + gain > self.dual or gap < 0.9 * self._least_gap
            self._idle = 0 if better else self._idle + 1
            self._least_gap = min(gap, self._least_gap) if better else self._least_gap
            self.dual += gain
            self.n_steps += 1
            show(self._present)
            if on_step(relative):
                return True
            if self._patience.is_over(self.n_steps, self.dual, gap):
                self._idle = _PATIENCE + 1
            if self._idle > _PATIENCE:  # at the limit of the arithmetic; the caller warns
                return False
            self.shrink()

    def close_enough(self, gap: float, factor: float = 1.0) -> bool:
        primal = max(self.dual + gap, TINY)
        return gap <= self.active.less_slack(factor * self.aim * primal)

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
        if not SHRINK_SHARE * len(active) < rest.sum() < len(active):
            return
        active.n_added = 0
        self._sync()
        self.inactive = np.concatenate([self.inactive, active.ids[rest]])
        active.keep(np.flatnonzero(~rest), self._signed(self.inactive))

    def check_all(self) -> float:
        """Gradients of all variables, as far as needed; returns the gap."""
        self._sync()
        inactive = self.inactive
        loose = inactive[self._slack_at_bound(inactive) <= 0] if self.all_checked else inactive
        self._compute_gradient(loose)
        self.all_checked = True
        p = self.problem
        return float(gap_terms(self.alpha, self.gradient, p.upper, p.turn).sum())

    def _slack_at_bound(self, variables: np.ndarray) -> np.ndarray:
        """How firmly the gradient holds variables where they rest."""
        alpha, gradient = self.alpha[variables], self.gradient[variables]
        return firmness(alpha, gradient, self.problem.upper[variables], self.problem.turn)

    def _sync(self) -> None:
        """Gradients at the present variables: exact for active ones, a bound for the others."""
        active, inactive, sign = self.active, self.inactive, self.problem.sign
        change = active.alpha - self.synced_alpha[active.ids]
        shift = active.offset - self.synced_offset
        # |dw|^2 = da'Q da, and Q da is how far the gradient has moved without the intercept.
        moved_by = active.gradient - self.gradient[active.ids] - shift * sign[active.ids]
        squared = max(change @ moved_by, 0.0)
        moved = np.sqrt(squared * self.problem.diagonal[inactive]) * (1 + 1e-6) + 1e-9
        if self.problem.turn == np.inf:
            self.gradient[inactive] += shift * sign[inactive]
        else:  # a bound is on the nearer side of two, which a shift could change
            moved += abs(shift)
        self.synced_offset = active.offset
        alpha, gradient = self.alpha[inactive], self.gradient[inactive]
        self.gradient[inactive] = loosened(alpha, gradient, self.problem.turn, moved)
        self.is_bound[inactive] = True
        self.gradient[active.ids] = active.gradient
        self.synced_alpha[active.ids] = self.alpha[active.ids] = active.alpha

    def _compute_gradient(self, variables: np.ndarray) -> None:
        """The gradient of some variables from all support vectors."""
        problem = (
            self.problem if self.judge is None or self.refined_alpha is None else self.judge.exact
        )
        how = (variables, self.backend, self.active.offset)
        self.gradient[variables] = gradient_of(problem, self.alpha, *how)
        self.is_bound[variables] = False

    def _signed(self, variables: np.ndarray) -> float:
        """What these variables add to the constraint of the intercept."""
        return float(self.problem.sign[variables] @ self.alpha[variables])

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
        rest = self._signed(self.inactive)
        self.active.extend(violators, self.alpha[violators], self.gradient[violators], rest)
