"""Tables that promise more than they hold: Arrow's lengths, Parquet's runs, long names."""

import io
from contextlib import suppress

import numpy as np
import pytest

from widemargin import AdditiveSVC
from widemargin.data import read
from widemargin.data.arrow_messages import declared_bytes
from widemargin.errors import TooLargeError

from .helpers import refused
from .table_helpers import feather_bytes, pa, parquet, people, read_arrow, stream_bytes
from .test_limits import MAX_BYTES, UNPACKED, too_large

ZEROS = pa.table({"y": np.zeros(UNPACKED // 8)})


def nothing(n: int) -> "pa.Table":
    return pa.table({"a": pa.Array.from_buffers(pa.null(), n, [None])})


def parquet_of(table, **options) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


def test_columns_of_nothing():
    """A length is all that such a column has: 400 bytes were good for a MemoryError."""
    sink = io.BytesIO()
    table = nothing(2**31 - 1)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content = sink.getvalue()
    assert len(content) < 700
    too_large(content, "its features take 17.2 GB", label=False)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_packed_columns(compression):
    sink = io.BytesIO()
    pa.feather.write_feather(ZEROS, sink, compression=compression)
    too_large(sink.getvalue(), "its columns take")


def test_lengths_that_are_not_there():
    """What a packed column is to become stands in its first eight bytes, and is not believed."""
    table = pa.table({"a": np.zeros(1000), "y": np.zeros(1000)})
    sink = io.BytesIO()
    pa.feather.write_feather(table, sink, compression="lz4")
    honest = (8000).to_bytes(8, "little")
    assert honest in sink.getvalue()
    too_large(sink.getvalue().replace(honest, (2**40).to_bytes(8, "little")), "its columns take")


@pytest.mark.parametrize("table", [people(), nothing(3)], ids=["people", "nothing"])
def test_declared_bytes_are_what_there_is(table):
    for write in (stream_bytes, feather_bytes):
        content = write(table)
        file = io.BytesIO(content)
        file.seek(8 if content.startswith(b"ARROW1") else 0)
        before = file.tell()
        assert table.nbytes <= declared_bytes(file).all < 10 * table.nbytes + 2000
        assert file.tell() == before


def test_files_without_an_end():
    content = feather_bytes(people())
    with refused("the file: the Arrow file is cut short"):
        read(io.BytesIO(content[:-1]))


def test_runs_of_one_number():
    too_large(parquet_of(ZEROS), "its columns take")


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["numbered", "plain"])
def test_one_long_text_for_many_rows(options):
    table = pa.table({"a": ["x" * (1 << 16)] * 1024, "y": [0, 1] * 512})
    content = parquet_of(table, compression="zstd", **options)
    assert len(content) < 1 << 17
    data = read(io.BytesIO(content), max_bytes=100 << 20)
    assert data.X.shape == (1024, 1)
    with refused("max_bytes=", kind=TooLargeError):
        read(io.BytesIO(content), label="a", max_bytes=100 << 20)


def test_texts_whose_encoding_is_spelled_out():
    table = pa.table({"a": ["x" * (1 << 16)] * 1024, "y": [0, 1] * 512})
    encoding = {"a": "DELTA_BYTE_ARRAY"}
    content = parquet_of(table, use_dictionary=False, column_encoding=encoding)
    too_large(content, "some of its rows take")
    small = table.slice(0, 4)
    content = parquet_of(small, use_dictionary=False, column_encoding=encoding)
    assert read(io.BytesIO(content)).X.shape == (4, 1)


def test_numbered_texts_that_are_unused_missing_or_repeated():
    codes = pa.array([2, 0, 2, None], pa.uint8())
    values = pa.array(["b", "unused", "a", "b"])
    column = pa.DictionaryArray.from_arrays(codes, values)
    table = pa.table({"kind": column, "y": [0, 1, 1, 0]})
    data = read_arrow(table)
    assert data.columns.categorical == {"kind": 2}
    assert data.columns.missing == {"kind": 1}
    model = AdditiveSVC(missing="learn", random_state=0).fit(data.X, data.y)
    assert model.columns_.categories == {0: ("a", "b")}


def test_what_fits_is_read():
    for content in (feather_bytes(people()), stream_bytes(people()), parquet_of(people())):
        assert read(io.BytesIO(content), max_bytes=MAX_BYTES).X.shape == (5, 3)


def test_numbers_of_texts_beyond_the_last():
    """pyarrow takes them from a Parquet file unchecked, and looks up whatever is there."""
    table = pa.table({"a": ["x", "y", "x", "y"], "y": [0, 1, 1, 0]})
    content = parquet_of(table, compression="none", write_statistics=False)
    end = content.rindex(b"schema")
    for at in range(4, end):
        changed = content[:at] + b"\xff" + content[at + 1 :]
        with suppress(ValueError):
            assert read(io.BytesIO(changed)).X.shape[0] <= 4


def test_columns_that_are_hardly_more_than_commas():
    """Each costs pyarrow 11 kB: a line of a million commas was good for 11 GB."""
    too_large(b"," * 10_000 + b"\n1\n", "its 10001 columns take 123 MB")
    table = pa.table({str(i): [1] for i in range(1000)})
    too_large(stream_bytes(table), "its 1000 columns take 4.")
    too_large(parquet_of(table), "its 1000 columns take 4.")
