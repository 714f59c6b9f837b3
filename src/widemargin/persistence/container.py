"""Read and write a safetensors file of arrays, with a JSON header in its metadata.

Files are checked before use.  Nothing in them is executed, and no array is larger than its file.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open

from widemargin import _core
from widemargin.budget import Budget
from widemargin.digest import digest
from widemargin.fields import Fields, pack_number, shown, strict_json, unpack_number
from widemargin.files import replacing

__all__ = ["Arrays", "Fields", "pack_number", "unpack_number"]

KEY, _DIGEST = "widemargin", "digest"
FORMAT = 1
_AT_LEAST = 1 << 30  # default limit: bytes, or times the size of the file
_TIMES_FILE = 64
_TYPES = {
    "b1": "BOOL",
    **{f"{kind}{n}": f"{kind.upper()}{8 * n}" for kind in "iufc" for n in (1, 2, 4, 8)},
}
_LONGEST_HEADER = 48_000_000  # characters: safetensors takes 100 MB, and quotes are escaped


def write_container(
    path, header: dict, arrays: dict[str, np.ndarray], check: Callable[[Fields, Arrays], object]
) -> None:
    """Write header and arrays atomically.

    ``check`` loads the content first, so that no unreadable file is written.
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps({"format": FORMAT, **header}, allow_nan=False)
    anything = Budget(sys.maxsize, repr(str(path)))  # no limit: it is in memory already
    try:
        read = _strict_header(text, path, anything)
        check(Fields(read, str(path)), Arrays({**contiguous}, str(path), anything))
    except ValueError as error:
        raise ValueError(f"The model is not saved, because it would not load: {error}") from None
    with replacing(path) as file:
        write_sealed(file, text, contiguous)


def write_sealed(file: BinaryIO, text: str, arrays: dict[str, np.ndarray]) -> None:
    """Write a safetensors file of header and arrays, with a digest of both in its metadata.

    Arrays of the widest type come first, so that each begins at a multiple of its items.
    """
    head: dict[str, dict] = {"__metadata__": {KEY: text, _DIGEST: _digest(text, arrays)}}
    at = 0
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    for name in order:
        array = arrays[name]
        span = [at, at := at + array.nbytes]
        head[name] = {
            "dtype": _TYPES[array.dtype.str[1:]],
            "shape": array.shape,
            "data_offsets": span,
        }
    content = json.dumps(head, separators=(",", ":")).encode()
    content += b" " * (-len(content) % 8)
    file.write(struct.pack("<Q", len(content)) + content)
    for name in order:
        file.write(_bytes(arrays[name]).data)


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    """Return a digest of the header and all arrays, which detects damage but not intent."""
    sums = [
        (name, arrays[name].dtype.str, arrays[name].shape, _core.checksum(_bytes(arrays[name])))
        for name in sorted(arrays)
    ]
    return digest(text, *sums)


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def read_fields(path, max_bytes: int | None = None) -> Fields:
    """Read the header without the arrays."""
    with _open_model(path) as file, model_budget(path, max_bytes) as budget:
        return Fields(_header(file, path, budget), str(path))


def read_container(path, max_bytes: int | None = None) -> tuple[Fields, Arrays]:
    with _open_model(path) as file, model_budget(path, max_bytes) as budget:
        header = _header(file, path, budget)
        budget.hold(os.stat(path).st_size, "its arrays take")
        try:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, TypeError, ValueError, AttributeError, KeyError) as error:
            raise ValueError(f"{str(path)!r} has an unreadable array ({error}).") from None
        metadata = file.metadata()
    if metadata.get(_DIGEST) != _digest(metadata[KEY], arrays):
        raise ValueError(f"{str(path)!r} is damaged: its digest is not that of its content.")
    return Fields(header, str(path)), Arrays(arrays, str(path), budget)


def model_budget(path, max_bytes: int | None) -> Budget:
    """Return the limit for loading a model; the default depends on the file's size only."""
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
    return _strict_header(text, path, budget)


def _strict_header(text: str, path, budget: Budget) -> dict:
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"{str(path)!r}: a header of {len(text)} characters is too long.")
    header = strict_json(text, f"{str(path)!r}: its header", budget)
    version = header.get("format")
    if type(version) is not int or version != FORMAT:
        raise ValueError(
            f"{str(path)!r} is a model of format {shown(version)}; this version of widemargin "
            f"reads format {FORMAT}. Load it with the version that wrote it."
        )
    return header


class Arrays:
    """Named arrays; `take` checks type, shape and values.

    ``budget`` limits what the model allocates at prediction, which depends on the file too.
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
        """Return an array of one of some dtypes; None in ``shape`` means any length."""
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
        """Return n + 1 non-descending positions from 0 to ``last``."""
        array = self.take(name, np.int64, (n + 1,))
        if array[0] != 0 or array[-1] != last or np.any(array[1:] < array[:-1]):
            raise self.fault(name, f"must ascend from 0 to {last}")
        return array

    def indices(self, name: str, dtype, n: int | None, end: int) -> np.ndarray:
        """Return integers from 0 to ``end`` - 1."""
        array = self.take(name, dtype, (n,))
        if len(array) and (array.min() < 0 or array.max() >= end):
            raise self.fault(name, f"holds numbers outside 0 to {end - 1}")
        return array

    def finish(self) -> None:
        if self._arrays:
            raise ValueError(f"{self.path!r}: unexpected arrays {sorted(self._arrays)[:5]}.")
