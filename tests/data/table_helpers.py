"""Tables in memory, as the bytes of every format, and back through `widemargin.read`."""

import io

import pytest

import widemargin

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


def csv_bytes(table, delimiter=","):
    sink = io.BytesIO()
    csv.write_csv(table, sink, csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue()


def parquet_bytes(table):
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=2)
    return sink.getvalue()


def feather_bytes(table):
    sink = io.BytesIO()
    feather.write_feather(table, sink)
    return sink.getvalue()


def stream_bytes(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


WRITERS = {
    "csv": (csv_bytes, "csv"),
    "semicolons": (lambda table: csv_bytes(table, ";"), "csv"),
    "tsv": (lambda table: csv_bytes(table, "\t"), "tsv"),
    "parquet": (parquet_bytes, "parquet"),
    "feather": (feather_bytes, "arrow"),
    "stream": (stream_bytes, "arrow"),
}
BINARY = {name: WRITERS[name] for name in ("parquet", "feather", "stream")}

each_writer = pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
each_binary = pytest.mark.parametrize("writer", BINARY.values(), ids=BINARY)


def read_table(source, format, **options):
    return widemargin.read(source, format=format, **options)


def read(text, format="csv", **options):
    return read_table(io.BytesIO(text.encode()), format, **options)


def read_arrow(data, **options):
    table = data if isinstance(data, pa.Table) else pa.table(data)
    return read_table(io.BytesIO(stream_bytes(table)), "arrow", **options)


def columns(data):
    """The columns of a data set by name, None where they are missing."""
    return {name: [None if v != v else v for v in column]
            for name, column in data.X.to_pydict().items()}  # fmt: skip


def people():
    return pa.table(
        {
            "age": [31, 25, 60, 44, 18],
            "label": ["yes", "no", "yes", "no", "yes"],
            "job": ["smith", "clerk", "smith", "nurse, night", "clerk"],
            "pay": [1.5, -2.25, 0.0, 1e300, 0.1],
        }
    )


PEOPLE = {name: column for name, column in people().to_pydict().items() if name != "label"}
