"""Tables as data: which column is the label, and what the others are.

`read_table` and `stream_table` take rows by the same function.  A stream sees all of them once
before the first is handed on, since a piece of CSV text may look otherwise than the whole.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

import numpy as np

from widemargin.budget import Budget, TooLargeError
from widemargin.categories import Tally, tally, text_of_arrow
from widemargin.data.columns import (
    Rule,
    RuleOptions,
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
from widemargin.data.streams import naming_file, opened
from widemargin.data.table_files import TABLE_FORMATS, Asked, LoadedTable, in_pieces, table_file
from widemargin.errors import Message, Parameter, quoted
from widemargin.validation import check_choice

if TYPE_CHECKING:
    import pyarrow as pa

_CATEGORY = 200  # bytes that a category takes, beside its text


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
        The columns of a model, which are then those of ``X``, in this order. A label column
        that is not in the file makes ``y`` None, and a file without a header that has one column
        for each feature is taken by position.
    like : Layout or None
        All that a model knows of its data; ``columns`` are its columns.
    name : str or None
        What messages call the file; None for its path.
    max_bytes : int or None
        The most memory that the table may take, by default 80 % of what is free.
    numeric, categorical, drop : list of str
        Columns that are taken as numbers or as categories, whatever they look like, or left out.
        Dates that are numbers count as days since 1970.
    na : list of str
        Values that count as missing, beside empty ones, NA, null, nan and the like.

    Returns
    -------
    Dataset
        ``X`` is a pyarrow Table: numbers are floating point, NaN where they are missing, and
        categories dictionaries of texts.  It is an array for a model without names of columns.

    Examples
    --------
    >>> import io
    >>> rows = b"age,job,label\\n31,smith,1\\n25,clerk,0\\n"
    >>> data = read_table(io.BytesIO(rows), "csv")
    >>> data.feature_names
    array(['age', 'job'], dtype=object)
    >>> data.X.to_pydict()
    {'age': [31.0, 25.0], 'job': ['smith', 'clerk']}
    >>> read_table(io.BytesIO(b"job,age\\nclerk,40\\n"), "csv", like=data.layout).X.to_pydict()
    {'age': [40.0], 'job': ['clerk']}
    """
    check_choice("format", format, TABLE_FORMATS)
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        raise ImportError("Reading tables needs pyarrow: pip install widemargin[tables]") from error
    name = name or (str(file) if isinstance(file, (str, os.PathLike)) else "the table")
    if columns is not None:
        like = replace(like or Layout(), columns=[str(c) for c in columns])
    faults = (ValueError, OSError, csv.Error, ArrowException)
    with opened(file) as stream, naming_file(name, faults), Budget.of(max_bytes, name) as budget:
        rows = _Rows.of(label, like, Rule.of(**rule), budget)
        loaded = table_file(stream, format, rows.asked, budget).whole()
        survey = _Survey(rows)
        return replace(survey.add(loaded), columns=survey.columns())


