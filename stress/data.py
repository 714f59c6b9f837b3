"""Training data as a recipe: a few numbers that shrink, print in a line and make the arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

SPARSE = {"csr": sp.csr_array, "csc": sp.csc_array, "coo": sp.coo_array}
LAYOUTS = ("C", "F", "strided", *SPARSE)
WEIGHTS = (None, "ones", "copies", "zeros", "uneven", "extreme")
DTYPES = ("float64", "float32", "float16", "int64", "int32", "uint8")
_LARGEST = {"float16": 6e4, "float32": 3e38, "uint8": 255, "int32": 2e9, "int64": 9e18}


@dataclass(frozen=True)
class Data:
    """Rows, classes and weights; the defaults are the tamest of each.

    Examples
    --------
    >>> Data(rows=5, layout="csr")
    Data(rows=5, layout='csr')
    >>> X, y, w = Data(rows=5, layout="csr").arrays()
    >>> X.shape, len(y), w
    ((5, 2), 5, None)
    """

    rows: int = 8
    columns: int = 2
    classes: int = 2
    seed: int = 0
    noise: float = 0.3  # how far the classes overlap
    copies: int = 1  # every row occurs that often, perhaps in different classes
    zeros: float = 0.0  # share of values that are zero
    scale: float = 1.0
    offset: float = 0.0  # of all columns, in units of the scale
    uneven: float = 1.0  # the last column's scale, in units of the others'
    constant: bool = False  # the first column is
    signed: bool = True
    steps: int = 0  # values are multiples of scale / steps, where there are any
    dtype: str = "float64"
    layout: str = "C"
    weights: str | None = None
    gram: bool = False  # X is the matrix of inner products, for kernel="precomputed"

    def __repr__(self) -> str:
        told = [f for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Data({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in told)})"

    def arrays(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and sample weights; every class has a row of positive weight."""
        rng = np.random.default_rng(self.seed)
        distinct = -(-self.rows // self.copies)
        X = rng.normal(size=(distinct, self.columns))
        score = np.sin(2 * X[:, 0]) + X.sum(axis=1) / self.columns
        X = np.tile(self._values(X, rng), (self.copies, 1))[: self.rows]
        score = np.tile(score, self.copies)[: self.rows] + self.noise * rng.normal(size=self.rows)
        y = np.empty(self.rows, dtype=np.int64)
        y[np.argsort(score)] = np.arange(self.rows) * self.classes // self.rows
        weight = self._weight(y, rng)
        if self.gram:
            X = X.astype(np.float64)
            X = (X @ X.T) / self.columns
        return self._laid_out(X), y, weight

    def _values(self, X, rng) -> np.ndarray:
        if not self.signed:
            X = np.abs(X)
        if self.steps:
            X = np.round(X * self.steps) / self.steps
        X[rng.random(X.shape) < self.zeros] = 0
        if self.constant:
            X[:, 0] = 1
        X[:, -1] *= self.uneven
        X = (X + self.offset) * self.scale
        largest = _LARGEST.get(self.dtype, np.inf)
        kind = np.dtype(self.dtype).kind
        X = np.clip(X, 0 if kind == "u" else -largest, largest)
        return (np.round(X) if kind in "iu" else X).astype(self.dtype)

    def _laid_out(self, X: np.ndarray):
        if self.layout == "F":
            return np.asfortranarray(X)
        if self.layout == "strided":
            wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]), dtype=X.dtype)
            wide[::2, ::2] = X
            return wide[::2, ::2]
        if self.layout == "C":
            return X
        wanted = X if X.dtype != np.float16 else X.astype(np.float32)  # SciPy has no sparse halves
        return SPARSE[self.layout](wanted)

    def _weight(self, y, rng) -> np.ndarray | None:
        n = len(y)
        drawn = {
            None: lambda: None,
            "ones": lambda: np.ones(n),
            "copies": lambda: rng.integers(1, 4, n).astype(np.float64),
            "zeros": lambda: rng.integers(0, 3, n).astype(np.float64),
            "uneven": lambda: rng.uniform(0.1, 3, n),
            "extreme": lambda: 10.0 ** rng.integers(-12, 13, n),
        }[self.weights]()
        if drawn is not None:
            first = [np.flatnonzero(y == c)[0] for c in np.unique(y)]
            drawn[first] = np.maximum(drawn[first], 1.0)
        return drawn
