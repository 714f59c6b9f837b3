"""Tables: files that are broken, empty or no tables at all."""

import io
import sys
from contextlib import suppress

import numpy as np
import pytest

from .table_helpers import each_binary, each_writer, pa, people, read, read_table, stream_bytes


@each_binary
def test_cut_files(writer):
    write, format = writer
    whole = write(people())
    for length in range(0, len(whole), 3):
        with pytest.raises(ValueError, match=r"^the file: "):
            read_table(io.BytesIO(whole[:length]), format)


def test_stream_cut_between_batches():
    whole = stream_bytes(people())
    assert pa.ipc.open_stream(whole[:-8]).read_all().num_rows == 5  # pyarrow does not mind
    with pytest.raises(ValueError, match="cut short"):
        read_table(io.BytesIO(whole[:-8]), "arrow")


@each_binary
def test_changed_bytes_do_no_harm(writer, tmp_path):
    write, format = writer
    whole = write(people())
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        with suppress(ValueError):
            read_table(io.BytesIO(changed), format, label=1)
        (tmp_path / "changed").write_bytes(changed)
        with suppress(ValueError):
            read_table(tmp_path / "changed", format, label=1)


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 40, b"\xff" * 40])
def test_no_table_at_all(format, content):
    with pytest.raises(ValueError, match=r"^the file: "):
        read_table(io.BytesIO(content), format)


def test_pyarrow_says_what_is_wrong(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("a,b,y\n1,2,3\n4,5\n")
    with pytest.raises(ValueError, match=r"short\.csv: CSV parse error: Expected 3 columns, got 2"):
        read_table(path, "csv")
    with pytest.raises(ValueError, match="field larger"):
        read('"' + "a" * 200_000 + "\n1\n")


def test_error_at_the_start_of_a_long_file(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,y\n1\n" + "1,2\n" * 2_000_000)
    with pytest.raises(ValueError, match="Expected 2 columns, got 1"):
        read_table(path, "csv")


@each_writer
def test_empty_tables(writer):
    write, format = writer
    with pytest.raises(ValueError, match="no rows"):
        read_table(io.BytesIO(write(people().slice(0, 0))), format)
    with pytest.raises(ValueError, match="no feature columns"):
        read_table(io.BytesIO(write(people().select(["label"]))), format)


def test_repeated_columns():
    with pytest.raises(ValueError, match="more than one column is named 'a', 'b'"):
        read("a,b,a,b,y\n1,2,3,4,5\n")


def test_other_mistakes(tmp_path):
    with pytest.raises(ValueError, match="format='xls' is not known"):
        read("a,y\n1,2\n", "xls")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv", "csv")


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install widemargin\[tables\]"):
        read("a,y\n1,2\n")
