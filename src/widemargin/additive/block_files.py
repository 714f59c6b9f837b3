"""Arrays in a file: written whole or not at all, read with their checksum and the next one ahead.

An `Entry` says what is in the file, so that its bytes have a meaning only once they have been held
against it: their number, their checksum, and the type and shape of every array.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

import numpy as np

from widemargin.fields import Fields
from widemargin.files import Folder

_ALIGNED = 64  # bytes: arrays begin where the core likes them to
_FILE = re.compile(r"(raw|block)-\d{6,9}\.bin|encoder\.bin")
_DIGEST = re.compile(r"[0-9a-f]{8}|[0-9a-f]{32}")
_KINDS = {np.dtype(order + kind).str for kind in "?bBhHiIlLefdg" for order in "<>"}
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
    def of(cls, content: Fields) -> Entry:
        """From a manifest, which may hold anything."""
        file, digest = content.text("file"), content.text("digest")
        if not _FILE.fullmatch(file):
            raise content.fault("file", "the name of a block")
        if not _DIGEST.fullmatch(digest):
            raise content.fault("digest", "a digest")
        arrays = content.inner("arrays")
        for name in arrays.content:
            told = arrays.items(name)
            kind, shape = told if len(told) == 2 else ("", ())
            whole = isinstance(shape, list) and all(
                type(n) is int and 0 <= n < 2**48 for n in shape
            )
            if not (whole and 1 <= len(shape) <= 2 and isinstance(kind, str) and kind in _KINDS):
                raise arrays.fault(name, "the type and the shape of an array")
        return cls(
            file, digest, {n: (kind, tuple(shape)) for n, (kind, shape) in arrays.content.items()}
        )

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

    def check_size(self, folder: Folder, size: int | None = None) -> None:
        """Hold the number of bytes against what the file has."""
        size = folder.size(self.file) if size is None else size
        if size != self.n_bytes:
            raise ValueError(
                f"{str(folder / self.file)!r} is damaged: it has {size} bytes, and should have "
                f"{self.n_bytes}."
            )


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


def write_arrays(folder: Folder, entry: Entry, arrays: Mapping[str, np.ndarray | Stacked]) -> None:
    """Under another name first, and left to the system to bring to the disk.

    A kill leaves the file whole or absent.  Where a power cut does not, its checksum tells.
    """
    with folder.replacing(entry.file, lasting=False) as file:
        for piece in _pieces(arrays):
            file.write(piece)


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


def announce(folder: Folder, entries: Iterable[Entry]) -> None:
    """Let the system bring whole files from the disk at once, where it takes such hints."""
    if not hasattr(os, "posix_fadvise"):
        return
    for entry in entries:
        with folder.open(entry.file) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def read_arrays(
    folder: Folder, entry: Entry, *, check: bool, room: dict[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """All arrays of a file; ``check`` compares its checksum.

    Those that ``room`` names are read into what it has for them, of their type and shape.
    """
    path, room = folder / entry.file, room or {}
    with _opened(folder, entry) as file:
        arrays = {
            name: room[name] if name in room else np.empty(shape, kind)
            for name, (kind, shape) in entry.arrays.items()
        }
        for name, array in arrays.items():
            begin, size = entry.span(name)
            file.seek(begin)
            if file.readinto(_bytes(array)) != size:
                raise ValueError(f"{str(path)!r} is damaged: it was cut short while it was read.")
    if check:
        _compare(_pieces(arrays), path, entry)
    return arrays


def map_arrays(folder: Folder, entry: Entry, *, check: bool) -> dict[str, np.ndarray]:
    """The same with their bytes left in the page cache, which is quicker.

    It is for files that nobody else may touch: the process ends where one is cut short meanwhile.
    """
    with _opened(folder, entry) as file:
        pages = mmap.mmap(file.fileno(), entry.n_bytes, access=mmap.ACCESS_READ)
    content = np.frombuffer(pages, np.uint8)
    if check:
        _compare([content.data], folder / entry.file, entry)
    return {name: _view(content, entry, name) for name in entry.arrays}


def _compare(pieces: Iterable, path: Path, entry: Entry) -> None:
    found = _crc32 if len(entry.digest) == 8 else _blake2b
    if found(pieces) != entry.digest:
        raise ValueError(f"{str(path)!r} is damaged: its checksum is not {entry.digest}.")


def read_array(folder: Folder, entry: Entry, name: str) -> np.ndarray:
    """One of the arrays, without a look at the others."""
    (begin, size), (kind, shape) = entry.span(name), entry.arrays[name]
    with _opened(folder, entry) as file:
        content = np.fromfile(file, np.uint8, size, offset=begin)
    return content.view(kind).reshape(shape)


@contextmanager
def _opened(folder: Folder, entry: Entry) -> Iterator[BufferedReader]:
    """The file, once it has as many bytes as the manifest says."""
    with folder.open(entry.file) as file:
        entry.check_size(folder, os.fstat(file.fileno()).st_size)
        yield file


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
