"""Tables (CSV, TSV, Parquet, Arrow) as data: numbers as they are, text as one-hot columns.

A feature's name says where it comes from: ``age`` is the column of that name, ``job=smith`` the
value ``smith`` of the column ``job``. So the names of a trained model are enough to read other
files, with other columns and categories, as what the model knows (`read_table`, ``columns``).
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import scipy.sparse as sp

from widemargin.budget import Budget
from widemargin.data.dataset import Dataset
from widemargin.data.streams import naming_file, opened
from widemargin.data.table_files import load_table
from widemargin.validation import check_choice
from widemargin.warning import warn_user
from widemargin.wording import words

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_FORMATS = ("csv", "tsv", "parquet", "arrow")
_LABELS = ("label", "target", "class", "y")
_SPARSE_BELOW = 1 / 3

Slot = int | dict[str, int]
Slots = dict[str, Slot]
"""For each column its feature or, where it is text, the feature of each of its values."""


class _Text(NamedTuple):
    """A column of text: the category of every row, -1 where it is missing."""

    codes: np.ndarray
    categories: list[str]


def read_table(
    file: str | os.PathLike | BinaryIO,
    format: str,
    *,
    label: str | int | None = None,
    columns: Sequence[str] | np.ndarray | None = None,
    name: str | None = None,
    max_bytes: int | Budget | None = None,
) -> Dataset:
    """Read a table with one row per sample.

    Parameters
    ----------
    file : path or binary file object
        The table, not compressed as a whole.
    format : {"csv", "tsv", "parquet", "arrow"}
        Arrow means an IPC file (Feather too) or an IPC stream. A CSV file may be separated by
        semicolons, and has a header unless all of its first line is numbers; without one the
        columns are called "0", "1", ...
    label : str, int, False or None
        The label's column by name or position; negative positions count from the end. None takes
        the only column named label, target, class or y. False: there are no labels.
    columns : array of str or None
        The feature names of a model, which are then the features, in this order. A label column
        that is not in the file makes ``y`` None, and a file without a header that has one column
        for each feature is taken by position.
    name : str or None
        What messages call the file; None for its path.
    max_bytes : int or None
        The most memory that table and features may take, by default 80 % of what is free.

    Returns
    -------
    Dataset
        With `feature_names`. ``X`` is compressed where one-hot columns leave less than a third
        of it non-zero.

    Examples
    --------
    >>> import io
    >>> rows = b"age,job,label\\n31,smith,1\\n25,clerk,0\\n"
    >>> data = read_table(io.BytesIO(rows), "csv")
    >>> data.feature_names
    array(['age', 'job=clerk', 'job=smith'], dtype=object)
    >>> data.X
    array([[31.,  0.,  1.],
           [25.,  1.,  0.]])
    >>> read_table(io.BytesIO(b"job,age\\nclerk,40\\n"), "csv", columns=data.feature_names).X
    array([[40.,  1.,  0.]])
    """
    check_choice("format", format, TABLE_FORMATS)
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        raise ImportError("Reading tables needs pyarrow: pip install widemargin[tables]") from error
    name = name or (str(file) if isinstance(file, (str, os.PathLike)) else "the table")
    model = None if columns is None else [str(c) for c in columns]
    faults = (ValueError, OSError, csv.Error, ArrowException)
    budget = Budget.of(max_bytes, name)
    with opened(file) as stream, naming_file(name, faults), budget:
        table, has_header = load_table(stream, format, partial(_text_columns, model or []), budget)
        return _dataset(table, has_header, label, model, budget)


# ------------------------------------------------------------------ tables to data


def _dataset(
    table: pa.Table, has_header: bool, label, model: list[str] | None, budget: Budget
) -> Dataset:
    names = table.column_names
    repeated = [column for column, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"more than one column is named {_listed(repeated)}")
    if not table.num_rows:
        raise ValueError("the table has no rows")
    if not has_header and model and len(names) == len(model):
        label = False  # every column is needed as a feature
    target = _label_column(label, names, model)
    y = None if target is None else _labels(target, table[target], budget)
    inputs = table if target is None else table.drop_columns(target)
    if not inputs.num_columns:
        raise ValueError("the table has no feature columns")
    if not has_header and model and inputs.num_columns == len(model):
        inputs = inputs.rename_columns(model)
    # A column without values takes no memory in a file, whatever its length.
    budget.check(8 * inputs.num_rows * inputs.num_columns, "its features take")
    if model is None:
        X, features = _own_features(inputs, budget)
    else:
        X, features = _model_features(inputs, model, budget)
    return Dataset(X, y, np.array(features, dtype=object))


def _own_features(table: pa.Table, budget: Budget) -> tuple[np.ndarray | sp.csr_array, list[str]]:
    """Features as the types of the columns say."""
    arrays = {c: _array(c, table[c], _is_text(table[c].type)) for c in table.column_names}
    _check_complete(arrays)
    texts = {c: array.categories for c, array in arrays.items() if isinstance(array, _Text)}
    longest = max((len(c) + max(map(len, values)) for c, values in texts.items()), default=0)
    budget.hold(sum(map(len, texts.values())) * longest, "the names of its features take")
    slots: Slots = {}
    features: list[str] = []
    for column, array in arrays.items():
        if isinstance(array, _Text):
            values = sorted(array.categories)
            slots[column] = {value: i for i, value in enumerate(values, len(features))}
            features += [f"{column}={value}" for value in values]
        else:
            slots[column] = len(features)
            features.append(column)
    if _model_slots(features, table.column_names) != (slots, []):
        raise ValueError(
            "column names with '=' leave open which column a feature belongs to; rename them"
        )
    return _matrix(arrays, slots, (table.num_rows, len(features)), budget), features


def _model_features(
    table: pa.Table, model: list[str], budget: Budget
) -> tuple[np.ndarray | sp.csr_array, list[str]]:
    """Features as a model has them."""
    names, name = table.column_names, budget.name
    slots, missing = _model_slots(model, names)
    if missing:
        raise ValueError(
            f"the model's columns {_listed(missing)} are missing; the file has {_listed(names)}"
        )
    unused = [column for column in names if column not in slots]
    if unused:
        warn_user(f"{name}: the model does not use the columns {_listed(unused, most=5)}")
    arrays = {c: _array(c, table[c], isinstance(slot, dict)) for c, slot in slots.items()}
    _check_complete(arrays)
    for column, array in arrays.items():
        if isinstance(array, _Text) and (unknown := _unknown(array, slots[column])):
            warn_user(f"{name}: column {column!r} has {unknown}; they count as none of its values")
    return _matrix(arrays, slots, (table.num_rows, len(model)), budget), model


def _model_slots(model: Iterable[str], names: Iterable[str]) -> tuple[Slots, list[str]]:
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


def _text_columns(model: list[str], names: list[str]) -> list[str]:
    """The columns that a model has as one-hot features."""
    slots, _ = _model_slots(model, names)
    return [column for column, slot in slots.items() if isinstance(slot, dict)]


def _listed(names: list[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


# ------------------------------------------------------------------ labels


def _label_column(label, names: list[str], model: list[str] | None) -> str | None:
    """The name of the label's column, None where there are no labels."""
    if label is False:
        return None
    if label is None:
        found = [c for c in names if c.lower() in _LABELS and not _uses(model, c)]
        problem = f"{len(found) or 'none'} of the columns are named label, target, class or y"
    else:
        found = [label] if label in names else _at_position(label, names)
        problem = f"there is no column {label!r}"
    if len(found) == 1:
        return found[0]
    if model is not None and not found:
        return None
    raise ValueError(
        f"{problem}; name one with {words().option('label')}, by name or position, or say "
        f"{words().option('label', False)} where there are no labels. The columns are "
        f"{_listed(names)}"
    )


