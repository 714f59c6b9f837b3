"""Compressed files (gzip, bzip2, xz, zstandard, zip) as plain streams that can be begun again."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from widemargin.budget import Budget
from widemargin.data.streams import HEAD, RawStream

_PACKED = 1 << 16  # compressed bytes read at a time
_DICTIONARY = 100 << 20  # bytes that unpacking may hold whatever the budget: xz -9 takes 65 MB


def decompressed(file: io.BufferedReader, budget: Budget) -> io.BufferedReader:
    """The text in a file, whether or not it is compressed."""
    head = file.peek(HEAD)
    for magic, begin in _COMPRESSED.items():
        if head.startswith(magic) and not _is_npz(head):
            return io.BufferedReader(_Unpacked(file, partial(begin, file, budget)), HEAD)
    return file


class _Unpacked(RawStream):
    """What ``begin`` makes of a compressed file; it can be begun again if the file can."""

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
    """One compressed stream after another, with zeros as padding; Python's own readers of these
    formats take whatever else comes after the first for the end.
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
    """xz data says how much memory unpacking takes: no more than there is for it."""

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
    """Whether the first file of a zip archive is one of NumPy's."""
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
                f"{budget.name}: {len(names)} files in a zip archive, of which one would be read. "
                "Give the one, or save a spreadsheet, which is such an archive, as CSV."
            )
        with _naming_zip_faults():
            self._member = archive.open(names[0])

    def read(self, size: int) -> bytes:
        with _naming_zip_faults():
            return self._member.read(size)


@contextmanager
def _naming_zip_faults() -> Iterator[None]:
    """Damage, encryption and methods that there is nothing for are all faults of the file."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place that no file has
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
    # Arrow closes what it reads from, and that is not ours to close.
    return pa.CompressedInputStream(pa.PythonFile(RawStream(file), mode="r"), "zstd")


_ZIP = b"PK\x03\x04"
_COMPRESSED: dict[bytes, Callable] = {
    _ZIP: _ZipMember,
    b"\x1f\x8b": lambda file, budget: gzip.GzipFile(fileobj=file),
    b"BZh": lambda file, budget: _Chained(file, bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": lambda file, budget: _Chained(file, partial(_Limited, budget)),
    b"\x28\xb5\x2f\xfd": _begin_zstandard,
}
