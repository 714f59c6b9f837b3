"""Features of a table: numbers as they are, categories as one-hot columns.

A feature's name says where it comes from: ``age`` is the column of that name, ``job=smith`` the
value ``smith`` of the column ``job``.  So the names of a trained model are enough to read other
files, with other columns and categories, as what the model knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from widemargin.budget import Budget
from widemargin.data.columns import (
    Rule,
    Text,
    check_columns,
    check_complete,
    columns_taken,
    is_text,
    model_array,
    own_arrays,
)
from widemargin.data.dataset import Columns, Dataset, Layout
from widemargin.warning import warn_user

if TYPE_CHECKING:
    import pyarrow as pa

SPARSE_BELOW = 1 / 3

Matrix: TypeAlias = "np.ndarray | sp.csr_array"
Slot = int | dict[str, int]
Slots = dict[str, Slot]
"""For each column its feature or, where it is text, the feature of each of its values."""


def own_features(
    table: pa.Table, rule: Rule, declared: Collection[str], budget: Budget
) -> tuple[Matrix, list[str], Columns]:
    """Features as the rule has them, their names, and how each column was taken."""
    arrays = own_arrays(table, rule, declared)
    check_complete(arrays, rule.na)
    X, features = _features_of(arrays, table.num_rows, budget)
    return X, features, columns_taken(arrays, rule)


def as_numbers(data: Dataset, max_bytes: int | None = None) -> Dataset:
    """A table of columns as they are, as a matrix: a feature per category, NaN where numbers are
    missing, and none of its categories where one is.

    Examples
    --------
    >>> import pyarrow as pa
    >>> job = pa.array(["smith", None]).dictionary_encode()
    >>> found = as_numbers(Dataset(pa.table({"age": [31.0, float("nan")], "job": job}), None))
    >>> found.feature_names.tolist(), found.X.tolist()
    (['age', 'job=smith'], [[31.0, 1.0], [nan, 0.0]])
    """
    if isinstance(data.X, np.ndarray) or sp.issparse(data.X):
        return data
    table: pa.Table = data.X  # type: ignore[assignment]
    arrays = {
        name: model_array(name, column, as_text=is_text(column.type), na=())
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    with Budget.of(max_bytes, "the table") as budget:
        X, features = _features_of(arrays, table.num_rows, budget)
    return replace(data, X=X, feature_names=np.array(features, dtype=object))


def _features_of(
    arrays: dict[str, np.ndarray | Text], n_rows: int, budget: Budget
) -> tuple[Matrix, list[str]]:
    """Features and their names."""
    kinds = {c: a.categories if isinstance(a, Text) else None for c, a in arrays.items()}
    slots, features = named_slots(kinds, budget)
    return matrix(arrays, slots, (n_rows, len(features)), budget), features


def named_slots(
    kinds: Mapping[str, Collection[str] | None], budget: Budget
) -> tuple[Slots, list[str]]:
    """The features of columns with these categories (None: of numbers), and their names."""
    texts = {column: values for column, values in kinds.items() if values is not None}
    longest = max(
        (len(c) + max(map(len, values), default=0) for c, values in texts.items()), default=0
    )
    budget.hold(sum(map(len, texts.values())) * longest, "the names of its features take")
    slots: Slots = {}
    features: list[str] = []
    for column, categories in kinds.items():
        if categories is not None:
            values = sorted(categories)
            slots[column] = {value: i for i, value in enumerate(values, len(features))}
            features += [f"{column}={value}" for value in values]
        else:
            slots[column] = len(features)
            features.append(column)
    if model_slots(features, kinds) != (slots, []):
        raise ValueError(
            "column names with '=' leave open which column a feature belongs to; rename them"
        )
    return slots, features


def model_features(table: pa.Table, model: list[str], layout: Layout, budget: Budget) -> Matrix:
    """Features as a model has them."""
    slots, missing = model_slots(model, table.column_names)
    check_columns(table.column_names, slots, missing, layout, budget.name)
    arrays = {
        c: model_array(c, table[c], as_text=isinstance(slot, dict), na=layout.na)
        for c, slot in slots.items()
    }
    if not layout.gaps:
        check_complete(arrays, layout.na)
    for column, array in arrays.items():
        if isinstance(array, Text) and (unknown := _unknown(array, slots[column])):
            warn_user(
                f"{budget.name}: column {column!r} has {unknown}; they count as none of its values"
            )
    return matrix(arrays, slots, (table.num_rows, len(model)), budget)


def model_slots(model: Iterable[str], names: Iterable[str]) -> tuple[Slots, list[str]]:
    """Where the columns of a file go among a model's features, and the features they lack."""
    slots: Slots = {}
    missing = []
    numbers = set(names).intersection(model)
    texts = set(names).difference(model)
    # The longest name counts, so that a value of the column a=b is not one of a.
    lengths = sorted({len(column) for column in texts}, reverse=True)
    for position, feature in enumerate(model):
        if feature in numbers:
            slots[feature] = position
            continue
        ends = (end for end in lengths if feature[end : end + 1] == "=")
        column = next((feature[:end] for end in ends if feature[:end] in texts), None)
        if column is None:
            missing.append(feature)
        else:
            slot = slots.setdefault(column, {})
            assert isinstance(slot, dict)
            slot[feature[len(column) + 1 :]] = position
    return slots, missing


def text_columns(model: Iterable[str], names: list[str]) -> list[str]:
    """The columns that a model has as one-hot features."""
    slots, _ = model_slots(model, names)
    return [column for column, slot in slots.items() if isinstance(slot, dict)]


def _unknown(text: Text, slot: Slot) -> str:
    """What a model does not know of a column, in words."""
    assert isinstance(slot, dict)
    unknown = np.array([*(category not in slot for category in text.categories), False])[text.codes]
    first = text.categories[text.codes[unknown.argmax()]]
    n_rows = int(unknown.sum())
    return f"values the model does not know in {n_rows} rows, first {first!r}" if n_rows else ""


def matrix(
    arrays: dict[str, np.ndarray | Text], slots: Slots, shape: tuple[int, int], budget: Budget
) -> Matrix:
    """The features, compressed where one-hot columns make them mostly zeros."""
    numeric = [array.dtype for array in arrays.values() if isinstance(array, np.ndarray)]
    dtype = np.result_type(*numeric) if numeric else np.dtype(np.float64)
    cells: Iterable = (_cells(array, slots[column]) for column, array in arrays.items())
    if len(numeric) < len(arrays):
        cells = list(cells)
        if sum(len(rows) for rows, _, _ in cells) < SPARSE_BELOW * shape[0] * shape[1]:
            rows, features, values = map(np.concatenate, zip(*cells, strict=True))
            return sp.csr_array((values.astype(dtype), (rows, features)), shape=shape)
    budget.check(shape[0] * shape[1] * dtype.itemsize, "its features take")
    dense = np.zeros(shape, dtype)
    for rows, features, values in cells:
        dense[rows, features] = values
    return dense


def _cells(array: np.ndarray | Text, slot: Slot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, features and values of what is not zero."""
    if isinstance(array, Text):
        assert isinstance(slot, dict)
        features = np.array([*(slot.get(c, -1) for c in array.categories), -1], np.int32)
        features = features[array.codes]  # of missing ones the last
        rows = np.flatnonzero(features >= 0)
        return rows, features[rows], np.ones(len(rows), np.float32)
    rows = np.flatnonzero(array)
    return rows, np.full(len(rows), slot, np.int32), array[rows]
