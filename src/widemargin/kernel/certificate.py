"""The certificate of a kernel machine: objectives and duality gap in double precision.

A solver that works with float32 kernel values knows the gap of a problem with rounded kernel
values.  The gap of the model differs: if coefficients are large and cancel, or distances are small,
rounding moves decisions by more than a tolerance allows.  So this module judges a solver's result
by the true kernel and the coefficients that the model keeps.

For small problems, all decisions are computed in double precision; for others, those of a sample,
which estimates the effect of rounding on either objective, with bounds at `SIGMAS` standard errors.
If these are too far apart, or the solver was misled, it continues from the gradient in double
precision (iterative refinement): later changes are rounded, but small.

Double precision rounds too.  Its possible error in a decision, times the bound of the variable, is
part of the claimed gap.  If only this keeps a small problem from its tolerance, its decisions are
computed in extended precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.kernel.backend import Backend
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.precision import (
    EXTENDED_UNIT,
    UNIT,
    Errors,
    extended_values,
    most_hidden,
    roundings,
)
from widemargin.kernel.problem import (
    TINY,
    Problem,
    Solution,
    firmness,
    gap_terms,
    gradient_of,
    largest_linear,
    loosened,
    relative_gap,
    turned_cost,
)
from widemargin.kernel.problems import Group, Variables

EXACT_WORK = 1 << 15  # variables times the cost of a kernel value: below, compute all
LEAST_COST = 8.0
SAMPLE = 256  # variables of a larger problem
SIGMAS = 5.0
NEAR = 0.02  # of the margin: no rounding moves a variable held at its bound by more
DEFINITE_ROWS = 512
# Rows squared times the cost of a kernel value: below, use extended precision.
EXTENDED_WORK = 1 << 25
UNCOUNTED = 1e-3  # share of tol that rounding may hide without a closer bound
_EXTENDED_VALUES = 1 << 18  # kernel values at a time
_ROUNDING = 1e-6  # share of the largest eigenvalue by which the smallest may be negative


@dataclass(frozen=True)
class Found:
    """The state of a solver, in its own arithmetic."""

    alpha: np.ndarray
    gradient: np.ndarray  # exact, or understating how firmly a bound holds a variable
    dual: float
    gap: float
    is_bound: np.ndarray  # where it is the latter
    refined_alpha: np.ndarray | None = None  # at the last exact gradient and dual, if any
    offset: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Bounds on both objectives of a solver's result."""

    primal: float
    dual: float
    rounding: float = 0.0  # share of the relative gap that double precision may hide

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.primal, self.dual)


@dataclass(frozen=True)
class Refined:
    """The gradient in double precision, except for variables held firmly at their bounds."""

    gradient: np.ndarray
    is_bound: np.ndarray  # where it is a safe bound instead
    dual: float


@dataclass(frozen=True)
class Limit:
    """What double precision can certify about a problem."""

    exact: Problem  # with kernel values computed again
    errors: Errors
    tol: float  # the requested gap

    def rounding(self, found: Found) -> tuple[np.ndarray, float]:
        """Of each row of the gradient, and of the dual objective."""
        alpha, error = np.abs(found.alpha), self.errors.of_sums(found.alpha, np.sum)
        square = float(np.square(self.errors.size).max(initial=0.0))
        primal = max(found.dual + found.gap, 0.0)
        reach = _reach(self.exact, square, primal, found.offset)
        sums = float(alpha.sum()) * reach + abs(found.dual)
        return error, float(alpha @ error) + UNIT * float(roundings(len(alpha))) * sums

    def decides(self, found: Verdict, claimed: Verdict) -> bool:
        """Whether rounding alone keeps the gap of a small problem above the tolerance."""
        small = len(self.exact) ** 2 * self.exact.kernel.cost <= EXTENDED_WORK
        return small and found.relative_gap <= self.tol < claimed.relative_gap


