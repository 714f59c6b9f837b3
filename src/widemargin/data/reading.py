"""`read`: one function for every format, which is told from the content and not from the name."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from widemargin.data.arrays import read_npy, read_npz
from widemargin.data.dataset import Dataset
from widemargin.data.svmlight import read_svmlight
from widemargin.data.tables import read_table
from widemargin.validation import check_choice

FORMATS = ("svmlight", "csv", "tsv", "parquet", "arrow", "npz", "npy")
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}
_HEAD = 1 << 16
_LEAST_HEAD = 4096
_PACKED = 1 << 16  # compressed bytes read at a time
_SVMLIGHT_LINE = re.compile(rb"[^\s:,;]+([ \t]+(qid|[0-9]+):[^\s:,;]+)*[ \t]*(#.*)?")


def read(
    path,
    *,
    format: str | None = None,
    label=None,
    columns=None,
    split: str | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype=np.float64,
    n_jobs: int | None = None,
) -> Dataset:
    """Read a data set: svmlight text, CSV, TSV, Parquet, Arrow, .npz or .npy.

    The format is told from the content; text may be compressed (gzip, bzip2, xz, zstandard).

    Parameters
    ----------
    path : path or binary file
    format : str, default=None
        One of "svmlight", "csv", "tsv", "parquet", "arrow", "npz", "npy", to overrule detection.
    label : str, int or False, default=None
        Tables and .npy: the label's column, by name or position; False if there is none.
    columns : array-like of str, default=None
        Tables: the features a model was trained on (its ``feature_names_in_``).
    split : str, default=None
        .npz: "train" reads X_train and y_train.
    n_features, zero_based, dtype, n_jobs
        svmlight: see `widemargin.data.svmlight.read_svmlight`.

    Returns
    -------
    Dataset
        With ``X``, ``y`` and, where the file tells, ``feature_names``, ``qid``, ``zero_based``.

    Examples
    --------
    >>> import io
    >>> from widemargin.data import read
    >>> read(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1\\n")).X.shape
    (2, 3)
    >>> data = read(io.BytesIO(b"age,job,target\\n31,smith,1\\n52,clerk,0\\n"))
    >>> list(map(str, data.feature_names))
    ['age', 'job=clerk', 'job=smith']
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the file"
    with _opened(path) as file, _blaming(name):
        text = _decompressed(file, name)
        found = format or detect_format(text.peek(_HEAD))
        if found == "svmlight":
            return read_svmlight(
                text, n_features=n_features, zero_based=zero_based, dtype=dtype, n_jobs=n_jobs,
                name=name,
            )  # fmt: skip
        if found in ("csv", "tsv"):
            return read_table(text, found, label=label, columns=columns, name=name)
        # The others jump about in the file.
        whole = text if text is file and file.seekable() else io.BytesIO(text.read())
        if found == "npz":
            return read_npz(whole, split=split, name=name)
        if found == "npy":
            return read_npy(whole, label=label, name=name)
        return read_table(whole, found, label=label, columns=columns, name=name)


def detect_format(head: bytes) -> str:
    """The format of a file that begins like this.

    Examples
    --------
    >>> detect_format(b"-1 3:1 11:0.5\\n"), detect_format(b"a\\tb\\n1\\t2\\n")
    ('svmlight', 'tsv')
    """
    for magic, found in _MAGIC.items():
        if head.startswith(magic):
            return found
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    line = next((line for line in lines if line and not line.startswith(b"#")), b"")
    cut = line is lines[-1] and len(head) >= _LEAST_HEAD  # the last token may not be whole
    complete = re.sub(rb"[ \t]+[^ \t]*$", b"", line) if cut else line
    if _SVMLIGHT_LINE.fullmatch(complete):
        return "svmlight"
    if b"\t" in line and b"," not in line:
        return "tsv"
    return "csv" if re.search(rb"[,;]", line) else "svmlight"


@contextmanager
def _opened(path) -> Iterator[io.BufferedReader]:
    """The file, of which all of the head can be seen; it stays open if the caller opened it."""
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as file:
            yield file if file.seekable() else io.BufferedReader(_Stream(file), _HEAD)
    elif isinstance(path, io.TextIOBase) or not hasattr(path, "read"):
        raise TypeError(f"path must be a path or a file opened as binary, got {path!r}.")
    else:
        yield io.BufferedReader(_Stream(path), _HEAD)


@contextmanager
def _blaming(name: str) -> Iterator[None]:
    """Errors of damaged data become a ValueError with the file's name; the disk's stay."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"{name}: the compressed data is damaged ({error}).") from None


def _decompressed(file: io.BufferedReader, name: str) -> io.BufferedReader:
    head = file.peek(_HEAD)
    for magic, begin in _COMPRESSED.items():
        if head.startswith(magic):
            return io.BufferedReader(_Unpacked(file, partial(begin, file, name)), _HEAD)
    return file


class _Stream(io.RawIOBase):
    """Anything with ``read`` as a raw stream, which gives less than asked for only at its end."""

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


class _Unpacked(_Stream):
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
        self._file, self._new, self._one = file, decompressor, decompressor()

    def read(self, size: int) -> bytes:
        content = b""
        while not content:
            packed = b""
            if self._one.eof:
                packed = self._one.unused_data.lstrip(b"\0")
                while not packed:
                    packed = self._file.read(_PACKED)
                    if not packed:
                        return b""
                    packed = packed.lstrip(b"\0")
                self._one = self._new()
            elif self._one.needs_input:
                packed = self._file.read(_PACKED)
                if not packed:
                    raise EOFError("it ends too early")
            content = self._one.decompress(packed, size)
        return content


def _begin_zstandard(file: io.BufferedReader, name: str):
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            f"{name} is compressed with zstandard, which needs pyarrow: pip install "
            "widemargin[tables]"
        ) from None
    # Arrow closes what it reads from, and that is not ours to close.
    return pa.CompressedInputStream(pa.PythonFile(_Stream(file), mode="r"), "zstd")


_COMPRESSED: dict[bytes, Callable] = {
    b"\x1f\x8b": lambda file, name: gzip.GzipFile(fileobj=file),
    b"BZh": lambda file, name: _Chained(file, bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": lambda file, name: _Chained(file, lzma.LZMADecompressor),
    b"\x28\xb5\x2f\xfd": _begin_zstandard,
}
