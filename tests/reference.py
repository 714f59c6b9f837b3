"""Independent references for the solver: dense, slow, and exact.

Nothing here shares code with the solver.  Kernel matrices come from a fitted model's tables
(`gram`), the optimum from an active-set method on the whole dual (`box_qp`) or from SciPy's
SLSQP (`crammer_singer`), and the objectives from their textbook formulas.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import SVC, SVR

from widemargin.additive.codes import encode
from widemargin.additive.source import Values

KKT_TOL = 1e-10


def timeless(history: list) -> list:
    """The records of a fit, of which all but the seconds are the same every time."""
    if history and isinstance(history[0], list):
        return [timeless(run) for run in history]
    return [{k: v for k, v in record.items() if k != "seconds"} for record in history]


SPARSE_CONTAINERS = (
    sp.csr_array,
    sp.csc_array,
    sp.coo_array,
    sp.csr_matrix,
    sp.csc_matrix,
    sp.coo_matrix,
)


def codes_of(model, X) -> np.ndarray:
    """The dense bin codes of X under a fitted model."""
    return encode(Values.of(X), model.model_.encoder).toarray()


def gram(model, X, Z=None) -> np.ndarray:
    """The kernel matrix of a model's tables, the constant feature of the intercept included."""
    table = model.model_.tables.gram()
    left, right = codes_of(model, X), codes_of(model, X if Z is None else Z)
    K = sum(table[np.ix_(left[:, j], right[:, j])] for j in range(left.shape[1]))
    return K + constant_feature(model) ** 2


def constant_feature(model) -> float:
    """The value of the intercept's feature: 1, or the root of a tenth of the mean diagonal."""
    if not model.fit_intercept:
        return 0.0
    return 1.0 if model.C_unit == "raw" else float(np.sqrt(0.1 * model.C / model.C_))


# ------------------------------------------------------------------ one-vs-rest


def box_qp(Q: np.ndarray, upper: np.ndarray, linear=-1.0) -> np.ndarray:
    """The minimiser of 1/2 a'Qa + linear'a over 0 <= a <= upper, by a primal active-set method.

    On the free variables one step is the exact minimiser, or, where Q is singular, a direction
    without curvature; it ends at the first bound it meets.  At a minimum over the free
    variables, the bound variable that violates optimality the most is released.
    """
    a = np.zeros(len(Q))
    free = np.zeros(len(Q), dtype=bool)
    for _ in range(100 * len(Q)):
        gradient = Q @ a + linear
        direction, full = _step(Q[np.ix_(free, free)], gradient[free])
        length = _length_to_bounds(a[free], upper[free], direction, full)
        a[free] += length * direction
        if length < full:
            _snap(a, upper, free)
            continue
        gradient = Q @ a + linear
        push = np.where(a <= 0, -gradient, np.where(a >= upper, gradient, 0.0))
        push[free] = 0
        if push.max(initial=0.0) <= KKT_TOL / 10:
            break
        free[np.argmax(push)] = True
    residual = np.abs(np.clip(a - (Q @ a + linear), 0, upper) - a).max()
    assert residual <= KKT_TOL, f"the reference did not converge: {residual:g}"
    return a


def _step(Q, gradient) -> tuple[np.ndarray, float]:
    """A direction and how far along it the minimum lies (1, or infinitely far)."""
    if len(Q) == 0:
        return np.zeros(0), 1.0
    direction = np.linalg.lstsq(Q, -gradient, rcond=1e-12)[0]
    flat = Q @ direction + gradient
    if np.abs(flat).max() > 1e-8:
        return -flat, np.inf
    return direction, 1.0


def _length_to_bounds(a, upper, direction, full) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (upper - a) / direction, -a / direction)
    return float(np.min(room[direction != 0], initial=full))


def _snap(a, upper, free) -> None:
    """Put variables that met a bound exactly there, and fix them."""
    with np.errstate(invalid="ignore"):
        low, high = a <= 1e-14 * np.minimum(upper, 1.0), a >= upper * (1 - 1e-14)
    a[free & low] = 0.0
    a[free & high] = upper[free & high]
    free &= ~(low | high)


