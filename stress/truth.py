"""What a fitted model has really reached: objectives and gap in extended precision, from scratch.

Kernel values of `KernelSVC` come from the user's rows by the textbook formulas, those of
`AdditiveSVC` from the table that its predictions use; variables from the model.  Sums are long
doubles throughout, so that what is left to explain is the library's arithmetic and not this one's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp

from widemargin import KernelSVC
from widemargin.additive.codes import encode
from widemargin.additive.source import Values
from widemargin.kernel.backend import Host

REAL = np.longdouble
UNIT, TINY = (float(x) for x in (np.finfo(np.float64).eps, np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class Problem:
    """The duals that a model says it has solved, over the rows that take part."""

    K: np.ndarray
    target: np.ndarray  # +1, -1 or 0 (takes no part), by row and output
    coef: np.ndarray  # signed variables, by row and output
    c: np.ndarray  # upper bounds
    cluster: np.ndarray  # an early model's clusters are problems of their own
    squared: bool = False
    simplex: bool = False  # Crammer and Singer's
    intercept: np.ndarray | None = None  # by output, where it is free

    def decision(self) -> np.ndarray:
        """Of every row, by output."""
        found = self.K @ self.coef
        return found if self.intercept is None else found + self.intercept


@dataclass(frozen=True)
class Truth:
    """Objectives and gap of one problem, and what rounding may do to a gap in double precision."""

    primal: float
    gap: float
    noise: float

    @property
    def dual(self) -> float:
        return self.primal - self.gap

    @property
    def relative(self) -> float:
        return self.gap / max(self.primal, TINY)

    @property
    def beyond_rounding(self) -> float:
        """The relative gap that a claim in double precision must not be below."""
        return (self.gap - self.noise) / max(self.primal, TINY)


# ------------------------------------------------------------------ from a model to its problem


def problem_of(model, X, y, w) -> Problem:
    weight = weights(model, y, w)
    present = np.flatnonzero(weight > 0)
    target = targets(np.asarray(y)[present], model.multi_class)
    of_kind = _kernel_parts if isinstance(model, KernelSVC) else _additive_parts
    return of_kind(model, X, w, present, target, weight[present].astype(REAL))


def weights(model, y, w) -> np.ndarray:
    """Sample weights times class weights; "balanced" gives every class the same total."""
    weight = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    if model.class_weight is None:
        return weight
    y, classes = np.asarray(y), np.unique(np.asarray(y)[weight > 0])
    if model.class_weight == "balanced":
        total = {c: weight[y == c].sum() for c in classes}
        factor = {c: weight.sum() / (len(classes) * total[c]) for c in classes}
    else:
        factor = model.class_weight
    return weight * np.array([factor.get(c, 1.0) for c in y])


def targets(y, multi_class: str) -> np.ndarray:
    classes = np.unique(y)
    if len(classes) == 2 and multi_class != "crammer_singer":
        return np.where(y == classes[1], 1, -1)[:, None]
    if multi_class == "ovo":
        pairs = combinations(classes, 2)
        return np.stack([(y == b) * 1 - (y == a) * 1 for a, b in pairs], axis=1)
    return np.where(y[:, None] == classes, 1, -1)


def _kernel_parts(model, X, w, present, target, c) -> Problem:
    rows = dense(X)[present]
    K = kernel_matrix(model, rows[:, present] if model.kernel == "precomputed" else rows)
    coef = np.zeros(target.shape, dtype=REAL)
    coef[np.searchsorted(present, model.support_)] = model.model_.coef.dense()
    free = model.fit_intercept is True or (model.fit_intercept == "auto" and not model.early)
    cluster = np.zeros(len(present), dtype=int)
    if model.model_.router is not None:  # its rule is part of the model
        laid_out = model.model_.kernel.training_rows(X, present)
        cluster = model.model_.router.assign(laid_out, Host(1))
    intercept = model.model_.intercept.astype(REAL) if free else None
    return Problem(K, target, coef, model.C * c, cluster, intercept=intercept)


def _kept(constant, intercept: np.ndarray, coef: np.ndarray):
    """The kernel's constant as the model keeps it, if that is the documented one but for rounding.

    An intercept is the constant times the sum of an output's variables.
    """
    sums = coef.sum(axis=0)
    most = int(np.argmax(np.abs(sums)))
    if np.abs(sums[most]) < 1e-3 * np.abs(coef[:, most]).sum() or sums[most] == 0:
        return constant
    kept = REAL(intercept[most]) / sums[most]
    return kept if np.abs(kept - constant) <= 1e-5 * constant else constant


def _additive_parts(model, X, w, present, target, c) -> Problem:
    X = sp.csr_array(X) if sp.issparse(X) else X
    code = encode(Values.of(X), model.model_.encoder).toarray()[present]
    table = model.model_.lookup.table
    unary = model.model_.offset is not None
    K = np.zeros((len(present), len(present)), dtype=REAL)
    for column in code.T:
        left = table[column].astype(REAL)
        K += left[:, column] if unary else left @ left.T
    coef = _projected(model, target, model.C_ * c)
    if model.fit_intercept:  # a tenth of the mean diagonal, where there is one
        mean = np.average(np.diag(K), weights=c)
        constant = mean / 10 if model.C_unit == "diagonal" and mean > 0 else REAL(1)
        K += _kept(constant, model.model_.intercept, coef)
    return Problem(
        K,
        target,
        coef,
        model.C_ * c,
        np.zeros(len(present), dtype=int),
        squared=model.loss == "squared_hinge",
        simplex=model.multi_class == "crammer_singer",
    )


def _projected(model, target, c) -> np.ndarray:
    """The variables; those of a simplex put on it, from which single precision drifts."""
    coef = model._dual.coef.astype(REAL)
    if model.multi_class != "crammer_singer":
        return coef
    own = -np.where(target > 0, 0, coef).sum(axis=1, keepdims=True)
    coef = np.where(target > 0, own, coef)
    if model.loss == "squared_hinge":
        return coef
    return coef * np.minimum(1, c[:, None] / np.maximum(own, np.finfo(REAL).tiny))


def dense(X) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def kernel_matrix(model, X) -> np.ndarray:
    """By the formula, feature after feature where there are differences: nothing cancels."""
    if callable(model.kernel):
        return np.asarray(model.kernel(X, X)).astype(REAL)
    X = X.astype(REAL)
    if model.kernel == "precomputed":
        return X
    gamma, coef0 = REAL(model.gamma_), REAL(model.coef0)
    if model.kernel in ("poly", "sigmoid"):
        inner = gamma * (X @ X.T) + coef0
        return inner**model.degree if model.kernel == "poly" else np.tanh(inner)
    distance = np.zeros((len(X), len(X)), dtype=REAL)
    for x in X.T:
        difference = np.abs(np.subtract.outer(x, x))
        if model.kernel == "chi2":
            total = np.add.outer(x, x)
            difference *= np.divide(difference, total, out=np.zeros_like(total), where=total > 0)
        distance += difference**2 if model.kernel == "rbf" else difference
    return np.exp(-gamma * distance)


# ------------------------------------------------------------------ from a problem to its gap


def truths(problem: Problem) -> list[Truth]:
    """Of every problem: per output and cluster, or of all outputs together."""
    if problem.simplex:
        return [_simplex_truth(problem)]
    return [_box_truth(problem, k, rows) for k, rows in parts(problem)]


def parts(problem: Problem) -> Iterator[tuple[int, np.ndarray]]:
    """The output and the rows of every box problem."""
    for k in range(problem.target.shape[1]):
        for cluster in np.unique(problem.cluster):
            rows = np.flatnonzero((problem.cluster == cluster) & (problem.target[:, k] != 0))
            if len(rows):
                yield k, rows


def _box_truth(problem: Problem, k: int, rows: np.ndarray) -> Truth:
    K, c = problem.K[np.ix_(rows, rows)], problem.c[rows]
    t, b = problem.target[rows, k].astype(REAL), problem.coef[rows, k]
    own, size = K @ b, np.abs(K) @ np.abs(b)
    intercept = REAL(0) if problem.intercept is None else problem.intercept[k]
    decision, size = own + intercept, size + np.abs(intercept)
    short = 1 - t * decision  # of the margin
    loss = c * np.maximum(short, 0) ** (1 + problem.squared)
    ridge = b**2 / (4 * c) if problem.squared else 0 * b
    gap = loss + ridge - b * (t - decision)
    primal = b @ own / 2 + loss.sum()
    noise = _noise(problem, short, size, c, np.abs(b))
    missed, lost = _missed(problem, K, b, intercept, primal)
    return Truth(float(primal), float(gap.sum() + missed), noise + lost)


def _missed(problem: Problem, K, b, intercept, primal) -> tuple[float, float]:
    """What the dual loses if variables do not add up to zero, as a free intercept wants; and noise.

    At an optimum the intercept is at most 1 + |w| max |x|, and |w|^2 / 2 at most the primal.
    """
    if problem.intercept is None:
        return 0.0, 0.0
    slope = 1 + np.abs(intercept) + np.sqrt(2 * primal * np.diag(K).max())
    return float(np.abs(b.sum()) * slope), float(8 * UNIT * np.abs(b).sum() * slope)


def _simplex_truth(problem: Problem) -> Truth:
    b, own = problem.coef, problem.target > 0
    decision, size = problem.K @ b, np.abs(problem.K) @ np.abs(b)
    rivals = np.where(own, -np.inf, decision + 1).max(axis=1)
    short = rivals - decision[own]
    loss = problem.c * np.maximum(short, 0) ** (1 + problem.squared)
    ridge = b[own] ** 2 / (4 * problem.c) if problem.squared else 0 * problem.c
    others = np.where(own, 0, b).sum(axis=1)
    gap = loss + ridge + (b * decision).sum(axis=1) + others
    primal = (b * decision).sum() / 2 + loss.sum()
    noise = _noise(problem, short, 2 * size.max(axis=1), problem.c, np.abs(b).max(axis=1))
    return Truth(float(primal), float(gap.sum()), noise)


def _noise(problem: Problem, short, size, c, b) -> float:
    """A few roundings of every decision value, times how much the gap changes with it."""
    error = 8 * UNIT * (1 + size)
    reached = np.maximum(short + error, 0)
    slope = c * (2 * reached if problem.squared else reached > 0)
    return float((error * (b + slope)).sum())
