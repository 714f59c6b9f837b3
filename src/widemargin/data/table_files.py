"""Read CSV, TSV, Parquet and Arrow files as pyarrow tables, whole or in pieces."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from widemargin.budget import Budget
from widemargin.data.arrow_messages import Declared, declared_bytes
from widemargin.data.streams import BLOCK, LentStream, whole

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_FORMATS = ("csv", "tsv", "parquet", "arrow")
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_ARROW_FILE = b"ARROW1"
_ARROW_FILE_HEAD = 8  # bytes before the stream in an Arrow file
_COLUMN, _CSV_COLUMN = 4 << 10, 12 << 10  # bytes of overhead per column
_LEAST_BLOCK = 1 << 16  # bytes of CSV text
_PIECE = 8 << 20  # bytes of numbers unpacked at a time
# Rows unpacked at a time; fewer if each may be a text as long as a page.
_MOST_ROWS, _MOST_ROWS_SPELLED = 1 << 16, 1 << 8


@dataclass(frozen=True)
class Asked:
    """How to parse a CSV file: values that count as missing, and columns of text.

    ``check(names, has_header)`` raises ValueError unless these are the columns that are needed.
    """

    na: Sequence[str]
    texts: Collection[str]
    check: Callable[[Sequence[str], bool], object]


class LoadedTable(NamedTuple):
    """A table, whether the file names its columns, and which it declares categorical."""

    table: pa.Table
    has_header: bool
    categorical: Collection[str] = ()


def table_file(
    stream: BinaryIO,
    format: str,
    asked: Asked,
    budget: Budget,
    again: Callable[[], BinaryIO] | None = None,
) -> CsvFile | ParquetFile | ArrowFile:
    """Return a reader of a stream in one of `TABLE_FORMATS`.

    Read it as a ``whole``, or in ``pieces`` of about ``n_bytes`` as numbers.  In pieces, CSV
    columns have the given ``types``; without one, the type that fits the piece.  ``again`` opens
    the text from its start.
    """
    if format in ("csv", "tsv"):
        return CsvFile(again or (lambda: stream), ",;" if format == "csv" else "\t", asked, budget)
    if not stream.seekable():
        stream = whole(stream, budget)
    return (ParquetFile if format == "parquet" else ArrowFile)(stream, budget)


# ------------------------------------------------------------------ CSV and TSV


@dataclass(frozen=True)
class CsvForm:
    """The form of a CSV file: first bytes, names, and how to parse columns."""

    head: bytes
    rest: bytes  # of the head, without the header line
    spelled: list[str]
    has_header: bool
    delimiter: str
    nulls: list[str]
    texts: set[str]

    @classmethod
    def of(cls, stream: BinaryIO, delimiters: str, asked: Asked, budget: Budget) -> CsvForm:
        from pyarrow.csv import ConvertOptions

        first = _first_record(stream, budget)
        fields, delimiter = _split(first.decode("utf-8-sig", "replace"), delimiters)
        second = _first_record(stream, budget)
        has_header = _is_header(fields, _split(second.decode("utf-8", "replace"), delimiter)[0])
        spelled = fields if has_header else [str(i) for i in range(len(fields))]
        budget.check(len(spelled) * _CSV_COLUMN, f"its {len(spelled)} columns take")
        asked.check([name.lstrip(" ") for name in spelled], has_header)
        nulls = [*ConvertOptions().null_values, *asked.na]
        # Files with a blank after each comma also have one before "?".
        nulls = [f"{blank}{na}" for na in nulls for blank in ("", " ")]
        rest = second if has_header else first + second
        return cls(first + second, rest, spelled, has_header, delimiter, nulls, set(asked.texts))

    @property
    def names(self) -> list[str]:
        return [name.lstrip(" ") for name in self.spelled]

    def read(
        self,
        opened: Callable[[], Any],
        block: int,
        *,
        types: Mapping[str, pa.DataType],
        with_names: bool,
    ) -> pa.Table:
        """Parse text as a table; infer missing types of columns.

        ``opened`` passes the text to pyarrow only, because an error's frames would keep it alive.
        """
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        # Categories such as 01 stay text even if all of a file's look like numbers.
        declared = {name: pa.string() for name in self.texts} | dict(types)
        by_spelling = {
            name: declared[n] for name in self.spelled if (n := name.lstrip(" ")) in declared
        }
        table = read_csv(
            opened(),
            ReadOptions(column_names=None if with_names else self.spelled, block_size=block),
            ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            ConvertOptions(
                strings_can_be_null=True, null_values=self.nulls, column_types=by_spelling
            ),
        )
        return _without_blanks(table)


@dataclass(frozen=True)
class CsvFile:
    """CSV or TSV text; ``again`` opens it from its start."""

    again: Callable[[], BinaryIO]
    delimiters: str
    asked: Asked
    budget: Budget

    def whole(self) -> LoadedTable:
        import pyarrow as pa

        stream, budget = self.again(), self.budget
        form = CsvForm.of(stream, self.delimiters, self.asked, budget)
        before = pa.total_allocated_bytes()

        def check_memory() -> None:
            # All threads' memory, because a separate pool would have to outlive the table's arrays.
            budget.check(pa.total_allocated_bytes() - before, "its columns take")

        # More than any row; pyarrow reads dozens of blocks ahead.
        least = max(_LEAST_BLOCK, budget.max_bytes >> 6)
        block = min(max(BLOCK, 64 * len(form.head)), 1 << 30, least)
        # Filled completely, because pyarrow takes a short read for the end.
        text = LentStream(_Rewound(form.head, stream, check_memory))
        try:
            table = form.read(text.lend, block, types={}, with_names=form.has_header)
        finally:
            text.wait()
        budget.hold(table.nbytes, "its columns take")
        return LoadedTable(table, form.has_header)

    def pieces(self, n_bytes: int, types: Mapping[str, pa.DataType]) -> Iterator[LoadedTable]:
        import pyarrow as pa

        stream = self.again()
        form = CsvForm.of(stream, self.delimiters, self.asked, self.budget)
        for text in whole_records(form.rest, stream, n_bytes, self.budget):
            if text.strip(b"\r\n"):
                opened = partial(pa.BufferReader, text)
                table = form.read(opened, len(text) + 1, types=types, with_names=False)
                yield LoadedTable(table, form.has_header)


def whole_records(text: bytes, stream: BinaryIO, n_bytes: int, budget: Budget) -> Iterator[bytes]:
    """Yield ``text`` and the stream cut after records; line breaks in quotes end no record.

    >>> import io
    >>> list(whole_records(b'1,"a', io.BytesIO(b'\\nb"\\n2,c\\n3,d'), 9, Budget(None, "")))
    [b'1,"a\\nb"\\n2,c\\n', b'3,d']
    """
    while more := stream.read(n_bytes):
        text += more
        budget.check(2 * len(text), "a record of it takes")
        n_quotes, end = text.count(b'"'), len(text)
        while end > 0:  # back to a line break outside quotes
            cut = text.rfind(b"\n", 0, end) + 1
            n_quotes -= text.count(b'"', cut, end)
            end = cut if n_quotes % 2 == 0 else cut - 1
            if n_quotes % 2 == 0:
                break
        if end > 0:
            yield text[:end]
            text = text[end:]
    if text:
        yield text


def _without_blanks(table: pa.Table) -> pa.Table:
    """Remove the blanks that some files have after each comma, from names and texts."""
    import pyarrow as pa
    from pyarrow import compute, types

    columns = [
        compute.utf8_ltrim(column, " ") if types.is_string(column.type) else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, [name.lstrip(" ") for name in table.column_names])


def _first_record(stream: BinaryIO, budget: Budget) -> bytes:
    """Return the bytes of the first record, which may span lines in quotes."""
    record, quotes, blank = bytearray(), 0, True
    for line in iter(lambda: stream.readline(BLOCK), b""):
        record += line
        budget.check(len(record), "its first record takes")
        quotes += line.count(b'"')
        blank = blank and not line.strip(b"\r\n")
        if quotes % 2 == 0 and line.endswith(b"\n") and not blank:
            break
    return bytes(record)


def _split(record: str, delimiters: str) -> tuple[list[str], str]:
    """Return the record's fields, and the delimiter that occurs most outside quotes."""
    delimiter = max(delimiters, key=re.sub('"[^"]*"', "", record).count)
    lines = io.StringIO(record.lstrip("\r\n"), newline="")
    return next(csv.reader(lines, delimiter=delimiter), []), delimiter