@dataclass(frozen=True)
class Optimum:
    """Coefficients of every sample in every output, and the sum of the optimal objectives."""

    coef: np.ndarray
    objective: float
    intercept: np.ndarray | None = None  # of every output, where it is free


def signs(label: np.ndarray) -> np.ndarray:
    """+1 and -1 per sample and one-vs-rest problem; one problem for two classes."""
    classes = np.unique(label)
    positive = classes[-1:] if len(classes) == 2 else classes
    return np.where(label[:, None] == positive, 1.0, -1.0)


def one_vs_rest(K, sign, c, squared: bool) -> Optimum:
    """The exact optimum of every binary problem."""
    upper = np.full(len(K), np.inf) if squared else c
    coef = np.empty_like(sign)
    for k, y in enumerate(sign.T):
        coef[:, k] = y * box_qp(K * np.outer(y, y) + _ridge(c, squared), upper)
    return Optimum(coef, float(dual(K, coef, c, squared).sum()))


def free_intercepts(K, sign, c) -> Optimum:
    """The optimum of every binary problem (hinge) with a free intercept.

    A sign of 0 takes no part.  LIBSVM keeps kernel values in single precision, so its solution is
    polished on its free variables.
    """
    coef, intercept = np.zeros(sign.shape), np.zeros(sign.shape[1])
    for k, y in enumerate(sign.T):
        rows = np.flatnonzero(y)
        model = SVC(kernel="precomputed", C=1.0, tol=1e-7, max_iter=300_000)
        own, t, upper = K[np.ix_(rows, rows)], y[rows], c[rows]
        with warnings.catch_warnings():  # an early end is as good a start
            warnings.simplefilter("ignore")
            model.fit(own, t, sample_weight=upper)
        a = np.zeros(len(rows))
        a[model.support_] = np.abs(model.dual_coef_[0])
        a, intercept[k] = _polished(own * np.outer(t, t), t, upper, a, model.intercept_[0])
        coef[rows, k] = t * a
    objective = float(dual(K, coef, c, False).sum())
    gap = primal(K, coef, sign, c, False, intercept).sum() - objective
    assert gap <= 1e-9 * objective, f"the reference did not converge: {gap:g} of {objective:g}"
    assert np.abs(coef.sum(axis=0)).max() <= 1e-9 * np.abs(coef).sum()
    return Optimum(coef, objective, intercept)


def _polished(Q, y, upper, a, b, linear=-1.0) -> tuple[np.ndarray, float]:
    """The active-set method of `box_qp` with the intercept, from variables near the optimum."""
    near = 1e-7 * upper
    a = np.where(a < near, 0.0, np.where(a > upper - near, upper, a))
    free = (a > 0) & (a < upper)
    linear = np.broadcast_to(linear, a.shape)
    for _ in range(100 * len(a)):
        own, n = y[free], np.count_nonzero(free)
        if n:
            system = np.block([[Q[np.ix_(free, free)], own[:, None]], [own, np.zeros((1, 1))]])
            residual = np.append(-linear[free] - Q[free] @ a - b * own, -y @ a)
            step = np.linalg.lstsq(system, residual, rcond=1e-13)[0]
            flat, full = residual - system @ step, 1.0
            if np.abs(flat).max() > 1e-8 * (1 + np.abs(residual).max()):
                step, full = flat, np.inf  # in which the objective is linear
            length = _length_to_bounds(a[free], upper[free], step[:n], full)
            a[free], b = a[free] + length * step[:n], b + length * step[n]
            if length < full:
                _snap(a, upper, free)
                continue
        gradient = Q @ a + linear + b * y
        push = np.where(a <= 0, -gradient, np.where(a >= upper, gradient, 0.0))
        push[free] = 0
        if n == 0 or push.max() <= KKT_TOL:
            break
        free[np.argmax(push)] = True
    return a, float(b)