@dataclass(frozen=True)
class Judge:
    """Judges a solver's result for ``problem`` by the ``exact`` problem in double precision."""

    problem: Problem
    exact: Problem
    backend: Backend
    limit: Limit | None = None  # None: ignore rounding in double precision

    def verdict(self, found: Found) -> Verdict:
        """Return bounds that include rounding errors; for a small problem, in extended
        precision."""
        error, lost = np.zeros(len(self.exact)), 0.0
        if self.limit is not None:
            error, lost = self.limit.rounding(found)
        if not self._is_small():
            return self._estimated(found, error, lost)
        refined, bounds = self.refined(found), (self.exact.upper, self.exact.turn)
        gap = float(gap_terms(found.alpha, refined.gradient, *bounds).sum())
        most = float(_widest(found.alpha, refined.gradient, bounds, error).sum())
        dual = refined.dual
        low = float(_outward(dual + gap, dual, most - gap + lost, lost))
        rounding = (most - gap + 2 * lost) / max(dual + gap, TINY)
        claimed = Verdict(dual + gap, low, rounding)
        if self.limit is not None and self.limit.decides(Verdict(dual + gap, dual), claimed):
            return Verdict(*_extended(self.limit.exact, found.alpha, found.offset))
        return claimed

    def refined(self, found: Found) -> Refined:
        resting = np.zeros(len(self.exact), dtype=bool) if self._is_small() else self._rest(found)
        resting &= found.alpha == 0  # the dual objective needs the gradient of support vectors
        known = np.flatnonzero(~resting)
        # What is not computed rests by more than NEAR: half of that stays on the safe side.
        gradient = loosened(found.alpha, found.gradient, self.exact.turn, NEAR / 2)
        gradient[known] = gradient_of(self.exact, found.alpha, known, self.backend, found.offset)
        return Refined(
            gradient, resting, self.exact.dual_value(found.alpha, gradient, found.offset)
        )

    def _is_small(self) -> bool:
        return len(self.exact) * max(self.exact.kernel.cost, LEAST_COST) <= EXACT_WORK

    def _rest(self, found: Found) -> np.ndarray:
        """Variables at a bound that no rounding can move."""
        return firmness(found.alpha, found.gradient, self.exact.upper, self.exact.turn) > NEAR

    def _estimated(self, found: Found, error: np.ndarray, lost: float) -> Verdict:
        """Estimate the objectives by importance sampling.

        Half of the sample is drawn from variables whose share of the gap can change, weighted by
        the possible change; the other half from those whose rounded kernel rows were added to the
        gradient, weighted by the amount.
        """
        upper, turn, rested = self.exact.upper, self.exact.turn, self._rest(found)
        size = np.abs(found.alpha)
        most = np.maximum(size, upper - size) if turn == np.inf else upper + size
        share = np.where(rested, 0.0, most)
        added = found.alpha - (0.0 if found.refined_alpha is None else found.refined_alpha)
        weights = [w / w.sum() for w in (share, np.abs(added)) if w.sum() > 0]
        if not weights:  # all firmly at zero
            return Verdict(found.dual + found.gap, found.dual)
        chance = np.mean(weights, axis=0)
        sample = np.random.default_rng(0).choice(len(chance), SAMPLE, p=chance / chance.sum())
        chance, alpha, upper = chance[sample], found.alpha[sample], upper[sample]
        true = gradient_of(self.exact, found.alpha, sample, self.backend, found.offset)
        changes = _widest(alpha, true, (upper, turn), error[sample])
        changes -= gap_terms(alpha, found.gradient[sample], upper, turn)
        gap, gap_error = _mean(changes / chance)
        # With d added since the dual was exact, it is off by d'(K - K rounded)d / 2.
        off = -0.5 * added[sample] * self._moved(found, sample, true) / chance
        dual, dual_error = _mean(off)
        low, high = found.dual + dual - dual_error, found.dual + dual + dual_error
        low -= lost
        return Verdict(high + found.gap + gap + gap_error, low)

    def _moved(self, found: Found, sample: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Return how far rounding has moved the gradient of a sample since it was exact."""
        if found.refined_alpha is None:
            how = (sample, self.backend, found.offset)
            return true - gradient_of(self.problem, found.alpha, *how)
        moved = true - found.gradient[sample]
        hidden = found.is_bound[sample]  # few were active and are not any more
        moved[hidden] = np.abs(moved[~hidden]).max(initial=0.0)
        return moved


def _mean(values: np.ndarray) -> tuple[float, float]:
    """Return the sample mean and its error bound."""
    return float(values.mean()), SIGMAS * float(values.std()) / np.sqrt(len(values))


def _widest(alpha: np.ndarray, gradient: np.ndarray, bounds: tuple, error) -> np.ndarray:
    """Each variable's share of the gap if its gradient is off by so much, at most."""
    low, high = (gap_terms(alpha, gradient + e, *bounds) for e in (-error, error))
    return np.maximum(low, high)


def with_rounding(
    found: Solution, variables: Variables, data: KernelRows, largest: tuple, tol: float
) -> Solution:
    """Return a solution in double precision with objectives that hold despite rounding.

    A gap that is above ``tol`` only because of that is computed in extended precision, if the
    problem is small.  The solution records the share of the gap that rounding may hide.
    """
    if data.kernel.definite is False:  # there is no gap
        return found
    primal, least, offset = found.primal, min(found.primal, found.dual), abs(float(found.offset[0]))
    if found.each is not None:
        primal, least = float(found.each[:, 0].max()), float(found.each.min())
        offset = float(np.abs(found.offset).max())
    n, alpha = len(variables), float(np.abs(found.alpha).sum())
    size = alpha * _reach(variables, largest[0], max(primal, 0.0), offset) + primal
    reach = float(variables.upper.sum()) + (alpha if variables.turn < np.inf else 0.0)
    hidden, lost = most_hidden(largest, n, alpha, reach, size)
    if lost <= least and hidden + lost <= UNCOUNTED * tol * least:
        k = 1 if found.each is None else len(found.each)
        each = None if found.each is None else found.each - np.array([0.0, hidden + lost])
        share = (hidden + lost) / max(least, TINY)
        dual = found.dual - k * (hidden + lost)
        return replace(found, dual=dual, each=each, rounding=share, gradient=None)
    return _closely(found, variables, data, tol)


def _closely(found: Solution, variables: Variables, data: KernelRows, tol: float) -> Solution:
    """Bound rounding by row, and if that matters, use extended precision."""
    n = len(variables)
    group = variables.group or Group(np.array([0, n]), n)
    each = np.array([[found.primal, found.dual]]) if found.each is None else found.each
    errors = Errors.of(data.kernel, data.rows)[variables.row]
    hidden, lost = _rounding_of(found, variables, group, errors, each[:, 0])
    low = _outward(each[:, 0], each[:, 1], hidden, lost)
    bounds = np.stack([each[:, 0], low], axis=1)
    small = (n // len(each)) ** 2 * data.kernel.cost <= EXTENDED_WORK
    for k in np.flatnonzero((_gaps(each) <= tol) & ~(_gaps(bounds) <= tol)) if small else ():
        own = slice(group.start[k], group.start[k + 1])
        problem = variables.alone(own).problem(data)
        bounds[k] = _extended(problem, found.alpha[own], float(found.offset[k]))
    return replace(
        found,
        primal=float(bounds[:, 0].sum()),
        dual=float(bounds[:, 1].sum()),
        each=None if found.each is None else bounds,
        rounding=float((_gaps(bounds) - _gaps(each)).max(initial=0.0)),
        gradient=None,
    )


def _outward(primal, dual, hidden, lost) -> Any:
    """Return the dual objective with the largest relative gap, 1 - dual / primal.

    The primal objective may be off by ``hidden``, the dual one by ``lost``.
    """
    low = dual - lost
    most = np.where(low < 0, np.maximum(primal - hidden, UNIT * primal), primal + hidden)
    return low * np.divide(primal, most, out=np.ones_like(most), where=most > 0) - 4 * UNIT * primal


def _gaps(each: np.ndarray) -> np.ndarray:
    """Relative ones."""
    return (each[:, 0] - each[:, 1]) / np.maximum(each[:, 0], TINY)


def _rounding_of(
    found: Solution, variables: Variables, group: Group, errors: Errors, primal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What it may hide of each primal objective and take from each dual one."""
    alpha, upper = np.abs(found.alpha), variables.upper
    number = np.repeat(np.arange(len(primal)), np.diff(group.start))
    error = errors.of_sums(alpha, lambda values: group.sums(values)[number])
    if found.gradient is None:  # anywhere
        widest = (upper + (alpha if variables.turn < np.inf else 0)) * error
    else:
        bounds = (upper, variables.turn)
        widest = _widest(found.alpha, found.gradient, bounds, error)
        widest -= gap_terms(found.alpha, found.gradient, *bounds)
    square = float(np.square(errors.size).max(initial=0.0))
    reach = _reach(variables, square, np.maximum(primal, 0), found.offset)
    sums = group.sums(alpha) * reach + np.abs(primal)
    lost = group.sums(alpha * error) + UNIT * roundings(np.diff(group.start)) * sums
    return lost + group.sums(widest), lost


def _reach(of: Problem | Variables, square: float, primal: Any, offset: Any) -> Any:
    """What a variable's share of the linear term and of the intercept's constraint are, at most."""
    largest = largest_linear(of.linear, of.turn)
    if not of.has_offset:
        return largest
    return 2 * largest + 2 * abs(offset) + (2 * primal * square) ** 0.5


def _extended(problem: Problem, alpha: np.ndarray, offset: float) -> tuple[float, float]:
    """Return objectives in extended precision."""
    support, n = np.flatnonzero(alpha), len(alpha)
    wide, size = alpha.astype(np.longdouble), max(1, _EXTENDED_VALUES // max(len(support), 1))
    sums, error = np.zeros(n, dtype=np.longdouble), np.zeros(n, dtype=np.longdouble)
    unit = EXTENDED_UNIT * (len(support) + 4)
    for begin in range(0, n, size):
        part = slice(begin, begin + size)
        values, off = extended_values(problem.kernel, problem.rows[part], problem.rows[support])
        sums[part] = values @ (wide * problem.sign)[support]
        error[part] = (unit * np.abs(values) + off) @ np.abs(wide[support])
    linear = problem.linear + np.longdouble(offset) * problem.sign
    gradient = linear + problem.sign * sums
    error += 2 * EXTENDED_UNIT * (np.abs(linear) + np.abs(sums))  # of both additions
    cost = turned_cost(wide, problem.turn).sum()
    dual = -(linear @ wide + 0.5 * wide @ (gradient - linear)) - cost - np.abs(wide) @ error
    bounds = (problem.upper, problem.turn)
    primal = dual + _widest(wide, gradient, bounds, 0 * error).sum()
    widest = dual + _widest(wide, gradient, bounds, error).sum()
    lost = problem.slack(wide, float(widest), offset) + 4 * UNIT * float(abs(dual))
    hidden = float(widest - primal) + 4 * UNIT * abs(float(widest))
    return float(primal), float(_outward(float(primal), float(dual), hidden, lost))


def is_definite(data: KernelRows, support: np.ndarray, backend: Backend) -> bool:
    """Whether a kernel of unknown definiteness is positive semi-definite on some support vectors.

    Otherwise, the primal objective does not bound the dual one, and there is no certificate.
    """
    assert data.exact is not None
    if len(support) == 0:
        return True
    chosen = support[:: -(-len(support) // DEFINITE_ROWS) or 1]
    rows = data.exact.rows[chosen]
    with backend:
        gram = backend.product(data.exact.kernel, rows, rows, np.eye(len(rows)))
    values = np.linalg.eigvalsh((gram + gram.T) / 2)
    return bool(values[0] >= -_ROUNDING * values[-1])
