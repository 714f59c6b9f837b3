"""Map columns of the data to features of the model: numbers, categories, missing values.

A column of numbers is one feature, in which missing values are absent; if the training data had
any, an indicator gives them their own contribution.  A column of categories is one indicator per
category and one for missing.  Values unknown in training contribute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from widemargin.additive.codes import Indicators
from widemargin.additive.source import Values

UNSEEN = -1
"""Code of a category that the training data did not have."""


class Parts(NamedTuple):
    """Rows of data for a model: numbers, and indicators if any."""

    values: Values
    marks: Indicators | None


class Features(NamedTuple):
    """Indices of a column's features in the model."""

    number: int | None
    missing: int | None
    categories: range


@dataclass(frozen=True)
class Columns:
    """The columns of a model's data.

    Data comes as a matrix in which a category is its index in ``categories``, `UNSEEN`, or NaN if
    missing.
    """

    n_columns: int
    # Of each categorical column, in ascending order of columns.
    categories: dict[int, tuple[str, ...]] = field(default_factory=dict)
    missing: frozenset[int] = frozenset()  # columns with missing values in the training data

    @classmethod
    def of(cls, X, categories: dict[int, tuple[str, ...]]) -> Columns:
        """Return the columns of training data."""
        return cls(X.shape[1], categories, frozenset(map(int, np.flatnonzero(n_missing(X)))))

    def joined(self, other: Columns) -> Columns:
        """Merge with the columns of more rows of the same data."""
        if set(self.categories) != set(other.categories):
            raise ValueError("Some rows have categories in columns where others have numbers.")
        categories = {
            j: tuple(sorted({*names, *other.categories[j]})) for j, names in self.categories.items()
        }
        return Columns(self.n_columns, categories, self.missing | other.missing)

    @property
    def are_features(self) -> bool:
        """Whether columns and features are the same."""
        return not self.categories and not self.missing

    @property
    def n_numbers(self) -> int:
        return self.n_columns - len(self.categories)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Columns of numbers, which are the first features."""
        return np.delete(np.arange(self.n_columns), list(self.categories))

    @cached_property
    def _features(self) -> dict[int, Features]:
        """Features of every column; indicators follow the numbers, in the order of columns."""
        features: dict[int, Features] = {}
        numbers, end = iter(range(self.n_numbers)), self.n_numbers
        for column in range(self.n_columns):
            n = len(self.categories.get(column, ()))
            has_missing = column in self.missing
            number = None if column in self.categories else next(numbers)
            missing = end + n if has_missing else None
            features[column] = Features(number, missing, range(end, end + n))
            end += n + has_missing
        return features

    @property
    def n_features(self) -> int:
        """Number of the model's features."""
        of_categories = sum(map(len, self.categories.values()))
        return self.n_numbers + of_categories + len(self.missing)

    def features(self, column: int) -> Features:
        if self.are_features:
            return Features(column, None, range(0))
        return self._features[column]

    def parts(self, X) -> Parts:
        """Split rows into numbers and indicators."""
        if self.are_features:
            return Parts(Values.of(X), None)
        n_marks = self.n_features - self.n_numbers
        if sp.issparse(X):
            return Parts(Values.of(X), self._marks_of_sparse(X, n_marks))
        values = X if self.n_numbers == self.n_columns else X[:, self.numbers]
        marks = [self._marks(X[:, j], j) for j in sorted({*self.categories, *self.missing})]
        return Parts(Values.of(values), Indicators.of(marks, X.shape[0], n_marks))

    def _marks(self, values: np.ndarray, column: int) -> np.ndarray:
        """Return the indicator of every row of a column, counted from 0, or -1 for none."""
        features, first = self.features(column), self.n_numbers
        missing = np.isnan(values)
        marks = np.full(len(values), -1, dtype=np.int64)
        if features.number is None:
            known = ~missing & (values != UNSEEN)
            marks[known] = features.categories.start - first + values[known].astype(np.int64)
        if features.missing is not None:
            marks[missing] = features.missing - first
        return marks

    def _marks_of_sparse(self, X, n_marks: int) -> Indicators:
        """Return the indicators of sparse rows, whose columns are all numbers."""
        number = np.full(self.n_columns, -1, dtype=np.int64)
        columns = sorted(self.missing)
        number[columns] = np.arange(len(columns))
        marks = np.where(np.isnan(X.data), number[X.indices], -1)
        before = np.concatenate([[0], np.cumsum(marks >= 0)])
        return Indicators(before[X.indptr].astype(np.int64), marks[marks >= 0], n_marks)

    def parts_of(self, values: Values) -> Parts:
        """Wrap raw values without indicators."""
        if self.are_features:
            return Parts(values, None)
        return self.parts(values.csr() if values.sparse else values.data)

    def newly_missing(self, X) -> dict[int, int]:
        """Count missing values in columns that had none in the training data."""
        counts = n_missing(X)
        return {int(j): int(counts[j]) for j in np.flatnonzero(counts) if j not in self.missing}

    def by_column(self, parts: np.ndarray) -> np.ndarray:
        """Sum over the features of each column on axis 1; the intercept stays last."""
        if self.are_features:
            return parts
        out = np.zeros((len(parts), self.n_columns + 1, *parts.shape[2:]))
        out[:, -1] = parts[:, -1]
        for column, features in self._features.items():
            for feature in (features.number, features.missing, *features.categories):
                if feature is not None:
                    out[:, column] += parts[:, feature]
        return out


def n_missing(X) -> np.ndarray:
    """Count the NaNs of each column."""
    if X.dtype.kind != "f":
        return np.zeros(X.shape[1], dtype=np.int64)
    if sp.issparse(X):
        return np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    return np.isnan(X).sum(axis=0)
