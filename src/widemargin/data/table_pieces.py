"""Files of tables piece by piece, as often as needed: a piece is a table of some rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Protocol

from widemargin.budget import Budget
from widemargin.data.table_files import (
    Asked,
    CsvForm,
    LoadedTable,
    arrow_batches,
    parquet_batches,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Pieces(Protocol):
    """A table that can be read more than once, some rows at a time."""

    def tables(self, types: Mapping[str, pa.DataType]) -> Iterator[LoadedTable]:
        """Its rows in order; columns of CSV text that have no type are of what suits a piece."""
        ...


@dataclass(frozen=True)
class CsvPieces:
    """``again`` opens the text from its start."""

    again: Callable[[], BinaryIO]
    delimiters: str
    asked: Asked
    n_bytes: int
    budget: Budget

    def tables(self, types: Mapping[str, pa.DataType]) -> Iterator[LoadedTable]:
        import pyarrow as pa

        stream = self.again()
        form = CsvForm.of(stream, self.delimiters, self.asked, self.budget)
        for text in whole_records(form.rest, stream, self.n_bytes, self.budget):
            if text.strip(b"\r\n"):
                opened = partial(pa.BufferReader, text)
                table = form.read(opened, len(text) + 1, types=types, with_names=False)
                yield LoadedTable(table, form.has_header)


def whole_records(text: bytes, stream: BinaryIO, n_bytes: int, budget: Budget) -> Iterator[bytes]:
    """``text`` and what follows, cut behind records; a line break in quotes ends none.

    >>> import io
    >>> list(whole_records(b'1,"a', io.BytesIO(b'\\nb"\\n2,c\\n3,d'), 9, Budget(None, "")))
    [b'1,"a\\nb"\\n2,c\\n', b'3,d']
    """
    while more := stream.read(n_bytes):
        text += more
        budget.check(2 * len(text), "a record of it takes")
        n_quotes, end = text.count(b'"'), len(text)
        while end > 0:  # back to a line break with all quotes before it closed
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


@dataclass(frozen=True)
class ColumnPieces:
    """A Parquet or Arrow file, which can be jumped about in, and has the types of its columns."""

    file: BinaryIO
    format: str
    n_bytes: int
    budget: Budget

    def tables(self, types: Mapping[str, pa.DataType]) -> Iterator[LoadedTable]:
        self.file.seek(0)
        batches = parquet_batches if self.format == "parquet" else arrow_batches
        return batches(self.file, self.n_bytes, self.budget)
