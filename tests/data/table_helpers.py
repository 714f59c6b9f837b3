"""Tables in memory, as the bytes of every format, and back through read_table."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.data.tables import read_table

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


def read(text, format="csv", **options):
    return read_table(io.BytesIO(text.encode()), format, **options)


def read_arrow(data, **options):
    table = data if isinstance(data, pa.Table) else pa.table(data)
    return read_table(io.BytesIO(stream_bytes(table)), "arrow", **options)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def people():
    return pa.table(
        {
            "age": [31, 25, 60, 44, 18],
            "label": ["yes", "no", "yes", "no", "yes"],
            "job": ["smith", "clerk", "smith", "nurse, night", "clerk"],
            "pay": [1.5, -2.25, 0.0, 1e300, 0.1],
        }
    )


PEOPLE_NAMES = ["age", "job=clerk", "job=nurse, night", "job=smith", "pay"]
PEOPLE = np.array(
    [
        [31, 0, 0, 1, 1.5],
        [25, 1, 0, 0, -2.25],
        [60, 0, 0, 1, 0],
        [44, 0, 1, 0, 1e300],
        [18, 1, 0, 0, 0.1],
    ]
)
