"""Dual variables that one fit leaves to the next, on the same data with another C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.kernel.problems import Variables

MOST_DUALS = 64  # fits that a warm start keeps: the folds and kernels of a grid search


@dataclass(frozen=True)
class Dual:
    """The dual variables of a fit, as a start for another one."""

    alphas: list[np.ndarray]
    C: float

    def fits(self, problems: list[Variables]) -> bool:
        """Whether the variables match those of the problems."""
        return [len(alpha) for alpha in self.alphas] == [len(v) for v in problems]

    def grown(self, C: float, problems: list[Variables]) -> list[np.ndarray]:
        """Return the variables for another C, within its bounds."""
        scaled = [alpha * (C / self.C) for alpha in self.alphas]
        return [v.within(a) for a, v in zip(scaled, problems, strict=True)]


class Duals:
    """The latest fits, by key (see `KernelSVC._key`).

    An estimator and its clones share one, so that a grid search reuses variables.
    """

    def __init__(self) -> None:
        self._by_key: dict[str, Dual] = {}

    def get(self, key: str) -> Dual | None:
        return self._by_key.get(key)

    def put(self, key: str, dual: Dual) -> None:
        self._by_key.pop(key, None)
        self._by_key[key] = dual
        while len(self._by_key) > MOST_DUALS:
            del self._by_key[next(iter(self._by_key))]

    def __len__(self) -> int:
        return len(self._by_key)
