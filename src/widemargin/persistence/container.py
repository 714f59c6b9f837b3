"""One safetensors file: arrays, and a JSON header in its metadata; checked before it is used.

Nothing in such a file is ever executed, and no array is larger than the file that holds it.
"""

from __future__ import annotations

import json
import os
import reprlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from widemargin.budget import Budget
from widemargin.files import replacing

KEY = "widemargin"
FORMAT = 1
_AT_LEAST = 1 << 30  # bytes that any model may take, and how many times its file
_TIMES_FILE = 64
_PER_CHARACTER = 24  # bytes that JSON takes once it is read, at most: a list without items
_LONGEST_HEADER = 48_000_000  # characters: safetensors takes 100 MB, and quotes are escaped


def write_container(
    path, header: dict, arrays: dict[str, np.ndarray], check: Callable[[Fields, Arrays], object]
) -> None:
    """Write header and arrays; ``path`` is replaced whole or left as it was.

    What cannot be read is not written: ``check`` is how it would be.
    """
    text = json.dumps({"format": FORMAT, **header}, allow_nan=False)
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    anything = Budget(sys.maxsize, repr(str(path)))  # it is in memory already
    try:
        check(
            Fields(_strict_json(text, path), str(path)), Arrays({**contiguous}, str(path), anything)
        )
    except ValueError as error:
        raise ValueError(f"The model is not saved, since it would not load: {error}") from None
    with replacing(path) as temporary:
        try:
            save_file(contiguous, temporary, metadata={KEY: text})
        except SafetensorError as error:
            raise OSError(f"{str(path)!r} could not be written: {error}") from None


def read_fields(path, max_bytes: int | None = None) -> Fields:
    """The header alone; the arrays are not looked at."""
    with _open_model(path) as file, model_budget(path, max_bytes) as budget:
        return Fields(_header(file, path, budget), str(path))


def read_container(path, max_bytes: int | None = None) -> tuple[Fields, Arrays]:
    with _open_model(path) as file, model_budget(path, max_bytes) as budget:
        header = _header(file, path, budget)
        budget.hold(os.stat(path).st_size, "its arrays take")
        try:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, TypeError, ValueError, AttributeError, KeyError) as error:
            raise ValueError(
                f"{str(path)!r} holds an array that cannot be read ({error})."
            ) from None
    return Fields(header, str(path)), Arrays(arrays, str(path), budget)


def model_budget(path, max_bytes: int | None) -> Budget:
    """By default no more than a model of this size has use for, whatever the memory."""
    at_most = max(_AT_LEAST, _TIMES_FILE * os.stat(path).st_size)
    return Budget(max_bytes, repr(str(path)), at_most)


def _open_model(path):
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder, not a model.")
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is a pipe or a device, not a model.")
    try:
        return safe_open(path, framework="np")
    except SafetensorError as error:
        raise ValueError(
            f"{str(path)!r} is not a widemargin model, or is damaged ({str(error)[:200]})."
        ) from None


def _header(file, path, budget: Budget) -> dict:
    text = (file.metadata() or {}).get(KEY)
    if text is None:
        raise ValueError(f"{str(path)!r} is a safetensors file, but not a widemargin model.")
    budget.check(_PER_CHARACTER * len(text), "its header takes")
    header = _strict_json(text, path)
    found = header.get("format")
    if type(found) is not int or found != FORMAT:
        raise ValueError(
            f"{str(path)!r} is a model of format {_shown(found)}; this version of widemargin reads "
            f"format {FORMAT}. Load it with the version that wrote it."
        )
    return header


def _strict_json(text: str, path) -> dict:
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"{str(path)!r}: a header of {len(text)} characters is too long.")

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    try:
        header = json.loads(text, parse_constant=refuse, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r}: its header is not valid JSON ({error}).") from None
    if not isinstance(header, dict):
        raise ValueError(f"{str(path)!r}: its header is not a JSON object.")
    return header


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


class Fields:
    """A JSON object whose values are checked as they are taken."""

    def __init__(self, content: Any, path: str, where: str = "header"):
        if not isinstance(content, dict):
            raise ValueError(f"{path!r}: {where} must be an object, not {_shown(content)}.")
        self.content, self.path, self.where = content, path, where

    def fault(self, name: str, what: str) -> ValueError:
        value = _shown(self.content.get(name))
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

    def inner(self, name: str) -> Fields:
        return Fields(self.content.get(name), self.path, f"{self.where}.{name}")

    def inners(self, name: str) -> list[Fields]:
        return [
            Fields(item, self.path, f"{self.where}.{name}[{k}]")
            for k, item in enumerate(self.items(name))
        ]


class Arrays:
    """Named arrays whose type, shape and values are checked as they are taken.

    ``budget`` is for what a model takes beside them once it predicts: a file may promise that too.
    """

    def __init__(self, arrays: dict[str, np.ndarray], path: str, budget: Budget, prefix: str = ""):
        self._arrays, self.path, self.budget, self._prefix = arrays, path, budget, prefix

    def inner(self, prefix: str) -> Arrays:
        return Arrays(self._arrays, self.path, self.budget, self._prefix + prefix)

    def has(self, name: str) -> bool:
        return self._prefix + name in self._arrays

    def fault(self, name: str, what: str) -> ValueError:
        return ValueError(f"{self.path!r}: the array {self._prefix + name!r} {what}.")

    def take(self, name: str, dtypes, shape: tuple, *, finite: bool = True) -> np.ndarray:
        """An array of one of some dtypes; None in ``shape`` stands for any length."""
        if not self.has(name):
            raise self.fault(name, "is missing")
        array = self._arrays.pop(self._prefix + name)
        allowed = [np.dtype(d) for d in (dtypes if isinstance(dtypes, tuple) else (dtypes,))]
        if array.dtype not in allowed:
            raise self.fault(name, f"is {array.dtype}, not {' or '.join(map(str, allowed))}")
        expected = tuple("any" if n is None else n for n in shape)
        fits = len(array.shape) == len(shape) and all(
            n is None or n == m for n, m in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise self.fault(name, f"has the shape {array.shape}, not {expected}")
        if finite and array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise self.fault(name, "holds values that are not finite")
        return array

    def pointers(self, name: str, n: int, last: int) -> np.ndarray:
        """n + 1 positions from 0 to ``last`` that never descend."""
        array = self.take(name, np.int64, (n + 1,))
        if array[0] != 0 or array[-1] != last or np.any(array[1:] < array[:-1]):
            raise self.fault(name, f"must ascend from 0 to {last}")
        return array

    def indices(self, name: str, dtype, n: int | None, end: int) -> np.ndarray:
        """Whole numbers from 0 to ``end`` - 1."""
        array = self.take(name, dtype, (n,))
        if len(array) and (array.min() < 0 or array.max() >= end):
            raise self.fault(name, f"holds numbers outside 0 to {end - 1}")
        return array

    def finish(self) -> None:
        if self._arrays:
            raise ValueError(f"{self.path!r}: unexpected arrays {sorted(self._arrays)[:5]}.")


def pack_number(value: float) -> float | str:
    """JSON has no infinities and no NaN: these travel as text."""
    return float(value) if np.isfinite(value) else str(float(value))


def unpack_number(value) -> float | None:
    if value in ("nan", "inf", "-inf") and type(value) is str:
        return float(value)
    if type(value) is float or (type(value) is int and abs(value) <= 2**1000):
        return float(value)
    return None


def _shown(value) -> str:
    text = reprlib.repr(value)  # of anything, however deep or long
    return text if len(text) <= 60 else text[:60] + "..."
