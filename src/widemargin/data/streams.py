"""Open files as buffered, decompressed streams whose errors name the file."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, BinaryIO

from widemargin.budget import Budget
from widemargin.errors import Message, TooLargeError, message_of

HEAD = 1 << 16  # bytes to peek at
BLOCK = 1 << 20  # bytes read from a stream at a time
_LONGEST = 1000  # characters of a message
_PATIENCE = 1.0  # seconds to wait for ending threads
_PACKED = 1 << 16  # compressed bytes read at a time
_DICTIONARY = 100 << 20  # bytes for unpacking beside the budget: xz -9 takes 65 MB
DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)  # errors of damaged data


@contextmanager
def opened(path) -> Iterator[io.BufferedReader]:
    """Yield the file as a stream with ``peek``; it stays open if the caller opened it."""
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as file:
            yield file if file.seekable() else io.BufferedReader(RawStream(file), HEAD)
    elif isinstance(path, io.TextIOBase) or not hasattr(path, "read"):
        raise TypeError(f"path must be a path or a file opened as binary, got {path!r}.")
    else:
        yield io.BufferedReader(RawStream(path), HEAD)


@contextmanager
def naming_file(name: str, faults: tuple[type[Exception], ...], says: str = "{}") -> Iterator[None]:
    """Turn errors of a file's contents into ValueErrors with its name; disk errors pass through."""
    try:
        yield
    except TooLargeError:  # already has the name
        raise
    except faults as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        before, _, after = says.partition("{}")
        fields = {"name": name, "before": before, "error": one_line(error), "after": after}
        raise ValueError(Message("{name}: {before}{error}{after}", fields)) from error


def one_line(said: object) -> str:
    """Return an error's text, or a name, in one line of limited length.

    >>> one_line(ValueError("two\\nlines"))
    'two lines'
    """
    message = message_of(said) if isinstance(said, BaseException) else str(said)
    text = " ".join(message.split())
    if len(text) > _LONGEST:
        return text[:_LONGEST] + "..."
    return message if text == message else text


def fill(file: IO[bytes], room: memoryview) -> int:
    """Read until the room is full or the file ends; returns the number of bytes."""
    got = 0
    while got < len(room):
        # A block at a time, because some files copy what they read.
        n = file.readinto(room[got : got + BLOCK])  # type: ignore[attr-defined]
        if not n:
            break
        got += n
    return got


def whole(file: BinaryIO, budget: Budget) -> io.BytesIO:
    """Read a whole stream into memory, for readers that seek."""
    content = io.BytesIO()
    while block := file.read(BLOCK):
        budget.hold(len(block), "its contents take")
        content.write(block)
    content.seek(0)
    return content


class RawStream(io.RawIOBase):
    """A raw stream on any object with ``read``; only the last read is short."""

    def __init__(self, file):
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return hasattr(self._file, "seekable") and self._file.seekable()

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer) -> int:
        got = 0
        while got < len(buffer) and (content := self._file.read(len(buffer) - got)):
            buffer[got : got + len(content)] = content
            got += len(content)
        return got


class LentStream(RawStream):
    """A stream for pyarrow, whose owner can wait until pyarrow has released it.

    Threads of pyarrow release a file some time after reading its table.  If they call Python while
    the process exits, for example after an error, the process aborts.
    """

    def __init__(self, file):
        super().__init__(file)
        self._returned = threading.Event()

    def lend(self) -> io.BufferedReader:
        """Return the stream; do not keep a reference, because the last release closes it."""
        return io.BufferedReader(self)

    def close(self) -> None:
        super().close()
        self._returned.set()

    def wait(self) -> None:
        self._returned.wait(_PATIENCE)


# ------------------------------------------------------------------ compressed files


def decompressed(file: io.BufferedReader, budget: Budget) -> io.BufferedReader:
    """Return the contents of a file, unpacked if compressed."""
    head = file.peek(HEAD)
    for magic, begin in _COMPRESSED.items():
        if head.startswith(magic) and not _is_npz(head):
            return io.BufferedReader(_Unpacked(file, partial(begin, file, budget)), HEAD)
    return file


