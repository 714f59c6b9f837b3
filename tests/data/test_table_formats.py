"""Tables: all formats give the same data; headers, delimiters and lines of CSV."""

import io
import threading
import time

import pandas as pd
import pyarrow.csv
import pytest
from numpy.testing import assert_array_equal

from .table_helpers import PEOPLE, columns, each_writer, parquet, people, read, read_table

# ------------------------------------------------------------------ all formats


@each_writer
def test_formats_agree(writer):
    write, format = writer
    data = read_table(io.BytesIO(write(people())), format)
    assert columns(data) == PEOPLE
    assert_array_equal(data.y, ["yes", "no", "yes", "no", "yes"])
    assert data.y.dtype.kind == "U"
    assert_array_equal(data.feature_names, [*PEOPLE])
    assert data.qid is None
    assert data.zero_based is None


@each_writer
def test_paths_and_streams(writer, tmp_path):
    write, format = writer
    path = tmp_path / "year=2020" / "people"
    path.parent.mkdir()
    path.write_bytes(write(people()))
    for file in (path, str(path), OneWay(write(people()))):
        assert columns(read_table(file, format)) == PEOPLE


def test_threads_of_pyarrow_have_let_go_of_a_csv_file(monkeypatch):
    # One that lets go while the process ends, soon after an error, aborts it.
    read_csv, events = pyarrow.csv.read_csv, []

    def lingering(file, *options):
        table = read_csv(file, *options)
        threading.Thread(target=hold, args=(file,)).start()
        return table

    def hold(file):
        time.sleep(0.1)
        events.append("let go")

    monkeypatch.setattr(pyarrow.csv, "read_csv", lingering)
    with pytest.raises(ValueError, match="no feature columns"):
        read_table(io.BytesIO(b"label\n2\n"), "csv")
    assert events == ["let go"]


def test_a_label_that_is_missed_is_missed_before_a_column_is_read(monkeypatch):
    """Of 200,000 columns in 2 MB, pyarrow made 5.6 GB before that."""
    monkeypatch.setattr(pyarrow.csv, "read_csv", None)
    for header, says in ((b"a,b", "name one with label"), (b"a,label,a", "more than one column")):
        with pytest.raises(ValueError, match=says):
            read_table(io.BytesIO(header + b"\n1,2,3\n"), "csv")


class OneWay(io.RawIOBase):
    """A pipe: it cannot seek, and gives a few bytes at a time."""

    def __init__(self, data):
        self._data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._data.read(min(len(buffer), 7))
        buffer[: len(data)] = data
        return len(data)


@each_writer
def test_stream_stays_open(writer):
    write, format = writer
    stream = io.BytesIO(write(people()))
    read_table(stream, format)
    assert not stream.closed


def test_pandas_index_is_no_column():
    frame = pd.DataFrame({"a": [1.0, 2, 3], "kind": [0, 1, 0]}, index=[2, 0, 1])[::2]
    sink = io.BytesIO()
    frame.to_parquet(sink)
    assert "__index_level_0__" in parquet.read_table(io.BytesIO(sink.getvalue())).column_names
    data = read_table(io.BytesIO(sink.getvalue()), "parquet", label=-1)
    assert_array_equal(data.feature_names, ["a"])
    assert_array_equal(data.y, [0, 0])


# ------------------------------------------------------------------ CSV


@pytest.mark.parametrize(
    ("first", "names"),
    [
        ("a,b,c", ["a", "b"]),
        ("1,2,c", ["1", "2"]),
        ("1,2,3", ["0", "1"]),
        ("-1, 2.5e3,3", ["0", "1"]),
        ('"1","2","3"', ["0", "1"]),
        ('"a","b, ""c""",d', ["a", 'b, "c"']),
        ('"two\nlines",b,c', ["two\nlines", "b"]),
        ("\ufeffa,b,c", ["a", "b"]),
        ("\ufeff1,2,3", ["0", "1"]),
        ("\n\na,b,c", ["a", "b"]),
        ("\n\n1,2,3", ["0", "1"]),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_header(first, names, end):
    data = read(f"{first}\n4,5,6\n7,8,9".replace("\n", end), label=-1)
    assert [name.replace("\r", "") for name in data.feature_names] == names
    assert [column[-2:] for column in columns(data).values()] == [[4, 7], [5, 8]]
    assert data.X.num_rows == (3 if names[0] == "0" else 2)
    assert_array_equal(data.y[-2:], [6, 9])


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("39, clerk, 13, no\n50, smith, 9, yes\n", False),  # as UCI's adult is
        ("0,tcp,0,no\n5,udp,8,yes\n", False),
        ("39,,13,no\n50,smith,9,yes\n", False),
        ("0,1,2,label\n5.5,6.5,1,yes\n", True),  # as pandas calls columns
        ("2019,2020,2021,label\n5,6,7,yes\n", True),
        ("name,2019,x,label\nbob,6,7,yes\n", True),
        ("39,clerk,13,no\nsmith,50,9,yes\n", True),
        ("39,clerk,13,no\n", True),
        ("a,b,c,d\nk,l,m,n\n", True),
    ],
)
def test_a_first_line_like_the_second_is_no_header(text, header):
    n_rows = text.count("\n") - header
    if n_rows == 0:
        with pytest.raises(ValueError, match="the table has no rows"):
            read(text, label=-1)
        return
    data = read(text, label=-1)
    assert data.X.num_rows == n_rows
    assert (data.label_name == "3") == (not header)


def test_missing_number_in_the_first_line_makes_no_header():
    assert columns(read("1,,3\n4,5,6\n", label=-1)) == {"0": [1, 4], "1": [None, 5]}


def test_semicolons():
    data = read('x;"b;,c";label\n1;2;k\n3;4;l\n')
    assert_array_equal(data.feature_names, ["x", "b;,c"])
    assert columns(data) == {"x": [1, 3], "b;,c": [2, 4]}
    assert_array_equal(read("x;1,y\n2,5\n", label="y").feature_names, ["x;1"])


def test_tsv_keeps_commas():
    data = read("a,b\tlabel\nx,y\t1\nz;\t0\n", "tsv")
    assert columns(data) == {"a,b": ["x,y", "z;"]}


def test_quoted_line_ends_in_values_may_fall_anywhere():
    rows = 50_000  # more than a block of pyarrow's
    lines = "\n" * 50
    text = "s,label\n" + "".join(f'"{lines}{i % 2}",{i % 2}\r\n' for i in range(rows))
    data = read(text, label="label")
    assert columns(data)["s"] == [f"{lines}{i % 2}" for i in range(rows)]


def test_rows_longer_than_a_block():
    n = 8_000
    header = ",".join(f"c{i}" for i in range(n))
    data = read(f"{header},label\n{f'{0.125:.280f},' * n}1\n{f'{0.25:.280f},' * n}0\n")
    assert data.X.shape == (2, n)
    assert data.X.columns[-1].to_pylist() == [0.125, 0.25]
