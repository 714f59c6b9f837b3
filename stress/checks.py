"""One function per promise of the documents: each takes a fitted model and what it was fitted to.

A promise that is broken is an AssertionError whose text up to the first colon names the fault; the
numbers follow.  What other fits a check needs it makes of clones.
"""

from __future__ import annotations

import numpy as np

from stress import truth
from stress.problems import cases

SHARE = 0.01  # of itself by which a claimed gap may be below the true one
FEASIBLE = 1e-6  # of its bound by which a variable may be beyond it


def certificate(model, X, y, w=None) -> None:
    """The gap is not below the true one, and the objectives are those of the variables."""
    if not _claims(model):
        return
    problem = truth.problem_of(model, X, y, w)
    _feasible(problem)
    found = truth.truths(problem)
    true, noise = truth.relative_gap(found), truth.relative_noise(found)
    claimed = model.duality_gap_
    assert claimed * (1 + SHARE) + noise >= true, (
        f"gap claimed too small: {claimed:.3g}, {true:.3g}"
    )
    primal = sum(t.primal for t in found)
    off = abs(model.objective_ - primal)
    room = SHARE * primal + sum(t.noise for t in found)
    if np.isfinite(model.objective_):  # an early model has none
        assert off <= room, f"objective is not that of the model: {model.objective_:g}, {primal:g}"


def _claims(model) -> bool:
    """Whether there is a gap that certifies: not of tables or kernels that have none."""
    return model.kernel != "sigmoid" and not np.isnan(model.duality_gap_)


def _feasible(problem: truth.Problem) -> None:
    """Signs are right and bounds kept; else the dual objective bounds nothing."""
    signed, size = problem.coef * problem.target, np.abs(problem.coef).max(axis=1)
    assert np.all(signed >= 0), "variable infeasible: of the wrong sign"
    assert np.all((problem.target != 0) | (signed == 0)), "variable infeasible: of no problem"
    if not problem.squared:
        assert np.all(size <= problem.c * (1 + FEASIBLE)), "variable infeasible: above its bound"


CHECKS = {"certificate": certificate}
STRATEGIES = {"certificate": cases()}
