"""`stream`: read a data set in chunks, in bounded memory."""

from __future__ import annotations

import csv
import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any, BinaryIO

from widemargin.budget import Budget
from widemargin.data.arrays import slices, stream_npy, stream_npz
from widemargin.data.columns import Rule, RuleOptions
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.reading import detect_format, read
from widemargin.data.streams import (
    BLOCK,
    DAMAGE,
    HEAD,
    RawStream,
    decompressed,
    naming_file,
    opened,
)
from widemargin.data.svmlight import stream_svmlight
from widemargin.data.table_files import TABLE_FORMATS
from widemargin.data.tables import stream_batches, stream_table
from widemargin.errors import Message, Parameter
from widemargin.files import naming

_CHUNK_BYTES = 16 << 20
_IN_ONE_PASS = ("svmlight", "npy")  # formats that need no survey of all rows


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
    format, label, like, split, max_bytes, n_jobs
        As in `read`.  Chunks of svmlight text are as wide as their largest index, and count from
        0 if the first of them has an index 0.
    **more
        Options of `read` for tables.

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
    if hasattr(path, "__arrow_c_stream__"):
        for option, value in (("format", format), ("split", split)):
            if value is not None:
                said = Parameter(option, value)
                raise ValueError(Message("the batches: {said} is only for files.", said=said))
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
        seekable = text is file and file.seekable()
        own: dict[str, Any] = {"name": name, "max_bytes": budget, "chunk_bytes": _CHUNK_BYTES}
        # `read` refuses options that do not fit the format.
        chunks: Iterator[Dataset] | None = None
        if found == "svmlight" and label is None and split is None and not more:
            known = None if like is None else like.zero_based
            base: bool | str = "auto" if known is None else known
            chunks = stream_svmlight(
                text, zero_based=base, n_jobs=n_jobs, name=name, max_bytes=budget
            )
        elif found == "npy" and split is None and not more:
            chunks = stream_npy(text, label=label, like=like, **own)
        elif found == "npz" and label is None and seekable and not more:
            chunks = stream_npz(file, split=split, like=like, **own)
        elif split is None and (found in ("csv", "tsv") or seekable):
            chunks = _table(file, found, budget, label, like, more)
        if chunks is not None:
            yield from chunks
            return
        if file.seekable():
            file.seek(0)
        named = isinstance(path, (str, os.PathLike)) and given.seekable()
        source = path if named else file if file.seekable() else text
        options: dict[str, Any] = {"label": label, "like": like, "split": split, **more}
        data = read(source, format=format, max_bytes=max_bytes, n_jobs=n_jobs, **options)
    yield from slices(data, _CHUNK_BYTES)


@contextmanager
def _copied(text: BinaryIO) -> Iterator[BufferedReader]:
    """Copy a pipe's contents, to disk if large, so that they can be read twice."""
    with SpooledTemporaryFile(_CHUNK_BYTES) as copy:
        with naming(gettempdir()):
            shutil.copyfileobj(text, copy, BLOCK)
        copy.seek(0)
        yield BufferedReader(RawStream(copy), HEAD)


def _table(
    file: BufferedReader, format: str, budget: Budget, label, like: Layout | None, rule: dict
) -> Iterator[Dataset] | None:
    """Return chunks of a table; None if `read` has to read or refuse it."""
    unknown = set(rule) - set(RuleOptions.__annotations__)
    if format not in TABLE_FORMATS or unknown or not file.seekable():
        return None
    own = Rule.of(**rule)
    if importlib.util.find_spec("pyarrow") is None:
        return None

    def again() -> BinaryIO:
        file.seek(0)
        return decompressed(file, budget)

    chunks = stream_table(file, format, again, label, like, own, _CHUNK_BYTES, budget)
    return _named(chunks, budget)


def _named(chunks: Iterator[Dataset], budget: Budget) -> Iterator[Dataset]:
    """Name the file in errors of a table's contents."""
    from pyarrow import ArrowException

    faults = (ValueError, OSError, csv.Error, ArrowException)
    while True:
        with naming_file(budget.name, faults):
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk
