"""When two fitted models are the same: to the last bit, or as solutions of one problem."""

from __future__ import annotations

import zlib

import numpy as np
import scipy.sparse as sp

from stress import truth

SAME = 1e-5  # of the objective: what tables and single precision may do to a problem


def random_of(X, y) -> np.random.Generator:
    """Chance that depends on the data only, so that reproductions see the same."""
    return np.random.default_rng(zlib.crc32(truth.dense(X).tobytes() + np.asarray(y).tobytes()))


def take(model, X, rows):
    """Those rows of training data; of a precomputed matrix those columns too."""
    X = sp.csr_array(X)[rows] if sp.issparse(X) else X[rows]
    return X[:, rows] if model.kernel == "precomputed" else X


def certifies(model) -> bool:
    """Whether there is a gap: not of tables or kernels that have none."""
    return model.kernel != "sigmoid" and not np.isnan(model.duality_gap_)


def same_bits(one, other, X, what: str) -> None:
    """Decisions at the training rows, and what the fits say of themselves."""
    assert np.array_equal(one.classes_, other.classes_), f"{what} changes the classes: {one!r}"
    a, b = one.decision_function(X), other.decision_function(X)
    differ = np.abs(a - b).max()
    assert np.array_equal(a, b, equal_nan=True), f"{what} changes bits of decisions: by {differ:g}"
    for name in ("duality_gap_", "objective_", "n_iter_"):
        u, v = getattr(one, name), getattr(other, name)
        assert np.array_equal(u, v, equal_nan=True), f"{what} changes {name}: {u!r}, {v!r}"


def same_problem(one, other, what: str) -> None:
    """The optimum lies between dual and primal objective of either: the intervals meet.

    ``one`` and ``other`` are (model, X, y, w).
    """
    if not (certifies(one[0]) and certifies(other[0])):
        return
    (low, high), (low_too, high_too) = interval(*one), interval(*other)
    apart = max(low, low_too) - min(high, high_too)
    room = SAME * max(high, high_too)
    assert apart <= room, (
        f"{what} changes the problem: optimum in [{low:.9g}, {high:.9g}], "
        f"then in [{low_too:.9g}, {high_too:.9g}]"
    )


def interval(model, X, y, w) -> tuple[float, float]:
    """Dual and primal objective, summed over the problems, with room for rounding."""
    found = truth.truths(truth.problem_of(model, X, y, w))
    noise = sum(t.noise for t in found)
    return sum(t.dual for t in found) - noise, sum(t.primal for t in found) + noise
