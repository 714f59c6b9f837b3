"""SVC's intercept, which is not penalised, by a search over one number per problem.

With the intercept b given, the dual is a box problem with the linear term -1 + b y.  Its optimal
value P(b) is convex, with slope -y'a at its solution a, and the tangents at two values of b bound
the least P from below.  The convex combination of two solutions for which y'a = 0 is a feasible
point of SVC's dual; a box problem that ends there has the duality gap of SVC's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from widemargin.kernel.divide import FitState, Plan
from widemargin.kernel.estimator import KernelSVC
from widemargin.kernel.problems import Variables
from widemargin.kernel.training import TrainingSet
from widemargin.kernel.warm_start import Dual
from widemargin.multiclass import Targets

ROUNDS = 60  # solutions of a fit, at most
LEVEL = 1e-12  # of the sum of the bounds, below which a slope is zero
MOST_FREE = 300  # free variables of a problem whose equations are solved
AT_BOUND = 1e-10  # of the bound, within which a variable is at it


@dataclass(frozen=True)
class Tangent:
    """A solution of one problem: where, the slope of P, P's tangent at b = 0, and the variables."""

    b: float
    slope: float
    level: float
    alpha: np.ndarray


class Search:
    """The search for the intercept of one problem, by regula falsi on the slope (Illinois).

    ``low`` is the tangent at the largest b with a negative slope so far, ``high`` that at the
    smallest b with a positive one.
    """

    def __init__(self) -> None:
        self.low: Tangent | None = None
        self.high: Tangent | None = None
        self._best, self._best_b, self._step, self._last = np.inf, 0.0, 0.5, 0
        self._damped = [1.0, 1.0]  # the slope of an end that stays counts half as much

    def add(self, found: Tangent, primal: float, flat: float) -> None:
        """Take in a solution; ``flat`` is the slope that counts as none."""
        if primal < self._best:
            self._best, self._best_b = primal, found.b
        if abs(found.slope) <= flat:
            self.low = self.high = found
            return
        side = int(found.slope > 0)
        self._damped[1 - side] *= 0.5 if self._last == side else 1.0
        self._damped[side], self._last = 1.0, side
        if side:
            self.high = found
        else:
            self.low = found

    @property
    def share(self) -> float:
        """Of ``low`` in the combination with y'a = 0, or in what there is."""
        if self.low is None or self.high is None or self.low is self.high:
            return float(self.low is not None)
        return self.high.slope / (self.high.slope - self.low.slope)

    def combined(self) -> np.ndarray:
        """Dual variables to go on from."""
        low, high = self.low or self.high, self.high or self.low
        assert low is not None
        assert high is not None
        return self.share * low.alpha + (1 - self.share) * high.alpha

    def is_near(self, tol: float) -> bool:
        """Whether the least P so far is near the point where the tangents meet."""
        if self.low is None or self.high is None:
            return False
        least = self.share * self.low.level + (1 - self.share) * self.high.level
        return self._best - least <= tol * self._best

    def next_b(self, tol: float) -> float:
        """Where to look next; once it is near, the best so far."""
        if self.is_near(tol):
            return self._best_b
        if self.low is None or self.high is None:
            known = self.low or self.high
            assert known is not None
            self._step *= 2
            return known.b - np.sign(known.slope) * self._step
        left, right = (
            damped * end.slope
            for damped, end in zip(self._damped, (self.low, self.high), strict=True)
        )
        return (self.low.b * right - self.high.b * left) / (right - left)


Inner = Callable[[np.ndarray], np.ndarray]  # kernel values between some rows


@dataclass(frozen=True)
class Piece:
    """The part of a fit that is one problem."""

    output: int
    row: np.ndarray
    sign: np.ndarray
    upper: np.ndarray
    alpha: np.ndarray  # a view
    primal: float
    dual: float

    def tangent(self, b: float) -> Tangent:
        slope = -float(self.sign @ self.alpha)
        return Tangent(b, slope, self.dual - slope * b, self.alpha.copy())

    @property
    def flat(self) -> float:
        return LEVEL * float(self.upper.sum())

    def settle(self, decision: np.ndarray, inner: Inner, otherwise: float) -> float:
        """LIBSVM's intercept: the mean of y - f of free variables, else the middle of its range.

        Few free variables are moved to where their margins are one, and y'a = 0, exactly.
        """
        left = self.sign - decision
        at_zero = self.alpha <= AT_BOUND * self.upper
        at_upper = self.alpha >= (1 - AT_BOUND) * self.upper
        free = np.flatnonzero(~(at_zero | at_upper))
        if 0 < len(free) <= MOST_FREE:
            moved, b = _newton_step(inner(self.row[free]), left[free], self.sign @ self.alpha)
            moved = self.alpha[free] + self.sign[free] * moved
            if np.all((moved >= 0) & (moved <= self.upper[free])):
                self.alpha[free] = moved
                return b
        if len(free):
            return float(left[free].mean())
        from_below = (self.sign > 0) == at_zero
        least = left[from_below].max(initial=-np.inf)
        most = left[~from_below].min(initial=np.inf)
        middle = (least + most) / 2
        return float(middle) if np.isfinite(middle) else otherwise


