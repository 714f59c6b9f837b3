"""Columns of categories: a code for every row, and the category of each code.

Categories are compared as text, so that data frames and files agree: 1 and 1.0 are
"1", True is "true".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from widemargin.errors import Message, Parameter

if TYPE_CHECKING:
    import pyarrow as pa

_NEARLY_NUMBERS = 0.9  # share of numbers in a text column
_MANY_CATEGORIES = 50  # any column may have this many; more only up to half the number of rows
_SHOWN = 60  # characters of a value in a message
_WITH_COMMA = re.compile(r"[ \t]*[+-]?[0-9]+(\.[0-9]{3})*(,[0-9]+)+(\.[0-9]*)?[ \t]*")
_NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")


class Text(NamedTuple):
    """A column of categories; the code is -1 where a value is missing."""

    codes: np.ndarray
    categories: list[str]


class WaysOut(NamedTuple):
    """Parameters that resolve a question about a column or a missing value."""

    missing: Callable[[str], str | Parameter]
    numeric: str | Parameter
    categorical: str | Parameter
    drop: str | Parameter


def text_of(values: list) -> Text:
    """Encode values of any type; None, NaN and pandas' NA are missing.

    Examples
    --------
    >>> text_of(["b", None, "a", "b"])
    Text(codes=array([ 0, -1,  1,  0]), categories=['b', 'a'])
    """
    known: dict[str, int] = {}
    number = {}
    for value in dict.fromkeys(values):
        missing = is_missing(value)
        number[value] = -1 if missing else known.setdefault(category_name(value), len(known))
    codes = np.fromiter((number[value] for value in values), np.int64, len(values))
    return Text(codes, list(known))


def text_of_arrow(column: pa.ChunkedArray, na: Sequence[str] = ()) -> Text:
    """Encode an Arrow column; values in ``na`` are missing too.

    Examples
    --------
    >>> import pyarrow as pa
    >>> text_of_arrow(pa.chunked_array([["b", None], ["a", "b"]]))
    Text(codes=array([ 0, -1,  1,  0], dtype=int32), categories=['b', 'a'])
    """
    from pyarrow import types

    if not types.is_dictionary(column.type):
        encoded = column.cast("large_string").dictionary_encode().combine_chunks()
        values, codes = encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy()
        if not set(na).intersection(values):
            return Text(codes, values)
    else:
        # Stays dictionary-encoded, because many rows may share a long text.
        parts = column.unify_dictionaries().chunks
        values = parts[0].dictionary.cast("large_string").to_pylist()
        codes = np.concatenate(
            [part.indices.cast("int64").fill_null(-1).to_numpy() for part in parts]
        )
    # A file may have unused values and duplicates: order by the first row.
    first, code = np.full(len(values) + 1, len(codes)), np.full(len(values) + 1, -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    used = np.flatnonzero(first[:-1] < len(codes))
    number: dict[str, int] = {}
    for k in used[np.argsort(first[used])].tolist():
        if values[k] is not None and values[k] not in na:
            code[k] = number.setdefault(values[k], len(number))
    return Text(code[codes], list(number))


def is_missing(value) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def category_name(value) -> str:
    """Return the text of a category.

    >>> category_name(1.0), category_name(True), category_name("smith")
    ('1', 'true', 'smith')
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text))


def numbers_among(categories: Iterable[str]) -> np.ndarray:
    return np.array([is_number(value) for value in categories], dtype=bool)


def first_of(text: Text, which: np.ndarray) -> tuple[int, str]:
    """Return row (from 1) and value of the first of some categories."""
    rows = np.flatnonzero(np.append(which, False)[text.codes])
    return int(rows[0]) + 1, text.categories[text.codes[rows[0]]][:_SHOWN]


def parsed(name: str, text: Text, way_out: str = "Correct it") -> np.ndarray:
    """Parse a column of texts as numbers; NaN where they are missing."""
    are_numbers = numbers_among(text.categories)
    if not are_numbers.all():
        row, value = first_of(text, ~are_numbers)
        fields = {"row": row, "name": name, "value": value, "na": Parameter("na", [value])}
        template = "row {row}, column {name!r}: {value!r} is not a number. " + way_out
        raise ValueError(Message(template, fields))
    numbers = np.array([*map(float, text.categories), np.nan])  # code -1 is missing
    return numbers[text.codes]


class Tally(NamedTuple):
    """Number of rows of each category, and its first row (from 1)."""

    rows: dict[str, int]
    first: dict[str, int]

    def add(self, other: Tally) -> None:
        """Add the counts of later rows."""
        for category, n in other.rows.items():
            self.rows[category] = self.rows.get(category, 0) + n
            self.first.setdefault(category, other.first[category])


def tally(text: Text, begin: int = 0) -> Tally:
    """Count the categories of a column whose first row is ``begin``.

    >>> tally(text_of(["b", None, "a", "b"])).rows
    {'b': 2, 'a': 1}
    """
    present = np.flatnonzero(text.codes >= 0)
    codes, first, n = np.unique(text.codes[present], return_index=True, return_counts=True)
    names = [text.categories[code] for code in codes]
    rows = begin + present[first] + 1
    return Tally(
        dict(zip(names, n.tolist(), strict=True)), dict(zip(names, rows.tolist(), strict=True))
    )


def check_likely(name: str, text: Text, ways: WaysOut) -> None:
    """Refuse text that does not look like categories."""
    check_likely_tally(name, tally(text), ways)


def check_likely_tally(name: str, counts: Tally, ways: WaysOut) -> None:
    """Refuse a counted column that does not look like categories."""
    n_present = sum(counts.rows.values())
    others = [value for value in counts.rows if not is_number(value)]
    n_numbers = n_present - sum(counts.rows[value] for value in others)
    if n_numbers and not others:
        template = (
            "column {name!r}: its type is text, but all of its values are numbers. Use {numeric}, "
            "{categorical} or {drop}"
        )
        raise ValueError(Message(template, ways._asdict(), name=name))
    with_comma = [value for value in others if _WITH_COMMA.fullmatch(value)]
    n_meant = n_numbers + sum(counts.rows[value] for value in with_comma)
    if with_comma and n_meant >= _NEARLY_NUMBERS * n_present:
        value = min(with_comma, key=lambda other: counts.first[other])
        row, value = counts.first[value], value[:_SHOWN]
        template = (
            "column {name!r}: {value!r} in row {row} is a number with a comma. Write decimals with "
            "a point and thousands with nothing between them; or use {categorical} if these are "
            "categories, or {drop}"
        )
        raise ValueError(Message(template, ways._asdict(), name=name, value=value, row=row))
    if n_numbers >= _NEARLY_NUMBERS * n_present > 0:
        value = min(others, key=lambda other: counts.first[other])
        row, value = counts.first[value], value[:_SHOWN]
        template = (
            "column {name!r}: {numbers} of its {n} values are numbers, but {value!r} in row {row} "
            "is not. Use {missing} if that stands for a missing value, {categorical} if all of "
            "them are categories, or {drop}"
        )
        fields = {**ways._asdict(), "missing": ways.missing(value), "value": value, "row": row}
        raise ValueError(Message(template, fields, name=name, numbers=n_numbers, n=n_present))
    n = len(counts.rows)
    if n > max(_MANY_CATEGORIES, n_present / 2):
        template = (
            "column {name!r}: {n} different texts in {rows} rows, too many to be categories. Leave "
            "it out with {drop}, or keep it with {categorical}"
        )
        raise ValueError(Message(template, ways._asdict(), name=name, n=n, rows=n_present))