def regression(K, y, c, epsilon: float, *, intercept: bool) -> Optimum:
    """The optimum of epsilon-insensitive regression, with two variables for each row."""
    n = len(y)
    sign = np.repeat([1.0, -1.0], n)
    Q = np.outer(sign, sign) * np.tile(K, (2, 2))
    linear, upper = epsilon - sign * np.tile(y, 2), np.tile(c, 2)
    if not intercept:
        a, b = box_qp(Q, upper, linear), 0.0
    else:
        model = SVR(kernel="precomputed", C=1.0, epsilon=epsilon, tol=1e-7, max_iter=300_000)
        with warnings.catch_warnings():  # an early end is as good a start
            warnings.simplefilter("ignore")
            model.fit(K, y, sample_weight=c)
        coef = np.zeros(n)
        coef[model.support_] = model.dual_coef_[0]
        a = np.concatenate([np.maximum(coef, 0), np.maximum(-coef, 0)])
        a, b = _polished(Q, sign, upper, a, model.intercept_[0], linear)
    coef = a[:n] - a[n:]
    objective = regression_dual(K, coef, y, epsilon)
    gap = regression_primal(K, coef, y, c, epsilon, b) - objective
    assert gap <= 1e-8 * max(abs(objective), 1e-8), f"the reference did not converge: {gap:g}"
    return Optimum(coef[:, None], objective, np.array([b]))


def regression_primal(K, coef, y, c, epsilon: float, intercept=0.0) -> float:
    """1/2 |w|^2 + sum_i C_i max(0, |y_i - f_i| - epsilon)."""
    error = np.abs(y - K @ coef - intercept)
    return float(coef @ K @ coef / 2 + c @ np.maximum(error - epsilon, 0))


def regression_dual(K, coef, y, epsilon: float) -> float:
    return float(y @ coef - epsilon * np.abs(coef).sum() - coef @ K @ coef / 2)


def primal(K, coef, sign, c, squared: bool, intercept=0.0) -> np.ndarray:
    """1/2 |w|^2 + sum_i C_i loss_i of every problem, with w = sum_i coef_i phi(x_i).

    A sign of 0 takes no part.
    """
    slack = np.abs(sign) * np.maximum(1 - sign * (K @ coef + intercept), 0)
    return _norms(K, coef) / 2 + c @ (slack**2 if squared else slack)


def dual(K, coef, c, squared: bool) -> np.ndarray:
    """sum_i a_i - 1/2 a'(Q + R)a of every problem, with a_i = |coef_i|."""
    return np.abs(coef).sum(axis=0) - _norms(K + _ridge(c, squared), coef) / 2


def projected_gradient(K, coef, sign, c, squared: bool) -> np.ndarray:
    """The gradient of 1/2 a'(Q + R)a - e'a, without what a bound forbids."""
    gradient = sign * ((K + _ridge(c, squared)) @ coef) - 1
    a, upper = sign * coef, np.inf if squared else c[:, None]
    low, high = np.minimum(gradient, 0), np.maximum(gradient, 0)
    return np.where(a <= 0, low, np.where(a >= upper, high, gradient))


def _norms(K, coef) -> np.ndarray:
    return np.einsum("ik,ij,jk->k", coef, K, coef, optimize=True)


def _ridge(c, squared) -> np.ndarray:
    return np.diag(0.5 / c) if squared else np.zeros((len(c), len(c)))


# ------------------------------------------------------------------ a tube around numbers


def tube(K, y, c, epsilon, squared: bool) -> Optimum:
    """The exact optimum of epsilon-insensitive regression, for every column of y.

    LIBSVM's dual: two variables per row, one for either side of the tube.
    """
    upper = np.full(2 * len(K), np.inf) if squared else np.concatenate([c, c])
    coef, Q = np.empty_like(y), K + _ridge(c, squared)
    for k, (own, half) in enumerate(zip(y.T, np.broadcast_to(epsilon, y.shape[1]), strict=True)):
        unit = max(np.abs(own).max(), half, 1e-300)  # so that tolerances are relative
        linear = np.concatenate([half - own, half + own]) / unit
        a = box_qp(np.block([[Q, -Q], [-Q, Q]]), upper / unit, linear) * unit
        coef[:, k] = a[: len(K)] - a[len(K) :]
    return Optimum(coef, float(tube_dual(K, coef, y, c, epsilon, squared).sum()))


