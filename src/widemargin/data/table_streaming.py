"""Tables larger than memory, in two passes: what every column holds, then rows as features.

The features are those that `read_table` has of the whole: categories are known, and in order,
before the first row is handed on.  Columns that stay as they are have the types of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from widemargin.budget import Budget, TooLargeError
from widemargin.categories import Tally, Text, check_likely_tally, tally
from widemargin.data.columns import (
    Gaps,
    Rule,
    gaps,
    is_missing,
    is_text,
    own_array,
    refuse_gaps,
    ways_out,
)
from widemargin.data.dataset import Columns, Dataset, Layout
from widemargin.data.features import SPARSE_BELOW, Slots, matrix, named_slots
from widemargin.data.table_files import LoadedTable
from widemargin.data.table_pieces import Pieces
from widemargin.data.tables import check_table, dataset_of, label_column, labels
from widemargin.data.whole_columns import table_of
from widemargin.wording import words

if TYPE_CHECKING:
    import pyarrow as pa

_CATEGORY = 200  # bytes that a category takes, beside its text


@dataclass
class _Column:
    """What a column of the whole file holds, as far as it was seen."""

    types: set[pa.DataType] = field(default_factory=set)
    found: Tally | None = None  # of a column of categories
    n_stored: int = 0  # values other than 0
    gaps: Gaps | None = None
    n_missing: int = 0

    def add(self, array: np.ndarray | Text, begin: int) -> None:
        if isinstance(array, Text):
            self.found = self.found or Tally({}, {})
            self.found.add(tally(array, begin))
            self.n_stored += int(np.count_nonzero(array.codes >= 0))
        else:
            self.n_stored += int(np.count_nonzero(array))
        self.n_missing += int(is_missing(array).sum())
        if new := gaps(array):
            old = self.gaps or Gaps(0, begin + new.first)
            self.gaps = Gaps(old.n + new.n, old.first)

    @property
    def n_bytes(self) -> int:
        """Memory that its categories take."""
        return 0 if self.found is None else sum(_CATEGORY + len(text) for text in self.found.rows)


@dataclass
class _Survey:
    """The first pass."""

    label: Any
    rule: Rule
    budget: Budget
    columns: dict[str, _Column] = field(default_factory=dict)
    target: str | None = None
    declared: set[str] = field(default_factory=set)
    n_rows: int = 0

    def add(self, loaded: LoadedTable) -> None:
        table = loaded.table
        if not self.n_rows:
            check_table(table)
            self.target = label_column(self.label, table.column_names, Layout())
            self.rule.check(table.column_names, self.target)
            self.declared = set(loaded.categorical)
            self.columns = {name: _Column() for name in table.column_names}
        for name, column in self.columns.items():
            column.types.add(table.schema.field(name).type)
            if name in self.inputs:
                column.add(own_array(name, table[name], self.rule, declared=True), self.n_rows)
        self.n_rows += table.num_rows
        self.budget.check(sum(c.n_bytes for c in self.columns.values()), "its categories take")

    @property
    def inputs(self) -> list[str]:
        """Columns that are features."""
        return [c for c in self.columns if c != self.target and c not in self.rule.drop]

    @property
    def types(self) -> dict[str, pa.DataType]:
        """One type for every column, as if it had been read as a whole."""
        return {name: _common(name, column.types) for name, column in self.columns.items()}

    @property
    def mixed(self) -> bool:
        """Whether pieces took a column for different things."""
        return any(len(column.types) > 1 for column in self.columns.values())

    def taken(self) -> Columns:
        """How each column is taken, or why it is not."""
        if not self.n_rows:
            raise ValueError("the table has no rows")
        if not self.inputs:
            raise ValueError("the table has no feature columns")
        own = {name: self.columns[name] for name in self.inputs}
        for name, column in own.items():
            if column.found and name not in {*self.declared, *self.rule.categorical}:
                check_likely_tally(name, column.found, ways_out(name))
        if self.rule.one_hot:
            refuse_gaps(
                {name: c.gaps for name, c in own.items() if c.gaps}, self.rule.na, words().learning
            )
        return Columns(
            [name for name, c in own.items() if c.found is None],
            {name: len(c.found.rows) for name, c in own.items() if c.found is not None},
            list(self.rule.drop),
            {name: c.n_missing for name, c in own.items() if c.n_missing},
        )

    def rows(self) -> _Features | _WholeColumns:
        """What the second pass makes of the columns."""
        taken = self.taken()
        if not self.rule.one_hot:
            return _WholeColumns(self, taken)
        own = {name: self.columns[name] for name in self.inputs}
        kinds = {name: None if c.found is None else c.found.rows for name, c in own.items()}
        slots, names = named_slots(kinds, self.budget)
        n_stored = sum(column.n_stored for column in own.values())
        sparse = bool(taken.categorical) and n_stored < SPARSE_BELOW * self.n_rows * len(names)
        return _Features(self, taken, slots, names, sparse)

    def arrays(self, table: pa.Table) -> dict[str, np.ndarray | Text]:
        """The columns of some rows that are features."""
        return {c: own_array(c, table[c], self.rule, declared=True) for c in self.inputs}

    def dataset(self, X: Any, table: pa.Table, names: Sequence[str], taken: Columns) -> Dataset:
        """Features of some rows, and the labels beside them."""
        target = self.target
        y = None if target is None else labels(target, table[target], self.budget)
        features = np.array(names, dtype=object)
        return Dataset(X, y, features, label_name=target, columns=taken, na=self.rule.na)


def _common(name: str, types: set[pa.DataType]) -> pa.DataType:
    """The type that pyarrow finds for a column whose parts are of these types."""
    import pyarrow as pa
    from pyarrow.types import is_boolean, is_floating, is_integer, is_null

    some = [kind for kind in types if not is_null(kind)]
    if len(some) <= 1:
        return some[0] if some else pa.null()
    if all(is_integer(kind) or is_floating(kind) for kind in some):
        return pa.float64()
    if any(map(is_boolean, some)) and not any(map(is_text, some)):
        raise ValueError(
            f"column {name!r}: true and false in some rows, numbers or dates in others. Say "
            f"{words().option('categorical', [name])} or {words().option('drop', [name])}"
        )
    return pa.string()


@dataclass(frozen=True)
class _Features:
    """The second pass: a feature for every category."""

    survey: _Survey
    taken: Columns
    slots: Slots
    names: list[str]
    sparse: bool

    def dataset(self, table: pa.Table) -> Dataset:
        survey, shape = self.survey, (table.num_rows, len(self.names))
        X: Any = matrix(survey.arrays(table), self.slots, shape, survey.budget)
        if self.sparse != sp.issparse(X):  # one layout for all rows
            X = sp.csr_array(X) if self.sparse else X.toarray()
        return survey.dataset(X, table, self.names, self.taken)


@dataclass(frozen=True)
class _WholeColumns:
    """The second pass, where columns stay as they are."""

    survey: _Survey
    taken: Columns

    def dataset(self, table: pa.Table) -> Dataset:
        X = table_of(self.survey.arrays(table))
        return self.survey.dataset(X, table, X.column_names, self.taken)


def stream_table(pieces: Pieces, label: Any, rule: Rule, budget: Budget) -> Iterator[Dataset]:
    """The rows of a table, as `read_table` has them, a piece at a time."""
    survey = _surveyed(pieces, {}, _Survey(label, rule, budget))
    if survey.mixed:  # texts among numbers have to be counted as they are spelled
        survey = _surveyed(pieces, survey.types, _Survey(label, rule, budget))
    rows, begin = survey.rows(), 0
    for loaded in pieces.tables(survey.types):
        with _counted_from(begin):
            chunk = rows.dataset(loaded.table)
        begin += loaded.table.num_rows
        yield chunk


def stream_model_table(
    pieces: Pieces, label: Any, layout: Layout, rule: Rule, budget: Budget
) -> Iterator[Dataset]:
    """The rows of a table as a model has them, a piece at a time."""
    found: dict[str, set[pa.DataType]] = {}
    for loaded in pieces.tables({}):  # once more for types: a piece of CSV text may look otherwise
        for column in loaded.table.schema:
            found.setdefault(column.name, set()).add(column.type)
    types, begin = {name: _common(name, kinds) for name, kinds in found.items()}, 0
    for loaded in pieces.tables(types):
        with _counted_from(begin):
            chunk = dataset_of(loaded, label, layout, rule, budget)
        begin += loaded.table.num_rows
        yield chunk
    if not begin:
        raise ValueError("the table has no rows")


def _surveyed(pieces: Pieces, types: dict[str, pa.DataType], survey: _Survey) -> _Survey:
    tables = pieces.tables(types)
    while True:
        with _counted_from(survey.n_rows):
            loaded = next(tables, None)
            if loaded is None:
                return survey
            survey.add(loaded)


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
        raise ValueError(f"of the rows after the first {begin}: {error}") from None
