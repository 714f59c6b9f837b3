"""Read tables: find the label's column, and interpret the others.

Chunks are preceded by a survey of all rows, because a part of a CSV file may look different from
the whole.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from widemargin.budget import Budget
from widemargin.categories import Tally, tally, text_of_arrow
from widemargin.data.columns import (
    Rule,
    is_date,
    is_text,
    label_column,
    labels,
    matrix,
    of_model,
    raise_together,
    ruled,
    unlikely,
)
from widemargin.data.dataset import Columns, Dataset, Layout
from widemargin.data.streams import naming_file
from widemargin.data.table_files import Asked, LoadedTable, in_pieces, table_file
from widemargin.errors import Message, Parameter, TooLargeError, quoted

if TYPE_CHECKING:
    import pyarrow as pa

_CATEGORY = 200  # bytes per category, in addition to its text


def stream_table(
    file: BinaryIO,
    format: str,
    again: Callable[[], BinaryIO] | None,
    label: Any,
    like: Layout | None,
    rule: Rule,
    n_bytes: int | None,
    budget: Budget,
) -> Iterator[Dataset]:
    """Yield the rows of a table, about ``n_bytes`` at a time or (None) all at once.

    ``X`` is a pyarrow Table of floating point numbers, NaN if missing, and dictionaries of texts
    for categories; for a model without column names (``like``) it is an array.  A CSV file may be
    separated by semicolons, and has a header unless its first line is all numbers, or has numbers
    in the same columns as the second; without one the columns are named "0", "1", ...  It is
    matched with a model by position then, if it has one column for each feature.

    For chunks, ``again`` opens the text from its start; it is called two or three times.
    """
    with _naming_table(budget):
        rows = _Rows.of(label, like, rule, budget)
        source = table_file(file, format, rows.asked, budget, again)
        if n_bytes is None:
            survey = _Survey(rows)
            yield replace(survey.add(source.whole()), columns=survey.columns())
            return
        survey = _surveyed(source.pieces(n_bytes, {}), _Survey(rows))
        if survey.mixed and like is None:  # columns that mix texts and numbers are counted as text
            survey = _surveyed(source.pieces(n_bytes, survey.types), _Survey(rows))
        if not survey.n_rows:
            raise ValueError("the table has no rows")
        columns, begin = survey.columns(), 0
        for loaded in source.pieces(n_bytes, survey.types):
            with _counted_from(begin):
                chunk = rows.dataset(loaded)
            begin += loaded.table.num_rows
            yield replace(chunk, columns=columns)


def stream_batches(
    source: Any, label: Any, like: Layout | None, rule: Rule, n_bytes: int, budget: Budget
) -> Iterator[Dataset]:
    """Read the rows of an object with Arrow's stream interface, once.

    For example a pyarrow reader or table, a polars frame, or a DuckDB query.
    """
    with _naming_table(budget):
        import pyarrow as pa

        rows = _Rows.of(label, like, rule, budget)
        for loaded in in_pieces(pa.RecordBatchReader.from_stream(source), n_bytes, budget):
            survey = _Survey(rows)
            yield replace(survey.add(loaded), columns=survey.columns())


@contextmanager
def _naming_table(budget: Budget) -> Iterator[None]:
    """Name the file in errors of a table's contents."""
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        raise ImportError("Reading tables needs pyarrow: pip install widemargin[tables]") from error
    with naming_file(budget.name, (ValueError, OSError, csv.Error, ArrowException)):
        yield


def _surveyed(pieces: Iterator[LoadedTable], survey: _Survey) -> _Survey:
    while True:
        with _counted_from(survey.n_rows):
            loaded = next(pieces, None)
            if loaded is None:
                return survey
            (survey.see if survey.rows.of_model else survey.add)(loaded)


@contextmanager
def _counted_from(begin: int) -> Iterator[None]:
    """Say in errors at which row a piece begins."""
    try:
        yield
    except TooLargeError:
        raise
    except ValueError as error:
        if not begin:
            raise
        message = "of the rows after the first {begin}: {error}"
        raise ValueError(Message(message, begin=begin, error=error)) from None


# ------------------------------------------------------------------ rows


