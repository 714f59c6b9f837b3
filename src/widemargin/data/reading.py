"""`read` and `stream`: every format, detected from the content, at once or in chunks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from io import BufferedReader
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any, BinaryIO, Unpack, get_type_hints

from widemargin.budget import Budget
from widemargin.data.arrays import stream_npy, stream_npz
from widemargin.data.columns import Rule, RuleOptions
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.streams import (
    BLOCK,
    DAMAGE,
    HEAD,
    RawStream,
    decompressed,
    naming_file,
    opened,
    whole,
)
from widemargin.data.svmlight import stream_svmlight
from widemargin.data.table_files import TABLE_FORMATS
from widemargin.data.tables import stream_batches, stream_table
from widemargin.errors import Message, Parameter
from widemargin.files import naming
from widemargin.validation import check_choice

FORMATS = ("svmlight", *TABLE_FORMATS, "npz", "npy")
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}
RULE = tuple(RuleOptions.__annotations__)
_FORMATS_OF = {
    "label": (*TABLE_FORMATS, "npy"),
    "split": ("npz",),
    "n_features": ("svmlight",),
    **dict.fromkeys(RULE, TABLE_FORMATS),
}
_CHUNK_BYTES = 16 << 20
_LEAST_HEAD = 4096
_SAFETENSORS = re.compile(rb"(?s).{6}\0\0\{\"")
_JSON = re.compile(rb"\s*[\[{]\s*[\[{\"]")
_SVMLIGHT_LINE = re.compile(rb"[^\s:,;]+([ \t]+(qid|[0-9]+):[^\s:,;]+)*[ \t]*(#.*)?")


class Options(RuleOptions, total=False):
    """Options of some formats: `RuleOptions` for tables, the others for svmlight text."""

    n_features: int | None
    zero_based: bool | str
    dtype: Any
    n_jobs: int | None


def read(
    path,
    *,
    format: str | None = None,
    label=None,
    columns=None,
    like: Layout | None = None,
    split: str | None = None,
    max_bytes: int | None = None,
    **more: Unpack[Options],
) -> Dataset:
    """Read a data set: svmlight text, CSV, TSV, Parquet, Arrow, .npz or .npy.

    The format is detected from the content; text may be compressed (gzip, bzip2, xz, zstandard, or
    the only file of a zip archive).

    Parameters
    ----------
    path : path or binary file
    format : str, default=None
        One of "svmlight", "csv", "tsv", "parquet", "arrow", "npz", "npy", to override detection.
    label : str, int or False, default=None
        Tables and .npy: the label's column, by name or position; False if there is none.
    split : str, default=None
        .npz: "train" reads X_train and y_train.
    max_bytes : int, default=None
        Memory limit for the contents, by default 80 % of the free memory: a small file may declare,
        or unpack to, any amount.
    n_features : int, default=None
        svmlight: number of columns, by default from the largest index.
    columns, zero_based
        Facts about a model's data, used if they apply: the features of a table
        (``feature_names_in_``), and whether indices of svmlight text count from 0.
    like : Layout, default=None
        All of these: ``read(path, like=data.layout)`` reads new data as ``data`` was read, with
        its columns, label, missing values and first index.
    numeric, categorical, drop : list of str
        Tables: columns to read as numbers or as categories, or to leave out.  By default numbers
        are numbers and text is categories.  Text is refused, unless one of these options names it,
        if nine values in ten are numbers (perhaps with commas: 1,5), or if there are more than 50
        values and more than one for every other row.  So are dates; numeric dates are days since
        1970.
    na : list of str
        Tables: values that count as missing, such as "?", besides empty ones, NA, null and nan.
    dtype, n_jobs
        svmlight: type of the numbers, and threads; other formats bring their own type.

    Returns
    -------
    Dataset
        With ``X``, ``y`` and, if the file has them, ``feature_names``, ``qid``, ``zero_based``.
        ``X`` of a table is a pyarrow Table of numbers and categories, which `AdditiveSVC` takes
        directly, and other machines after a `TableEncoder`.

    Examples
    --------
    >>> import io
    >>> from widemargin.data import read
    >>> read(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1\\n")).X.shape
    (2, 3)
    >>> data = read(io.BytesIO(b"age,job,target\\n31,smith,1\\n52,clerk,0\\n"))
    >>> list(map(str, data.feature_names))
    ['age', 'job']
    """
    if columns is not None:
        like = replace(like or Layout(), columns=[str(c) for c in columns])
    with closing(_chunks(path, format, label, like, split, max_bytes, more)) as chunks:
        return next(chunks)


def stream(
    path,
    *,
    format: str | None = None,
    label=None,
    like: Layout | None = None,
    split: str | None = None,
    max_bytes: int | None = None,
    **more: Unpack[Options],
) -> Iterator[Dataset]:
    """Read a data set chunk by chunk, for `BlockStore.build`.

    svmlight text, dense .npy and .npz are read once, compressed or not.  CSV, TSV, Parquet and
    Arrow are read twice, first for the types of their columns and to refuse text that does not
    look like categories; a pipe is copied to a temporary file for this.  Sparse .npz is read as a
    whole and returned in chunks.

    Parameters
    ----------
    path : path, binary file, or Arrow's batches
        Or an object with Arrow's stream interface (a pyarrow reader, ``scanner.to_reader()`` of
        its data sets, a polars frame), which is read once.
    format, label, like, split, max_bytes, **more
        As in `read`.  Chunks of svmlight text are as wide as their largest index, and count from
        0 if the first of them has an index 0.

    Yields
    ------
    Dataset

    Examples
    --------
    >>> import io
    >>> from widemargin.data import stream
    >>> [chunk.X.shape for chunk in stream(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1\\n"))]
    [(2, 3)]
    """
    if not hasattr(path, "__arrow_c_stream__"):
        yield from _chunks(path, format, label, like, split, max_bytes, more, _CHUNK_BYTES)
        return
    for option, value in (("format", format), ("split", split)):
        if value is not None:
            given = Parameter(option, value)
            raise ValueError(Message("the batches: {given} is only for files.", given=given))
    rule = Rule.of(**{key: more.get(key) for key in RULE})
    with Budget(max_bytes, "the batches") as budget:
        yield from stream_batches(path, label, like, rule, _CHUNK_BYTES, budget)


def _chunks(
    path,
    format: str | None,
    label,
    like: Layout | None,
    split: str | None,
    max_bytes: int | None,
    more: Options,
    chunk_bytes: int | None = None,
) -> Generator[Dataset]:
    """Yield the rows of a file, about ``chunk_bytes`` at a time or (None) all at once."""
    if format is not None:
        check_choice("format", format, FORMATS)
    unknown = sorted(set(more) - set(get_type_hints(Options)))
    if unknown:
        raise TypeError(f"read() got an unexpected keyword argument {unknown[0]!r}.")
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the file"
    damaged = naming_file(name, DAMAGE, "the compressed data is damaged ({}).")
    budget = Budget(max_bytes, name)
    with opened(path) as given, damaged, budget, ExitStack() as copies:
        file: BufferedReader = given
        text: Any = decompressed(given, budget)
        head = text.peek(HEAD)
        if len(head) < HEAD and not head.removeprefix(b"\xef\xbb\xbf").strip():
            raise ValueError(f"{name}: the file has no rows.")
        kind = format or detect_format(head, name)
        rule = {key: more.get(key) for key in RULE}
        n_features = more.get("n_features")
        _check_options(kind, name, label=label, split=split, n_features=n_features, **rule)
        if kind == "svmlight":
            options: dict[str, Any] = {key: value for key, value in more.items() if key not in RULE}
            base = None if like is None else like.zero_based
            options.setdefault("zero_based", "auto" if base is None else base)
            whole_file = chunk_bytes is None
            yield from stream_svmlight(
                text, whole=whole_file, name=name, max_bytes=budget, **options
            )
        elif kind == "npy":
            yield from stream_npy(
                text, label=label, like=like, budget=budget, chunk_bytes=chunk_bytes
            )
        else:
            if chunk_bytes is not None and not file.seekable():
                file = text = copies.enter_context(_copied(text))
            if kind not in ("csv", "tsv") and not (text is file and file.seekable()):
                text = whole(text, budget)
            if kind == "npz":
                yield from stream_npz(
                    text, split=split, like=like, budget=budget, chunk_bytes=chunk_bytes
                )
                return

            def again() -> BinaryIO:
                file.seek(0)
                return decompressed(file, budget)

            reopen = None if chunk_bytes is None else again
            columns = Rule.of(**rule)
            yield from stream_table(text, kind, reopen, label, like, columns, chunk_bytes, budget)


@contextmanager
def _copied(text: BinaryIO) -> Iterator[BufferedReader]:
    """Copy a pipe's contents, to disk if large, so that they can be read twice."""
    with SpooledTemporaryFile(_CHUNK_BYTES) as copy:
        with naming(gettempdir()):
            shutil.copyfileobj(text, copy, BLOCK)
        copy.seek(0)
        yield BufferedReader(RawStream(copy), HEAD)


def _check_options(kind: str, name: str, **options) -> None:
    """Refuse options that the format would ignore."""
    for option, value in options.items():
        if value is not None and kind not in _FORMATS_OF[option]:
            template = "{name}: {option} has no meaning for {found}, only for {formats}."
            fields = {"name": name, "found": kind, "formats": ", ".join(_FORMATS_OF[option])}
            raise ValueError(Message(template, fields, option=Parameter(option, value)))


def detect_format(head: bytes, name: str = "the file") -> str:
    """Detect the format from a file's first bytes; refuse files of other known formats.

    Examples
    --------
    >>> detect_format(b"-1 3:1 11:0.5\\n"), detect_format(b"a\\tb\\n1\\t2\\n")
    ('svmlight', 'tsv')
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name}: its text is in UTF-16. Save it in UTF-8.")
    if _SAFETENSORS.match(head):
        raise ValueError(f"{name}: a model (a safetensors file), not data.")
    if b"\0" in head:
        raise ValueError(f"{name}: a binary file in none of the formats {', '.join(FORMATS)}.")
    if _JSON.match(head):
        raise ValueError(f"{name}: JSON, which is none of the formats {', '.join(FORMATS)}.")
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    line = next((line for line in lines if line and not line.startswith(b"#")), b"")
    cut = line is lines[-1] and len(head) >= _LEAST_HEAD  # the last token may be cut
    complete = line.rsplit(None, 1)[0] if cut and line else line
    if _SVMLIGHT_LINE.fullmatch(complete):
        alone = b":" not in line and name.lower().endswith(".csv")  # the name of a single column
        return "csv" if alone else "svmlight"
    if b"\t" in line and b"," not in line:
        return "tsv"
    return "csv" if re.search(rb"[,;]", line) else "svmlight"
