"""Tables (CSV, TSV, Parquet, Arrow) as data: which column is the label, and which are features."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

import numpy as np

from widemargin.budget import Budget
from widemargin.data.columns import Rule, RuleOptions, is_numeric, is_text
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.features import model_features, own_features, text_columns
from widemargin.data.streams import naming_file, opened
from widemargin.data.table_files import Asked, LoadedTable, load_table
from widemargin.data.whole_columns import model_columns, own_columns
from widemargin.validation import check_choice
from widemargin.wording import quoted, words

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_FORMATS = ("csv", "tsv", "parquet", "arrow")
_LABELS = ("label", "target", "class", "y")


def read_table(
    file: str | os.PathLike | BinaryIO,
    format: str,
    *,
    label: str | int | None = None,
    columns: Sequence[str] | np.ndarray | None = None,
    like: Layout | None = None,
    name: str | None = None,
    max_bytes: int | Budget | None = None,
    **rule: Unpack[RuleOptions],
) -> Dataset:
    """Read a table with one row per sample.

    Parameters
    ----------
    file : path or binary file object
        The table, not compressed as a whole.
    format : {"csv", "tsv", "parquet", "arrow"}
        Arrow means an IPC file (Feather too) or an IPC stream. A CSV file may be separated by
        semicolons, and has a header unless its first line is all numbers, or has numbers in the
        same places as the second; without one the columns are called "0", "1", ...
    label : str, int, False or None
        The label's column by name or position; negative positions count from the end. None takes
        that of ``like``, or the only column named label, target, class or y. False: there are no
        labels.
    columns : array of str or None
        The feature names of a model, which are then the features, in this order. A label column
        that is not in the file makes ``y`` None, and a file without a header that has one column
        for each feature is taken by position.
    like : Layout or None
        All that a model knows of its data; ``columns`` are its features.
    name : str or None
        What messages call the file; None for its path.
    max_bytes : int or None
        The most memory that table and features may take, by default 80 % of what is free.
    one_hot : bool, default=True
        Whether each category becomes a feature, and missing values are refused. If not, ``X`` is
        a pyarrow Table of the columns as they are, for `AdditiveSVC`; ``like`` has its own way.
    numeric, categorical, drop : list of str
        Columns that are taken as numbers or as categories, whatever they look like, or left out.
    na : list of str
        Values that count as missing, beside empty ones, NA, null, nan and the like.

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
    layout = like or Layout()
    if columns is not None:
        layout = replace(layout, columns=[str(c) for c in columns])
    own = Rule.of(**rule)
    layout = replace(layout, na=own.na or layout.na)
    if layout.n_features is None and not own.one_hot:
        layout = replace(layout, categorical=())
    asked = asked_of(own, layout)
    faults = (ValueError, OSError, csv.Error, ArrowException)
    budget = Budget.of(max_bytes, name)
    with opened(file) as stream, naming_file(name, faults), budget:
        return dataset_of(load_table(stream, format, asked, budget), label, layout, own, budget)


def asked_of(rule: Rule, layout: Layout) -> Asked:
    """What the rule and a model say of a CSV file."""
    known = layout.columns if isinstance(layout.columns, list) else []
    return Asked(
        na=layout.na,
        text_columns=lambda names: [*rule.categorical, *_texts(layout, known, names)],
    )


def dataset_of(loaded: LoadedTable, label, layout: Layout, rule: Rule, budget: Budget) -> Dataset:
    """Labels and features of a table that was read, or of some of its rows."""
    table, n_features = loaded.table, layout.n_features
    names = table.column_names
    check_table(table)
    # Without names on both sides, columns are taken by position.
    by_position = n_features is not None and not (
        loaded.has_header and isinstance(layout.columns, list)
    )
    if by_position and len(names) == n_features:
        label = False  # every column is needed as a feature
    target = label_column(label, names, layout)
    y = None if target is None else labels(target, table[target], budget)
    inputs = table if target is None else table.drop_columns(target)
    if n_features is not None:
        rule.check_unused()
    else:
        rule.check(names, target)
        inputs = inputs.drop_columns(list(rule.drop))
    if not inputs.num_columns:
        raise ValueError("the table has no feature columns")
    if by_position and inputs.num_columns == n_features and isinstance(layout.columns, list):
        inputs = inputs.rename_columns(layout.columns)
    # A column without values takes no memory in a file, whatever its length.
    budget.check(8 * inputs.num_rows * inputs.num_columns, "its features take")
    if n_features is None:
        found = _by_rule(inputs, rule, loaded.categorical, layout, budget)
    else:
        found = _like_model(inputs, n_features, layout, budget)
    return replace(found, y=y, label_name=target)


