"""The certificate of a kernel machine: objectives and duality gap in double precision.

A solver that works with float32 kernel values knows the gap of a problem with rounded kernel
values.  The gap of the model is another one: where coefficients are large and cancel, or distances
are small, rounding moves decisions by more than a tolerance allows.  So what a solver has found is
judged here, by the true kernel and the very coefficients that the model keeps.

Of small problems, all decisions are computed in double precision.  Of others, those of a sample
are: they estimate what rounding has done to either objective, and bounds at `SIGMAS` standard
errors are given.  Where these are too far apart to be of use, or the solver was misled, it gets the
gradient in double precision to go on from (iterative refinement): what it adds from there on is
rounded, but the changes are small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.kernel.backend import Backend
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.problem import Problem, gap_terms, gradient_of, relative_gap

EXACT_WORK = 1 << 15  # variables times the cost of a kernel value, up to which all are computed
LEAST_COST = 8.0
SAMPLE = 256  # variables of a larger problem
SIGMAS = 5.0
NEAR = 0.02  # of the margin: what rests at its bound by more does so after any rounding
DEFINITE_ROWS = 512
_ROUNDING = 1e-6  # of the largest eigenvalue, by which the smallest may be below zero


@dataclass(frozen=True)
class Found:
    """Where a solver stands, in its own arithmetic."""

    alpha: np.ndarray
    gradient: np.ndarray  # exact, or at a bound less firm than in truth
    dual: float
    gap: float
    is_bound: np.ndarray  # where it is the latter
    refined_alpha: np.ndarray | None = None  # where gradient and dual were exact, if anywhere
    offset: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Bounds on both objectives of what was found."""

    primal: float
    dual: float

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.primal, self.dual)


@dataclass(frozen=True)
class Refined:
    """The gradient in double precision, but for variables that firmly rest at their bounds."""

    gradient: np.ndarray
    is_bound: np.ndarray  # where it is not in double precision, but on the safe side
    dual: float


@dataclass(frozen=True)
class Judge:
    """Judges what a solver has found for ``problem`` by an ``exact`` one in double precision."""

    problem: Problem
    exact: Problem
    backend: Backend

    def verdict(self, found: Found) -> Verdict:
        if self._is_small():
            refined = self.refined(found)
            gap = gap_terms(found.alpha, refined.gradient, self.exact.upper).sum()
            return Verdict(refined.dual + float(gap), refined.dual)
        return self._estimated(found)

    def refined(self, found: Found) -> Refined:
        resting = np.zeros(len(self.exact), dtype=bool) if self._is_small() else self._rest(found)
        resting &= found.alpha <= 0  # the dual objective needs the gradient of support vectors
        known = np.flatnonzero(~resting)
        # What is not computed rests by more than NEAR: half of that stays on the safe side.
        gradient = found.gradient - NEAR / 2
        gradient[known] = gradient_of(self.exact, found.alpha, known, self.backend, found.offset)
        return Refined(
            gradient, resting, self.exact.dual_value(found.alpha, gradient, found.offset)
        )

    def _is_small(self) -> bool:
        return len(self.exact) * max(self.exact.kernel.cost, LEAST_COST) <= EXACT_WORK

    def _rest(self, found: Found) -> np.ndarray:
        """Variables at a bound that no rounding can move."""
        at_zero, at_upper = found.alpha <= 0, found.alpha >= self.exact.upper
        return (at_zero & (found.gradient > NEAR)) | (at_upper & (found.gradient < -NEAR))

    def _estimated(self, found: Found) -> Verdict:
        """By importance sampling.

        Half of the sample is drawn from the variables whose share of the gap can change, by how
        much it can; the other half from those whose rounded kernel rows were added to the
        gradient, by how much of them.
        """
        upper, rested = self.exact.upper, self._rest(found)
        share = np.where(rested, 0.0, np.maximum(found.alpha, upper - found.alpha))
        added = found.alpha - (0.0 if found.refined_alpha is None else found.refined_alpha)
        weights = [w / w.sum() for w in (share, np.abs(added)) if w.sum() > 0]
        if not weights:  # all firmly at zero
            return Verdict(found.dual + found.gap, found.dual)
        chance = np.mean(weights, axis=0)
        sample = np.random.default_rng(0).choice(len(chance), SAMPLE, p=chance / chance.sum())
        chance, alpha, upper = chance[sample], found.alpha[sample], upper[sample]
        true = gradient_of(self.exact, found.alpha, sample, self.backend, found.offset)
        changes = gap_terms(alpha, true, upper) - gap_terms(alpha, found.gradient[sample], upper)
        gap, gap_error = _mean(changes / chance)
        # With d added since the dual was exact, it is off by d'(K - K rounded)d / 2.
        off = -0.5 * added[sample] * self._moved(found, sample, true) / chance
        dual, dual_error = _mean(off)
        low, high = found.dual + dual - dual_error, found.dual + dual + dual_error
        return Verdict(high + found.gap + gap + gap_error, low)

    def _moved(self, found: Found, sample: np.ndarray, true: np.ndarray) -> np.ndarray:
        """How far rounding has moved the gradient of a sample since it was exact."""
        if found.refined_alpha is None:
            how = (sample, self.backend, found.offset)
            return true - gradient_of(self.problem, found.alpha, *how)
        moved = true - found.gradient[sample]
        hidden = found.is_bound[sample]  # few have been active and are no more
        moved[hidden] = np.abs(moved[~hidden]).max(initial=0.0)
        return moved


def _mean(values: np.ndarray) -> tuple[float, float]:
    """And how far the mean of many more such values may be from it."""
    return float(values.mean()), SIGMAS * float(values.std()) / np.sqrt(len(values))


def is_definite(data: KernelRows, support: np.ndarray, backend: Backend) -> bool:
    """Whether a kernel that need not be positive semi-definite is so on some support vectors.

    Without that, the primal objective is no bound on the dual one, and there is no certificate.
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