def tube_primal(K, coef, y, c, epsilon, squared: bool) -> np.ndarray:
    """1/2 |w|^2 + sum_i C_i loss(|y_i - g_i| - epsilon) of every column."""
    slack = np.maximum(np.abs(y - K @ coef) - epsilon, 0)
    return _norms(K, coef) / 2 + c @ (slack**2 if squared else slack)


def tube_dual(K, coef, y, c, epsilon, squared: bool) -> np.ndarray:
    """y'b - epsilon |b|_1 - 1/2 b'(K + R)b of every column."""
    linear = (y * coef).sum(axis=0) - epsilon * np.abs(coef).sum(axis=0)
    return linear - _norms(K + _ridge(c, squared), coef) / 2


# ------------------------------------------------------------------ Crammer-Singer


def crammer_singer(K, label, c, squared: bool) -> Optimum:
    """The optimum by SLSQP over b_im = -a_im >= 0, m != y_i, with a_iy = sum_m b_im (<= C_i).

    A general method with dense matrices: for a few dozen variables only.
    """
    n, n_classes = len(K), label.max() + 1
    rows = np.arange(n)
    others = np.array([[m for m in range(n_classes) if m != y] for y in label])

    def coef_of(b):
        coef = np.zeros((n, n_classes))
        coef[rows[:, None], others] = -b.reshape(others.shape)
        coef[rows, label] = -coef.sum(axis=1)
        return coef

    def minus_dual(b):
        coef = coef_of(b)
        decision = K @ coef
        gradient = decision[rows, label][:, None] - decision[rows[:, None], others] - 1
        if squared:
            gradient += (coef[rows, label] / (2 * c))[:, None]
        return -crammer_singer_dual(K, coef, label, c, squared), gradient.ravel()

    total = LinearConstraint(np.kron(np.eye(n), np.ones(n_classes - 1)), -np.inf, c)
    found = minimize(
        minus_dual,
        np.zeros(others.size),
        jac=True,
        bounds=[(0, None)] * others.size,
        constraints=[] if squared else [total],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return Optimum(coef_of(found.x), -float(found.fun))


def crammer_singer_primal(K, coef, label, c, squared: bool) -> float:
    """1/2 sum_m |w_m|^2 + sum_i C_i loss(max over m != y_i of 1 - (f_y - f_m))."""
    decision, rows = K @ coef, np.arange(len(K))
    rivals = decision + 1
    rivals[rows, label] = -np.inf
    slack = np.maximum(rivals.max(axis=1) - decision[rows, label], 0)
    return float(_norms(K, coef).sum() / 2 + c @ (slack**2 if squared else slack))


def crammer_singer_dual(K, coef, label, c, squared: bool) -> float:
    """-(1/2 sum_m |w_m|^2 + sum_i sum_{m != y_i} a_im [+ sum_i a_iy^2 / 4C_i])."""
    own = coef[np.arange(len(K)), label]
    others = coef.sum() - own.sum()
    return float(-(_norms(K, coef).sum() / 2 + others + squared * (own**2 / (4 * c)).sum()))


def assert_crammer_singer_feasible(coef, label, c, squared: bool) -> None:
    """sum_m a_im = 0, a_im <= 0 for m != y_i, and a_iy <= C_i under the hinge."""
    rows = np.arange(len(coef))
    np.testing.assert_allclose(coef.sum(axis=1), 0, atol=1e-12)
    others = coef.copy()
    others[rows, label] = 0
    assert others.max() <= 0
    assert squared or np.all(coef[rows, label] <= c * (1 + 1e-12))
