"""Columns of a table as they are, for machines that take categories and missing values.

Numbers are float columns in which NaN is missing, categories are dictionaries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from widemargin.data.columns import (
    Rule,
    Text,
    check_columns,
    columns_taken,
    model_array,
    own_arrays,
)
from widemargin.data.dataset import Columns, Layout

if TYPE_CHECKING:
    import pyarrow as pa


def own_columns(table: pa.Table, rule: Rule, declared: Collection[str]) -> tuple[pa.Table, Columns]:
    """Columns as the rule has them, and how each was taken."""
    arrays = own_arrays(table, rule, declared)
    return table_of(arrays), columns_taken(arrays, rule)


def model_columns(table: pa.Table, model: list[str], layout: Layout, file: str) -> pa.Table:
    """Columns as a model has them; ``file`` is what a warning calls it."""
    assert layout.categorical is not None
    texts, names = {model[j] for j in layout.categorical}, table.column_names
    check_columns(names, model, [c for c in model if c not in names], layout, file)
    return table_of({c: model_array(c, table[c], as_text=c in texts, na=layout.na) for c in model})


def table_of(arrays: dict[str, np.ndarray | Text]) -> pa.Table:
    import pyarrow as pa

    return pa.table({c: _dictionary(a) if isinstance(a, Text) else a for c, a in arrays.items()})


def _dictionary(text: Text) -> pa.DictionaryArray:
    import pyarrow as pa

    codes = pa.array(text.codes.astype(np.int32), mask=text.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(text.categories, pa.large_string()))
