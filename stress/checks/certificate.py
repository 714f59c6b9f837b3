"""The numbers that a fit reports are true."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from stress import truth
from stress.checks.bits import rounding
from stress.compare import certifies
from stress.reference import reference
from widemargin import AdditiveSVC

SHARE = 0.01  # of itself by which a claimed gap may be below the true one
OPTIMAL = 1e-6
DOUBLE = 1e-10  # error of a decision in double precision, of the sum of its absolute terms
FEASIBLE = 1e-6  # of its bound by which a variable may be beyond it


def certificate(model, X, y, w=None) -> None:
    """The gap is not below the true one, and the objectives are those of the variables."""
    if not certifies(model):
        return
    problem = truth.problem_of(model, X, y, w)
    _feasible(problem)
    found = truth.truths(problem)
    claimed, true = model.duality_gap_, max(t.relative for t in found)
    far = " by far" if true > max(model.tol, 2 * claimed) else ""
    assert claimed * (1 + SHARE) >= max(t.beyond_rounding for t in found), (
        f"gap claimed too small{far}: {claimed:.3g}, {true:.3g}"
    )
    primal = sum(t.primal for t in found)
    off = abs(model.objective_ - primal)
    room = SHARE * primal + sum(t.noise for t in found)
    if np.isfinite(model.objective_):  # an early model has none
        assert off <= room, f"objective is not that of the model: {model.objective_:g}, {primal:g}"


def _feasible(problem: truth.Problem) -> None:
    """Signs are right and bounds kept; else the dual objective bounds nothing."""
    signed, size = problem.coef * problem.target, np.abs(problem.coef).max(axis=1)
    assert np.all(signed >= 0), "variable infeasible: of the wrong sign"
    assert np.all((problem.target != 0) | (problem.coef == 0)), "variable infeasible: of no problem"
    if not problem.squared:
        assert np.all(size <= problem.c * (1 + FEASIBLE)), "variable infeasible: above its bound"


def optimum(model, X, y, w=None) -> None:
    """Objectives lie on either side of the optimum, as the variables of another solver prove: no
    objective is below their dual one, no dual objective above their primal one."""
    if not certifies(model):
        return
    problem = truth.problem_of(model, X, y, w)
    K, c = problem.K.astype(np.float64), problem.c.astype(np.float64)
    other = _other(problem, K, c)
    if other is None:
        return
    found, proof = truth.truths(problem), truth.truths(other)
    most, least = sum(t.primal for t in proof), sum(t.dual for t in proof)
    room = OPTIMAL * most + sum(t.noise for t in found)
    primal, dual = model.objective_, sum(t.dual for t in found)
    assert primal >= least - room, f"objective below the optimum: {primal:.9g}, {least:.9g}"
    assert dual <= most + room, f"dual above the optimum: {dual:.9g}, {most:.9g}"


def _other(problem: truth.Problem, K, c) -> truth.Problem | None:
    """With the variables of another solver, unless it gave up."""
    target = problem.target.astype(float)
    try:
        if problem.intercept is None:
            other = reference.one_vs_rest(K, target, c, problem.squared)
        else:
            other = reference.free_intercepts(K, target, c)
    except (AssertionError, ValueError, np.linalg.LinAlgError):
        return None
    coef, intercept = other.coef.astype(truth.REAL), problem.intercept
    if intercept is not None:
        intercept = other.intercept.astype(truth.REAL)
    return replace(problem, coef=coef, intercept=intercept)


def convergence(model, X, y, w=None) -> None:
    """A fit that missed tol says so, one that reached it is silent; NumPy is silent always."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        other = clone(model).fit(X, y, w)
    warned = any(issubclass(warning.category, ConvergenceWarning) for warning in said)
    reached = other.duality_gap_
    if isinstance(other, AdditiveSVC) and not other.model_.tables.symmetric:
        reached = other.violation_
    missed = not reached <= other.tol
    assert missed == warned or not certifies(other), f"warning and gap disagree: {reached:g}"
    stray = [str(warning.message) for warning in said if warning.category is RuntimeWarning]
    assert not stray, f"a warning of NumPy's: {stray[0]}"


def decisions(model, X, y, w=None) -> None:
    """Decision values at the training rows are the expansion of the variables."""
    if model.kernel == "sigmoid":
        return  # a step at zero, where inner products of any precision may fall to either side
    if isinstance(model, AdditiveSVC) and not model.model_.tables.symmetric:
        return  # the variables are on the other side of the table
    problem = truth.problem_of(model, X, y, w)
    rows = np.flatnonzero(truth.weights(model, y, w) > 0)
    expected = problem.decision()
    # An intercept is a sum of its own, as large as what it may take off again.
    size = (np.abs(problem.K) @ np.abs(problem.coef)).max(axis=0)
    room = rounding(model, X, y, w) if model.tol >= 1e-4 else DOUBLE * (1 + size)
    off = np.abs(model.decision_function(X)[rows].reshape(len(rows), -1) - expected)
    assert np.all(off <= room), f"decisions are not those of the variables: by {off.max():g}"


def gamma(model, X, y, w=None) -> None:
    """gamma="scale" is 1 / (n_features * X.var()), each row counted by its weight."""
    weight = np.ones(len(y)) if w is None else np.asarray(w)
    present = truth.weights(model, y, w) > 0
    values = truth.dense(X)[present].astype(truth.REAL)
    share = weight[present].astype(truth.REAL) / weight[present].sum()
    mean = share @ values.mean(axis=1)
    variance = share @ ((values - mean) ** 2).mean(axis=1)
    if variance > 1e-20 * mean**2:  # not constant but for rounding
        expected = float(1 / (values.shape[1] * variance))
        assert abs(model.gamma_ / expected - 1) < 1e-9, f"gamma_ is off: {model.gamma_}, {expected}"
