"""Relative duality gaps of peers, from their coefficients: how well a solution was solved.

Times are compared fairly only at equal quality, and every program has a stopping rule of its own.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC

BLOCK = 1000  # rows of the kernel matrix at a time


def relative_gap(model, X, y) -> float | None:
    """Largest relative gap of the model's binary problems, or None where none can be told."""
    if hasattr(model, "duality_gap_"):
        return float(model.duality_gap_)
    if isinstance(model, Pipeline):
        return relative_gap(model[-1], model[:-1].transform(X), y)
    if getattr(model, "class_weight", None) is not None:
        return None  # C of each row is not C
    if isinstance(model, LinearSVC) and model.loss == "squared_hinge":
        return linear_gap(model, X, y)
    if isinstance(model, SVC) and len(model.classes_) == 2 and isinstance(model.kernel, str):
        return kernel_gap(model, X, y)
    return None


def linear_gap(model, X, y) -> float:
    """Of LinearSVC's solutions of the squared hinge, at most.

    The dual point is the one that the optimality condition a = 2 C max(0, 1 - m) gives, scaled
    by the best single factor: LinearSVC does not tell its dual variables.
    """
    C = model.C
    label = 2.0 * (np.asarray(y)[:, None] == model.classes_) - 1
    label = label if len(model.coef_) > 1 else label[:, 1:]
    constant = bool(model.fit_intercept) * model.intercept_scaling
    slack = np.maximum(0, 1 - label * (X @ model.coef_.T + model.intercept_))
    bias = model.intercept_ / constant if constant else np.zeros(len(model.coef_))
    primal = ((model.coef_**2).sum(axis=1) + bias**2) / 2 + C * (slack**2).sum(axis=0)
    signed = 2 * C * slack * label
    squared = np.asarray(signed.T @ X) ** 2
    quadratic = squared.sum(axis=1) + (constant * signed.sum(axis=0)) ** 2
    quadratic += (signed**2).sum(axis=0) / (2 * C)
    dual = np.abs(signed).sum(axis=0) ** 2 / (2 * np.maximum(quadratic, 1e-300))
    return float(((primal - dual) / primal).max())


def kernel_gap(model, X, y) -> float:
    """Of SVC's solution of a problem of two classes, whose bias is free.

    The primal takes the best bias for the model's function, so that a bias found from few rows
    is not held against the solver.
    """
    sign = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    held = model.dual_coef_
    coef = (held.toarray() if sp.issparse(held) else held).ravel()
    options = {} if model.kernel == "linear" else {"gamma": model._gamma}
    if model.kernel in ("poly", "sigmoid"):
        options["coef0"] = model.coef0
    if model.kernel == "poly":
        options["degree"] = model.degree
    vectors, decision = X[model.support_], np.empty(X.shape[0])
    for begin in range(0, X.shape[0], BLOCK):
        rows = slice(begin, begin + BLOCK)
        decision[rows] = pairwise_kernels(X[rows], vectors, metric=model.kernel, **options) @ coef
    squared = float(coef @ decision[model.support_])
    dual = np.abs(coef).sum() - squared / 2
    primal = squared / 2 + model.C * _least_hinge(sign, decision)
    return float((primal - dual) / primal)


def _least_hinge(sign: np.ndarray, decision: np.ndarray) -> float:
    """min over b of sum max(0, 1 - y (f + b)): convex and piecewise linear in b.

    A row's slope jumps by 1 at b = y - f; the least lies where the slope, which begins at minus
    the number of positive rows, has risen to 0.
    """
    places = np.sort(sign - decision)
    b = places[min(int((sign > 0).sum()), len(places) - 1)]
    return float(np.maximum(0, 1 - sign * (decision + b)).sum())
