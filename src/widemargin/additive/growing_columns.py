"""Track categories and missing values of columns that come in chunks.

A finished store has fixed categories and columns with gaps; new ones in appended rows contribute
nothing, as at prediction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.additive.columns import UNSEEN, n_missing
from widemargin.additive.frames import places, text_column, texts_by_dtype, with_codes
from widemargin.additive.manifest import Manifest
from widemargin.categories import Text
from widemargin.errors import UnseenWarning, listed, warn_user

_MOST_NAMED = 5  # columns in a warning


class GrowingColumns:
    """The columns of a store, from the chunks so far."""

    def __init__(self, before: Manifest):
        self._before, self._fixed = before, before.complete
        self._numbers: dict[int, dict[str, int]] | None = None  # column -> category -> number
        if self._fixed:
            self._numbers = {
                j: {name: k for k, name in enumerate(names)} for j, names in before.categories
            }
        self._missing: set[int] = set()
        self._unseen: dict[int, str] = {}

    def numbered(self, X: Any, begin: int) -> Any:
        """Replace categories of X by numbers; refuse them in stores of values."""
        if self._before.holds_values:
            return X
        texts = texts_by_dtype(X)
        if self._numbers is None:
            self._numbers = {j: {} for j in texts}
        other = sorted(set(texts) - set(self._numbers))
        if other:
            raise ValueError(
                f"The chunk that begins with row {begin} has categories in column {other[0]}, "
                "where the rows before have numbers."
            )
        width = X.shape[1] if self._numbers else 0
        by_column = {j: texts.get(j) or text_column(X, j) for j in self._numbers if j < width}
        return with_codes(X, {j: self._places(j, text) for j, text in by_column.items()})

    def _places(self, column: int, text: Text) -> np.ndarray:
        assert self._numbers is not None
        known = self._numbers[column]
        for category in text.categories:
            if not self._fixed:
                known.setdefault(category, len(known))
            elif category not in known:
                self._unseen.setdefault(column, category)
        return places(text, list(known))

    def add_gaps(self, X: Any) -> None:
        self._missing |= set(np.flatnonzero(n_missing(X)).tolist())

    @property
    def known(self) -> dict[str, list]:
        """Return the columns as fields of a manifest."""
        if self._fixed:
            return {"categories": self._before.categories, "missing": self._before.missing}
        categories = [(j, list(known)) for j, known in sorted((self._numbers or {}).items())]
        return {"categories": categories, "missing": sorted(self._missing)}

    def warn_of_news(self, names: list[str] | None) -> None:
        """Warn of categories and gaps that a finished store has no feature for."""
        if not self._fixed:
            return

        def called(column: int) -> str:
            return str(column) if names is None else repr(names[column])

        new = sorted(self._missing - set(self._before.missing))
        self._warn("Missing values of columns that had none", [called(j) for j in new])
        unseen = [f"{called(j)}, first {text!r}" for j, text in sorted(self._unseen.items())]
        self._warn("Categories that did not exist", unseen)

    def _warn(self, what: str, where: list[str]) -> None:
        if where:
            warn_user(
                f"{what} when the store was built contribute nothing: "
                f"{listed(where, _MOST_NAMED, '; ')}.",
                UnseenWarning,
            )


def in_order(data: np.ndarray, categories: list[tuple[int, list[str]]]) -> np.ndarray:
    """Renumber the categories of dense rows in sorted order.

    >>> in_order(np.array([[0.0, 7], [1, 8], [np.nan, 9], [-1, 9]]), [(0, ["b", "a"])])[:, 0]
    array([ 1.,  0., nan, -1.])
    """
    if not categories:
        return data
    data = data.astype(np.float64)
    for column, names in categories:
        rank = np.full(len(names) + 1, float(UNSEEN))
        rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        known = ~np.isnan(data[:, column])
        if not np.all(np.isin(data[known, column], np.arange(UNSEEN, len(names)))):
            raise ValueError(f"column {column} has an unknown category")
        data[known, column] = rank[data[known, column].astype(np.int64)]
    return data
