"""CSV, TSV, Parquet and Arrow files as pyarrow's tables."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO

from widemargin.data.streams import RawStream

if TYPE_CHECKING:
    import pyarrow as pa

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_ARROW_FILE = b"ARROW1"
_ARROW_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


def load_table(
    stream: BinaryIO, format: str, text_columns: Callable[[list[str]], Iterable[str]]
) -> tuple[pa.Table, bool]:
    """The table, and whether the file names its columns.

    ``text_columns`` says which of the columns of a CSV file are text, whatever they look like.
    """
    if format in ("csv", "tsv"):
        return _load_csv(stream, ",;" if format == "csv" else "\t", text_columns)
    if not stream.seekable():
        stream = io.BytesIO(stream.read())
    table = _load_parquet(stream) if format == "parquet" else _load_arrow(stream)
    # An index that pandas saved is no feature, and not the last column either.
    index = [c for c in table.column_names if _PANDAS_INDEX.fullmatch(c)]
    return table.drop_columns(index), True


def _load_parquet(stream: BinaryIO) -> pa.Table:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(stream).read()


def _load_arrow(stream: BinaryIO) -> pa.Table:
    from pyarrow import ipc

    is_file = stream.read(len(_ARROW_FILE)) == _ARROW_FILE
    stream.seek(0)
    try:
        table = (ipc.open_file if is_file else ipc.open_stream)(stream).read_all()
    except MemoryError:  # a damaged length, or a table that is too large indeed
        raise ValueError("the Arrow data asks for more memory than there is") from None
    if not is_file:
        # pyarrow takes a stream cut between two batches for a whole one.
        stream.seek(-len(_ARROW_STREAM_END), os.SEEK_END)
        if stream.read() != _ARROW_STREAM_END:
            raise ValueError("the Arrow stream is cut short: it has no end mark")
    table.validate(full=True)  # the offsets in the file are used as they are
    return table


def _load_csv(stream: BinaryIO, delimiters: str, text_columns) -> tuple[pa.Table, bool]:
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    head = _first_record(stream)
    fields, delimiter = _split(head.decode("utf-8-sig", "replace"), delimiters)
    # An empty field says nothing: a number may be missing, a column may have no name.
    has_header = not all(_is_number(field) for field in fields if field)
    names = fields if has_header else [str(i) for i in range(len(fields))]
    table = read_csv(
        # Filled to the brim: pyarrow takes a short read for the end.
        io.BufferedReader(RawStream(_Rewound(head, stream))),
        ReadOptions(
            column_names=None if has_header else names,
            block_size=min(max(1 << 20, 64 * len(head)), 1 << 30),  # more than any row
        ),
        ParseOptions(delimiter=delimiter, newlines_in_values=True),
        ConvertOptions(
            strings_can_be_null=True,
            # Categories such as 01 stay text even where all of a file's are numbers.
            column_types={column: pa.string() for column in text_columns(names)},
        ),
    )
    return table, has_header


def _first_record(stream: BinaryIO) -> bytes:
    """The bytes up to the end of the first record, which quotes may spread over lines."""
    lines, quotes = [], 0
    for line in iter(stream.readline, b""):
        lines.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0 and line.strip(b"\r\n"):
            break
    return b"".join(lines)


def _split(record: str, delimiters: str) -> tuple[list[str], str]:
    """The fields of the record, and the delimiter that is most often outside of quotes."""
    delimiter = max(delimiters, key=re.sub('"[^"]*"', "", record).count)
    lines = io.StringIO(record.lstrip("\r\n"), newline="")
    return next(csv.reader(lines, delimiter=delimiter), []), delimiter


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


class _Rewound:
    """A file with the bytes put back that were read from its start."""

    def __init__(self, head: bytes, rest: BinaryIO):
        self._head, self._rest = io.BytesIO(head), rest

    def read(self, size: int) -> bytes:
        return self._head.read(size) or self._rest.read(size)
