"""Arrays in a file: written whole or not at all, read with their checksum and the next one ahead.

An `Entry` says what is in the file, so that its bytes have a meaning only once they have been held
against it: their number, their checksum, and the type and shape of every array.
"""

from __future__ import annotations

import hashlib
import math
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from widemargin.files import naming

_ALIGNED = 64  # bytes: arrays begin where the core likes them to
_KINDS = "biuf"
Key = TypeVar("Key")
T = TypeVar("T")


@dataclass(frozen=True)
class Stacked:
    """Arrays of one type, one below the other, that are written as one without a copy."""

    parts: list[np.ndarray]

    @property
    def dtype(self) -> np.dtype:
        return self.parts[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(map(len, self.parts)), *self.parts[0].shape[1:])


@dataclass(frozen=True)
class Entry:
    """One file of arrays, as a manifest has it.

    ``arrays`` is the type and the shape of each, in the order of the file.
    """

    file: str
    digest: str
    arrays: dict[str, tuple[str, tuple[int, ...]]]

    @classmethod
    def of(cls, content: Any) -> Entry:
        """From a manifest, which may hold anything."""
        try:
            file, digest = content["file"], content["digest"]
            arrays = {
                str(name): (str(np.dtype(kind).str), tuple(shape))
                for name, (kind, shape) in content["arrays"].items()
            }
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValueError(f"an entry is no entry ({error!r})") from None
        sizes = [n for _, shape in arrays.values() for n in shape]
        if not (isinstance(file, str) and isinstance(digest, str) and Path(file).name == file):
            raise ValueError("an entry does not name a file of the folder")
        if not all(type(n) is int and n >= 0 for n in sizes):
            raise ValueError(f"{file} has an array of a shape that there is not")
        if not all(np.dtype(kind).kind in _KINDS for kind, _ in arrays.values()):
            raise ValueError(f"{file} has an array that does not hold numbers")
        return cls(file, digest, arrays)

    @property
    def content(self) -> dict:
        return asdict(self)

    def span(self, name: str) -> tuple[int, int]:
        """Where the bytes of an array begin, and how many there are."""
        at = 0
        for other, (kind, shape) in self.arrays.items():
            size = math.prod(shape) * np.dtype(kind).itemsize
            if other == name:
                return at, size
            at += -(-size // _ALIGNED) * _ALIGNED
        raise KeyError(name)

    @property
    def n_bytes(self) -> int:
        begin, size = self.span(list(self.arrays)[-1])
        return begin + size


def entry_of(file: str, arrays: Mapping[str, np.ndarray | Stacked], *, named: bool = True) -> Entry:
    """What a file of these arrays would have in the manifest.

    ``named`` gives it a digest by which the data can be told from all other.  Without that there is
    a checksum, which tells damage and is found in a quarter of the time.
    """
    digest = (_blake2b if named else _crc32)(_pieces(arrays))
    told = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    return Entry(file, digest, told)


def _blake2b(pieces: Iterable) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _crc32(pieces: Iterable) -> str:
    digest = 0
    for piece in pieces:
        digest = zlib.crc32(piece, digest)
    return f"{digest:08x}"


def write_arrays(folder: Path, entry: Entry, arrays: Mapping[str, np.ndarray | Stacked]) -> None:
    """Under another name first, and left to the system to bring to the disk.

    A kill leaves the file whole or absent.  Where a power cut does not, its checksum tells.
    """
    path, temporary = folder / entry.file, folder / f"{entry.file}.tmp"
    try:
        with naming(path, instead_of=temporary), open(temporary, "wb") as file:
            for piece in _pieces(arrays):
                file.write(piece)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _pieces(arrays: Mapping[str, np.ndarray | Stacked]) -> Iterator[memoryview | bytes]:
    """The bytes of all arrays, and what lies between them."""
    gap = b""
    for array in arrays.values():
        if gap:
            yield gap
        size = 0
        for part in array.parts if isinstance(array, Stacked) else [array]:
            content = _bytes(np.ascontiguousarray(part))
            size += len(content)
            yield content
        gap = bytes(-size % _ALIGNED)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def announce(folder: Path, entries: Iterable[Entry]) -> None:
    """Let the system bring whole files from the disk at once, where it takes such hints."""
    if not hasattr(os, "posix_fadvise"):
        return
    for entry in entries:
        with open(folder / entry.file, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def read_arrays(
    folder: Path, entry: Entry, *, check: bool, room: dict[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """All arrays of a file; ``check`` compares its checksum.

    Those that ``room`` names are read into what it has for them, of their type and shape.
    """
    path, room = folder / entry.file, room or {}
    _check_size(path, entry)
    arrays = {
        name: room[name] if name in room else np.empty(shape, kind)
        for name, (kind, shape) in entry.arrays.items()
    }
    with open(path, "rb") as file:
        for name, array in arrays.items():
            begin, size = entry.span(name)
            file.seek(begin)
            if file.readinto(_bytes(array)) != size:
                raise ValueError(f"{str(path)!r} is damaged: it was cut short while it was read.")
    if check:
        _compare(_pieces(arrays), path, entry)
    return arrays


def map_arrays(folder: Path, entry: Entry, *, check: bool) -> dict[str, np.ndarray]:
    """The same with their bytes left in the page cache, which is quicker.

    It is for files that nobody else may touch: the process ends where one is cut short meanwhile.
    """
    path = folder / entry.file
    _check_size(path, entry)
    content = np.memmap(path, np.uint8, "r").view(np.ndarray)
    if check:
        _compare([content.data], path, entry)
    return {name: _view(content, entry, name) for name in entry.arrays}


def _compare(pieces: Iterable, path: Path, entry: Entry) -> None:
    found = _crc32 if len(entry.digest) == 8 else _blake2b
    if found(pieces) != entry.digest:
        raise ValueError(f"{str(path)!r} is damaged: its checksum is not {entry.digest}.")


def read_array(folder: Path, entry: Entry, name: str) -> np.ndarray:
    """One of the arrays, without a look at the others."""
    path, (begin, size) = folder / entry.file, entry.span(name)
    _check_size(path, entry)
    kind, shape = entry.arrays[name]
    content = np.fromfile(path, np.uint8, size, offset=begin)
    return content.view(kind).reshape(shape)


def _check_size(path: Path, entry: Entry) -> None:
    size = path.stat().st_size
    if size != entry.n_bytes:
        raise ValueError(
            f"{str(path)!r} is damaged: it has {size} bytes, and should have {entry.n_bytes}."
        )


def _view(content: np.ndarray, entry: Entry, name: str) -> np.ndarray:
    begin, size = entry.span(name)
    kind, shape = entry.arrays[name]
    return content[begin : begin + size].view(kind).reshape(shape)


def read_ahead(load: Callable[[Key], T], keys: Iterable[Key], n_threads: int = 1) -> Iterator[T]:
    """``load`` of every key in turn; the next ones are loaded while this one is worked on.

    As many as there are threads are loaded at the same time, and keys are taken when it is their
    turn: so they may be found while others are loaded.
    """
    with ThreadPoolExecutor(n_threads) as readers:
        ahead: deque[Future[T]] = deque()
        try:
            for key in keys:
                ahead.append(readers.submit(load, key))
                if len(ahead) > n_threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for later in ahead:
                later.cancel()
