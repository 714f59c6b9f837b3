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
from typing import BinaryIO

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
_COMPRESSED: dict[bytes, Callable] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_HEAD = 1 << 16
_LEAST_HEAD = 4096
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
    with _opened(path) as file, _decompressed(file, name) as text:
        try:
            head = text.peek(_HEAD)
            found = format or detect_format(head)
            if found == "svmlight":
                return read_svmlight(
                    text, n_features=n_features, zero_based=zero_based, dtype=dtype,
                    n_jobs=n_jobs, name=name,
                )  # fmt: skip
            if found == "npz":
                return read_npz(_seekable(text), split=split, name=name)
            if found == "npy":
                return read_npy(text, label=label, name=name)
            source = text if found in ("csv", "tsv") else _seekable(text)
            return read_table(source, found, label=label, columns=columns, name=name)
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name}: the compressed data is damaged ({error}).") from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise ValueError(f"{name}: the compressed data is damaged ({error}).") from None


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
    complete = (line.rpartition(b" ")[0] or line) if cut else line
    if _SVMLIGHT_LINE.fullmatch(complete):
        return "svmlight"
    if b"\t" in line and b"," not in line:
        return "tsv"
    return "csv" if re.search(rb"[,;]", line) else "svmlight"


@contextmanager
def _opened(path) -> Iterator[io.BufferedReader]:
    """The file itself, which stays open if the caller opened it."""
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as file:
            yield file
    else:
        buffered = path if hasattr(path, "peek") else io.BufferedReader(_raw(path))
        yield buffered
        if buffered is not path:
            buffered.detach()


def _raw(file: BinaryIO):
    """Anything with ``read`` as a raw stream that BufferedReader takes."""
    return file if hasattr(file, "readinto") else io.BytesIO(file.read())


@contextmanager
def _decompressed(file: io.BufferedReader, name: str) -> Iterator[io.BufferedReader]:
    head = file.peek(8)
    if head.startswith(_ZSTANDARD):
        yield io.BufferedReader(_zstandard(file, name))
        return
    for magic, opener in _COMPRESSED.items():
        if head.startswith(magic):
            with opener(file) as plain:
                yield io.BufferedReader(plain)
            return
    yield file


def _zstandard(file, name: str):
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            f"{name} is compressed with zstandard, which needs pyarrow: pip install "
            "widemargin[tables]"
        ) from None
    return _Zstandard(lambda: pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd"), file)


class _Zstandard(io.RawIOBase):
    """An Arrow stream as Python's own kind of stream; it can be begun again."""

    def __init__(self, open_stream: Callable, file):
        self._open, self._file, self._stream, self._at = open_stream, file, open_stream(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if (offset, whence) != (0, io.SEEK_SET):
            raise io.UnsupportedOperation("only back to the start")
        self._file.seek(0)
        self._stream, self._at = self._open(), 0
        return 0

    def readinto(self, buffer) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def _seekable(file):
    """Formats with a directory at their end need to jump there."""
    return file if file.seekable() else io.BytesIO(file.read())
