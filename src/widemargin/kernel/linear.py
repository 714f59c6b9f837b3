"""The linear kernel, solved on the weights: a sweep costs as much as the data has values.

Dual coordinate descent (Hsieh et al., ICML 2008) on the variables that are not at rest, with a
sweep over all of them between; near the end, conjugate gradients on the free variables take the
last steps at once.  The duality gap is that of the weights in double precision.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import _core
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.problem import TINY, Solution, away_from_zero
from widemargin.kernel.problems import Variables
from widemargin.kernel.rows import RangeError

FIRST_SWEEPS, MOST_SWEEPS = 20, 1000  # over variables that are not at rest, between two over all
REST, LEAST_REST = 0.1, 1e-3  # of the violation of the sweep over all, at which these end
NEAR = 1e-4  # relative gap from which conjugate gradients help
CG_STEPS, CG_ROUNDS = 100, 3
SEED = 88172645463325252
_AT_ONCE = 1 << 24  # products of rows and weights


@dataclass(frozen=True)
class LinearRows:
    """Rows of the data, and one more feature that is ``constant``: for a penalised intercept."""

    X: Any  # dense in C order, or CSR; float32 or float64
    constant: float = 0.0
    core: _core.LinearRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X, d = self.X, self.X.shape[1]
        if sp.issparse(X):
            parts = (X.indptr.astype(np.int64), X.indices.astype(np.int32))
            core = _core.LinearRows(*parts, X.data, d)
        else:
            core = _core.LinearRows(None, None, X, d)
        object.__setattr__(self, "core", core)

    @classmethod
    def of(cls, X, constant: float = 0.0) -> LinearRows:
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if sp.issparse(X):
            return cls(sp.csr_array(X).astype(dtype, copy=False), constant)
        return cls(np.ascontiguousarray(X, dtype=dtype), constant)

    def __len__(self) -> int:
        return self.X.shape[0]

    def diagonal(self) -> np.ndarray:
        """Squared norms, without the constant."""
        if sp.issparse(self.X):
            squares = np.square(self.X.data, dtype=np.float64)
            return np.bincount(self._row_of_values(), squares, minlength=len(self))
        return np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)

    def _row_of_values(self) -> np.ndarray:
        return np.repeat(np.arange(len(self)), np.diff(self.X.indptr))

    def times(self, weights: np.ndarray, row: np.ndarray | None = None) -> np.ndarray:
        """Decision values, of all rows or of some."""
        X = self.X if row is None else self.X[row]
        return _product(X, weights[:-1]) + self.constant * weights[-1]

    def combined(self, row: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """The weights that are a sum of rows."""
        by_row = np.bincount(row, coef, minlength=len(self))
        return np.append(_product(self.X.T, by_row), self.constant * coef.sum())


def _product(X, vector: np.ndarray) -> np.ndarray:
    """In double precision, of dense rows a few at a time."""
    if sp.issparse(X) or X.dtype == np.float64:
        return np.asarray(X @ vector)
    out, step = np.zeros(X.shape[0]), max(1, _AT_ONCE // max(X.shape[1], 1))
    for begin in range(0, len(out), step):
        out[begin : begin + step] = X[begin : begin + step].astype(np.float64) @ vector
    return out


@dataclass(frozen=True)
class LinearProblem:
    """min 1/2 a'(Q + R)a + p'a over 0 <= a <= U, where w is the sum of a_i s_i x_i.

    With R = 0 this is the hinge loss with weights U, with U infinite the squared hinge loss with
    weights 1 / 2R.
    """

    rows: LinearRows
    variables: Variables
    ridge: np.ndarray

    @property
    def row(self) -> np.ndarray:
        return self.variables.row

    def certificate(self, alpha: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
        """Primal and dual objective."""
        v, norm = self.variables, float(weights @ weights)
        slack = np.maximum(0, -(v.linear + v.sign * self.rows.times(weights)[self.row]))
        linear, squares = float(v.linear @ alpha), float(alpha @ (self.ridge * alpha))
        squared = self.ridge > 0
        if squared.any():
            losses = float((slack**2)[squared] @ (0.5 / self.ridge[squared]))
            losses += float(slack[~squared] @ v.upper[~squared])
        else:
            losses = float(slack @ v.upper)
        return 0.5 * norm + losses, -0.5 * norm - linear - 0.5 * squares


@dataclass
class LinearSolution(Solution):
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))


def solve_linear(
    problem: LinearProblem,
    start: np.ndarray,
    tol: float,
    max_iter: int,
    on_step: Callable[[float], bool],
) -> LinearSolution:
    """Minimise from ``start`` to a relative duality gap of ``tol``, in ``max_iter`` sweeps."""
    started, v = time.perf_counter(), problem.variables
    alpha, n = np.minimum(start, v.upper), len(start)
    weights = problem.rows.combined(v.row, v.sign * alpha)
    diagonal = (problem.rows.diagonal() + problem.rows.constant**2)[v.row] + problem.ridge
    terms = np.stack([v.sign, v.linear, v.upper, problem.ridge, away_from_zero(diagonal)])
    order, at = np.arange(n), (problem.rows.core, problem.rows.constant, v.row.astype(np.int64))
    core = _core.LinearVariables(*at, terms, alpha, weights, order)
    n_sweeps, most, rest, seed, history = 0, float(FIRST_SWEEPS), REST, SEED, []
    while True:
        primal, dual = problem.certificate(alpha, weights)
        gap = primal - dual
        seconds = time.perf_counter() - started
        sums = {"step": n_sweeps, "gap": gap, "dual": dual, "active": n, "rows": n}
        history.append(sums | {"seconds": seconds})
        relative = gap / max(primal, TINY)
        if not np.isfinite(relative):
            raise RangeError("The objective of kernel='linear' overflows. Scale the features.")
        stopped = relative > tol and (on_step(relative) or n_sweeps >= max_iter)
        if relative <= tol or stopped:
            return LinearSolution(
                alpha, primal, dual, n_sweeps, history, True, stopped, weights=weights
            )
        if relative <= NEAR:
            _leap(problem, alpha, weights)
        n_active, low, high, seed = core.sweep(n, -0.0, 0.0, seed)
        n_sweeps, wide = n_sweeps + 1, high - low
        for _ in range(int(min(most, max_iter - n_sweeps))):
            if n_active == 0 or high - low <= rest * wide:
                break
            n_active, low, high, seed = core.sweep(n_active, -0.0, 0.0, seed)
            n_sweeps += 1
        most, rest = min(2 * most, MOST_SWEEPS), max(rest / 2, LEAST_REST)
        # What rounding adds in many sweeps is taken off again.
        weights[:] = problem.rows.combined(v.row, v.sign * alpha)


class _Face:
    """The free variables of a problem, and their part of its matrix."""

    def __init__(self, problem: LinearProblem, free: np.ndarray):
        v, own = problem.variables, problem.row[free]
        self.sign, self.linear, self.upper = v.sign[free], v.linear[free], v.upper[free]
        self.ridge, self._constant = problem.ridge[free], problem.rows.constant
        self._X = problem.rows.X[own].astype(np.float64, copy=False)

    def combined(self, z: np.ndarray) -> np.ndarray:
        """The weights that these variables are."""
        return np.append(self._X.T @ (self.sign * z), self._constant * (self.sign @ z))

    def margins(self, weights: np.ndarray) -> np.ndarray:
        return self.sign * (self._X @ weights[:-1] + self._constant * weights[-1])

    def product(self, z: np.ndarray) -> np.ndarray:
        """(Q + R) z."""
        return self.margins(self.combined(z)) + self.ridge * z


def _leap(problem: LinearProblem, alpha: np.ndarray, weights: np.ndarray) -> None:
    """Towards the minimum over the free variables, as far as their bounds and the objective let."""
    for _ in range(CG_ROUNDS):
        free = np.flatnonzero((alpha > 0) & (alpha < problem.variables.upper))
        if len(free) == 0:
            return
        face, present = _Face(problem, free), alpha[free]
        gradient = face.margins(weights) + face.linear + face.ridge * present
        full = present + _conjugate_gradients(face.product, -gradient)
        moved = np.clip(full, 0, face.upper) - present
        change = face.combined(moved)
        slope = float(moved @ gradient)
        curvature = float(change @ change + moved @ (face.ridge * moved))
        if not (slope < 0 < curvature):
            return
        share = min(1.0, -slope / curvature)
        alpha[free] = np.clip(present + share * moved, 0, face.upper)
        weights += share * change
        if np.all((full > 0) & (full < face.upper)):
            return


def _conjugate_gradients(product: Callable, target: np.ndarray) -> np.ndarray:
    """Nearly the solution of product(z) = target."""
    z, left = np.zeros_like(target), target.copy()
    way, size = left, float(target @ target)
    first = size
    for _ in range(CG_STEPS):
        image = product(way)
        curvature = float(way @ image)
        if curvature <= 1e-30 * size:
            break
        z = z + (size / curvature) * way
        left = left - (size / curvature) * image
        last, size = size, float(left @ left)
        if size <= 1e-20 * first:
            break
        way = left + (size / last) * way
    return z


@dataclass(frozen=True)
class LinearModel:
    """Decision values <w_c, x> + intercept_c, and the dual variables that w_c is made of."""

    weights: np.ndarray  # (n_outputs, n_features)
    intercept: np.ndarray
    coef: Coefficients  # of the support vectors

    def decision(
        self, X, backend: Any = None, finish: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> np.ndarray:
        """What ``finish`` makes of decision values, some rows at a time."""
        step = max(1, _AT_ONCE // max(1, max(self.weights.shape)))
        begins = range(0, max(X.shape[0], 1), step)
        return np.concatenate([finish(self._outputs(X[b : b + step], b)) for b in begins])

    def _outputs(self, X, begin: int) -> np.ndarray:
        scores = np.asarray(X @ self.weights.T) + self.intercept
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(bad):
            raise ValueError(f"Row {begin + bad[0]} is too large: its decision values overflow.")
        return scores
