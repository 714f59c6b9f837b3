"""Bin the values of a term, for tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from widemargin.additive.frames import as_days
from widemargin.categories import category_name, is_missing
from widemargin.sklearn_private import safe_indexing
from widemargin.terms import MISSING, NEITHER, Term


def term_values(X, term: Term) -> np.ndarray:
    """Return each row's value in a term's column: numbers in the data's units, or categories.

    Examples
    --------
    >>> X = np.array([["clerk", 5.0], ["smith", None]], dtype=object)
    >>> term_values(X, Term("job", 0, (0,), ("clerk", "smith")))
    array(['clerk', 'smith'], dtype=object)
    >>> term_values(X, Term("age", 1, (1,)))
    array([ 5., nan])
    """
    column = _column(X, term.column)
    if column.dtype.kind == "M":
        column = as_days(column.astype("datetime64[us]").tolist(), term.name)
    if column.dtype.kind in "biuf" and not term.categories:
        return column.astype(np.float64)
    values = column.tolist()
    if not (term.categories or any(isinstance(v, str) for v in values)):
        return np.array([np.nan if is_missing(v) else float(v) for v in values])
    return np.array([_text(v) for v in values], dtype=object)


def _column(X, j: int) -> np.ndarray:
    if sp.issparse(X):
        return X[:, [j]].toarray().ravel()
    column = safe_indexing(X, [j], axis=1)
    if hasattr(column, "to_pylist") and hasattr(column.schema[0].type, "value_type"):
        # a dictionary of Arrow's, whose gaps NumPy gets as some category
        return np.array(column.column(0).to_pylist(), dtype=object)
    return np.asarray(column).ravel()


@dataclass(frozen=True)
class TermBins:
    """The bin of every row, and the names of the bins."""

    number: np.ndarray
    labels: tuple[str, ...]

    @classmethod
    def of(cls, values: np.ndarray, most: int) -> TermBins:
        """Make at most ``most`` bins, plus one for missing numbers.

        Few values are bins themselves; else quantiles of numbers, or the most frequent categories.

        Examples
        --------
        >>> TermBins.of(np.array([0.0, 0.0, 1.0, 2.0, 3.0, 4.0]), 2).labels
        ('up to 1.5', 'above 1.5')
        >>> TermBins.of(np.array(["a", "b", "b"], dtype=object), 2).labels
        ('b', 'a')
        """
        if values.dtype == object:
            return cls._of_categories(values, most)
        missing = np.isnan(values)
        if missing.all():
            return cls(np.zeros(len(values), dtype=np.intp), (MISSING,))
        known = values[~missing]
        distinct = np.unique(known)
        if len(distinct) <= most:
            number, labels = np.searchsorted(distinct, values), [f"{v:.4g}" for v in distinct]
        else:
            cuts = np.quantile(known, np.arange(1, most) / most)
            cuts = np.unique(cuts[cuts < distinct[-1]])
            number, labels = np.searchsorted(cuts, values), _between(cuts)
        if missing.any():
            number[missing] = len(labels)
            labels = [*labels, MISSING]
        return cls(number, tuple(labels))

    @classmethod
    def _of_categories(cls, values: np.ndarray, most: int) -> TermBins:
        texts, index, count = np.unique(values, return_inverse=True, return_counts=True)
        rank = np.argsort(np.argsort(-count, kind="stable"), kind="stable")
        labels = texts[np.argsort(rank)].tolist()
        if len(labels) > most:
            labels = [*labels[: most - 1], NEITHER]
        return cls(np.minimum(rank[index], len(labels) - 1), tuple(labels))


def _between(cuts: np.ndarray) -> list[str]:
    texts = [f"{c:.4g}" for c in cuts]
    inner = [f"{a} to {b}" for a, b in pairwise(texts)]
    return [f"up to {texts[0]}", *inner, f"above {texts[-1]}"] if texts else ["all"]


def _text(value: object) -> str:
    return MISSING if is_missing(value) else category_name(value)