def _newton_step(K: np.ndarray, left: np.ndarray, excess: float) -> tuple[np.ndarray, float]:
    """Changes z of y a, and b, for which K z + b is what is left of each margin, and y'a = 0."""
    n = len(left)
    system = np.ones((n + 1, n + 1))
    system[:n, :n], system[n, n] = K, 0.0
    found = np.linalg.lstsq(system, np.append(left, -excess))[0]
    return found[:n], float(found[n])


class FreeInterceptSVC(KernelSVC):
    """`KernelSVC` with an intercept that is not penalised: what `widemargin.sklearn` fits with.

    Each round solves all problems with the intercepts of their searches, from a combination of the
    solutions so far.  ``duality_gap_`` is that of SVC's own problem.
    """

    def _has_intercept(self) -> bool:
        return False

    def _is_linear(self) -> bool:
        return False  # kernel values tell the equations of free variables

    def _problems(self, targets: Targets) -> list[Variables]:
        return [
            replace(p, linear=p.linear + self._offset[p.output_of] * p.sign)
            for p in super()._problems(targets)
        ]

    def _plan(self, *arguments, **named) -> Plan:
        """A search is solved more tightly than the last round, which is to change nothing."""
        plan = super()._plan(*arguments, **named)
        tol = plan.settings.tol * (1.0 if self._is_last else 0.25)
        return replace(plan, settings=replace(plan.settings, tol=tol))

    def _record(self, state: FitState, *arguments) -> None:
        self._solutions = state.solutions
        super()._record(state, *arguments)

    def _report(self, *, stopped: bool) -> None:
        self._stopped = stopped
        if self._is_last:
            super()._report(stopped=stopped)

    def _solve(self, training: TrainingSet, start: Dual | None) -> Dual:
        searches = [Search() for _ in range(training.targets.coding.n_outputs)]
        self._offset, self._is_last, bar = np.zeros(len(searches)), False, 0.5 * self.tol
        dual = super()._solve(training, start)
        for _ in range(ROUNDS):
            for piece in self._pieces(training, dual):
                search = searches[piece.output]
                if not search.is_near(bar):
                    b = float(self._offset[piece.output])
                    search.add(piece.tangent(b), piece.primal, piece.flat)
                self._offset[piece.output] = search.next_b(bar)
                piece.alpha[...] = search.combined()
            if self._stopped:
                break
            dual = super()._solve(training, dual)
            if all(search.is_near(bar) for search in searches):
                break
        return self._settled(training, dual)

    def _settled(self, training: TrainingSet, dual: Dual) -> Dual:
        """With LIBSVM's intercepts where these leave the variables alone, else those searched."""
        searched, kept = self._offset.copy(), [alpha.copy() for alpha in dual.alphas]
        decision, data = self.model_.decision(training.targets.X, training.host), training.data
        exact = data.levels.exact or data.levels

        def inner(rows: np.ndarray) -> np.ndarray:
            own, identity = exact.rows[rows], np.eye(len(rows))
            return training.host.product(exact.kernel, own, own, identity)

        with training.host:
            for piece in self._pieces(training, dual):
                f, otherwise = decision[piece.row, piece.output], float(searched[piece.output])
                self._offset[piece.output] = piece.settle(f, inner, otherwise)
        settled = [alpha.copy() for alpha in dual.alphas]
        self._is_last = True
        dual = super()._solve(training, dual)
        if not all(map(np.array_equal, dual.alphas, settled)):
            self._offset = searched
            dual = super()._solve(training, Dual(kept, dual.C))
        self.model_ = replace(self.model_, intercept=self._offset)
        return dual

    def _pieces(self, training: TrainingSet, dual: Dual) -> Iterator[Piece]:
        """The problems of a fit one by one, with their solutions."""
        problems = self._problems(training.targets)
        for p, alpha, solution in zip(problems, dual.alphas, self._solutions, strict=True):
            start = np.array([0, len(p)]) if p.group is None else p.group.start
            each = [[solution.primal, solution.dual]] if solution.each is None else solution.each
            for k, (begin, end) in enumerate(pairwise(start.tolist())):
                own, (primal, value) = slice(begin, end), each[k]
                bounds = (p.row[own], p.sign[own], p.upper[own], alpha[own])
                yield Piece(int(p.output[k]), *bounds, float(primal), float(value))
