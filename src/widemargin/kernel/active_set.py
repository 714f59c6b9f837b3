"""The variables that may move, and the working sets chosen from them.

Every round takes a working set (the free variables of the last one and the worst violators), gets
its kernel rows, minimises over it with two-variable steps, and adds the change to the gradient.
Where clusters of rows hardly know of each other, a round takes a working set in each of them: these
are solved side by side, and an exact line search on the sum of their changes keeps the descent.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from widemargin import _core
from widemargin.kernel.cache import RowCache
from widemargin.kernel.problem import Problem, firmness, slopes

WORKING_SET = 1024
FIRST_SET = 256  # without a start: rows chosen before a model is there seldom end in it
GROWTH = 1.25  # of the working set from one step to the next
INNER_TOL = 0.1  # of the current violation: looser needs more steps, tighter more inner ones
SET_OF_CLUSTER = 256  # variables of each working set, where there is one per cluster
LEAST_ACTIVE = 4096  # variables from which a round has a working set per cluster
GLOBAL_EVERY = 4  # rounds: the others cannot move mass from one cluster to another
TRUST = 0.8  # mean step of the line search, below which clusters disturb each other
AGAIN = 10  # rounds until they are tried once more


class ActiveSet(Protocol):
    """What the solver asks of the active variables, wherever they and their rows live."""

    ids: np.ndarray  # their numbers in the problem
    alpha: np.ndarray
    gradient: np.ndarray  # exact
    violation: float  # the largest projected gradient, as `select` found it
    n_added: int  # kernel rows added to the gradient since the set changed

    def __len__(self) -> int: ...

    @property
    def n_computed(self) -> int:
        """Kernel rows computed so far."""
        ...

    @property
    def offset(self) -> float:
        """The intercept, which `select` moves."""
        ...

    @property
    def missed(self) -> float:
        """By how much the constraint of the intercept is missed."""
        ...

    def must_be_met(self, gap: float, primal: float, aim: float) -> bool:
        """Whether variables must meet the constraint now, near the end of a descent."""
        ...

    def less_slack(self, aim: float) -> float:
        """What ``aim`` leaves for the gap, when the constraint has had its share."""
        ...

    def select(self) -> tuple[float, float]:
        """Choose the next working sets.

        Returns the duality gap of these variables, and the change of the dual objective if the
        intercept was moved.
        """
        ...

    def step(self) -> float:
        """Minimise over the working sets; returns by how much the dual objective grew."""
        ...

    def meet_constraint(self) -> float:
        """Change a few variables to meet the constraint; returns the gain."""
        ...

    def at_rest(self, margin: float) -> np.ndarray:
        """Which variables are held at a bound or at zero by more than ``margin``."""
        ...

    def keep(self, numbers: np.ndarray, rest: float) -> None:
        """Shrink to the variables of these numbers; ``rest`` is sign @ alpha of all others."""
        ...

    def extend(self, ids: np.ndarray, alpha: np.ndarray, gradient: np.ndarray, rest: float) -> None:
        """Append variables of the problem, with their values; ``rest`` as above."""
        ...

    def reset_gradient(self, gradient: np.ndarray) -> None:
        """Replace a gradient that many sums have made inexact."""
        ...

    def close(self) -> None:
        """Give memory back."""
        ...


class HostActiveSet:
    """The variables ``ids`` of a problem, in the order of the cache's rows."""

    def __init__(
        self, problem: Problem, ids: np.ndarray, alpha: np.ndarray, cache: RowCache, offset: float
    ):
        self.problem, self.ids, self.cache = problem, ids, cache
        self.sign, self.upper = problem.sign[ids], problem.upper[ids]
        self.diagonal = problem.diagonal[ids]
        self.alpha = alpha[ids]
        self.gradient = problem.linear_at(offset)[ids]
        self._cluster = None if problem.cluster is None else problem.cluster[ids]
        self.n_added = self._n_rounds = 0
        self.violation, self._trust = 0.0, 1.0
        none = np.empty(0, dtype=np.int64)
        self._chosen, self._starts = none, np.zeros(1, dtype=np.int64)
        self._last: dict[bool, np.ndarray] = {}  # of rounds in clusters, and of all others
        self._size: float = WORKING_SET if self.alpha.any() else min(FIRST_SET, WORKING_SET)
        self._scratch: np.ndarray = np.empty(0, dtype=cache.kernel.dtype)
        self._bind(offset, 0.0)

    def _bind(self, offset: float, rest: float) -> None:
        """Hand the arrays, which are new ones, to the core."""
        variables = (self.alpha, self.gradient, self.sign, self.upper, self.diagonal)
        problem = self.problem
        self._core = _core.WorkingSet(*variables, problem.has_offset, offset, problem.turn)
        self._core.set_rest(rest)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_computed(self) -> int:
        return self.cache.n_computed

    @property
    def offset(self) -> float:
        return self._core.offset

    @property
    def missed(self) -> float:
        return self._core.missed

    def must_be_met(self, gap: float, primal: float, aim: float) -> bool:
        return self._core.must_be_met(gap, primal, aim)

    def less_slack(self, aim: float) -> float:
        return self._core.less_slack(aim)

    def start_from_rows(self, support: np.ndarray) -> None:
        """The gradient at the start, through the cache."""
        slots = self.cache.slots(support)
        self.cache.add(slots, (self.alpha * self.sign)[support], self._core)

    def select(self) -> tuple[float, float]:
        side_by_side = self._is_side_by_side()
        gap, gain = self._select(side_by_side), 0.0
        if self._core.is_due(gap):
            gain = self._core.move_offset()
            gap = self._select(side_by_side)
        self._last[side_by_side] = self._chosen
        self._size = min(GROWTH * self._size, WORKING_SET)
        self._n_rounds += 1
        return gap, gain

    def _is_side_by_side(self) -> bool:
        """Whether this round has a working set in every cluster."""
        if self._cluster is None or len(self) < LEAST_ACTIVE:
            return False
        trusted = self._trust >= TRUST or self._n_rounds % AGAIN == 0
        return trusted and self._n_rounds % GLOBAL_EVERY != GLOBAL_EVERY - 1

    def _select(self, side_by_side: bool) -> float:
        last, n_slots = self._last.get(side_by_side, self._chosen[:0]), self.cache.n_slots
        room = max(-(-n_slots // 2), min(n_slots, 2))  # of a pair, at least
        how: tuple = (min(int(self._size), len(self), room), None, 1)
        if side_by_side and self._cluster is not None:
            n = int(self._cluster.max()) + 1
            how = (min(SET_OF_CLUSTER, -(-room // n)), self._cluster, n)
        self._chosen, self._starts, self.violation, gap = self._core.select(last, *how)
        return gap

    def step(self) -> float:
        """An exact line search ends a round of several working sets.

        A single one needs none, since it is solved with the true kernel values.
        """
        chosen, starts, cache = self._chosen, self._starts, self.cache
        slots, coef = cache.slots(chosen), np.empty(len(chosen))
        before, slope = self.alpha[chosen], self.gradient[chosen]
        n_values = int(np.square(-(-np.diff(starts) // 8) * 8).sum())
        if len(self._scratch) < n_values:
            self._scratch = np.empty(n_values, dtype=cache.pool.dtype)
        tol = INNER_TOL * self.violation
        block = (cache.pool, slots, chosen, starts)
        gain = self._core.minimise(*block, tol, self._scratch, coef, cache.tiles.team)
        self._add(slots, coef)
        if len(starts) <= 2:
            return gain
        after = self.alpha[chosen]
        change, curved = after - before, (after - before) @ (self.gradient[chosen] - slope)
        linear = change @ slopes(before, after, slope, self.problem.turn)
        step = min(1.0, -linear / curved) if curved > 0 else 1.0
        self._trust += 0.5 * (step - self._trust)
        if step < 1:
            self.alpha[chosen] = before + step * change
            self._add(slots, (step - 1) * coef)
        return max(-step * (linear + 0.5 * step * curved), 0.0)

    def _add(self, slots: np.ndarray, coef: np.ndarray) -> None:
        self.n_added += int(np.count_nonzero(coef))
        self.cache.add(slots, coef, self._core)

    def meet_constraint(self) -> float:
        before, most = self.gradient.copy(), min(WORKING_SET, -(-self.cache.n_slots // 2))
        alpha = self.alpha.copy()
        block, coef = self._core.meet_constraint(most)
        for begin in range(0, len(block), most):  # more only where these have little room
            part = slice(begin, begin + most)
            self._add(self.cache.slots(block[part]), coef[part])
        change = coef * self.sign[block]
        mean = 0.5 * (before[block] + self.gradient[block])
        sides = (alpha[block], self.alpha[block])
        return -float(change @ slopes(*sides, mean, self.problem.turn))

    def at_rest(self, margin: float) -> np.ndarray:
        return firmness(self.alpha, self.gradient, self.upper, self.problem.turn) > margin

    def keep(self, numbers: np.ndarray, rest: float) -> None:
        kept = np.zeros(len(self), dtype=bool)
        kept[numbers] = True
        new = np.cumsum(kept) - 1
        self._last = {kind: new[last[kept[last]]] for kind, last in self._last.items()}
        self.cache.shrink(numbers)
        for name in ("ids", "sign", "upper", "diagonal", "alpha", "gradient"):
            setattr(self, name, getattr(self, name)[numbers])
        if self._cluster is not None:
            self._cluster = self._cluster[numbers]
        self._bind(self.offset, rest)

    def extend(self, ids: np.ndarray, alpha: np.ndarray, gradient: np.ndarray, rest: float) -> None:
        p, rows = self.problem, self.problem.rows
        self.ids = np.concatenate([self.ids, ids])
        self.cache.extend(rows[self.ids], rows[ids])
        self.sign, self.upper = p.sign[self.ids], p.upper[self.ids]
        self.diagonal = p.diagonal[self.ids]
        self.alpha = np.concatenate([self.alpha, alpha])
        self.gradient = np.concatenate([self.gradient, gradient])
        if p.cluster is not None:
            self._cluster = p.cluster[self.ids]
        self._bind(self.offset, rest)

    def reset_gradient(self, gradient: np.ndarray) -> None:
        self.gradient[:] = gradient

    def close(self) -> None:
        self.cache.close()
