"""Interpret columns of a table as numbers or categories, by a rule, as Arrow arrays.

Numbers (and booleans) are numbers, text and dictionaries are categories, unless the caller says
otherwise.  Doubtful columns are refused, with the options that resolve the question: text that is
nearly all numbers or nearly unique, dates that are not declared numeric, and columns without a
name, which may be the index of a data frame.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from widemargin.budget import Budget
from widemargin.categories import (
    Tally,
    WaysOut,
    check_likely_tally,
    is_number,
    parsed,
    tally,
    text_of_arrow,
)
from widemargin.data.dataset import Layout
from widemargin.errors import Message, Parameter, ParameterError, quoted, warn_user

if TYPE_CHECKING:
    import pyarrow as pa

_LABELS = ("label", "target", "class", "y")
_MOST_NAMED = 20  # columns in a message
_DAY = 86_400_000_000  # microseconds


class RuleOptions(TypedDict, total=False):
    """Options of `read` for the columns of a table."""

    numeric: Sequence[str]
    categorical: Sequence[str]
    drop: Sequence[str]
    na: Sequence[str]


@dataclass(frozen=True)
class Rule:
    """Columns whose kind the caller has declared, and texts that mean missing."""

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()

    @classmethod
    def of(cls, **options) -> Rule:
        given = {name: value for name, value in options.items() if value is not None}
        for name, value in given.items():
            if isinstance(value, str) or not all(isinstance(word, str) for word in value):
                raise TypeError(f"{name} must be a list of texts, got {value!r}.")
        return cls(**{name: tuple(value) for name, value in given.items()})

    def check_unused(self) -> None:
        """Refuse options that a model's columns already determine."""
        for kind in ("numeric", "categorical", "drop"):
            if getattr(self, kind):
                reason = "has no effect, because the model determines the columns"
                raise ParameterError(kind, list(getattr(self, kind)), reason)

    def check(self, names: list[str], label: str | None) -> None:
        """Check that every named column exists and has one kind."""
        kind_of: dict[str, str] = {}
        for kind in ("numeric", "categorical", "drop"):
            for column in getattr(self, kind):
                if column not in names:
                    reason = ": no such column; there are {names}"
                    raise ParameterError(kind, [column], reason, names=quoted(names))
                if column == label:
                    raise ParameterError(kind, [column], ": that is the label's column")
                other = kind_of.setdefault(column, kind)
                if other != kind:
                    fault = Parameter(other, [column])
                    raise ParameterError(kind, [column], "contradicts {other}", other=fault)
        if "" in names and "" not in (*kind_of, label):
            template = (
                "a column has no name, like the index that pandas and R write beside columns. "
                "Use {drop}, {numeric} or {categorical}"
            )
            raise ValueError(Message(template, ways_out("")._asdict()))


# ------------------------------------------------------------------ types of files


