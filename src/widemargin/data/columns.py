"""Columns of a table as numbers or categories, by a rule.

Numbers (and booleans) are numbers, text and dictionaries are categories, unless the caller says
otherwise.  Text that is not likely to be categories is refused with the ways out: nearly all of it
numbers, or nearly every row another value.  So is a column without a name: the index of a data
frame, perhaps, which tells rows apart by their place.  Nothing is guessed silently.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from widemargin.categories import (
    Text,
    WaysOut,
    check_likely,
    first_of,
    is_number,
    numbers_among,
    text_of_arrow,
)
from widemargin.data.dataset import Columns, Layout
from widemargin.warning import warn_user
from widemargin.wording import quoted, words

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_NAMED = 20  # columns in a message


class RuleOptions(TypedDict, total=False):
    """What the caller of `read` may say of the columns of a table."""

    numeric: Sequence[str]
    categorical: Sequence[str]
    drop: Sequence[str]
    na: Sequence[str]
    one_hot: bool


@dataclass(frozen=True)
class Rule:
    """Columns whose kind the caller has settled, and texts that stand for a missing value.

    ``one_hot`` says whether categories become features, or stay columns.
    """

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    one_hot: bool = True

    @classmethod
    def of(cls, *, one_hot: bool | None = True, **options) -> Rule:
        given = {name: value for name, value in options.items() if value is not None}
        for name, value in given.items():
            if isinstance(value, str) or not all(isinstance(word, str) for word in value):
                raise TypeError(f"{name} must be a list of texts, got {value!r}.")
        return cls(
            **{name: tuple(value) for name, value in given.items()}, one_hot=one_hot is not False
        )

    def check_unused(self) -> None:
        """A model knows what its columns are."""
        for kind in ("numeric", "categorical", "drop"):
            if getattr(self, kind):
                said = words().option(kind, list(getattr(self, kind)))
                raise ValueError(f"{said} has no meaning where the columns are those of a model")

    def check(self, names: list[str], label: str | None) -> None:
        """Every column that is named is there, and has one kind."""
        kind_of: dict[str, str] = {}
        for kind in ("numeric", "categorical", "drop"):
            for column in getattr(self, kind):
                said = words().option(kind, [column])
                if column not in names:
                    raise ValueError(f"{said}: no such column; there are {quoted(names)}")
                if column == label:
                    raise ValueError(f"{said}: that is the label's column")
                other = kind_of.setdefault(column, kind)
                if other != kind:
                    raise ValueError(f"{said} contradicts {words().option(other, [column])}")
        if "" in names and "" not in (*kind_of, label):
            ways = ways_out("")
            raise ValueError(
                "a column has no name, as the index has that pandas and R write beside columns. "
                f"Say {ways.drop}, {ways.numeric} or {ways.categorical}"
            )


# ------------------------------------------------------------------ types of files


def is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_text(kind.value_type) or is_numeric(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_numeric(kind: pa.DataType) -> bool:
    """Numbers, and what pyarrow makes of a column where all is missing."""
    from pyarrow import types

    real = types.is_floating(kind) or types.is_decimal(kind)
    return types.is_integer(kind) or real or types.is_boolean(kind) or types.is_null(kind)


# ------------------------------------------------------------------ columns to arrays


def own_arrays(
    table: pa.Table, rule: Rule, declared: Collection[str]
) -> dict[str, np.ndarray | Text]:
    """Every column as the rule has it; all that cannot be are named at once."""
    arrays: dict[str, np.ndarray | Text] = {}
    faults: dict[str, ValueError] = {}
    for c in table.column_names:
        try:
            arrays[c] = own_array(c, table[c], rule, declared=c in declared)
        except ValueError as fault:
            faults[c] = fault
    if not faults:
        return arrays
    (_, first), *others = faults.items()
    if not others:
        raise first
    drop = words().option("drop", [*faults])
    also = f"{quoted([c for c, _ in others], _MOST_NAMED)} {'is' if len(others) == 1 else 'are'}"
    raise ValueError(f"{first}. Besides, {also} refused; {drop} leaves all of them out")


def own_array(
    name: str, column: pa.ChunkedArray, rule: Rule, *, declared: bool
) -> np.ndarray | Text:
    """A column as the rule has it; ``declared`` where the file itself calls it categorical."""
    if name in rule.categorical:
        return model_array(name, column, as_text=True, na=rule.na)
    if not is_text(column.type):
        return model_array(name, column, as_text=False, na=rule.na)
    text = text_of_arrow(column, rule.na)
    if name in rule.numeric:
        return _parsed(name, text, "Say {} if it stands for a missing value, or correct it")
    if not declared:
        check_likely(name, text, ways_out(name))
    return text


def model_array(
    name: str, column: pa.ChunkedArray, *, as_text: bool, na: Sequence[str]
) -> np.ndarray | Text:
    """A column as a model has it: text, or numbers with NaN where they are missing."""
    if is_text(column.type):
        text = text_of_arrow(column, na)
        return text if as_text else _parsed(name, text, "The model needs one: correct it")
    if not is_numeric(column.type):
        raise ValueError(
            f"column {name!r} is of type {column.type}, which cannot be a feature; turn it into "
            f"numbers or text (in UTF-8), or drop it ({words().option('drop', [name])})"
        )
    if as_text:
        return text_of_arrow(column, na)
    kind = "float32" if column.type == "float32" else "float64"
    numbers = column.cast(kind, safe=False).to_numpy()
    absent = [float(word) for word in na if is_number(word)]
    if absent and np.isin(numbers, absent).any():
        numbers = np.where(np.isin(numbers, absent), np.nan, numbers)
    return numbers


def _parsed(name: str, text: Text, way_out: str) -> np.ndarray:
    """The numbers that texts stand for."""
    are_numbers = numbers_among(text.categories)
    if not are_numbers.all():
        row, value = first_of(text, ~are_numbers)
        way_out = way_out.format(words().option("na", [value]))
        raise ValueError(f"row {row}, column {name!r}: {value!r} is not a number. {way_out}")
    numbers = np.array([*map(float, text.categories), np.nan])  # missing ones have the code -1
    return numbers[text.codes]


def ways_out(name: str) -> WaysOut:
    option = words().option
    ways = (option(way, [name]) for way in ("numeric", "categorical", "drop"))
    return WaysOut(lambda value: option("na", [value]), *ways)


def is_missing(array: np.ndarray | Text) -> np.ndarray:
    """Which rows of a column have no value."""
    return array.codes < 0 if isinstance(array, Text) else np.isnan(array)


def columns_taken(arrays: dict[str, np.ndarray | Text], rule: Rule) -> Columns:
    """How each column was taken."""
    missing = {column: int(is_missing(array).sum()) for column, array in arrays.items()}
    return Columns(
        [column for column, array in arrays.items() if not isinstance(array, Text)],
        {c: len(array.categories) for c, array in arrays.items() if isinstance(array, Text)},
        list(rule.drop),
        {column: n for column, n in missing.items() if n},
    )


def check_columns(
    names: Collection[str], used: Collection[str], missing: Sequence[str], layout: Layout, file: str
) -> None:
    """A model's columns are all there; those that it does not use are named."""
    if missing:
        raise ValueError(
            f"the model's columns {quoted(missing)} are missing; the file has {quoted([*names])}"
        )
    unused = [c for c in names if c not in used and c not in (*layout.drop, layout.label)]
    if unused:
        warn_user(f"{file}: the model does not use the columns {quoted(unused, most=5)}")