def _uses(model: list[str] | None, column: str) -> bool:
    return any(f"{feature}=".startswith(f"{column}=") for feature in model or [])


def _at_position(position, names: list[str]) -> list[str]:
    """The name at a position, which may come as text; none where there is no such position."""
    try:
        return [names[int(position)]]
    except (ValueError, IndexError):
        return []


def _labels(name: str, column: pa.ChunkedArray, budget: Budget) -> np.ndarray:
    from pyarrow import types

    # NumPy's texts are all as long as the longest.
    budget.check((8 + 4 * _longest(column)) * len(column), "its labels take")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (_is_text(column.type) or _is_numeric(column.type)):
        raise ValueError(f"column {name!r}: labels are numbers or text, not {column.type}")
    missing = column.is_null(nan_is_null=True).to_numpy()
    if missing.any():
        raise ValueError(
            f"row {missing.argmax() + 1}, column {name!r}: the label is missing, the first of "
            f"{missing.sum()}; drop these rows, or read no labels with "
            f"{words().option('label', False)}"
        )
    if _is_text(column.type):
        return column.to_numpy().astype(str)
    if types.is_boolean(column.type):
        return column.to_numpy()
    return column.cast("int64" if types.is_integer(column.type) else "float64").to_numpy()


# ------------------------------------------------------------------ columns to a matrix


def _longest(column: pa.ChunkedArray) -> int:
    """Bytes of the longest text in a column, 0 where there is none."""
    from pyarrow import compute, types

    parts = column.chunks
    if types.is_dictionary(column.type):
        parts = [part.dictionary for part in parts]
    if not parts or not _is_text(parts[0].type):
        return 0
    lengths = [compute.max(compute.binary_length(part.cast("large_string"))) for part in parts]
    return max(length.as_py() or 0 for length in lengths)