def _is_header(fields: list[str], second: list[str]) -> bool:
    """Whether the first line names the columns.

    False if it is all numbers, or resembles the second: numbers in the same columns that do not
    count up as column numbers or years do.  Empty fields are ignored.

    >>> _is_header(["age", "job"], ["39", "clerk"]), _is_header(["0", "1", "y"], ["7", "9", "no"])
    (True, True)
    >>> _is_header(["39", "clerk", "13"], ["50", "smith", "9"])
    False
    """
    numbers = [float(field) for field in fields if _is_number(field)]
    if len(numbers) == sum(map(bool, fields)):
        return False
    pairs = [(a, b) for a, b in zip(fields, second, strict=False) if a and b]
    alike = len(fields) == len(second) and all(_is_number(a) == _is_number(b) for a, b in pairs)
    counting = all(b == a + 1 for a, b in pairwise(numbers))
    return not alike or counting


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


class _Rewound:
    """A file with the bytes put back that were already read.

    ``before_each`` is called before a block is read.
    """

    def __init__(self, head: bytes, rest: BinaryIO, before_each: Callable[[], None]):
        self._head, self._rest, self._before_each = io.BytesIO(head), rest, before_each

    def read(self, size: int) -> bytes:
        self._before_each()
        return self._head.read(size) or self._rest.read(size)


