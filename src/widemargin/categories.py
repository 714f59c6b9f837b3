"""Columns of categories: a number for every row, and what the numbers stand for.

Categories are known by their text, so that a data frame and a file mean the same: 1 and 1.0 are
"1", True is "true".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

_NEARLY_NUMBERS = 0.9  # share of a text column's values
_MANY_CATEGORIES = 50  # that any column may have; more than these, up to half as many as rows
_SHOWN = 60  # characters of a value in a message
_NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")


class Text(NamedTuple):
    """A column of categories: that of every row, -1 where it is missing."""

    codes: np.ndarray
    categories: list[str]


class WaysOut(NamedTuple):
    """What the interface in use says to do with a column, or with a value that means missing."""

    missing: Callable[[str], str]
    numeric: str
    categorical: str
    drop: str


def text_of(values: list) -> Text:
    """Categories of values of any kind; None, NaN and pandas' NA are missing.

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


def is_missing(value) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def category_name(value) -> str:
    """The text of a category.

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
    """Row (from 1) and value of the first of some categories."""
    rows = np.flatnonzero(np.append(which, False)[text.codes])
    return int(rows[0]) + 1, text.categories[text.codes[rows[0]]][:_SHOWN]


def check_likely(name: str, text: Text, ways: WaysOut) -> None:
    """Refuse text that is not likely to be categories."""
    present = text.codes[text.codes >= 0]
    are_numbers = numbers_among(text.categories)
    n_numbers = int(are_numbers[present].sum()) if len(present) else 0
    if n_numbers and n_numbers == len(present):
        raise ValueError(
            f"column {name!r}: it comes as text, but all of its values are numbers. Say "
            f"{ways.numeric}, {ways.categorical} or {ways.drop}"
        )
    if n_numbers >= _NEARLY_NUMBERS * len(present) > 0:
        row, value = first_of(text, ~are_numbers)
        raise ValueError(
            f"column {name!r}: {n_numbers} of its {len(present)} values are numbers, but {value!r} "
            f"in row {row} is not. Say {ways.missing(value)} if that stands for a missing "
            f"value, {ways.categorical} if all of them are categories, or {ways.drop}"
        )
    n = len(text.categories)
    if n > max(_MANY_CATEGORIES, len(present) / 2):
        raise ValueError(
            f"column {name!r}: {n} different texts in {len(present)} rows, too many to be "
            f"categories. Leave it out with {ways.drop}, or take it as it is with "
            f"{ways.categorical}"
        )
