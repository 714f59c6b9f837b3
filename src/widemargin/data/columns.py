"""Columns of a table as numbers or categories, by a rule.

Numbers (and booleans) are numbers, text and dictionaries are categories, unless the caller says
otherwise.  Text that is not likely to be categories is refused with the ways out: nearly all of it
numbers, or nearly every row another value.  Nothing is guessed silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from widemargin.wording import words

if TYPE_CHECKING:
    import pyarrow as pa

_NEARLY_NUMBERS = 0.9  # share of a text column's values
_MANY_CATEGORIES = 50  # that any column may have; more than these, up to half as many as rows
_MOST_NAMED = 20  # columns in a message
_SHOWN = 60  # characters of a value in a message
_NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")


class RuleOptions(TypedDict, total=False):
    """What the caller of `read` may say of the columns of a table."""

    numeric: Sequence[str]
    categorical: Sequence[str]
    drop: Sequence[str]
    na: Sequence[str]


@dataclass(frozen=True)
class Rule:
    """Columns whose kind the caller has settled, and texts that stand for a missing value."""

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
                    raise ValueError(f"{said}: no such column; there are {listed(names)}")
                if column == label:
                    raise ValueError(f"{said}: that is the label's column")
                other = kind_of.setdefault(column, kind)
                if other != kind:
                    raise ValueError(f"{said} contradicts {words().option(other, [column])}")


class Text(NamedTuple):
    """A column of categories: that of every row, -1 where it is missing."""

    codes: np.ndarray
    categories: list[str]


def listed(names: Sequence[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


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


def own_array(
    name: str, column: pa.ChunkedArray, rule: Rule, *, declared: bool
) -> np.ndarray | Text:
    """A column as the rule has it; ``declared`` where the file itself calls it categorical."""
    if name in rule.categorical:
        return model_array(name, column, as_text=True, na=rule.na)
    if not is_text(column.type):
        return model_array(name, column, as_text=False, na=rule.na)
    text = _text(column, rule.na)
    if name in rule.numeric:
        return _parsed(name, text, "Say {} if it stands for a missing value, or correct it")
    if not declared:
        _check_likely(name, text)
    return text


def model_array(
    name: str, column: pa.ChunkedArray, *, as_text: bool, na: Sequence[str]
) -> np.ndarray | Text:
    """A column as a model has it: text, or numbers with NaN where they are missing."""
    if is_text(column.type):
        text = _text(column, na)
        return text if as_text else _parsed(name, text, "The model needs one: correct it")
    if not is_numeric(column.type):
        raise ValueError(
            f"column {name!r} is of type {column.type}, which cannot be a feature; turn it into "
            f"numbers or text (in UTF-8), or drop it ({words().option('drop', [name])})"
        )
    if as_text:
        return _text(column, na)
    kind = "float32" if column.type == "float32" else "float64"
    numbers = column.cast(kind, safe=False).to_numpy()
    absent = [float(word) for word in na if _NUMBER.fullmatch(word)]
    if absent and np.isin(numbers, absent).any():
        numbers = np.where(np.isin(numbers, absent), np.nan, numbers)
    return numbers


def _text(column: pa.ChunkedArray, na: Sequence[str]) -> Text:
    from pyarrow import types

    if not types.is_dictionary(column.type):
        encoded = column.cast("large_string").dictionary_encode().combine_chunks()
        values, codes = encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy()
        if not set(na).intersection(values):
            return Text(codes, values)
    else:
        # Not spelled out: a long text may stand for many rows.
        parts = column.unify_dictionaries().chunks
        values = parts[0].dictionary.cast("large_string").to_pylist()
        codes = np.concatenate(
            [part.indices.cast("int64").fill_null(-1).to_numpy() for part in parts]
        )
    # A file may hold values that no row has, and the same value twice.
    used, place = np.zeros(len(values) + 1, bool), np.full(len(values) + 1, -1)
    used[codes] = True
    number: dict[str, int] = {}
    for k in np.flatnonzero(used[:-1]).tolist():
        if values[k] is not None and values[k] not in na:
            place[k] = number.setdefault(values[k], len(number))
    return Text(place[codes], list(number))


def _numbers_among(categories: Iterable[str]) -> np.ndarray:
    return np.array([bool(_NUMBER.fullmatch(value)) for value in categories], dtype=bool)


def _parsed(name: str, text: Text, way_out: str) -> np.ndarray:
    """The numbers that texts stand for."""
    is_number = _numbers_among(text.categories)
    if not is_number.all():
        row, value = _first(text, ~is_number)
        way_out = way_out.format(words().option("na", [value]))
        raise ValueError(f"row {row}, column {name!r}: {value!r} is not a number. {way_out}")
    numbers = np.array([*map(float, text.categories), np.nan])  # missing ones have the code -1
    return numbers[text.codes]


def _first(text: Text, which: np.ndarray) -> tuple[int, str]:
    """Row (from 1) and value of the first of some categories."""
    rows = np.flatnonzero(np.append(which, False)[text.codes])
    return int(rows[0]) + 1, text.categories[text.codes[rows[0]]][:_SHOWN]


def _check_likely(name: str, text: Text) -> None:
    """Refuse text that is not likely to be categories."""
    present = text.codes[text.codes >= 0]
    is_number = _numbers_among(text.categories)
    n_numbers = int(is_number[present].sum()) if len(present) else 0
    categorical, drop = (words().option(way, [name]) for way in ("categorical", "drop"))
    if n_numbers and n_numbers == len(present):
        raise ValueError(
            f"column {name!r}: the file has it as text, but all of its values are numbers. Say "
            f"{words().option('numeric', [name])}, {categorical} or {drop}"
        )
    if n_numbers >= _NEARLY_NUMBERS * len(present) > 0:
        row, value = _first(text, ~is_number)
        raise ValueError(
            f"column {name!r}: {n_numbers} of its {len(present)} values are numbers, but {value!r} "
            f"in row {row} is not. Say {words().option('na', [value])} if that stands for a "
            f"missing value, {categorical} if all of them are categories, or {drop}"
        )
    n = len(text.categories)
    if n > max(_MANY_CATEGORIES, len(present) / 2):
        raise ValueError(
            f"column {name!r}: {n} different texts in {len(present)} rows, too many to be "
            f"categories. Leave it out with {drop}, or take it as it is with {categorical}"
        )


def check_complete(arrays: dict[str, np.ndarray | Text], na: Sequence[str]) -> None:
    """Every row has a value in every column."""
    n_bad, first_row = 0, {}
    for column, array in arrays.items():
        bad = array.codes < 0 if isinstance(array, Text) else ~np.isfinite(array)
        if bad.any():
            first_row[column] = int(bad.argmax())
            n_bad += int(bad.sum())
    if not n_bad:
        return
    column = min(first_row, key=lambda c: first_row[c])
    missing = f"missing (or one of {words().option('na', list(na))})" if na else "missing"
    raise ValueError(
        f"row {first_row[column] + 1}, column {column!r}: the value is {missing} or not finite, "
        f"the first of {n_bad} such values; fill them in, drop their rows, or drop their columns "
        f"with {words().option('drop', list(first_row)[:_MOST_NAMED])}"
    )