class _Unpacked(RawStream):
    """The contents of a compressed file that ``begin`` opens; can seek to the start."""

    def __init__(self, packed: io.BufferedReader, begin: Callable):
        self._packed, self._begin, self._at = packed, begin, 0
        self._start = packed.tell() if packed.seekable() else None
        super().__init__(begin())

    def seekable(self) -> bool:
        return self._start is not None

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if self._start is None or (offset, whence) != (0, io.SEEK_SET):
            raise io.UnsupportedOperation("only back to the start")
        self._packed.seek(self._start)
        self._file, self._at = self._begin(), 0
        return 0

    def readinto(self, buffer) -> int:
        got = super().readinto(buffer)
        self._at += got
        return got


class _Chained:
    """Concatenated compressed streams, padded with zeros; other bytes in between are an error.

    Python's readers of these formats silently end at such bytes.
    """

    def __init__(self, file: io.BufferedReader, decompressor: Callable):
        self._file, self._begin, self._current = file, decompressor, decompressor()

    def read(self, size: int) -> bytes:
        content = b""
        while not content:
            packed = b""
            if self._current.eof:
                packed = self._current.unused_data.lstrip(b"\0")
                while not packed:
                    packed = self._file.read(_PACKED)
                    if not packed:
                        return b""
                    packed = packed.lstrip(b"\0")
                self._current = self._begin()
            elif self._current.needs_input:
                packed = self._file.read(_PACKED)
                if not packed:
                    raise EOFError("it ends too early")
            content = self._current.decompress(packed, size)
        return content


class _Limited:
    """Unpacks xz data within the budget; xz declares the memory that it needs."""

    def __init__(self, budget: Budget):
        most = max(budget.max_bytes, _DICTIONARY)
        self._current = lzma.LZMADecompressor(memlimit=most)

    def __getattr__(self, name: str):
        return getattr(self._current, name)

    def decompress(self, packed: bytes, size: int) -> bytes:
        try:
            return self._current.decompress(packed, size)
        except lzma.LZMAError as error:
            if "limit" in str(error):
                raise MemoryError(str(error)) from None
            raise


def _is_npz(head: bytes) -> bool:
    """Whether the first file of a zip archive is a NumPy array."""
    length = int.from_bytes(head[26:28], "little")
    return head.startswith(_ZIP) and head[30 : 30 + length].endswith(b".npy")


class _ZipMember:
    """The only file of a zip archive."""

    def __init__(self, file: io.BufferedReader, budget: Budget):
        with _naming_zip_faults():
            archive = zipfile.ZipFile(file)  # type: ignore[arg-type]
            names = [member.filename for member in archive.infolist() if not member.is_dir()]
        if len(names) != 1:
            raise ValueError(
                f"{budget.name}: {len(names)} files in a zip archive, but only archives of one "
                "file can be read. Extract it; save a spreadsheet, an archive too, as CSV."
            )
        with _naming_zip_faults():
            self._member = archive.open(names[0])

    def read(self, size: int) -> bytes:
        with _naming_zip_faults():
            return self._member.read(size)


@contextmanager
def _naming_zip_faults() -> Iterator[None]:
    """Turn damage, encryption and unknown methods into errors of the file."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EINVAL:  # an impossible position
            raise
        raise OSError(error.strerror) from None
    except (zipfile.BadZipFile, RuntimeError, ValueError, OverflowError, struct.error) as error:
        raise OSError(str(error)) from None


def _begin_zstandard(file: io.BufferedReader, budget: Budget):
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            f"{budget.name} is compressed with zstandard, which needs pyarrow: pip install "
            "widemargin[tables]"
        ) from None
    # A wrapper, because Arrow closes its input.
    return pa.CompressedInputStream(pa.PythonFile(RawStream(file), mode="r"), "zstd")


_ZIP = b"PK\x03\x04"
_COMPRESSED: dict[bytes, Callable] = {
    _ZIP: _ZipMember,
    b"\x1f\x8b": lambda file, budget: gzip.GzipFile(fileobj=file),
    b"BZh": lambda file, budget: _Chained(file, bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": lambda file, budget: _Chained(file, partial(_Limited, budget)),
    b"\x28\xb5\x2f\xfd": _begin_zstandard,
}
