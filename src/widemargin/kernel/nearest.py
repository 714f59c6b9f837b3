"""The nearest centre of each row, in single precision or, if that is uncertain, in double.

The score of a centre c is <x, c> - |c|^2 / 2, so the nearest centre of x has the highest.  One that
leads by more than twice the bound on rounding errors is the nearest in double precision too;
the other rows, which are few, are compared in double precision.  So neither threads nor the number
of rows at a time can move a row to another cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from widemargin.kernel.tiles import Tiles

_FEW = 16  # rows compared in double precision at once


@dataclass(frozen=True)
class Nearest:
    """The nearest centre of each row, its score, and a bound on the score's rounding error."""

    label: np.ndarray  # -1: unknown
    score: np.ndarray
    error: np.ndarray

    def __getitem__(self, which) -> Nearest:
        return Nearest(self.label[which], self.score[which], self.error[which])

    def put(self, which, found: Nearest) -> None:
        self.label[which] = found.label
        self.score[which] = found.score
        self.error[which] = found.error


@dataclass(frozen=True)
class Scores:
    """Scores of centres in one precision.

    The inner products <x, c> are sums over ``parts``: rows laid out for ``fill``, the centres that
    they belong to, and their weights (down: centres).  Without weights rows are centres.
    """

    prepared: Callable[[Any], Any]  # rows in this precision
    fill: Callable[[Any, Any, np.ndarray], None]
    parts: list[tuple[Any, Any, np.ndarray | None]]
    half_squares: np.ndarray  # |c|^2 / 2, of the type of the scores
    bound: Callable[[Any, np.ndarray], np.ndarray]  # on the errors, from rows and highest scores

    def nearest(self, rows: Any) -> tuple[Nearest, np.ndarray]:
        """Return the nearest centre of each row and its lead over the next."""
        rows, every = self.prepared(rows), np.arange(len(rows))
        score = np.zeros((len(self.half_squares), len(rows)), dtype=self.half_squares.dtype)
        with np.errstate(all="ignore"):  # a lead of NaN is never certain
            for left, centres, weights in self.parts:
                values = np.empty((len(left), len(rows)), dtype=score.dtype)
                self.fill(left, rows, values)
                score[centres] += values if weights is None else weights @ values
            score -= self.half_squares[:, np.newaxis]
            label = score.argmax(axis=0)
            highest = score[label, every].astype(np.float64)
            score[label, every] = -np.inf
            return (
                Nearest(label, highest, self.bound(rows, highest)),
                highest - score.max(axis=0),
            )


class Centres(Protocol):
    """The interface of a router that this module uses."""

    def scores(self, rows: Any, centres: slice, *, double: bool) -> Scores | None:
        """Return scores of some centres for such rows; None if single precision has unknown
        errors."""
        ...


def nearest(
    router: Centres, rows: Any, tiles: Tiles, known: Nearest | None = None, n_old: int = 0
) -> Nearest:
    """Find the nearest centre of each row, as in double precision.

    ``known`` is the result for the first ``n_old`` centres.  Its rows are compared with the other
    centres only, except rows with an unknown label.
    """
    n = len(rows)
    single = router.scores(rows, slice(None), double=False) if n > _FEW else None
    double = router.scores(rows, slice(None), double=True)
    new = router.scores(rows, slice(n_old, None), double=single is None) if known else double
    assert double is not None
    assert new is not None
    found = Nearest(np.full(n, -1), np.empty(n), np.empty(n))

    def certain(part: Any) -> Nearest:
        if single is None:
            return double.nearest(part)[0]
        best, lead = single.nearest(part)
        doubtful = np.flatnonzero(~(lead > 2 * best.error))
        if len(doubtful):
            best.put(doubtful, double.nearest(part[doubtful])[0])
        return best

    def compared(part: Any, before: Nearest) -> Nearest:
        """Mark rows that certainly keep their nearest centre or move to a new one."""
        best, lead = new.nearest(part)
        ahead, error = best.score - before.score, best.error + before.error
        best.label[...] += n_old
        best.label[~((ahead > error) & (lead > 2 * best.error))] = -1
        stays = np.flatnonzero(ahead < -error)
        best.put(stays, before[stays])
        return best

    def tile(begin: int, end: int) -> None:
        part, own = rows[begin:end], found[begin:end]
        if known is not None:
            before = known[begin:end]
            old = np.flatnonzero(before.label >= 0)
            if len(old):
                own.put(old, compared(part[old], before[old]))
        ask = np.flatnonzero(own.label < 0)
        if len(ask):
            own.put(ask, certain(part if len(ask) == len(part) else part[ask]))

    tiles.tiles(n, tile)
    return found