def is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_text(kind.value_type) or is_numeric(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a type is numeric or null, pyarrow's type of an empty column."""
    from pyarrow import types

    real = types.is_floating(kind) or types.is_decimal(kind)
    return types.is_integer(kind) or real or types.is_boolean(kind) or types.is_null(kind)


def is_date(kind: pa.DataType) -> bool:
    from pyarrow import types

    return types.is_date(kind) or types.is_timestamp(kind)


# ------------------------------------------------------------------ columns as they are taken


def ruled(table: pa.Table, rule: Rule, declared: Collection[str]) -> pa.Table:
    """Interpret every column by the rule; the file declares ``declared`` categorical.

    The error names all columns that are refused.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    faults: dict[str, ValueError] = {}
    for c in table.column_names:
        try:
            columns[c] = _ruled(c, table[c], rule)
        except ValueError as fault:
            faults[c] = fault
    if faults:
        texts = {
            c: tally(text_of_arrow(column)) for c, column in columns.items() if is_text(column.type)
        }
        faults |= unlikely(texts, rule, declared)
    raise_together({c: faults[c] for c in table.column_names if c in faults})
    return _table(columns)


def _ruled(name: str, column: pa.ChunkedArray, rule: Rule) -> pa.ChunkedArray:
    if name in rule.categorical or (is_text(column.type) and name not in rule.numeric):
        return categories(name, column, rule.na)
    if is_date(column.type) and name not in rule.numeric:
        template = (
            "column {name!r} holds dates. Use {numeric} to read them as days since 1970, or {drop}"
        )
        raise ValueError(Message(template, ways_out(name)._asdict(), name=name))
    way_out = "Use {na} if it stands for a missing value, or correct it"
    return numbers(name, column, rule.na, way_out)


def unlikely(
    texts: Mapping[str, Tally], rule: Rule, declared: Collection[str]
) -> dict[str, ValueError]:
    """Return errors for text columns that neither look like categories nor are declared so."""
    faults: dict[str, ValueError] = {}
    for name, counts in texts.items():
        if name not in {*declared, *rule.categorical}:
            try:
                check_likely_tally(name, counts, ways_out(name))
            except ValueError as fault:
                faults[name] = fault
    return faults


def raise_together(faults: dict[str, ValueError]) -> None:
    """Raise the first of the errors, naming the other columns."""
    if not faults:
        return
    (_, first), *others = faults.items()
    if not others:
        raise first
    also = f"{quoted([c for c, _ in others], _MOST_NAMED)} {'is' if len(others) == 1 else 'are'}"
    template = "{first}. Also, {also} refused; {drop} drops all of them"
    drop = Parameter("drop", [*faults])
    raise ValueError(Message(template, first=first, also=also, drop=drop))


def of_model(table: pa.Table, model: list[str], layout: Layout, file: str) -> pa.Table:
    """Return the columns of a model, in its order; ``file`` names the table in a warning."""
    names = table.column_names
    absent = [c for c in model if c not in names]
    if absent:
        raise ValueError(
            f"the model's columns {quoted(absent)} are missing; the file has {quoted(names)}"
        )
    used = {*model, *layout.drop, layout.label}
    if unused := [c for c in names if c not in used]:
        warn_user(f"{file}: the model does not use the columns {quoted(unused, most=5)}")
    texts = {model[j] for j in layout.categorical}
    columns = {}
    for c in model:
        if c in texts:
            columns[c] = categories(c, table[c], layout.na)
        else:
            columns[c] = numbers(c, table[c], layout.na, "The model needs one: correct it")
    return _table(columns)


def _table(columns: dict[str, pa.ChunkedArray]) -> pa.Table:
    import pyarrow as pa

    return pa.table(columns)


def matrix(table: pa.Table) -> np.ndarray:
    """Stack columns of numbers as one array."""
    return np.column_stack([column.to_numpy() for column in table.columns])


def numbers(name: str, column: pa.ChunkedArray, na: Sequence[str], way_out: str):
    """Convert a column to floating point, NaN if missing; dates are days."""
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if is_text(kind):
        return pa.chunked_array([parsed(name, text_of_arrow(column, na), way_out)])
    if is_date(kind):
        micros = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        column = compute.divide(micros.cast("int64").cast("float64"), float(_DAY))
    elif not is_numeric(kind):
        template = (
            "column {name!r} is of type {kind}, which cannot be a feature; turn it into numbers or "
            "text (in UTF-8), or drop it ({drop})"
        )
        fields = {"name": name, "kind": kind, "drop": Parameter("drop", [name])}
        raise ValueError(Message(template, fields))
    column = column.cast("float32" if kind == "float32" else "float64", safe=False)
    missing = float("nan")
    if absent := [float(word) for word in na if is_number(word)]:
        among = compute.is_in(column, pa.array(absent, column.type))
        column = compute.if_else(among, missing, column).cast(column.type)
    return column.fill_null(missing)


def categories(name: str, column: pa.ChunkedArray, na: Sequence[str]) -> pa.ChunkedArray:
    """Convert a column to a dictionary of texts, null if missing."""
    import pyarrow as pa
    from pyarrow import compute, types

    if not any(kind(column.type) for kind in (is_text, is_numeric, is_date)):
        numbers(name, column, na, "")  # raises
    if not types.is_dictionary(column.type):
        column = column.cast("large_string").dictionary_encode()
    chunks = []
    for chunk in column.chunks:
        # Stays dictionary-encoded, because many rows may share a long text.
        texts, index = chunk.dictionary.cast("large_string"), chunk.indices.cast("int32")
        absent = compute.is_in(texts, pa.array([*na, None], "large_string"))
        if absent.true_count:
            gap = pa.scalar(None, index.type)
            index = compute.if_else(absent.take(index).fill_null(True), gap, index)
        chunks.append(pa.DictionaryArray.from_arrays(index, texts))
    return pa.chunked_array(chunks, pa.dictionary(pa.int32(), pa.large_string()))


def ways_out(name: str) -> WaysOut:
    ways = (Parameter(way, [name]) for way in ("numeric", "categorical", "drop"))
    return WaysOut(lambda value: Parameter("na", [value]), *ways)


# ------------------------------------------------------------------ labels


def label_column(label, names: list[str], layout: Layout) -> str | None:
    """Return the name of the label's column, None without labels."""
    if label is False:
        return None
    model = layout.columns
    features = model if isinstance(model, list) else []
    if label is None and layout.label in names:
        return layout.label
    if label is None:
        candidates = [c for c in names if c.lower() in _LABELS and c not in features]
        problem = f"{len(candidates) or 'none'} of the columns are named label, target, class or y"
    else:
        candidates = [label] if label in names else _at_position(label, names)
        problem = f"there is no column {label!r}"
    if len(candidates) == 1:
        return candidates[0]
    if isinstance(model, list) and not candidates:
        return None
    template = (
        "{problem}; name one with {label}, by name or position, or use {none} if there are no "
        "labels. The columns are {names}"
    )
    fields = {"label": Parameter("label"), "none": Parameter("label", False)}
    raise ValueError(Message(template, fields, problem=problem, names=quoted(names)))


def _at_position(position, names: list[str]) -> list[str]:
    """Return the name at a position, which may be text, if it exists."""
    try:
        return [names[int(position)]]
    except (ValueError, IndexError):
        return []


def labels(name: str, column: pa.ChunkedArray, budget: Budget) -> np.ndarray:
    from pyarrow import types

    # NumPy stores every text with the longest one's length.
    budget.check((8 + 4 * _longest(column)) * len(column), "its labels take")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (is_text(column.type) or is_numeric(column.type)):
        raise ValueError(f"column {name!r}: labels are numbers or text, not {column.type}")
    missing = column.is_null(nan_is_null=True).to_numpy()
    if missing.any():
        template = (
            "row {row}, column {name!r}: the label is missing, the first of {n}; drop these rows, "
            "or read no labels with {none}"
        )
        fields = {"row": missing.argmax() + 1, "n": missing.sum()}
        raise ValueError(Message(template, fields, name=name, none=Parameter("label", False)))
    if is_text(column.type):
        return column.to_numpy().astype(str)
    if types.is_boolean(column.type):
        return column.to_numpy()
    return column.cast("int64" if types.is_integer(column.type) else "float64").to_numpy()


def _longest(column: pa.ChunkedArray) -> int:
    """Return the bytes of the longest text in a column, 0 if empty."""
    from pyarrow import compute, types

    parts = column.chunks
    if types.is_dictionary(column.type):
        parts = [part.dictionary for part in parts]
    if not parts or not is_text(parts[0].type):
        return 0
    lengths = [compute.max(compute.binary_length(part.cast("large_string"))) for part in parts]
    return max(length.as_py() or 0 for length in lengths)
