"""Predict the scores of settings from those of others, by a small Gaussian process.

A setting is a place: the number of its family, such as a kernel behind a preparation of the
columns, the logarithm of its width to the base 4, and that of C to the base 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CS = (0.1, 1.0, 10.0, 100.0)  # of the first path of a family
WIDE_CS = CS[1:]  # the same where there is a width, too
WIDTHS = np.arange(-4, 4.5, 0.5)
LOG_CS = np.arange(-2, 4.5, 0.5)
GAIN = 0.1  # least improvement to hope for, in standard errors of the best score
LEAST_GAIN = 2e-4
LENGTH = 1.5  # over which scores change, in factors of 4 of the width and of 10 of C
OTHERS = 0.7  # correlation of families
NOISE = 0.3  # of a standard error: candidates meet in the same folds
DEPTH = 0.1  # scores that are worse than the best by more tell nothing more
LEAST_SPREAD = 0.02  # of scores, which without knowledge are that much below the best
MIDDLE, DECLINE = (-0.5, 1.0), 0.1  # and lower by this for the squared distance from here


class ScoreModel:
    """Scores as a smooth function of places.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.array([[0, 0.0, 0.0], [0, 0.0, 1.0], [0, 0.0, 2.0]])
    >>> model = ScoreModel(places, np.array([0.8, 0.9, 0.85]), np.full(3, 0.001))
    >>> mean, spread = model.at(np.array([[0, 0.0, 1.0], [0, 0.0, 9.0]]))
    >>> bool(abs(mean[0] - 0.9) < 0.01 and spread[0] < 0.01 < spread[1])
    True
    """

    def __init__(self, places: np.ndarray, scores: np.ndarray, errors: np.ndarray):
        scores = np.maximum(scores, scores.max() - DEPTH)
        self._places, self._spread = places, max(float(scores.std()), LEAST_SPREAD)
        self._best = float(scores.max())
        noise = np.square(NOISE * errors / self._spread) + 1e-6
        self._inverse = np.linalg.inv(_alike(places, places) + np.diag(noise))
        self._weights = self._inverse @ ((scores - self._guess(places)) / self._spread)

    def _guess(self, places: np.ndarray) -> np.ndarray:
        """Return what is expected of places before anything near them is known."""
        squared = np.square(places[:, 1:] - MIDDLE).sum(axis=1)
        return self._best - self._spread * (1 + DECLINE * squared)

    def at(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected scores at some places, and their standard deviations."""
        alike = _alike(places, self._places)
        known = np.einsum("ij,jk,ik->i", alike, self._inverse, alike, optimize=True)
        spread = np.sqrt(np.maximum(1 - known, 0))
        return self._guess(places) + self._spread * (alike @ self._weights), self._spread * spread


def _alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the correlations of scores at places a with those at b."""
    squared = np.square(a[:, None, 1:] - b[None, :, 1:]).sum(axis=2)
    same = a[:, None, 0] == b[None, :, 0]
    return np.where(same, 1.0, OTHERS) * np.exp(-squared / (2 * LENGTH**2))


class Place(NamedTuple):
    """A family, the logarithm of a width to the base 4, and values of C."""

    family: int
    width: float
    Cs: Sequence[float]


class Tried:
    """Places that were tried with their scores; tells which to try next.

    Parameters
    ----------
    has_width : sequence of bool
        Of each family, whether its kernel has a width.  Families are tried at width 0 first, and
        the first that has one at widths -1 and 1 too.
    """

    def __init__(self, has_width: Sequence[bool]):
        self._wanted = [
            Place(family, 0.0, WIDE_CS if wide else CS) for family, wide in enumerate(has_width)
        ]
        if any(has_width):
            first = list(has_width).index(True)
            self._wanted[first + 1 : first + 1] = [Place(first, w, WIDE_CS) for w in (-1.0, 1.0)]
        grids = [
            np.stack(np.meshgrid([number], WIDTHS if wide else [0.0], LOG_CS), -1).reshape(-1, 3)
            for number, wide in enumerate(has_width)
        ]
        self._grid = np.concatenate(grids) if grids else np.empty((0, 3))
        self._places, self._scores, self._errors = list[tuple](), list[float](), list[float]()

    def note(self, place: Place, scores: Sequence[float], errors: Sequence[float]) -> None:
        """Note the scores of all C of a place."""
        self._places += [(place.family, place.width, np.log10(C)) for C in place.Cs]
        self._scores += scores
        self._errors += errors

    def leave_out(self, family: int) -> None:
        """Propose no more places of a family."""
        self._grid = self._grid[self._grid[:, 0] != family]
        self._wanted = [place for place in self._wanted if place.family != family]

    def next_place(self) -> Place | None:
        """Return where a score one standard deviation above the expected one would be the best.

        None where that would gain little.
        """
        if self._wanted:
            return self._wanted.pop(0)
        if not (self._scores and len(self._grid)):
            return None
        places, scores = np.array(self._places), np.array(self._scores)
        mean, spread = ScoreModel(places, scores, np.array(self._errors)).at(self._grid)
        hope = mean + spread
        new = ~(np.abs(self._grid[:, None] - places).max(axis=2) < 0.01).any(axis=1)
        hope[~new] = -np.inf
        best = int(scores.argmax())
        first = int(hope.argmax())
        if hope[first] < scores[best] + max(GAIN * self._errors[best], LEAST_GAIN):
            return None
        family, width, log_C = self._grid[first]
        known = len({place[1] for place in self._places if place[0] == family})
        same = new & (self._grid[:, :2] == (family, width)).all(axis=1)
        near = np.abs(self._grid[:, 2] - log_C)
        path = self._grid[same & ((near <= 0.5) if known > 1 else (near % 1 == 0) & (near <= 1)), 2]
        return Place(int(family), float(width), [_C(value) for value in path])


def _C(logarithm: float) -> float:
    return float(f"{10.0**logarithm:.3g}")
