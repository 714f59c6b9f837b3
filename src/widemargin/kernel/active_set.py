"""The variables that may move, and the working sets chosen from them.

Every step takes a working set (the free variables of the last one and the worst violators), gets
its kernel rows, minimises over it with two-variable steps, and adds the change to the gradient.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from widemargin import _core
from widemargin.kernel.cache import RowCache
from widemargin.kernel.problem import Problem

WORKING_SET = 1024
FIRST_SET = 256  # without a start: rows chosen before a model is there seldom end in it
GROWTH = 1.25  # of the working set from one step to the next
INNER_TOL = 0.1  # of the current violation: looser needs more steps, tighter more inner ones


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

    def select(self) -> float:
        """Choose the next working set; returns the duality gap of these variables."""
        ...

    def step(self) -> float:
        """Minimise over the working set; returns by how much the dual objective grew."""
        ...

    def at_rest(self, margin: float) -> np.ndarray:
        """Which variables are held at a bound by a gradient above ``margin``."""
        ...

    def keep(self, numbers: np.ndarray) -> None:
        """Shrink to the variables of these numbers."""
        ...

    def extend(self, ids: np.ndarray, alpha: np.ndarray, gradient: np.ndarray) -> None:
        """Append variables of the problem, with their values."""
        ...

    def reset_gradient(self, gradient: np.ndarray) -> None:
        """Replace a gradient that many sums have made inexact."""
        ...

    def close(self) -> None:
        """Hand back what was borrowed for the problem."""
        ...


class HostActiveSet:
    """An active set in this process: plain arrays, renumbered from 0, and a cache of their rows."""

    def __init__(self, problem: Problem, ids: np.ndarray, alpha: np.ndarray, cache: RowCache):
        self.problem, self.ids, self.cache = problem, ids, cache
        self.sign, self.upper = problem.sign[ids], problem.upper[ids]
        self.diagonal = problem.diagonal[ids]
        self.alpha, self.gradient = alpha[ids], problem.linear[ids]
        self.n_added = 0
        self.violation = 0.0
        self._working_set = np.empty(0, dtype=np.int64)
        self._size: float = WORKING_SET if self.alpha.any() else min(FIRST_SET, WORKING_SET)
        size = min(WORKING_SET, len(problem)) + 8
        self._scratch: np.ndarray = np.empty(size**2, dtype=cache.kernel.dtype)
        self._bind()

    def _bind(self) -> None:
        """Hand the arrays, which are new ones, to the core."""
        variables = (self.alpha, self.gradient, self.sign, self.upper, self.diagonal)
        self._core = _core.WorkingSet(*variables)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_computed(self) -> int:
        return self.cache.n_computed

    def start_from_rows(self, support: np.ndarray) -> None:
        """The gradient at the start, through the cache."""
        slots = self.cache.slots(support)
        self.cache.add(slots, (self.alpha * self.sign)[support], self._core)

    def select(self) -> float:
        size = min(int(self._size), len(self), -(-self.cache.n_slots // 2))
        self._size = min(GROWTH * self._size, WORKING_SET)
        self._working_set, self.violation, gap = self._core.select(self._working_set, size)
        return gap

    def step(self) -> float:
        chosen = self._working_set
        size = -(-len(chosen) // 8) * 8
        slots, coef = self.cache.slots(chosen), np.empty(len(chosen))
        gain = self._core.minimise(
            self.cache.pool,
            slots,
            chosen,
            INNER_TOL * self.violation,
            self._scratch[: size * size],
            coef,
        )
        self.n_added += int(np.count_nonzero(coef))
        self.cache.add(slots, coef, self._core)
        return gain

    def at_rest(self, margin: float) -> np.ndarray:
        low = (self.alpha <= 0) & (self.gradient > margin)
        return low | ((self.alpha >= self.upper) & (self.gradient < -margin))

    def keep(self, numbers: np.ndarray) -> None:
        kept = np.zeros(len(self), dtype=bool)
        kept[numbers] = True
        self._working_set = (np.cumsum(kept) - 1)[self._working_set[kept[self._working_set]]]
        self.cache.shrink(numbers)
        for name in ("ids", "sign", "upper", "diagonal", "alpha", "gradient"):
            setattr(self, name, getattr(self, name)[numbers])
        self._bind()

    def extend(self, ids: np.ndarray, alpha: np.ndarray, gradient: np.ndarray) -> None:
        p, rows = self.problem, self.problem.rows
        self.ids = np.concatenate([self.ids, ids])
        self.cache.extend(rows[self.ids], rows[ids])
        self.sign, self.upper = p.sign[self.ids], p.upper[self.ids]
        self.diagonal = p.diagonal[self.ids]
        self.alpha = np.concatenate([self.alpha, alpha])
        self.gradient = np.concatenate([self.gradient, gradient])
        self._bind()

    def reset_gradient(self, gradient: np.ndarray) -> None:
        self.gradient[:] = gradient

    def close(self) -> None:
        self.cache.close()
