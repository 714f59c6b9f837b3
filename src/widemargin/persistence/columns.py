"""Pack and unpack which columns have categories or missing values."""

from __future__ import annotations

from itertools import pairwise

from widemargin.additive.columns import Columns
from widemargin.persistence.container import Fields


def pack_columns(columns: Columns) -> dict:
    return {
        "missing": sorted(columns.missing),
        "categories": [[column, list(own)] for column, own in columns.categories.items()],
    }


def unpack_columns(fields: Fields, n_columns: int) -> Columns:
    """Parse the columns; by default numbers without missing values."""
    if not fields.has("columns"):
        return Columns(n_columns)
    inner = fields.inner("columns")
    missing, pairs = inner.items("missing"), inner.items("categories")
    below = f"_ascending below {n_columns}"
    if not _ascend(missing, n_columns):
        raise inner.fault("missing", f"numbers of columns, {below}")
    are_pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    if not are_pairs or not _ascend([column for column, _ in pairs], n_columns):
        raise inner.fault("categories", f"pairs of a column, {below}, and its texts")
    for _, own in pairs:
        texts = isinstance(own, list) and all(isinstance(text, str) for text in own)
        if not texts or any(a >= b for a, b in pairwise(own)):
            raise inner.fault("categories", "different texts for every column, in _ascending order")
    return Columns(n_columns, {column: tuple(own) for column, own in pairs}, frozenset(missing))


def _ascend(numbers: list, end: int) -> bool:
    """Whether these are ascending integers from 0 to ``end`` - 1."""
    whole = all(type(number) is int for number in numbers)
    return whole and all(a < b for a, b in pairwise([-1, *numbers, end]))
