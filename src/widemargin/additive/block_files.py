"""Write files of arrays atomically; read them with checksums, and read ahead.

An `Entry` describes a file: number of bytes, checksum, type and shape of every array.  Bytes are
used only after they match it.
"""

from __future__ import annotations

import hashlib
import math
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

_ALIGNED = 64  # bytes: alignment of arrays for the core
_FILE = re.compile(r"(raw|block)-\d{6,9}\.bin|encoder\.bin")
_DIGEST = re.compile(r"[0-9a-f]{8}|[0-9a-f]{32}")
_KINDS = {np.dtype(order + kind).str for kind in "?bBhHiIlLefdg" for order in "<>"}
Key = TypeVar("Key")
T = TypeVar("T")


@dataclass(frozen=True)
class Stacked:
    """Arrays of one type that are written as their concatenation, without a copy."""

    parts: list[np.ndarray]

    @property
    def dtype(self) -> np.dtype:
        return self.parts[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(map(len, self.parts)), *self.parts[0].shape[1:])


@dataclass(frozen=True)
class Entry:
    """A file of arrays in a manifest.

    ``arrays`` has the type and shape of each, in the file's order.
    """

    file: str
    digest: str
    arrays: dict[str, tuple[str, tuple[int, ...]]]

    @classmethod
    def of(cls, content: Fields) -> Entry:
        """Parse an entry of a manifest, which may hold anything."""
        file, digest = content.text("file"), content.text("digest")
        if not _FILE.fullmatch(file):
            raise content.fault("file", "the name of a block")
        if not _DIGEST.fullmatch(digest):
            raise content.fault("digest", "a digest")
        arrays = content.inner("arrays")
        for name in arrays.content:
            declared = arrays.items(name)
            kind, shape = declared if len(declared) == 2 else ("", ())
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
        """Return the offset and the number of bytes of an array."""
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
        """Compare the number of bytes with the file's."""
        size = folder.size(self.file) if size is None else size
        if size != self.n_bytes:
            raise ValueError(
                f"{str(folder / self.file)!r} is damaged: it has {size} bytes, and should have "
                f"{self.n_bytes}."
            )


def entry_of(file: str, arrays: Mapping[str, np.ndarray | Stacked], *, named: bool = True) -> Entry:
    """Return the manifest's entry for a file of these arrays.

    ``named`` uses a digest that identifies the data.  The default is a checksum, which detects
    damage and takes a quarter of the time.
    """
    digest = (_blake2b if named else _crc32)(_pieces(arrays))
    types = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    return Entry(file, digest, types)


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
    """Write the file under a temporary name and rename it, without waiting for the disk.

    A kill leaves the file complete or absent; after a power cut its checksum tells.
    """
    with folder.replacing(entry.file, lasting=False) as file:
        for piece in _pieces(arrays):
            file.write(piece)


def _pieces(arrays: Mapping[str, np.ndarray | Stacked]) -> Iterator[memoryview | bytes]:
    """Yield the bytes of all arrays and the padding between them."""
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
    """Tell the system to read ahead whole files, if it takes such hints."""
    if not hasattr(os, "posix_fadvise"):
        return
    for entry in entries:
        with folder.open(entry.file) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def read_arrays(
    folder: Folder, entry: Entry, *, check: bool, room: dict[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Read all arrays of a file; ``check`` compares its checksum.

    Arrays named in ``room`` are read into its buffers, of equal type and shape.
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


def _compare(pieces: Iterable, path: Path, entry: Entry) -> None:
    checksum = _crc32 if len(entry.digest) == 8 else _blake2b
    if checksum(pieces) != entry.digest:
        raise ValueError(f"{str(path)!r} is damaged: its checksum is not {entry.digest}.")


def read_array(folder: Folder, entry: Entry, name: str) -> np.ndarray:
    """Read one array, without the others."""
    (begin, size), (kind, shape) = entry.span(name), entry.arrays[name]
    with _opened(folder, entry) as file:
        content = np.fromfile(file, np.uint8, size, offset=begin)
    return content.view(kind).reshape(shape)


@contextmanager
def _opened(folder: Folder, entry: Entry) -> Iterator[BufferedReader]:
    """Open the file and check its size against the manifest."""
    with folder.open(entry.file) as file:
        entry.check_size(folder, os.fstat(file.fileno()).st_size)
        yield file


def read_ahead(load: Callable[[Key], T], keys: Iterable[Key], n_threads: int = 1) -> Iterator[T]:
    """Yield ``load(key)`` for every key in order, loading the next ones ahead in threads.

    Keys are consumed lazily, so they may be computed while others are loaded.
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
