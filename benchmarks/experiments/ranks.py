"""Methods compared over many sets: average ranks, and how near each comes to the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from benchmarks.experiments.lines import Line

FEWEST_SETS, FEWEST_METHODS = 3, 3  # below which a rank says little
NO_KERNEL = {"boosted trees", "boosted additive", "LightGBM", "EBM"}  # not SVMs of any kind
CHOOSES = {"easy"}  # a search of its own: held against the best kernel method, and not that itself
NEAR = 0.5  # points


@dataclass(frozen=True)
class Standing:
    """Of one method that was run on all sets; one that ended without a result is last there."""

    method: str
    rank: float
    first: int  # sets on which no method is better
    behind: float  # points from the best of all, on average over the sets where it has a result
    near: int  # sets on which it is at most half a point behind the best kernel method
    sets: int  # where it has a result


def standings(lines: list[Line]) -> list[Standing]:
    """The best average rank first; nothing where methods vary, or are too few.

    A method that was not run on some sets has no rank, and counts in nobody's.
    """
    sets = list(dict.fromkeys(line.data for line in lines))
    known = {(line.method, line.data): line.accuracy for line in lines}
    methods = [m for m in dict.fromkeys(line.method for line in lines)
               if all((m, d) in known for d in sets)
               and any(known[m, d] is not None for d in sets)]  # fmt: skip
    unique = len(known) == len(lines)
    if not unique or len(sets) < FEWEST_SETS or len(methods) < FEWEST_METHODS:
        return []
    found = [[known.get((m, d)) for d in sets] for m in methods]
    score = np.array([[-np.inf if value is None else value for value in row] for row in found])
    ranks = np.apply_along_axis(rankdata, 0, -score)
    kernel = [k for k, method in enumerate(methods) if method not in NO_KERNEL | CHOOSES]
    behind = score.max(axis=0) - score
    behind_kernel = score[kernel].max(axis=0) - score
    return sorted(
        (
            Standing(
                method=method,
                rank=float(ranks[k].mean()),
                first=int((behind[k] == 0).sum()),
                behind=float(behind[k][np.isfinite(behind[k])].mean()),
                near=int((behind_kernel[k] <= NEAR).sum()),
                sets=int(np.isfinite(score[k]).sum()),
            )
            for k, method in enumerate(methods)
        ),
        key=lambda standing: standing.rank,
    )
