"""The search for the C or epsilon that nu asks for.

The dual of nu-SVC has one more constraint than that of C-SVC, e'b = nu n with bounds of 1, and its
multiplier is the margin rho: divided by rho, its solution is that of C-SVC with C = 1 / rho.  That
of nu-SVR, sum |b| = C nu n, has the multiplier epsilon.  Both sums fall as C or epsilon grows, so
fits at parameters below and above the one that is searched enclose it.

The model is a mixture of two such fits whose sum is what nu asks for.  The primal objective is
convex in the model and the multiplier, and the dual one concave, so the gap of a mixture is at most
the mixture of both gaps: it is certified without another fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables

ROUGH = 0.05  # relative gap of the first stage of a search, which comes near the parameter
SHARE = 0.4  # of the tolerance: the gap of each fit
ROUNDS = 40  # fits of a stage, at most
TYPICAL = 0.05  # margin of a row, as a share of its kernel value with itself
FARTHEST = 60.0  # logarithm of C, where arithmetic ends
SLOPE = 0.25  # of a sum that falls as C grows, logarithms of both
LEAST = 1e-3  # |w|^2, relative to the sum of margins, where classes do not overlap too much
ROUNDED = 1e-9  # of a sum: what rounding may miss

Fits = tuple[list[Variables], list[Solution]]
Solve = Callable[[list[Variables], list[np.ndarray], float, list[bool]], list[Solution]]


class Brackets:
    """Where decreasing functions cross 0, of several at once, by regula falsi (Illinois)."""

    def __init__(self, place: np.ndarray, slope: np.ndarray, least: float, most: float):
        n = len(place)
        self.place, self.slope, self._limits = place.copy(), slope.copy(), (least, most)
        self._ends = np.array([np.full(n, -np.inf), np.full(n, np.inf)])
        self._values = np.full((2, n), np.nan)  # at both ends, halved where an end stays
        self._last, self._misses = np.full(n, -1), np.zeros(n)

    def tell(self, values: np.ndarray, moving: np.ndarray) -> None:
        """Take the functions' values at ``place``, and move those that are not found yet."""
        for k in np.flatnonzero(moving).tolist():
            side = int(values[k] <= 0)
            self._ends[side, k], self._values[side, k] = self.place[k], values[k]
            (low, high), (above, below) = self._ends[:, k], self._values[:, k]
            if self._last[k] == side:
                self._values[1 - side, k] *= 0.5
            elif low < high < np.inf and low > -np.inf:
                self.slope[k] = (above - below) / (high - low)
            self._last[k] = side
            self.place[k] = self._next(k, side)

    def _next(self, k: int, side: int) -> float:
        (low, high), (above, below) = self._ends[:, k], self._values[:, k]
        if np.isfinite(high - low):
            return float((low * below - high * above) / (below - above))
        self._misses[k] += 1
        step = 0.75 * 2 ** self._misses[k] * self._values[side, k] / self.slope[k]
        return float(np.clip(self.place[k] + step, *self._limits))


@dataclass
class Ends:
    """Fits at both ends of each output's bracket: arrays of shape (2, n_outputs).

    Objectives are those of the problem with nu, in which variables are within the weights.
    """

    multiplier: np.ndarray
    ratio: np.ndarray  # of the sum to what nu asks for; NaN where there is no fit
    primal: np.ndarray
    dual: np.ndarray
    offset: np.ndarray
    alphas: list[list[np.ndarray]]

    @classmethod
    def none(cls, base: list[Variables], n_outputs: int) -> Ends:
        empty = np.full((5, 2, n_outputs), np.nan)
        return cls(empty[0], empty[1], empty[2], empty[3], empty[4], [_zeros(base), _zeros(base)])

    def share(self) -> np.ndarray:
        """Return the share of the lower end in the mixture that meets the constraint."""
        low, high = self.ratio
        with np.errstate(invalid="ignore", divide="ignore"):
            both = np.where(low > high, np.clip((1 - high) / (low - high), 0, 1), 0.0)
        return np.where(np.isnan(low), 0.0, np.where(np.isnan(high), 1.0, both))

    def mixed(self, values: np.ndarray) -> np.ndarray:
        low, high = values
        share = self.share()
        return np.where(share > 0, share * low, 0) + np.where(share < 1, (1 - share) * high, 0)

    def alpha(self, problem: int, output_of: np.ndarray) -> np.ndarray:
        share = self.share()[output_of]
        low, high = (alphas[problem] for alphas in self.alphas)
        return share * low + (1 - share) * high


def _zeros(base: list[Variables]) -> list[np.ndarray]:
    return [np.zeros(len(v)) for v in base]


