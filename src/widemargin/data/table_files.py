"""CSV, TSV, Parquet and Arrow files as pyarrow's tables."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from widemargin.budget import Budget
from widemargin.data.arrow_messages import Declared, declared_bytes
from widemargin.data.streams import BLOCK, LentStream, whole

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_ARROW_FILE = b"ARROW1"
_ARROW_FILE_HEAD = 8  # bytes before the stream that an Arrow file holds
_COLUMN, _CSV_COLUMN = 4 << 10, 12 << 10  # bytes that a column takes whatever is in it
_LEAST_BLOCK = 1 << 16  # bytes of CSV text
_CELLS = 1 << 20  # of a Parquet file that are unpacked at a time
_MOST_ROWS, _MOST_ROWS_SPELLED = 1 << 16, 1 << 8  # likewise: each may be a text as long as a page


@dataclass(frozen=True)
class Asked:
    """What a CSV file does not say itself.

    ``na`` are values that count as missing; ``text_columns`` says which of the columns are text,
    whatever they look like.
    """

    na: Sequence[str]
    text_columns: Callable[[list[str]], Iterable[str]]


class LoadedTable(NamedTuple):
    """The table, whether the file names its columns, and those that it calls categorical."""

    table: pa.Table
    has_header: bool
    categorical: Collection[str] = ()


def load_table(stream: BinaryIO, format: str, asked: Asked, budget: Budget) -> LoadedTable:
    if format in ("csv", "tsv"):
        return _load_csv(stream, ",;" if format == "csv" else "\t", asked, budget)
    if not stream.seekable():
        stream = whole(stream, budget)
    load = _load_parquet if format == "parquet" else _load_arrow
    table, schema = load(stream, budget)
    table.validate(full=True)  # offsets and numbers of texts are taken from the file as they are
    return LoadedTable(_without_index(table), True, _dictionaries(schema))


def _without_index(table: pa.Table) -> pa.Table:
    """An index that pandas saved is no feature, and not the last column either."""
    return table.drop_columns([c for c in table.column_names if _PANDAS_INDEX.fullmatch(c)])


def _dictionaries(schema: pa.Schema) -> set[str]:
    from pyarrow import types

    return {field.name for field in schema if types.is_dictionary(field.type)}


def _check_columns(n: int, each: int, budget: Budget) -> None:
    budget.check(n * each, f"its {n} columns take")


def _load_parquet(stream: BinaryIO, budget: Budget) -> tuple[pa.Table, pa.Schema]:
    """Texts by number, unless their encoding has to be spelled out; and the schema as written."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    told, schema = file.metadata, file.schema_arrow
    sizes = [told.row_group(i).total_byte_size for i in range(told.num_row_groups)]
    budget.check(max(sum(sizes), 8 * told.num_rows * told.num_columns), "its columns take")
    _check_columns(told.num_columns, _COLUMN, budget)
    rows = max(1, min(_MOST_ROWS, _CELLS // max(1, told.num_columns)))
    try:
        return _in_batches(_by_number(stream, file), rows, budget), schema
    except OSError as error:
        if "Not yet implemented" not in str(error):
            raise
    return _in_batches(ParquetFile(stream, metadata=told), _MOST_ROWS_SPELLED, budget), schema


def _by_number(stream: BinaryIO, file: ParquetFile) -> ParquetFile:
    from pyarrow.parquet import ParquetFile

    columns = [file.metadata.schema.column(i) for i in range(file.metadata.num_columns)]
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    return ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)


def parquet_batches(stream: BinaryIO, n_bytes: int, budget: Budget) -> Iterator[LoadedTable]:
    """Some rows at a time, of about so many bytes as numbers."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    _check_columns(file.metadata.num_columns, _COLUMN, budget)
    categorical = _dictionaries(file.schema_arrow)
    rows = max(1, min(_MOST_ROWS, n_bytes // (8 * max(1, file.metadata.num_columns))))
    try:
        batches = _by_number(stream, file).iter_batches(rows)
        first = next(batches, None)
    except OSError as error:
        if "Not yet implemented" not in str(error):
            raise
        batches = ParquetFile(stream).iter_batches(min(rows, _MOST_ROWS_SPELLED))
        first = next(batches, None)
    while first is not None:
        budget.check(first.nbytes, "some of its rows take")
        table = pa.Table.from_batches([first])
        table.validate(full=True)
        yield LoadedTable(_without_index(table), True, categorical)
        first = next(batches, None)


def _in_batches(file: ParquetFile, rows: int, budget: Budget) -> pa.Table:
    """So many rows at a time: a page of a few bytes may stand for any number of them."""
    import pyarrow as pa

    batches, total = [], 0
    for batch in file.iter_batches(rows):
        total += batch.nbytes
        budget.check(total, "its columns take")
        batches.append(batch)
    budget.hold(total, "its columns take")
    return pa.Table.from_batches(batches, schema=file.schema_arrow)


def _load_arrow(stream: BinaryIO, budget: Budget) -> tuple[pa.Table, pa.Schema]:
    budget.hold(_to_arrow_messages(stream).all, "its columns take")
    reader = _arrow_reader(stream, budget)
    return reader.read_all(), reader.schema


def arrow_batches(stream: BinaryIO, n_bytes: int, budget: Budget) -> Iterator[LoadedTable]:
    """Some rows at a time; in memory are those of one batch of the file."""
    budget.check(_to_arrow_messages(stream).at_once, "some of its rows take")
    return in_pieces(_arrow_reader(stream, budget), n_bytes, budget)


def in_pieces(reader: pa.RecordBatchReader, n_bytes: int, budget: Budget) -> Iterator[LoadedTable]:
    """Batches cut into tables of about so many bytes as numbers."""
    import pyarrow as pa

    categorical = _dictionaries(reader.schema)
    step = max(1, min(_MOST_ROWS, n_bytes // (8 * max(1, len(reader.schema)))))
    for batch in reader:
        table = pa.Table.from_batches([batch])
        table.validate(full=True)  # before its size is asked for, which follows its offsets
        budget.check(batch.nbytes, "some of its rows take")
        for begin in range(0, table.num_rows, step):
            yield LoadedTable(_without_index(table.slice(begin, step)), True, categorical)


def _to_arrow_messages(stream: BinaryIO) -> Declared:
    """Go where the first of them begins: a file is a stream with a head and an index, which nobody
    needs who reads all."""
    stream.seek(0)
    if stream.read(len(_ARROW_FILE)) == _ARROW_FILE:
        stream.seek(-len(_ARROW_FILE), os.SEEK_END)
        if stream.read() != _ARROW_FILE:
            raise ValueError("the Arrow file is cut short: it has no end mark")
        stream.seek(_ARROW_FILE_HEAD)
    else:
        stream.seek(0)
    return declared_bytes(stream)


def _arrow_reader(stream: BinaryIO, budget: Budget) -> pa.RecordBatchReader:
    from pyarrow import ipc

    reader = ipc.open_stream(stream)
    _check_columns(len(reader.schema), _COLUMN, budget)
    return reader


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is spelled: its first bytes, names, and how columns are parsed."""

    head: bytes
    rest: bytes  # of the head, without a header
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
        _check_columns(len(spelled), _CSV_COLUMN, budget)
        nulls = [*ConvertOptions().null_values, *asked.na]
        # Files with a blank after each comma have one before a ? too.
        nulls = [f"{blank}{na}" for na in nulls for blank in ("", " ")]
        texts = set(asked.text_columns([name.lstrip(" ") for name in spelled]))
        rest = second if has_header else first + second
        return cls(first + second, rest, spelled, has_header, delimiter, nulls, texts)

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
        """Text as a table; columns without a type have one that suits them.

        ``opened`` gives the text to pyarrow alone: an error's frames would keep it otherwise.
        """
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        # Categories such as 01 stay text even where all of a file's are numbers.
        own = {name: pa.string() for name in self.texts} | dict(types)
        by_spelling = {name: own[n] for name in self.spelled if (n := name.lstrip(" ")) in own}
        table = read_csv(
            opened(),
            ReadOptions(column_names=None if with_names else self.spelled, block_size=block),
            ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            ConvertOptions(
                strings_can_be_null=True, null_values=self.nulls, column_types=by_spelling
            ),
        )
        return _without_blanks(table)


def _load_csv(stream: BinaryIO, delimiters: str, asked: Asked, budget: Budget) -> LoadedTable:
    import pyarrow as pa

    form = CsvForm.of(stream, delimiters, asked, budget)
    before = pa.total_allocated_bytes()

    def check_memory() -> None:
        # Of all threads: a pool of its own would have to outlive every array made of the table.
        budget.check(pa.total_allocated_bytes() - before, "its columns take")

    # More than any row; pyarrow reads dozens of blocks ahead.
    block = min(max(BLOCK, 64 * len(form.head)), 1 << 30, max(_LEAST_BLOCK, budget.max_bytes >> 6))
    # Filled to the brim: pyarrow takes a short read for the end.
    text = LentStream(_Rewound(form.head, stream, check_memory))
    try:
        table = form.read(text.lend, block, types={}, with_names=form.has_header)
    finally:
        text.wait()
    budget.hold(table.nbytes, "its columns take")
    return LoadedTable(table, form.has_header)


def _without_blanks(table: pa.Table) -> pa.Table:
    """Without the blanks that some files have after each comma, in names and texts."""
    import pyarrow as pa
    from pyarrow import compute, types

    columns = [
        compute.utf8_ltrim(column, " ") if types.is_string(column.type) else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, [name.lstrip(" ") for name in table.column_names])


def _first_record(stream: BinaryIO, budget: Budget) -> bytes:
    """The bytes up to the end of the first record, which quotes may spread over lines."""
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
    """The fields of the record, and the delimiter that is most often outside of quotes."""
    delimiter = max(delimiters, key=re.sub('"[^"]*"', "", record).count)
    lines = io.StringIO(record.lstrip("\r\n"), newline="")
    return next(csv.reader(lines, delimiter=delimiter), []), delimiter


def _is_header(fields: list[str], second: list[str]) -> bool:
    """Whether the first line names the columns.

    Not if it is all numbers, and not if it is like the second: numbers in the same places, which do
    not count up as numbers of columns or years do.  An empty field says nothing.

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
    """A file with the bytes put back that were read from its start.

    ``before_each`` is called before a block is read.
    """

    def __init__(self, head: bytes, rest: BinaryIO, before_each: Callable[[], None]):
        self._head, self._rest, self._before_each = io.BytesIO(head), rest, before_each

    def read(self, size: int) -> bytes:
        self._before_each()
        return self._head.read(size) or self._rest.read(size)
