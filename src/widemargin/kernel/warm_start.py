"""Dual variables that one fit leaves to the next, on the same data with another C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.kernel.problems import Variables

MOST_DUALS = 64  # fits that a warm start remembers: the folds and kernels of a grid search


@dataclass(frozen=True)
class Dual:
    """The dual variables of a fit, to start another one from."""

    alphas: list[np.ndarray]
    C: float

    def fits(self, problems: list[Variables]) -> bool:
        """Whether there is a variable for each of theirs."""
        return [len(alpha) for alpha in self.alphas] == [len(v) for v in problems]

    def grown(self, C: float, problems: list[Variables]) -> list[np.ndarray]:
        """For another C, within its bounds."""
        scaled = [alpha * (C / self.C) for alpha in self.alphas]
        return [v.within(a) for a, v in zip(scaled, problems, strict=True)]


class Duals:
    """The latest fits by what they have in common (see `KernelSVC._key`).

    An estimator and its clones share one, which is how a grid search hands variables on.
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
