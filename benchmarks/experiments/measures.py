"""What is measured of a fitted model beyond accuracy, times and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.peer_gaps import relative_gap


def _gap(model, X, y, cell) -> dict:
    """The relative duality gap, computed by our code from a peer's coefficients."""
    gap = relative_gap(model, X, y)
    return {} if gap is None else {"gap": gap}


def _iterations(model, X, y, cell) -> dict:
    last = model[-1] if hasattr(model, "steps") else model
    found = getattr(last, "n_iter_", None)
    return {} if found is None else {"iterations": int(np.max(found))}


def _support(model, X, y, cell) -> dict:
    inner = model.estimators_[0] if hasattr(model, "estimators_") else model
    found = getattr(inner, "support_", None)
    return {} if found is None else {"support_vectors": len(found)}


def _levels(model, X, y, cell) -> dict:
    """DC-SVM's levels: clusters, seconds of clustering and of training, support vectors."""
    kept = ("level", "n_clusters", "seconds_clustering", "seconds_training", "n_support",
            "whole_objective", "bound", "precision", "recall")  # fmt: skip
    levels = getattr(model, "levels_", [])
    return {"levels": [{name: getattr(level, name) for name in kept} for level in levels]}


def _shape_errors(model, X, y, cell) -> dict:
    """Errors of g_j for the features that the experiment names, counted from 1 as in its files."""
    found = model.approximation_error(X, [j - 1 for j in cell.features])
    return {"errors": {str(j): asdict(e) for j, e in zip(cell.features, found, strict=True)}}


def _dual(model, X, y, cell) -> dict:
    """The dual objective, where the model knows it or its coefficients tell it."""
    if hasattr(model, "dual_objective_"):
        return {"dual_objective": float(model.dual_objective_)}
    inner = model.estimators_[0] if hasattr(model, "estimators_") else model
    if len(model.classes_) != 2 or not hasattr(inner, "support_"):
        return {}
    coef = np.ravel(inner.dual_coef_)
    coef = coef[inner.support_] if len(coef) == len(y) else coef
    squared = coef @ (rbf_kernel(X[inner.support_], gamma=cell.parameters["gamma"]) @ coef)
    return {"dual_objective": float(np.abs(coef).sum() - squared / 2)}


MEASURES: dict[str, Callable] = {
    "gap": _gap,
    "iterations": _iterations,
    "support": _support,
    "dual": _dual,
    "levels": _levels,
    "shape_errors": _shape_errors,
}
