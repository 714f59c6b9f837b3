"""What must not change the problem: weights for copies, order, names, layouts, a path over C."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from stress import truth
from stress.compare import random_of, same_problem, take


def copies(model, X, y, w) -> None:
    """A whole weight is that many copies, and weight 0 is absence."""
    rows = np.repeat(np.arange(len(y)), w.astype(int))
    many = take(model, X, rows), y[rows], None
    same_problem((model, X, y, w), (clone(model).fit(*many), *many), "copies for weights")


def order(model, X, y, w=None) -> None:
    rows = random_of(X, y).permutation(len(y))
    other = take(model, X, rows), y[rows], None if w is None else w[rows]
    same_problem((model, X, y, w), (clone(model).fit(*other), *other), "order of rows")


def labels(model, X, y, w=None) -> None:
    """Names that sort in the same order change no bit; others, not the problem."""
    named = np.array([f"class {c:03d}" for c in y])
    other = clone(model).fit(X, named, w)
    assert list(other.classes_) == sorted(set(named)), (
        f"classes are not the names: {other.classes_}"
    )
    first, second = model.decision_function(X), other.decision_function(X)
    assert np.array_equal(first, second), "names of classes change decisions: "
    same_problem((model, X, y, w), (clone(model).fit(X, -y, w), X, -y, w), "reversed labels")


def layout(model, X, y, w=None) -> None:
    """The same values in another dtype and layout."""
    values = truth.dense(X).astype(np.float64)
    sparse = model.__sklearn_tags__().input_tags.sparse
    ways = [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array, sp.coo_array]
    way = ways[random_of(X, y).integers(5 if sparse else 2)]
    other = way(values), y, w
    same_problem((model, X, y, w), (clone(model).fit(*other), *other), f"{way.__name__} of float64")


def path(model, X, y, w=None) -> None:
    """A model of a path solves the problem that a fit of its own solves."""
    Cs = [model.C / 10, model.C]
    for C, on_path in zip(Cs, clone(model).fit_path(X, y, Cs, w), strict=True):
        alone = clone(model).set_params(C=C).fit(X, y, w)
        same_problem((on_path, X, y, w), (alone, X, y, w), "fit_path")
