"""Problems for the solver, and their optima by `reference.py`."""

from functools import lru_cache

import numpy as np
import pytest
import reference

from widemargin import AdditiveSVC

LOSSES = ["hinge", "squared_hinge"]

MULTI_CLASS = ["ovr", "crammer_singer"]

# warm_start keeps the dual variables, from which references recompute what the solver reports.
TIGHT = {"tol": 1e-11, "max_iter": 100_000, "random_state": 0, "warm_start": True}

unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each_machine = pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (20, "ovr"), (3, "crammer_singer")]
)


def histograms(n_classes, n_rows=60, n_features=6, seed=0):
    """Small counts around a centre per class, with enough noise that no class is separable."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    centre = rng.integers(1, 9, (n_classes, n_features))
    X = centre[y] + rng.integers(-4, 5, (n_rows, n_features))
    return np.clip(X, 0, 9).astype(np.float64), y


def svc(kernel="chi2", **changes):
    return AdditiveSVC(kernel, **{**TIGHT, **changes})


def c_of(model, n_rows):
    return np.full(n_rows, model.C_)


def squared(model):
    return model.loss == "squared_hinge"


def exact(model, X, y):
    """The optimum of a fitted model's own problem, on its own tables."""
    K, c = reference.gram(model, X), c_of(model, len(X))
    if model.multi_class == "crammer_singer":
        return reference.crammer_singer(K, y, c, squared(model))
    return reference.one_vs_rest(K, reference.signs(y), c, squared(model))


@lru_cache
def optimum(model_key, n_classes):
    """A tightly fitted one-vs-rest model, its data and the exact optimum."""
    X, y = histograms(n_classes, n_rows=100 if n_classes > 16 else 60)
    model = svc(**dict(model_key)).fit(X, y)
    return model, X, y, exact(model, X, y)


each_problem = pytest.mark.parametrize(
    ("model_key", "n_classes"),
    [
        pytest.param(
            (("loss", loss), ("fit_intercept", intercept), ("approximation", tables)),
            n_classes,
            id=f"{loss}-{tables}-{n_classes} classes{'' if intercept else '-no intercept'}",
        )
        for loss in LOSSES
        for intercept in (True, False)
        for tables in ("spectral", "unary")
        for n_classes in (2, 3, 20)  # one lane; one batch of lanes; two batches
    ],
)


def noisy(n_classes, n_rows=400, n_features=16):
    rng = np.random.default_rng(3)
    return rng.integers(0, 9, (n_rows, n_features)), rng.integers(0, n_classes, n_rows)
