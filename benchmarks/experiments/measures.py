"""What is measured of a fitted model beyond accuracy, times and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from benchmarks.peer_gaps import relative_gap
from widemargin import papers

EXACT = 1e-5  # relative gap of the solution whose support vectors are the true ones


def _gap(model, X, y, cell) -> dict:
    """The relative duality gap, computed by our code from a peer's coefficients."""
    gap = relative_gap(model, X, y)
    return {} if gap is None or np.isnan(gap) else {"gap": gap}  # tables without an objective


def _iterations(model, X, y, cell) -> dict:
    last = model[-1] if hasattr(model, "steps") else model
    found = getattr(last, "n_iter_", None)
    return {} if found is None else {"iterations": int(np.max(found))}


def _inner(model):
    """The machine of two classes within the one that takes any number."""
    return model.estimators_[0] if hasattr(model, "estimators_") else model


def _support(model, X, y, cell) -> dict:
    found = getattr(_inner(model), "support_", None)
    return {} if found is None else {"support_vectors": len(found)}


def _true_support(X, y, cell) -> np.ndarray:
    """Support vectors of the exact solution of the cell's problem."""
    named = ("C", "gamma", "kernel", "degree", "coef0")
    options = {name: cell.parameters[name] for name in named if name in cell.parameters}
    if "polynomial" in cell.use:
        options["kernel"] = "poly"
    return papers.dcsvm(**options, levels=0, tol=EXACT, random_state=0).fit(X, y).support_


def _agreement(found: np.ndarray, true: np.ndarray) -> dict:
    """Precision and recall of a set of rows."""
    both = len(np.intersect1d(found, true))
    return {"precision": both / max(len(found), 1), "recall": both / max(len(true), 1)}


def _found(model, X, y, cell) -> dict:
    """Precision and recall of the model's support vectors (DC-SVM, Figure 2)."""
    return _agreement(_inner(model).support_, _true_support(X, y, cell))


def _layers(model, X, y, cell) -> dict:
    """The same for each layer of a cascade."""
    layers = getattr(_inner(model), "layers_", [])
    if not layers:
        return {}
    true = _true_support(X, y, cell)
    return {"layers": [{"support_vectors": len(f)} | _agreement(f, true) for f in layers]}


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
    """The dual objective, where the model knows it or its coefficients tell it.

    An early model knows that of its clusters only; its coefficients tell that of the whole.
    """
    if hasattr(model, "dual_objective_") and not model.early:
        return {"dual_objective": float(model.dual_objective_)}
    inner = _inner(model)
    if len(model.classes_) != 2 or not hasattr(inner, "support_"):
        return {}
    coef = np.ravel(inner.dual_coef_)
    coef = coef[inner.support_] if len(coef) == len(y) else coef
    rows, gamma = X[inner.support_], cell.parameters["gamma"]
    if getattr(inner, "kernel", "rbf") == "poly":
        kernel = polynomial_kernel(rows, degree=inner.degree, gamma=gamma, coef0=0)
    else:
        kernel = rbf_kernel(rows, gamma=gamma)
    return {"dual_objective": float(np.abs(coef).sum() - coef @ (kernel @ coef) / 2)}


MEASURES: dict[str, Callable] = {
    "gap": _gap,
    "iterations": _iterations,
    "support": _support,
    "found": _found,
    "layers": _layers,
    "dual": _dual,
    "levels": _levels,
    "shape_errors": _shape_errors,
}