@dataclass(frozen=True)
class _Rows:
    """Interprets rows of a table by a rule, or in the columns of a model (``like``)."""

    label: Any
    layout: Layout
    rule: Rule
    budget: Budget
    of_model: bool

    @classmethod
    def of(cls, label: Any, like: Layout | None, rule: Rule, budget: Budget) -> _Rows:
        layout = like or Layout()
        layout = replace(layout, na=rule.na or layout.na)
        return cls(label, layout, rule, budget, like is not None)

    @property
    def asked(self) -> Asked:
        """Return what the rule and the model say about parsing a CSV file."""
        columns, texts = self.layout.columns, [*self.rule.categorical]
        if isinstance(columns, list):
            texts += [columns[j] for j in self.layout.categorical]
        return Asked(self.layout.na, texts, self._target)

    def dataset(self, loaded: LoadedTable) -> Dataset:
        """Return columns and labels of some rows."""
        table, layout = loaded.table, self.layout
        target = self._target(table.column_names, loaded.has_header)
        if not table.num_rows:
            raise ValueError("the table has no rows")
        y = None if target is None else labels(target, table[target], self.budget)
        inputs = table if target is None else table.drop_columns(target)
        if self.of_model:
            self.rule.check_unused()
        else:
            self.rule.check(table.column_names, target)
            inputs = inputs.drop_columns(list(self.rule.drop))
        if not inputs.num_columns:
            raise ValueError("the table has no feature columns")
        # A column without values takes no space in the file, whatever its length.
        self.budget.check(8 * inputs.num_rows * inputs.num_columns, "its features take")
        if self.of_model:
            X: Any = self._as_model_has(inputs, loaded)
        else:
            X = ruled(inputs, self.rule, loaded.categorical)
        names = X.column_names if hasattr(X, "column_names") else inputs.column_names
        features = np.array(names, dtype=object)
        return Dataset(X, y, features, label_name=target, na=layout.na)

    def _target(self, names: Sequence[str], has_header: bool) -> str | None:
        """Return the label column; raise ValueError if two columns have the same name."""
        repeated = [column for column, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(f"more than one column is named {quoted(repeated)}; rename them")
        label = self.label
        if not self._by_name(has_header) and len(names) == self.layout.n_features:
            label = False  # every column is a feature
        return label_column(label, list(names), self.layout)

    def _by_name(self, has_header: bool) -> bool:
        """Whether file and model both have names; otherwise match columns by position."""
        return has_header and isinstance(self.layout.columns, list)

    def _as_model_has(self, inputs: pa.Table, loaded: LoadedTable) -> pa.Table | np.ndarray:
        layout, names, n = self.layout, inputs.column_names, self.layout.n_features
        if isinstance(layout.columns, list):
            if not self._by_name(loaded.has_header) and len(names) == n:
                inputs = inputs.rename_columns(layout.columns)
            return of_model(inputs, layout.columns, layout, self.budget.name)
        if n is not None and len(names) != n:
            raise ValueError(
                f"the model has {n} features without names, which are taken by position, but "
                f"the table has {len(names)} columns besides the label: {quoted(names)}"
            )
        return matrix(of_model(inputs, names, layout, self.budget.name))


# ------------------------------------------------------------------ what the columns hold


@dataclass
class _Column:
    """Type and categories of a column in the rows so far."""

    types: set[pa.DataType] = field(default_factory=set)
    counts: Tally | None = None  # counts of categories
    n_missing: int = 0

    @property
    def n_bytes(self) -> int:
        """Memory for its categories."""
        return 0 if self.counts is None else sum(_CATEGORY + len(text) for text in self.counts.rows)


@dataclass
class _Survey:
    """Collects types and categories of a table's columns, piece by piece."""

    rows: _Rows
    seen: dict[str, _Column] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    declared: frozenset[str] = frozenset()
    n_rows: int = 0

    def add(self, loaded: LoadedTable) -> Dataset:
        """Count rows and return them as data."""
        data, begin = self.rows.dataset(loaded), self.n_rows
        self.see(loaded)
        if not self.rows.of_model:
            X: Any = data.X
            self.inputs, self.declared = X.column_names, frozenset(loaded.categorical)
            for name in self.inputs:
                _count(self.seen[name], X[name], begin)
            n_bytes = sum(column.n_bytes for column in self.seen.values())
            self.rows.budget.check(n_bytes, "its categories take")
        return data

    def see(self, loaded: LoadedTable) -> None:
        """Record the types of columns, the only facts that a model lacks."""
        for column in loaded.table.schema:
            self.seen.setdefault(column.name, _Column()).types.add(column.type)
        self.n_rows += loaded.table.num_rows

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Return the type of every column that reading it as a whole would give."""
        return {name: _common(name, column.types) for name, column in self.seen.items()}

    @property
    def mixed(self) -> bool:
        """Whether pieces interpret a column differently."""
        return any(len(column.types) > 1 for column in self.seen.values())

    def columns(self) -> Columns | None:
        """How to interpret each column, or an error; None for a model's columns."""
        if not self.inputs:
            return None
        rule, inputs = self.rows.rule, {name: self.seen[name] for name in self.inputs}
        texts = {name: column.counts for name, column in inputs.items() if column.counts}
        raise_together(unlikely(texts, rule, self.declared))
        return Columns(
            [name for name, c in inputs.items() if c.counts is None],
            {name: len(c.counts.rows) for name, c in inputs.items() if c.counts is not None},
            list(rule.drop),
            {name: c.n_missing for name, c in inputs.items() if c.n_missing},
        )


def _count(column: _Column, values: pa.ChunkedArray, begin: int) -> None:
    """Count values of a column, starting in row ``begin``."""
    from pyarrow import types

    if types.is_dictionary(values.type):
        text = text_of_arrow(values)
        column.counts = column.counts or Tally({}, {})
        column.counts.add(tally(text, begin))
        column.n_missing += int(np.count_nonzero(text.codes < 0))
    else:
        column.n_missing += int(np.isnan(values.to_numpy()).sum())


def _common(name: str, types: set[pa.DataType]) -> pa.DataType:
    """Return the type that pyarrow infers for a column whose parts have these types."""
    import pyarrow as pa
    from pyarrow.types import is_boolean, is_floating, is_integer, is_null

    some = [kind for kind in types if not is_null(kind)]
    if len(some) <= 1:
        return some[0] if some else pa.null()
    if all(is_integer(kind) or is_floating(kind) for kind in some):
        return pa.float64()
    if all(map(is_date, some)) and not any(getattr(kind, "tz", None) for kind in some):
        return pa.timestamp("ns")
    if any(map(is_boolean, some)) and not any(map(is_text, some)):
        template = (
            "column {name!r}: true and false in some rows, numbers or dates in others. Say "
            "{categorical} or {drop}"
        )
        fields = {way: Parameter(way, [name]) for way in ("categorical", "drop")}
        raise ValueError(Message(template, fields, name=name))
    return pa.string()
