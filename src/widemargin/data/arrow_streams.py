"""Rows that another program hands over as Arrow's batches, which are there once.

Whatever has Arrow's stream interface: a reader or a table of pyarrow, a frame of polars, a query of
DuckDB.  Categories are those of each batch: a `BlockStore` numbers them as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from widemargin.budget import Budget
from widemargin.data.columns import Rule
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.table_files import in_pieces
from widemargin.data.tables import dataset_of
from widemargin.wording import words


def is_arrow_stream(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__")


def stream_batches(
    source: Any, label: Any, like: Layout | None, rule: Rule, n_bytes: int, budget: Budget
) -> Iterator[Dataset]:
    """Rows of all batches in order; of a model's columns, where there is one."""
    import pyarrow as pa

    layout = Layout() if like is None else like
    layout = replace(layout, na=rule.na or layout.na)
    if layout.n_features is None and not rule.one_hot:
        layout = replace(layout, categorical=())
    for loaded in in_pieces(pa.RecordBatchReader.from_stream(source), n_bytes, budget):
        chunk = dataset_of(loaded, label, layout, rule, budget)
        _refuse_categories(chunk, rule)
        yield chunk


def _refuse_categories(chunk: Dataset, rule: Rule) -> None:
    """As features of their own they would have to be known before the first row."""
    if rule.one_hot and chunk.columns is not None and chunk.columns.categorical:
        column = next(iter(chunk.columns.categorical))
        raise ValueError(
            f"column {column!r} has categories, of which batches that are read once do not tell "
            f"beforehand. Keep it as it is with {words().option('one_hot', False)}, or leave it "
            f"out with {words().option('drop', [column])}."
        )