# ------------------------------------------------------------------ Parquet and Arrow


def _without_index(table: pa.Table) -> pa.Table:
    """Remove an index that pandas saved."""
    return table.drop_columns([c for c in table.column_names if _PANDAS_INDEX.fullmatch(c)])


def _dictionaries(schema: pa.Schema) -> set[str]:
    from pyarrow import types

    return {field.name for field in schema if types.is_dictionary(field.type)}


def _joined(pieces: Iterator[LoadedTable], budget: Budget) -> LoadedTable:
    """Join pieces to one table within the budget."""
    import pyarrow as pa

    parts, total = [], 0
    for part in pieces:
        total += part.table.nbytes
        budget.check(total, "its columns take")
        parts.append(part)
    if not parts:
        raise ValueError("the table has no rows")
    budget.hold(total, "its columns take")
    return parts[0]._replace(table=pa.concat_tables([part.table for part in parts]))


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file; texts stay dictionary-encoded if possible."""

    stream: BinaryIO
    budget: Budget

    def whole(self) -> LoadedTable:
        from pyarrow import parquet

        metadata = parquet.ParquetFile(self.stream).metadata
        sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
        least = 8 * metadata.num_rows * metadata.num_columns
        self.budget.check(max(sum(sizes), least), "its columns take")
        return _joined(self.pieces(_PIECE, {}), self.budget)

    def pieces(self, n_bytes: int, types: Mapping[str, pa.DataType]) -> Iterator[LoadedTable]:
        from pyarrow import parquet

        file = parquet.ParquetFile(self.stream)
        metadata, declared = file.metadata, _dictionaries(file.schema_arrow)
        n = metadata.num_columns
        self.budget.check(n * _COLUMN, f"its {n} columns take")
        columns = [metadata.schema.column(i) for i in range(n)]
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        # A page of a few bytes may represent any number of rows.
        rows = max(1, min(_MOST_ROWS, n_bytes // (8 * max(1, n))))
        try:
            by_number = parquet.ParquetFile(self.stream, metadata=metadata, read_dictionary=texts)
            batches = by_number.iter_batches(rows)
            batch = next(batches, None)
        except OSError as error:
            if "Not yet implemented" not in str(error):
                raise
            batches = file.iter_batches(min(rows, _MOST_ROWS_SPELLED))
            batch = next(batches, None)
        while batch is not None:
            yield from _validated(batch, rows, declared, self.budget)
            batch = next(batches, None)


@dataclass(frozen=True)
class ArrowFile:
    """An Arrow IPC file or stream; holds one batch of rows in memory."""

    stream: BinaryIO
    budget: Budget

    def whole(self) -> LoadedTable:
        self.budget.check(_to_arrow_messages(self.stream).all, "its columns take")
        return _joined(self.pieces(_PIECE, {}), self.budget)

    def pieces(self, n_bytes: int, types: Mapping[str, pa.DataType]) -> Iterator[LoadedTable]:
        from pyarrow import ipc

        self.budget.check(_to_arrow_messages(self.stream).at_once, "some of its rows take")
        reader = ipc.open_stream(self.stream)
        n = len(reader.schema)
        self.budget.check(n * _COLUMN, f"its {n} columns take")
        return in_pieces(reader, n_bytes, self.budget)


def in_pieces(reader: pa.RecordBatchReader, n_bytes: int, budget: Budget) -> Iterator[LoadedTable]:
    """Yield batches cut into tables of about ``n_bytes`` as numbers."""
    declared = _dictionaries(reader.schema)
    step = max(1, min(_MOST_ROWS, n_bytes // (8 * max(1, len(reader.schema)))))
    for batch in reader:
        yield from _validated(batch, step, declared, budget)


def _validated(
    batch: pa.RecordBatch, step: int, declared: set[str], budget: Budget
) -> Iterator[LoadedTable]:
    """Yield validated slices of a batch, ``step`` rows at a time."""
    import pyarrow as pa

    # The size is computed from offsets in the file, so validate them first.
    batch.validate(full=True)
    budget.check(batch.nbytes, "some of its rows take")
    table = pa.Table.from_batches([batch])
    for begin in range(0, table.num_rows, step):
        yield LoadedTable(_without_index(table.slice(begin, step)), True, declared)


def _to_arrow_messages(stream: BinaryIO) -> Declared:
    """Seek to the first Arrow message.

    An Arrow file is a stream plus header and footer, which a full read does not need.
    """
    stream.seek(0)
    if stream.read(len(_ARROW_FILE)) == _ARROW_FILE:
        stream.seek(-len(_ARROW_FILE), os.SEEK_END)
        if stream.read() != _ARROW_FILE:
            raise ValueError("the Arrow file is cut short: it has no end mark")
        stream.seek(_ARROW_FILE_HEAD)
    else:
        stream.seek(0)
    return declared_bytes(stream)