def _by_rule(
    inputs: pa.Table, rule: Rule, declared: Collection[str], layout: Layout, budget: Budget
) -> Dataset:
    """Columns of which no model knows."""
    X: Any
    if layout.categorical is None:
        X, features, taken = own_features(inputs, rule, declared, budget)
    else:
        X, taken = own_columns(inputs, rule, declared)
        features = X.column_names
    return Dataset(X, None, np.array(features, dtype=object), columns=taken, na=rule.na)


def _like_model(inputs: pa.Table, n_features: int, layout: Layout, budget: Budget) -> Dataset:
    """Columns as a model has them."""
    model = layout.columns
    if not isinstance(model, list):
        model = _all_columns(inputs.column_names, n_features)
    # A model may have learned from missing values, and still have a feature per category.
    has_whole = layout.categorical or set(model) <= set(inputs.column_names)
    X: Any
    if layout.categorical is None or not has_whole:
        X = model_features(inputs, model, layout, budget)
    else:
        X = model_columns(inputs, model, layout, budget.name)
    return Dataset(X, None, np.array(model, dtype=object), na=layout.na)


def check_table(table: pa.Table) -> None:
    """It has rows, and columns that can be told apart."""
    repeated = [column for column, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        raise ValueError(f"more than one column is named {quoted(repeated)}; rename them")
    if not table.num_rows:
        raise ValueError("the table has no rows")


def _texts(layout: Layout, known: list[str], names: list[str]) -> list[str]:
    """The columns of a file that a model has as categories."""
    if not layout.categorical:
        return text_columns(known, names)
    return [known[j] for j in layout.categorical if j < len(known) and known[j] in names]


def _all_columns(names: list[str], n_features: int) -> list[str]:
    """The columns of a file as the features of a model that has no names for them."""
    if len(names) != n_features:
        raise ValueError(
            f"the model has {n_features} features without names, which are taken by position, but "
            f"the table has {len(names)} columns beside the label: {quoted(names)}"
        )
    return names


# ------------------------------------------------------------------ labels


def label_column(label, names: list[str], layout: Layout) -> str | None:
    """The name of the label's column, None where there are no labels."""
    if label is False:
        return None
    model = layout.columns
    features = model if isinstance(model, list) else []
    if label is None and layout.label in names:
        return layout.label
    if label is None:
        found = [c for c in names if c.lower() in _LABELS and not _uses(features, c)]
        problem = f"{len(found) or 'none'} of the columns are named label, target, class or y"
    else:
        found = [label] if label in names else _at_position(label, names)
        problem = f"there is no column {label!r}"
    if len(found) == 1:
        return found[0]
    if isinstance(model, list) and not found:
        return None
    raise ValueError(
        f"{problem}; name one with {words().option('label')}, by name or position, or say "
        f"{words().option('label', False)} where there are no labels. The columns are "
        f"{quoted(names)}"
    )


def _uses(features: list[str], column: str) -> bool:
    return any(f"{feature}=".startswith(f"{column}=") for feature in features)


def _at_position(position, names: list[str]) -> list[str]:
    """The name at a position, which may come as text; none where there is no such position."""
    try:
        return [names[int(position)]]
    except (ValueError, IndexError):
        return []


def labels(name: str, column: pa.ChunkedArray, budget: Budget) -> np.ndarray:
    from pyarrow import types

    # NumPy's texts are all as long as the longest.
    budget.check((8 + 4 * _longest(column)) * len(column), "its labels take")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (is_text(column.type) or is_numeric(column.type)):
        raise ValueError(f"column {name!r}: labels are numbers or text, not {column.type}")
    missing = column.is_null(nan_is_null=True).to_numpy()
    if missing.any():
        raise ValueError(
            f"row {missing.argmax() + 1}, column {name!r}: the label is missing, the first of "
            f"{missing.sum()}; drop these rows, or read no labels with "
            f"{words().option('label', False)}"
        )
    if is_text(column.type):
        return column.to_numpy().astype(str)
    if types.is_boolean(column.type):
        return column.to_numpy()
    return column.cast("int64" if types.is_integer(column.type) else "float64").to_numpy()


def _longest(column: pa.ChunkedArray) -> int:
    """Bytes of the longest text in a column, 0 where there is none."""
    from pyarrow import compute, types

    parts = column.chunks
    if types.is_dictionary(column.type):
        parts = [part.dictionary for part in parts]
    if not parts or not is_text(parts[0].type):
        return 0
    lengths = [compute.max(compute.binary_length(part.cast("large_string"))) for part in parts]
    return max(length.as_py() or 0 for length in lengths)
