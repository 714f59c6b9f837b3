"""Parse JSON of unknown origin strictly, and check every field."""

from __future__ import annotations

import json
import reprlib
from typing import Any

import numpy as np

from widemargin.budget import Budget

_PER_CHARACTER = 24  # most bytes of parsed JSON per character: an empty list


def strict_json(text: str | bytes, name: str, budget: Budget) -> dict:
    """Parse a JSON object; ``name`` names the text in messages."""

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    budget.check(_PER_CHARACTER * len(text), "its header takes")
    try:
        content = json.loads(text, parse_constant=refuse, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not valid JSON ({error}).") from None
    if not isinstance(content, dict):
        raise ValueError(f"{name} is not a JSON object.")
    return content


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name occurs twice")
    return fields


class Fields:
    """A JSON object; methods check and return its values."""

    def __init__(self, content: Any, path: str, where: str = "header"):
        if not isinstance(content, dict):
            raise ValueError(f"{path!r}: {where} must be an object, not {shown(content)}.")
        self.content, self.path, self.where = content, path, where

    def fault(self, name: str, what: str) -> ValueError:
        value = shown(self.content.get(name))
        return ValueError(f"{self.path!r}: {self.where}.{name} must be {what}, not {value}.")

    def has(self, name: str) -> bool:
        return self.content.get(name) is not None

    def take(self, name: str, kind: type, what: str):
        value = self.content.get(name)
        if type(value) is not kind:
            raise self.fault(name, what)
        return value

    def text(self, name: str, among: tuple[str, ...] | None = None) -> str:
        value = self.take(name, str, "text")
        if among is not None and value not in among:
            raise self.fault(name, f"one of {', '.join(among)}")
        return value

    def flag(self, name: str) -> bool:
        return self.take(name, bool, "true or false")

    def integer(self, name: str, low: int = 0, high: int = 2**53) -> int:
        value = self.take(name, int, "a whole number")
        if not low <= value <= high:
            raise self.fault(name, f"from {low} to {high}")
        return value

    def number(self, name: str, *, finite: bool = True) -> float:
        value = unpack_number(self.content.get(name))
        if value is None or (finite and not np.isfinite(value)):
            raise self.fault(name, "a finite number" if finite else "a number")
        return value

    def items(self, name: str) -> list:
        return self.take(name, list, "a list")

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        texts = self.items(name)
        if not all(isinstance(text, str) for text in texts):
            raise self.fault(name, "a list of texts")
        return texts

    def inner(self, name: str) -> Fields:
        return Fields(self.content.get(name), self.path, f"{self.where}.{name}")

    def inners(self, name: str) -> list[Fields]:
        return [
            Fields(item, self.path, f"{self.where}.{name}[{k}]")
            for k, item in enumerate(self.items(name))
        ]


def pack_number(value: float) -> float | str:
    """Convert a number for JSON, with infinities and NaN as text."""
    return float(value) if np.isfinite(value) else str(float(value))


def unpack_number(value) -> float | None:
    if value in ("nan", "inf", "-inf") and type(value) is str:
        return float(value)
    if type(value) is float or (type(value) is int and abs(value) <= 2**1000):
        return float(value)
    return None


def shown(value) -> str:
    text = reprlib.repr(value)  # abbreviated, as values may be deep or long
    return text if len(text) <= 60 else text[:60] + "..."
