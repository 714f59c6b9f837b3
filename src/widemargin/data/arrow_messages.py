"""Compute the memory that an Arrow stream declares, before unpacking it.

A compressed buffer begins with its unpacked length, which pyarrow allocates without a check.  So
this module walks the messages first: their metadata are FlatBuffers, and it reads only the fields
that lead to the buffers (format/Message.fbs of Apache Arrow).
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO, NamedTuple

_CONTINUED = b"\xff\xff\xff\xff"
_DICTIONARY, _ROWS = 2, 3  # kinds of messages
_BUFFER = 16  # bytes of a buffer's offset and length


class Declared(NamedTuple):
    """Bytes that a stream's buffers take in memory: the dictionaries, and each batch of rows."""

    dictionaries: int
    batches: list[int]

    @property
    def all(self) -> int:
        return self.dictionaries + sum(self.batches)

    @property
    def at_once(self) -> int:
        """Return the bytes for reading one batch after another."""
        return self.dictionaries + max(self.batches, default=0)


def declared_bytes(stream: BinaryIO) -> Declared:
    """Return the declared bytes of a stream's messages; keeps the stream's position.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> file, table = io.BytesIO(), pa.table({"a": [1.5] * 1000})
    >>> with pa.ipc.new_stream(file, table.schema) as writer:
    ...     writer.write_table(table)
    >>> _ = file.seek(0)
    >>> declared_bytes(file).all >= 8000
    True
    """
    start = stream.tell()
    end = stream.seek(0, os.SEEK_END)
    stream.seek(start)
    dictionaries, batches = 0, []
    try:
        while size := _metadata_size(stream):
            if size > end - stream.tell():
                raise ValueError("the Arrow stream is cut short")
            message = _Table.root(stream.read(size))
            body, length = stream.tell(), message.number(3, "<q")
            if not 0 <= length <= end - body:
                raise ValueError("the Arrow stream is cut short")
            size = length + _unpacked(message, stream, range(body, body + length))
            if message.number(1, "<B") == _ROWS:
                batches.append(size)
            else:
                dictionaries += size
            stream.seek(body + length)
    except struct.error:
        raise ValueError("the Arrow stream is damaged") from None
    stream.seek(start)
    return Declared(dictionaries, batches)


def _metadata_size(stream: BinaryIO) -> int:
    """Return the bytes of the next message's metadata, 0 at the end."""
    head = stream.read(8)
    if len(head) < 8:
        raise ValueError("the Arrow stream is cut short: it has no end mark")
    if head[:4] != _CONTINUED:
        raise ValueError("the Arrow stream is damaged, or older than version 0.15 of the format")
    size = int.from_bytes(head[4:], "little", signed=True)
    if size < 0:
        raise ValueError("the Arrow stream is damaged")
    return size


def _unpacked(message: _Table, stream: BinaryIO, body: range) -> int:
    """Return the unpacked bytes of a message's buffers; those of the body if not compressed."""
    kind = message.number(1, "<B")
    if kind not in (_DICTIONARY, _ROWS):
        return 0
    batch = message.table(2)
    if batch is not None and kind == _DICTIONARY:
        batch = batch.table(1)
    if batch is None or batch.at(3) is None:
        return 0
    total = 0
    for begin, length in batch.pairs(2):
        if length:
            if not 0 <= begin < len(body):
                raise ValueError("the Arrow stream is damaged")
            stream.seek(body[begin])
            (size,) = struct.unpack("<q", stream.read(8))
            total += max(size, 0)  # -1: not compressed
    return total


class _Table:
    """A table of a FlatBuffer, with a table of its fields' offsets."""

    def __init__(self, content: bytes, position: int):
        self._content, self._position = content, position

    @classmethod
    def root(cls, content: bytes) -> _Table:
        return cls(content, struct.unpack_from("<I", content)[0])

    def _read(self, kind: str, position: int) -> int:
        if position < 0:  # Python would count from the end
            raise struct.error
        return struct.unpack_from(kind, self._content, position)[0]

    def at(self, field: int) -> int | None:
        """Return the position of a field, None if it is absent."""
        offsets = self._position - self._read("<i", self._position)
        entry = 4 + 2 * field
        offset = self._read("<H", offsets + entry) if entry < self._read("<H", offsets) else 0
        return self._position + offset if offset else None

    def number(self, field: int, kind: str) -> int:
        position = self.at(field)
        return 0 if position is None else self._read(kind, position)

    def table(self, field: int) -> _Table | None:
        position = self.at(field)
        if position is None:
            return None
        return _Table(self._content, position + self._read("<I", position))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a vector of pairs of integers."""
        position = self.at(field)
        if position is None:
            return []
        position += self._read("<I", position)
        n, begin = self._read("<I", position), position + 4
        content = self._content[begin : begin + _BUFFER * n]
        if len(content) < _BUFFER * n:
            raise struct.error
        return list(struct.iter_unpack("<qq", content))
