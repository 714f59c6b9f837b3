"""`stream`: a data set piece by piece, in memory that does not grow with the file."""

from __future__ import annotations

import csv
import importlib.util
import math
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from io import BufferedReader
from tempfile import SpooledTemporaryFile, gettempdir
from typing import IO, Any, BinaryIO

import numpy as np

from widemargin.budget import Budget
from widemargin.data.arrays import array_header, check_matrix, npz_split, unreadable, with_label
from widemargin.data.arrow_streams import is_arrow_stream, stream_batches
from widemargin.data.columns import Rule, RuleOptions
from widemargin.data.compression import decompressed
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.reading import detect_format, read
from widemargin.data.streams import BLOCK, DAMAGE, HEAD, RawStream, fill, naming_file, opened
from widemargin.data.svmlight import NotInPiecesError, stream_svmlight
from widemargin.data.table_pieces import ColumnPieces, CsvPieces, Pieces
from widemargin.data.table_streaming import stream_model_table, stream_table
from widemargin.data.tables import TABLE_FORMATS, asked_of
from widemargin.files import naming
from widemargin.wording import words

_CHUNK_BYTES = 16 << 20
_IN_ONE_PASS = ("svmlight", "npy")  # formats whose first rows need no others


def stream(
    path,
    *,
    format: str | None = None,
    label=None,
    like: Layout | None = None,
    split: str | None = None,
    max_bytes: int | None = None,
    n_jobs: int | None = None,
    **more,
) -> Iterator[Dataset]:
    """Read a data set chunk by chunk: what `BlockStore.build` takes.

    svmlight text, dense .npy and .npz are read as they go, compressed or not; CSV, TSV, Parquet and
    Arrow twice, first for the types and categories of their columns, and so is a copy of what comes
    from a pipe, in a temporary file.  Sparse .npz is read as a whole, and handed on in chunks.

    Parameters
    ----------
    path : path, binary file, or Arrow's batches
        Or what has Arrow's stream interface (a reader of pyarrow, ``scanner.to_reader()`` of its
        data sets, a frame of polars), which is read once: its categories stay columns
        (``one_hot=False``).
    format, label, like, split, max_bytes, n_jobs
        As in `read`.  Chunks of svmlight text are as wide as their largest index, and count from
        0 if the first of them has an index 0.
    **more
        What else `read` takes for tables.

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
    if is_arrow_stream(path):
        for option, value in (("format", format), ("split", split)):
            if value is not None:
                said = words().option(option, value)
                raise ValueError(f"the batches: {said} has no meaning for what is no file.")
        with Budget(max_bytes, "the batches") as budget:
            batches = stream_batches(path, label, like, Rule.of(**more), _CHUNK_BYTES, budget)
            yield from _named(batches, budget)
        return
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the file"
    damaged = naming_file(name, DAMAGE, "the compressed data is damaged ({}).")
    budget = Budget(max_bytes, name)
    with opened(path) as given, damaged, budget, ExitStack() as copies:
        file, text = given, decompressed(given, budget)
        found = format or detect_format(text.peek(HEAD), name)
        if not given.seekable() and found not in _IN_ONE_PASS:
            file = text = copies.enter_context(_copied(text))
        if found not in TABLE_FORMATS:
            more.pop("one_hot", None)
        seekable = text is file and file.seekable()
        # Options that do not suit the format are for `read` to refuse.
        chunks: Iterator[Dataset] | None = None
        if found == "svmlight" and label is None and split is None and not more:
            chunks = _svmlight(text, like, n_jobs, budget)
        elif found == "npy" and split is None and not more:
            chunks = _npy(text, label, like, budget)
        elif found == "npz" and label is None and seekable and not more:
            chunks = _npz(file, split, like, budget)
        elif split is None and (found in ("csv", "tsv") or seekable):
            chunks = _table(file, found, budget, label, like, more)
        if chunks is not None:
            begun = False
            try:
                for chunk in chunks:
                    begun = True
                    yield chunk
                return
            except NotInPiecesError:
                if begun or not file.seekable():
                    raise
        if file.seekable():
            file.seek(0)
        named = isinstance(path, (str, os.PathLike)) and given.seekable()
        source = path if named else file if file.seekable() else text
        options: dict[str, Any] = {"label": label, "like": like, "split": split, **more}
        data = read(source, format=format, max_bytes=max_bytes, n_jobs=n_jobs, **options)
    yield from _slices(data)


@contextmanager
def _copied(text: BinaryIO) -> Iterator[BufferedReader]:
    """What a pipe has, so that it can be read twice; where there is much of it, on disk."""
    with SpooledTemporaryFile(_CHUNK_BYTES) as copy:
        with naming(gettempdir()):
            shutil.copyfileobj(text, copy, BLOCK)
        copy.seek(0)
        yield BufferedReader(RawStream(copy), HEAD)


def _table(
    file: BufferedReader, format: str, budget: Budget, label, like: Layout | None, rule: dict
) -> Iterator[Dataset] | None:
    """Chunks of a table; None where it is for `read`, or for `read` to refuse."""
    unknown = set(rule) - set(RuleOptions.__annotations__)
    if format not in TABLE_FORMATS or unknown or not file.seekable():
        return None
    own = Rule.of(**rule)
    width_unknown = like is not None and like.n_features is None
    if width_unknown or importlib.util.find_spec("pyarrow") is None:
        return None

    def again() -> BinaryIO:
        file.seek(0)
        return decompressed(file, budget)

    layout = Layout() if like is None else like
    layout = replace(layout, na=own.na or layout.na)
    if format in ("parquet", "arrow"):
        pieces: Pieces = ColumnPieces(file, format, _CHUNK_BYTES, budget)
    else:
        delimiters = "\t" if format == "tsv" else ",;"
        pieces = CsvPieces(again, delimiters, asked_of(own, layout), _CHUNK_BYTES, budget)
    if like is None:
        return _named(stream_table(pieces, label, own, budget), budget)
    return _named(stream_model_table(pieces, label, layout, own, budget), budget)


def _named(chunks: Iterator[Dataset], budget: Budget) -> Iterator[Dataset]:
    """Errors of a table's contents name the file."""
    from pyarrow import ArrowException

    faults = (ValueError, OSError, csv.Error, ArrowException)
    while True:
        with naming_file(budget.name, faults):
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


