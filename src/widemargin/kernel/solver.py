"""The exact solver of a `Problem`: working sets, shrinking, and a stop that checks every variable.

Variables that are firmly at a bound leave the active set, which shortens its kernel rows; the
solver stops only when the gradient of every variable is known or safely bounded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.kernel.backend import Backend
from widemargin.kernel.certificate import Found, Judge
from widemargin.kernel.precision import UNIT
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
SHRINK_SHARE = 0.25  # share of the active variables that must be removable before any is removed
LOOSE = 10.0  # multiple of tol at which all variables are first checked
VERDICTS = 8  # most verdicts
LOST = 0.3  # share of tol that rounding may hide before the gradient is refined
SPARE = 0.95  # share of tol to aim for after a verdict above it
NARROW = 1e-6  # more than the relative error of k(x, x) in single precision
UNMET = 1e-6  # of the constraint: more that is missed asks for more variables
FEWEST = 2048  # variables that come back at a time, of one class
AMPLE = 10.0  # times what is missed: room of these
_PATIENCE = 1000  # steps in which neither objective nor gap gain: rounding can hide a little


@dataclass(frozen=True)
class SolverSettings:
    """When to stop, and how many bytes kernel rows may use."""

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
        Computes and keeps kernel rows.
    settings : SolverSettings
    alpha : ndarray, default=None
        A start, clipped to the bounds.  Its support vectors alone are active at first (DC-SVM's
        refinement).
    on_step : callable
        Called once per step with the relative gap before it; returning true ends the fit.
    judge : Judge, default=None
        Certifies the gap in double precision; without one, it is that of the problem's arithmetic.
    show : callable
        Called once per step with a function that copies the current variables.
    offset : float, default=0
        Initial intercept, if the problem has one.
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
    """Return the support vectors of a start; without one, all variables."""
    support = np.flatnonzero(alpha)
    return support if len(support) else np.arange(len(alpha))


class Descent:
    """Descend on the active variables, check all of them, reactivate violators, and again.

    After every check ``gradient`` is exact for active variables, and exact or a safe bound for the
    others: when w moves by |dw|, g_i moves by at most |dw| sqrt(k_ii), so a variable held at its
    bound by more than that needs no kernel values.
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
        self.refined_alpha: np.ndarray | None = None  # at the last refinement of the gradient
        self.alpha = alpha
        self.gradient = problem.linear_at(offset).copy()
        n = len(problem)
        self.is_bound = np.zeros(n, dtype=bool)  # where ``gradient`` is only a bound
        self.synced_alpha = np.zeros(n)  # the variables that ``gradient`` belongs to
        self.synced_offset = offset  # and the intercept
        ids = first_active(alpha)
        self.inactive = np.setdiff1d(np.arange(n), ids, assume_unique=True)
        self.all_checked = len(self.inactive) == 0
        self.caution = 1.0  # grows when a variable was removed too early
        self.active = backend.active_set(problem, ids, alpha, settings.cache_bytes, offset)
        self.gradient[ids] = self.active.gradient  # variables at zero add nothing
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
                self.dual += self._meet_constraint()
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
            primal, rounding, n_verdicts = verdict.primal, verdict.rounding, n_verdicts + 1
            high, low = 1 + rounding, max(1 - rounding, UNIT)  # of the true objective, as shares
            slack = self.problem.slack(self.alpha, high * primal, self.active.offset)
            dual = verdict.dual - slack * (1 + NARROW) / low  # of rounded kernel values
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
        """Continue from the judge's gradient (iterative refinement)."""
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
        """Take steps on the active set until it is good enough or stuck; return whether to end the
        fit.

        Before the first check of all variables, `LOOSE` is good enough, to find variables that the
        start lacks early.
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
            gain = self._meet_constraint() if missed else active.step()
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
            if self._idle > _PATIENCE:  # limit of the arithmetic; the caller warns
                return False
            self.shrink()

    def _meet_constraint(self) -> float:
        """Meet the constraint of the intercept, by others where active variables lack room."""
        before = abs(self.active.missed)
        gain = self.active.meet_constraint()
        if len(self.inactive) and abs(self.active.missed) > UNMET * before:
            self._sync()
            self.reactivate(self._with_room(self.active.missed))
            gain += self.active.meet_constraint()
        return gain

    def _with_room(self, missed: float) -> np.ndarray:
        """Inactive variables that can meet the constraint, those held most loosely."""
        p, ids, alpha = self.problem, self.inactive, self.alpha[self.inactive]
        upper = p.upper[ids]
        down = alpha - lower_bound(upper, p.turn)
        room = np.where(p.sign[ids] * missed < 0, upper - alpha, down)
        order = np.argsort(np.where(room > 0, self._slack_at_bound(ids), np.inf), kind="stable")
        enough = np.searchsorted(np.cumsum(room[order]), AMPLE * abs(missed)) + 1
        return np.sort(ids[order[:enough]])

    def close_enough(self, gap: float, factor: float = 1.0) -> bool:
        primal = max(self.dual + gap, TINY)
        return gap <= self.active.less_slack(factor * self.aim * primal)

    def shrink(self) -> None:
        """Remove variables that are firmly at a bound, if they are many and have cost enough.

        Checking a variable again takes a kernel value per support vector; keeping it, one addition
        per changed variable and step.  As in ski rental, the best policy without knowing the future
        is to remove it when keeping it has cost as much as checking it again.
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
        """Compute the gradients of all variables as far as needed; return the gap."""
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
        """Update gradients to the current variables: exact for active ones, a bound for the
        others."""
        active, inactive, sign = self.active, self.inactive, self.problem.sign
        change = active.alpha - self.synced_alpha[active.ids]
        shift = active.offset - self.synced_offset
        # |dw|^2 = da'Q da, and Q da is the change of the gradient without the intercept.
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
        """Compute the gradient of some variables from all support vectors."""
        problem = (
            self.problem if self.judge is None or self.refined_alpha is None else self.judge.exact
        )
        how = (variables, self.backend, self.active.offset)
        self.gradient[variables] = gradient_of(problem, self.alpha, *how)
        self.is_bound[variables] = False

    def _signed(self, variables: np.ndarray) -> float:
        """Return the sum of these variables in the intercept's constraint."""
        return float(self.problem.sign[variables] @ self.alpha[variables])

    def violators(self) -> np.ndarray:
        """Return inactive variables that should move, and those that soon might."""
        slack = self._slack_at_bound(self.inactive)
        if len(slack) == 0 or slack.min() >= 0:
            return self.inactive[:0]
        found = self.inactive[slack < self.active.violation]
        if not self.problem.total:
            return found
        # One class has no others to hold it: at a wrong offset, all rows violate.
        most = max(FEWEST, 2 * int(np.count_nonzero(self.alpha)))
        if len(found) <= most:
            return found
        order = np.argsort(self._slack_at_bound(found), kind="stable")  # the worst and some others
        return np.sort(found[order[:: -(-len(order) // most)]])

    def reactivate(self, violators: np.ndarray) -> None:
        """Unshrink: make violators active again, with exact gradients."""
        if len(violators) == 0:
            return
        self._compute_gradient(violators[self.is_bound[violators]])
        self.caution *= 2
        self.active.n_added = 0
        self.inactive = np.setdiff1d(self.inactive, violators, assume_unique=True)
        rest = self._signed(self.inactive)
        self.active.extend(violators, self.alpha[violators], self.gradient[violators], rest)