def _is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type) or _is_numeric(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_numeric(kind: pa.DataType) -> bool:
    """Numbers, and what pyarrow makes of a column where all is missing."""
    from pyarrow import types

    real = types.is_floating(kind) or types.is_decimal(kind)
    return types.is_integer(kind) or real or types.is_boolean(kind) or types.is_null(kind)


def _array(name: str, column: pa.ChunkedArray, as_text: bool) -> np.ndarray | _Text:
    """Numbers, NaN where they are missing, or text."""
    if as_text and (_is_text(column.type) or _is_numeric(column.type)):
        return _text(column)
    if _is_numeric(column.type):
        kind = "float32" if column.type == "float32" else "float64"
        return column.cast(kind, safe=False).to_numpy()
    if _is_text(column.type):
        raise ValueError(f"column {name!r} is of type {column.type}, but the model needs numbers")
    raise ValueError(
        f"column {name!r} is of type {column.type}, which cannot be a feature; "
        "turn it into numbers or text (in UTF-8), or drop it"
    )


def _text(column: pa.ChunkedArray) -> _Text:
    from pyarrow import types

    if not types.is_dictionary(column.type):
        encoded = column.cast("large_string").dictionary_encode().combine_chunks()
        return _Text(encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary.to_pylist())
    # Not spelled out: a long text may stand for many rows.
    parts = column.unify_dictionaries().chunks
    values = parts[0].dictionary.cast("large_string").to_pylist()
    codes = np.concatenate([part.indices.cast("int64").fill_null(-1).to_numpy() for part in parts])
    # A file may hold values that no row has, and the same value twice.
    used, place = np.zeros(len(values) + 1, bool), np.full(len(values) + 1, -1)
    used[codes] = True
    number: dict[str, int] = {}
    for k in np.flatnonzero(used[:-1]).tolist():
        if values[k] is not None:
            place[k] = number.setdefault(values[k], len(number))
    return _Text(place[codes], list(number))


def _check_complete(arrays: dict[str, np.ndarray | _Text]) -> None:
    """Every row has a value in every column."""
    n_bad, first_row, first_column = 0, 0, ""
    for column, array in arrays.items():
        bad = array.codes < 0 if isinstance(array, _Text) else ~np.isfinite(array)
        if bad.any():
            row = int(bad.argmax())
            if not n_bad or row < first_row:
                first_row, first_column = row, column
            n_bad += int(bad.sum())
    if n_bad:
        raise ValueError(
            f"row {first_row + 1}, column {first_column!r}: the value is missing or not finite, "
            f"the first of {n_bad} such values; fill them in, or drop their rows or columns"
        )


def _unknown(text: _Text, slot: Slot) -> str:
    """What a model does not know of a column, in words."""
    assert isinstance(slot, dict)
    unknown = np.array([category not in slot for category in text.categories])[text.codes]
    first = text.categories[text.codes[unknown.argmax()]]
    n_rows = int(unknown.sum())
    return f"values the model does not know in {n_rows} rows, first {first!r}" if n_rows else ""


def _matrix(
    arrays: dict[str, np.ndarray | _Text], slots: Slots, shape: tuple[int, int], budget: Budget
) -> np.ndarray | sp.csr_array:
    """The features, compressed where one-hot columns make them mostly zeros."""
    numeric = [array.dtype for array in arrays.values() if isinstance(array, np.ndarray)]
    dtype = np.result_type(*numeric) if numeric else np.dtype(np.float64)
    cells: Iterable = (_cells(array, slots[column]) for column, array in arrays.items())
    if len(numeric) < len(arrays):
        cells = list(cells)
        if sum(len(rows) for rows, _, _ in cells) < _SPARSE_BELOW * shape[0] * shape[1]:
            rows, features, values = map(np.concatenate, zip(*cells, strict=True))
            return sp.csr_array((values.astype(dtype), (rows, features)), shape=shape)
    budget.check(shape[0] * shape[1] * dtype.itemsize, "its features take")
    dense = np.zeros(shape, dtype)
    for rows, features, values in cells:
        dense[rows, features] = values
    return dense


def _cells(array: np.ndarray | _Text, slot: Slot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, features and values of what is not zero."""
    if isinstance(array, _Text):
        assert isinstance(slot, dict)
        features = np.array([slot.get(c, -1) for c in array.categories], np.int32)[array.codes]
        rows = np.flatnonzero(features >= 0)
        return rows, features[rows], np.ones(len(rows), np.float32)
    rows = np.flatnonzero(array)
    return rows, np.full(len(rows), slot, np.int32), array[rows]