class Gaps(NamedTuple):
    """Rows of a column without a value: how many, and the first of them (from 0)."""

    n: int
    first: int


def gaps(array: np.ndarray | Text) -> Gaps | None:
    """Of a column with missing values or numbers that are not finite."""
    bad = array.codes < 0 if isinstance(array, Text) else ~np.isfinite(array)
    return Gaps(int(bad.sum()), int(bad.argmax())) if bad.any() else None


def check_complete(arrays: dict[str, np.ndarray | Text], na: Sequence[str]) -> None:
    """Every row has a value in every column."""
    found = {column: gap for column, a in arrays.items() if (gap := gaps(a))}
    refuse_gaps(found, na, words().learning)


def refuse_gaps(found: dict[str, Gaps], na: Sequence[str], way_out: str) -> None:
    """Name the first of them, where there are some, and the ways out."""
    if not found:
        return
    column = min(found, key=lambda c: found[c].first)
    n_bad = sum(gap.n for gap in found.values())
    missing = f"missing (or one of {words().option('na', list(na))})" if na else "missing"
    raise ValueError(
        f"row {found[column].first + 1}, column {column!r}: the value is {missing} or not finite, "
        f"the first of {n_bad} such values; fill them in, drop their rows, drop their columns with "
        f"{words().option('drop', list(found)[:_MOST_NAMED])}{way_out}"
    )