def _slices(data: Dataset) -> Iterator[Dataset]:
    """What was read as a whole, some rows at a time."""
    n, d = data.X.shape
    step = max(1, _CHUNK_BYTES // (8 * d))
    for begin in range(0, n, step):
        rows = slice(begin, begin + step)
        y, qid = (None if a is None else a[rows] for a in (data.y, data.qid))
        yield replace(data, X=data.X[rows], y=y, qid=qid)


def _svmlight(
    text: BinaryIO, like: Layout | None, n_jobs: int | None, budget: Budget
) -> Iterator[Dataset]:
    known = None if like is None else like.zero_based
    base: bool | str = "auto" if known is None else known
    name = budget.name
    return stream_svmlight(text, zero_based=base, n_jobs=n_jobs, name=name, max_bytes=budget)


def _rows(file: IO[bytes], budget: Budget, kind: str) -> Iterator[np.ndarray]:
    """Some rows of an array in NumPy's format at a time; of one in columns, all of them."""
    with unreadable(budget.name, kind):
        shape, is_fortran, dtype = array_header(file)
        n_rows, row = (shape[0], shape[1:]) if shape else (0, ())
        n_bytes = math.prod(row) * dtype.itemsize
        step = n_rows if is_fortran else max(1, _CHUNK_BYTES // max(n_bytes, 1))
        budget.check(min(step, n_rows) * n_bytes, "some of its rows take")
        for begin in range(0, n_rows, max(step, 1)):
            n = min(step, n_rows - begin)
            content = np.empty(n * n_bytes, dtype=np.uint8)
            if fill(file, content.data) < len(content):
                raise ValueError(f"it ends before row {begin + n} of {n_rows}")
            yield content.view(dtype).reshape((n, *row), order="F" if is_fortran else "C")


def _npy(file: BinaryIO, label, like: Layout | None, budget: Budget) -> Iterator[Dataset]:
    for table in _rows(file, budget, "npy"):
        yield with_label(table, label, like, budget)


def _npz(
    file: BinaryIO, split: str | None, like: Layout | None, budget: Budget
) -> Iterator[Dataset] | None:
    """Chunks of a dense X beside all of y; None where there is no dense X."""
    with unreadable(budget.name, "npz"):
        archive = zipfile.ZipFile(file)
        members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
    suffix = npz_split(members, split, None if like is None else budget.name)
    if f"X{suffix}" not in members:
        return None
    return _npz_chunks(archive, members, suffix, budget)


def _npz_chunks(archive, members, suffix: str, budget: Budget) -> Iterator[Dataset]:
    def opened_member(name: str):
        with unreadable(budget.name, "npz"):
            return closing(archive.open(members[f"{name}{suffix}"]))

    y = None
    if f"y{suffix}" in members:
        with opened_member("y") as member:
            y = np.concatenate(list(_rows(member, budget, "npz")) or [np.zeros(0)])
    at = 0
    with opened_member("X") as member:
        for X in _rows(member, budget, "npz"):
            own = None if y is None else y[at : at + len(X)]
            at += len(X)
            yield check_matrix(X, own, budget.name)
    if y is not None and len(y) != at:
        raise ValueError(f"{budget.name}: X has {at} rows, but y has {len(y)}.")