def stream_table(
    file: BinaryIO,
    format: str,
    again: Callable[[], BinaryIO],
    label: Any,
    like: Layout | None,
    rule: Rule,
    n_bytes: int,
    budget: Budget,
) -> Iterator[Dataset]:
    """The rows of a table, as `read_table` has them, about ``n_bytes`` at a time.

    ``again`` opens the table's text from its start, which is done two or three times.
    """
    rows = _Rows.of(label, like, rule, budget)
    source = table_file(file, format, rows.asked, budget, again)
    survey = _surveyed(source.pieces(n_bytes, {}), _Survey(rows))
    if survey.mixed and like is None:  # texts among numbers have to be counted as they are spelled
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

    Such as a reader or a table of pyarrow, a frame of polars, or a query of DuckDB.
    """
    import pyarrow as pa

    rows = _Rows.of(label, like, rule, budget)
    for loaded in in_pieces(pa.RecordBatchReader.from_stream(source), n_bytes, budget):
        survey = _Survey(rows)
        yield replace(survey.add(loaded), columns=survey.columns())


def _surveyed(pieces: Iterator[LoadedTable], survey: _Survey) -> _Survey:
    while True:
        with _counted_from(survey.n_rows):
            loaded = next(pieces, None)
            if loaded is None:
                return survey
            (survey.see if survey.rows.of_model else survey.add)(loaded)


@contextmanager
def _counted_from(begin: int) -> Iterator[None]:
    """Rows that an error names are those of a piece."""
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
    """How to make data of rows of a table: by a rule, or in the columns of a model (``like``)."""

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
        """What the rule and the model tell about a CSV file."""
        columns, texts = self.layout.columns, [*self.rule.categorical]
        if isinstance(columns, list):
            texts += [columns[j] for j in self.layout.categorical]
        return Asked(self.layout.na, texts, self._target)

    def dataset(self, loaded: LoadedTable) -> Dataset:
        """Columns and labels of some rows."""
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
        # A column without values takes no memory in a file, whatever its length.
        self.budget.check(8 * inputs.num_rows * inputs.num_columns, "its features take")
        if self.of_model:
            X: Any = self._as_model_has(inputs, loaded)
        else:
            X = ruled(inputs, self.rule, loaded.categorical)
        names = X.column_names if hasattr(X, "column_names") else inputs.column_names
        features = np.array(names, dtype=object)
        return Dataset(X, y, features, label_name=target, na=layout.na)

    def _target(self, names: Sequence[str], has_header: bool) -> str | None:
        """The column of the labels, of columns that must have different names."""
        repeated = [column for column, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(f"more than one column is named {quoted(repeated)}; rename them")
        label = self.label
        if not self._by_name(has_header) and len(names) == self.layout.n_features:
            label = False  # every column is needed as a feature
        return label_column(label, list(names), self.layout)

    def _by_name(self, has_header: bool) -> bool:
        """Whether file and model both have names; otherwise columns are taken by position."""
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
                f"the table has {len(names)} columns beside the label: {quoted(names)}"
            )
        return matrix(of_model(inputs, names, layout, self.budget.name))


# ------------------------------------------------------------------ what the columns hold


@dataclass
class _Column:
    """What a column holds, in the rows seen so far."""

    types: set[pa.DataType] = field(default_factory=set)
    found: Tally | None = None  # of a column of categories
    n_missing: int = 0

    @property
    def n_bytes(self) -> int:
        """Memory that its categories take."""
        return 0 if self.found is None else sum(_CATEGORY + len(text) for text in self.found.rows)


@dataclass
class _Survey:
    """What the columns of a table hold, piece by piece."""

    rows: _Rows
    seen: dict[str, _Column] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    declared: frozenset[str] = frozenset()
    n_rows: int = 0

    def add(self, loaded: LoadedTable) -> Dataset:
        """Count some rows, and return them as data."""
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
        """Note the types of columns, which is all that a model does not know."""
        for column in loaded.table.schema:
            self.seen.setdefault(column.name, _Column()).types.add(column.type)
        self.n_rows += loaded.table.num_rows

    @property
    def types(self) -> dict[str, pa.DataType]:
        """One type for every column, as if it had been read as a whole."""
        return {name: _common(name, column.types) for name, column in self.seen.items()}

    @property
    def mixed(self) -> bool:
        """Whether pieces took a column for different things."""
        return any(len(column.types) > 1 for column in self.seen.values())

    def columns(self) -> Columns | None:
        """How each column is taken, or why it is not; None where a model knows."""
        if not self.inputs:
            return None
        rule, own = self.rows.rule, {name: self.seen[name] for name in self.inputs}
        texts = {name: column.found for name, column in own.items() if column.found}
        raise_together(unlikely(texts, rule, self.declared))
        return Columns(
            [name for name, c in own.items() if c.found is None],
            {name: len(c.found.rows) for name, c in own.items() if c.found is not None},
            list(rule.drop),
            {name: c.n_missing for name, c in own.items() if c.n_missing},
        )


def _count(column: _Column, values: pa.ChunkedArray, begin: int) -> None:
    """Add values of a column, the first of which is in row ``begin``."""
    from pyarrow import types

    if types.is_dictionary(values.type):
        text = text_of_arrow(values)
        column.found = column.found or Tally({}, {})
        column.found.add(tally(text, begin))
        column.n_missing += int(np.count_nonzero(text.codes < 0))
    else:
        column.n_missing += int(np.isnan(values.to_numpy()).sum())


def _common(name: str, types: set[pa.DataType]) -> pa.DataType:
    """The type that pyarrow finds for a column whose parts are of these types."""
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