class Search(ABC):
    """The problems of a fit at parameters of each output that change from round to round."""

    feasible: int  # 0 if parameters below the one that is searched meet the constraint, else 1
    least, most = -np.inf, np.inf  # of the parameter's place

    def __init__(
        self, base: list[Variables], total: np.ndarray, place: np.ndarray, slope: np.ndarray
    ):
        self.base, self.total, self.place, self.slope = base, total, place, slope
        self.ends = Ends.none(base, len(total))

    @property
    @abstractmethod
    def multiplier(self) -> np.ndarray:
        """Return the multipliers of the constraints at the current parameters."""

    @abstractmethod
    def problems(self, multiplier: np.ndarray) -> list[Variables]:
        """Return the problems that a solver knows, with the multipliers as constants."""

    @abstractmethod
    def scale(self, multiplier: np.ndarray) -> np.ndarray:
        """Return by how much their variables are larger than those of the problem with nu."""

    @abstractmethod
    def added(self, multiplier: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        """Return what their objectives have more than those of the problem with nu, which is also
        what the latter's are less than a size that they are compared with."""

    @abstractmethod
    def values(self, ratio: np.ndarray) -> np.ndarray:
        """Return functions of the ratio that fall with the parameter and cross 0 at 1."""

    @abstractmethod
    def size(self) -> np.ndarray:
        """Return the size of the mixture's objectives, with which gaps are compared."""

    @property
    def is_hopeless(self) -> bool:
        """Whether no parameter will do for some output."""
        return False

    def gap(self) -> np.ndarray:
        """Return the gap of each mixture, at most; infinite where the constraint is violated."""
        ends, ratio = self.ends, self.ends.mixed(self.ends.ratio)
        violated = ratio > 1 + ROUNDED if self.feasible else ratio < 1 - ROUNDED
        return np.where(violated, np.inf, ends.mixed(ends.primal) - ends.mixed(ends.dual))

    def run(self, solve: Solve, tol: float) -> Fits:
        """Find the parameters.

        ``solve`` fits problems from variables to a gap, where a list says that it is wanted.
        """
        found = self._stage(solve, ROUGH, None)
        if tol < ROUGH and not any(s.stopped for s in found) and not self.is_hopeless:
            starts = self._starts()
            self.ends = Ends.none(self.base, len(self.total))
            found = self._stage(solve, tol, starts, found)
        multiplier = self.ends.mixed(self.ends.multiplier)
        return self.problems(multiplier), self._mixture(multiplier, found)

    def _stage(
        self,
        solve: Solve,
        tol: float,
        starts: list[np.ndarray] | None,
        before: list[Solution] | None = None,
    ) -> list[Solution]:
        """Search until every mixture has the gap; return the last fits."""
        brackets = Brackets(self.place, self.slope, self.least, self.most)
        moving, starts = np.ones(len(self.total), dtype=bool), starts or self._starts()
        for _ in range(ROUNDS):
            self.place = brackets.place.copy()
            problems, factor = self.problems(self.multiplier), self.scale(self.multiplier)
            scaled = [a * factor[v.output_of] for v, a in zip(problems, starts, strict=True)]
            wanted = [bool(moving[v.output].any()) for v in problems]
            fits = solve(problems, scaled, SHARE * tol, wanted)
            if before is not None:
                each = zip(fits, before, wanted, strict=True)
                fits = [s.after(b) if more else b for s, b, more in each]
            before, ratio = fits, self._take(problems, fits, moving)
            moving = self.gap() > tol * self.size()
            if not moving.any() or any(s.stopped for s in fits) or self.is_hopeless:
                break
            brackets.tell(self.values(ratio), moving)
            starts = self._starts()
        self.slope = brackets.slope
        return fits

    def _starts(self) -> list[np.ndarray]:
        return [self.ends.alpha(k, v.output_of) for k, v in enumerate(self.base)]

    def _take(
        self, problems: list[Variables], fits: list[Solution], moving: np.ndarray
    ) -> np.ndarray:
        """Make the fits of moving outputs ends of their brackets; return the ratios."""
        ends, multiplier, factor = self.ends, self.multiplier, self.scale(self.multiplier)
        size = [np.abs(s.alpha) / factor[v.output_of] for v, s in zip(problems, fits, strict=True)]
        ratio = _by_output(problems, size) / self.total
        side = np.where(moving, (self.values(ratio) <= 0).astype(int), -1)
        primal, dual, offset = (np.zeros(len(ratio)) for _ in range(3))
        for k, (v, s) in enumerate(zip(problems, fits, strict=True)):
            both = np.array([[s.primal, s.dual]]) if s.each is None else s.each
            primal[v.output], dual[v.output], offset[v.output] = *both.T, s.offset
            own = side[v.output_of]
            for end in range(2):
                mine = s.alpha / factor[v.output_of]
                ends.alphas[end][k] = np.where(own == end, mine, ends.alphas[end][k])
        given = {
            "multiplier": multiplier,
            "ratio": ratio,
            "primal": primal / factor**2 - self.added(multiplier, np.ones(len(ratio))),
            "dual": dual / factor**2 - self.added(multiplier, ratio),
            "offset": offset / factor,
        }
        for name, values in given.items():
            for end in range(2):
                kept = getattr(ends, name)[end]
                kept[side == end] = values[side == end]
        return ratio

    def _mixture(self, multiplier: np.ndarray, fits: list[Solution]) -> list[Solution]:
        """Return the mixtures as solutions, with bounds on their objectives."""
        ends, factor = self.ends, self.scale(multiplier)
        size = self.size()
        gap = np.minimum(self.gap(), size)  # where nothing is known
        low = size * factor**2 - gap * factor**2
        offset, starts = factor * ends.mixed(ends.offset), self._starts()
        found = []
        for v, s, alpha in zip(self.base, fits, starts, strict=True):
            both = np.stack([(size * factor**2)[v.output], low[v.output]], axis=1)
            new = replace(s, alpha=alpha * factor[v.output_of], offset=offset[v.output])
            each = None if s.each is None else both
            primal, dual = both.sum(axis=0)
            found.append(replace(new, primal=float(primal), dual=float(dual), each=each))
        return found


class ByC(Search):
    """Of classes; the place is the logarithm of C, the multiplier 1 / C; bases have C = 1."""

    feasible, most = 0, FARTHEST

    def __init__(self, base: list[Variables], nu: float, diagonal: float):
        total = nu * _by_output(base, [v.upper for v in base])
        positive = nu * _by_output(base, [v.upper * (v.sign > 0) for v in base])
        if np.any(total * nu / 2 > np.minimum(positive, total - positive) * (1 + ROUNDED)):
            raise ValueError(
                f"specified nu is infeasible: nu={nu:g} is more than twice the share of the "
                "smaller of two classes. Decrease it."
            )
        place = -np.log(TYPICAL * total * diagonal)
        super().__init__(base, total, place, np.full(len(place), SLOPE))

    @property
    def multiplier(self) -> np.ndarray:
        return np.exp(-self.place)

    def problems(self, multiplier: np.ndarray) -> list[Variables]:
        return [replace(v, upper=v.upper / multiplier[v.output_of]) for v in self.base]

    def scale(self, multiplier: np.ndarray) -> np.ndarray:
        return 1 / multiplier

    def added(self, multiplier: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        return multiplier * self.total * ratio

    def values(self, ratio: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(ratio, 1e-9))

    def size(self) -> np.ndarray:
        ends = self.ends
        return ends.mixed(ends.primal) + ends.mixed(ends.multiplier) * self.total

    @property
    def is_hopeless(self) -> bool:
        """Whether classes overlap by more than nu: then the margin is 0 at the optimum."""
        ends, margin = self.ends, self.ends.multiplier[0] * self.total
        squared = np.where(np.isnan(ends.ratio[1]), -2 * ends.dual[0], np.inf)  # |w|^2
        return bool(np.any(squared < LEAST * margin))


class ByEpsilon(Search):
    """Of numbers; the place and the multiplier are epsilon, and bases have epsilon = 0."""

    feasible, least = 1, 0.0

    def __init__(self, base: list[Variables], nu: float):
        total = nu * _by_output(base, [v.upper for v in base])
        distance = [np.abs(v.linear - np.median(v.linear)) for v in base]
        place = np.array([np.quantile(d, max(1 - nu, 0)) / 2 for d in distance])
        super().__init__(base, total, place, 1 / np.array([d.max() or 1.0 for d in distance]))

    @property
    def multiplier(self) -> np.ndarray:
        return self.place

    def problems(self, multiplier: np.ndarray) -> list[Variables]:
        epsilon = [float(multiplier[v.output[0]]) for v in self.base]
        each = zip(self.base, epsilon, strict=True)
        return [replace(v, linear=v.linear + e, turn=2 * e) for v, e in each]

    def scale(self, multiplier: np.ndarray) -> np.ndarray:
        return np.ones(len(multiplier))

    def added(self, multiplier: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        return -multiplier * self.total * ratio

    def values(self, ratio: np.ndarray) -> np.ndarray:
        return ratio - 1

    def size(self) -> np.ndarray:
        return self.ends.mixed(self.ends.primal)


def _by_output(problems: list[Variables], values: list[np.ndarray]) -> np.ndarray:
    """Sum values of variables over each output."""
    found = np.zeros(1 + max((int(v.output.max()) for v in problems), default=0))
    for variables, own in zip(problems, values, strict=True):
        group = variables.group
        found[variables.output] = own.sum() if group is None else group.sums(own)
    return found
