"""Means, variances and norms of training data, in double precision and without a copy of it.

A few rows at a time, so that results do not depend on the memory layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.stored import StoredMatrix

OFF_CENTRE = 8.0  # squared norm of the centre, in units of the rows' squared distances from it
_ROWS = 256


def squared_norms(X) -> np.ndarray:
    """Return squared norms in double precision, without a copy of dense data."""
    if isinstance(X, StoredMatrix):
        return np.concatenate([squared_norms(part) for _, part in X.parts()])
    if sp.issparse(X):
        X = sp.csr_array(X)
        squares = sp.csr_array((np.square(X.data, dtype=np.float64), X.indices, X.indptr), X.shape)
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64, casting="unsafe")


def weighted_variance(X, share: np.ndarray) -> float:
    """Return the variance of all values without cancellation; ``share`` weighs rows."""
    d, mean, total = X.shape[1], 0.0, 0.0
    for part, own in _parts(X, share):
        mean += float(own @ (np.asarray(part.sum(axis=1, dtype=np.float64)).ravel() / d))
    with np.errstate(over="ignore"):  # infinity, which the caller refuses
        for part, own in _parts(X, share):
            total += float(own @ (_squares_from(mean, part) / d))
        return total if total > 1e-24 * np.square(mean) else 0.0  # constant up to rounding


def _squares_from(mean: float, part) -> np.ndarray:
    """Return each row's sum of squared distances from the mean."""
    values = part.data if sp.issparse(part) else part
    # whatever X is: float16 would overflow, and squares of small float32 numbers vanish
    squares = np.square(np.subtract(values, mean, dtype=np.float64))
    if not sp.issparse(part):
        return squares.sum(axis=1)
    n_stored = np.diff(part.indptr)
    row = np.repeat(np.arange(part.shape[0]), n_stored)
    stored = np.bincount(row, squares, minlength=part.shape[0])
    return stored + (part.shape[1] - n_stored) * np.square(mean)


def _parts(X, share: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield contiguous blocks of rows and their shares."""
    for begin in range(0, X.shape[0], _ROWS):
        part = X[begin : begin + _ROWS]
        if sp.issparse(part):
            part = sp.csr_array(part)
            part.sum_duplicates()
        else:
            part = np.ascontiguousarray(part)
        yield part, share[begin : begin + _ROWS]


def is_constant(X) -> bool:
    """Whether all values are the same."""
    if isinstance(X, StoredMatrix):
        return bool(X.min(axis=0).min() == X.max(axis=0).max())
    if not sp.issparse(X):
        return bool(np.all(X[0, 0] == X))
    return X.nnz == 0 or float(X.max()) == float(X.min())


def is_off_centre(X) -> bool:
    """Whether distances between rows are so small against their norms that they would cancel."""
    mean = mean_row(X)
    spread = float(squared_norms(X).mean()) - float(mean @ mean)
    return float(mean @ mean) > OFF_CENTRE * spread


def mean_row(X) -> np.ndarray:
    X = sp.csr_array(X) if sp.issparse(X) else X
    total = np.zeros(X.shape[1])
    for begin in range(0, X.shape[0], _ROWS):
        part = X[begin : begin + _ROWS]
        part = part if sp.issparse(part) else np.ascontiguousarray(part)
        total += np.asarray(part.sum(axis=0, dtype=np.float64)).ravel()
    return total / X.shape[0]


def first_negative(X) -> tuple[int, int] | None:
    """Return row and column of the first negative value, or None."""
    parts = X.parts() if isinstance(X, StoredMatrix) else [(slice(0, X.shape[0]), X)]
    for rows, part in parts:
        part = part.toarray() if sp.issparse(part) else np.asarray(part)
        if np.min(part) < 0:
            row, column = np.argwhere(part < 0)[0]
            return rows.start + int(row), int(column)
    return None


def share_of_nonzeros(X) -> float:
    if isinstance(X, StoredMatrix):
        total = sum(share_of_nonzeros(part) * part.shape[0] for _, part in X.parts())
        return total / max(len(X), 1)
    stored = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return stored / max(X.shape[0] * X.shape[1], 1)
