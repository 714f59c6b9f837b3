"""Tables: all formats give the same data, a model's names read any file, and what is refused."""

import datetime
import decimal
import io
import sys
import tracemalloc
from contextlib import suppress
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin.data.tables import read_table

from .helpers import finite

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


# ------------------------------------------------------------------ all formats


@each_writer
def test_formats_agree(writer):
    write, format = writer
    data = read_table(io.BytesIO(write(people())), format)
    assert isinstance(data.X, np.ndarray)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert_array_equal(data.X, PEOPLE)
    assert_array_equal(data.y, ["yes", "no", "yes", "no", "yes"])
    assert data.y.dtype.kind == "U"
    assert_array_equal(data.feature_names, PEOPLE_NAMES)
    assert data.qid is None
    assert data.zero_based is None


@each_writer
def test_paths_and_streams(writer, tmp_path):
    write, format = writer
    path = tmp_path / "year=2020" / "people"
    path.parent.mkdir()
    path.write_bytes(write(people()))
    for file in (path, str(path), OneWay(write(people()))):
        assert_array_equal(read_table(file, format).X, PEOPLE)


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
    assert_array_equal(data.X[-2:], [[4, 5], [7, 8]])
    assert len(data.X) == (3 if names[0] == "0" else 2)
    assert_array_equal(data.y[-2:], [6, 9])


def test_missing_number_in_the_first_line_makes_no_header():
    with pytest.raises(ValueError, match="row 1, column '1': the value is missing"):
        read("1,,3\n4,5,6\n", label=-1)


def test_semicolons():
    data = read('x;"b;,c";label\n1;2;k\n3;4;l\n')
    assert_array_equal(data.feature_names, ["x", "b;,c"])
    assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert_array_equal(read("x;1,y\n2,5\n", label="y").feature_names, ["x;1"])


def test_tsv_keeps_commas():
    data = read("a,b\tlabel\nx,y\t1\nz;\t0\n", "tsv")
    assert_array_equal(data.feature_names, ["a,b=x,y", "a,b=z;"])


def test_quoted_line_ends_in_values_may_fall_anywhere():
    rows = 50_000  # more than a block of pyarrow's
    lines = "\n" * 50
    text = "s,label\n" + "".join(f'"{lines}{i % 2}",{i % 2}\r\n' for i in range(rows))
    data = read(text, label="label")
    assert_array_equal(data.feature_names, [f"s={lines}0", f"s={lines}1"])
    assert_array_equal(data.X[:, 1], np.arange(rows) % 2)


def test_rows_longer_than_a_block():
    n = 8_000
    header = ",".join(f"c{i}" for i in range(n))
    data = read(f"{header},label\n{f'{0.125:.280f},' * n}1\n{f'{0.25:.280f},' * n}0\n")
    assert data.X.shape == (2, n)
    assert_array_equal(data.X[:, -1], [0.125, 0.25])


# ------------------------------------------------------------------ labels


@pytest.mark.parametrize("name", ["label", "Target", "CLASS", "y"])
def test_label_by_its_usual_name(name):
    data = read(f"a,{name},b\n1,2,3\n")
    assert_array_equal(data.y, [2])
    assert_array_equal(data.feature_names, ["a", "b"])


@pytest.mark.parametrize(
    ("label", "position"),
    [("a", 0), (0, 0), ("0", 0), (1, 1), (-1, 2), ("-1", 2), (np.int64(-3), 0), ("1", 3), ("3", 3)],
)
def test_label_by_name_or_position(label, position):
    names = ["a", "b", "c", "1"][: 4 if label in ("1", "3") else 3]
    values = ["10", "11", "12", "13"][: len(names)]
    data = read(f"{','.join(names)}\n{','.join(values)}\n", label=label)
    assert_array_equal(data.y, [10 + position])
    assert_array_equal(data.feature_names, [n for i, n in enumerate(names) if i != position])


@pytest.mark.parametrize("label", [0, "0", -3])
def test_label_of_a_file_without_header(label):
    data = read("1,2,3\n4,5,6\n", label=label)
    assert_array_equal(data.y, [1, 4])
    assert_array_equal(data.feature_names, ["1", "2"])


@pytest.mark.parametrize("label", ["q", "", 3, -4, "3"])
def test_no_such_label(label):
    with pytest.raises(ValueError, match=r"^the table: there is no column .*label=.*'a', 'b', 'y'"):
        read("a,b,y\n1,2,3\n", label=label)


def test_no_or_several_usual_labels():
    with pytest.raises(ValueError, match=r"none of the columns .* label=.*'a', 'b'"):
        read("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"2 of the columns .* label=.*'y', 'Label'"):
        read("y,Label\n1,2\n")
    with pytest.raises(ValueError, match=r"none of the columns .* label=.*'0', '1'"):
        read("1,2\n3,4\n")


def test_many_columns_are_not_all_listed():
    with pytest.raises(ValueError, match=r"'c0', .*'c19' and 30 more$"):
        read(",".join(f"c{i}" for i in range(50)) + "\n" + ",".join("1" * 50))


def test_no_labels():
    data = read("a,label\n1,2\n", label=False)
    assert data.y is None
    assert_array_equal(data.feature_names, ["a", "label"])


LABELS = [
    (pa.array([1, 2], pa.int8()), np.array([1, 2], np.int64)),
    (pa.array([1, 2], pa.uint64()), np.array([1, 2], np.int64)),
    (pa.array([0.5, 2], pa.float32()), np.array([0.5, 2], np.float64)),
    (pa.array([decimal.Decimal("0.5"), decimal.Decimal(2)]), np.array([0.5, 2.0])),
    (pa.array([True, False]), np.array([True, False])),
    (pa.array(["b", "a"]), np.array(["b", "a"])),
    (pa.array(["b", "a"], pa.large_string()), np.array(["b", "a"])),
    (pa.array(["b", "a"], pa.string_view()), np.array(["b", "a"])),
    (pa.array(["b", "a"]).dictionary_encode(), np.array(["b", "a"])),
    (pa.array([7, 5]).dictionary_encode(), np.array([7, 5])),
]


@pytest.mark.parametrize(("labels", "expected"), LABELS, ids=[str(a.type) for a, _ in LABELS])
def test_types_of_labels(labels, expected):
    y = read_arrow({"a": [1, 2], "y": labels}).y
    assert_array_equal(y, expected)
    assert y.dtype == expected.dtype


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("1 2", np.array([1, 2])),
        ("1 2.0", np.array([1.0, 2.0])),
        ("true false", np.array([True, False])),
        ("1 b", np.array(["1", "b"])),
    ],
)
def test_types_of_labels_in_csv(values, expected):
    first, second = values.split()
    y = read(f"a,y\n1,{first}\n2,{second}\n").y
    assert_array_equal(y, expected)
    assert y.dtype == expected.dtype


@pytest.mark.parametrize("labels", [["u", None, "v", None], [1, None, 2, None], [1.0, np.nan] * 2])
def test_missing_label(labels):
    with pytest.raises(ValueError, match=r"row 2, column 'y': the label is missing, .* of 2;"):
        read_arrow({"a": range(4), "y": labels})


@pytest.mark.parametrize("text", ["a,y\n1,u\n2,\n", "a,y\n1,3\n2,\n", "a,y\n1,3\n2,NA\n"])
def test_missing_label_in_csv(text):
    with pytest.raises(ValueError, match=r"row 2, column 'y': the label is missing"):
        read(text)


def test_labels_of_another_type():
    with pytest.raises(ValueError, match=r"column 'y': labels are numbers or text, not date32"):
        read_arrow({"a": [1], "y": [datetime.date(2020, 1, 1)]})


# ------------------------------------------------------------------ features


NUMBERS = [
    pa.array([1, 0], pa.int8()),
    pa.array([1, 0], pa.uint64()),
    pa.array([1, 0], pa.float16()),
    pa.array([True, False]),
    pa.array([decimal.Decimal("1.00"), decimal.Decimal(0)]),
]


@pytest.mark.parametrize("column", NUMBERS, ids=[str(a.type) for a in NUMBERS])
def test_numbers_become_float64(column):
    X = read_arrow({"a": column, "b": pa.array([0.5, 2], pa.float32())}, label=False).X
    assert X.dtype == np.float64
    assert_array_equal(X, [[1, 0.5], [0, 2]])


def test_large_integers_are_rounded():
    assert_array_equal(read_arrow({"a": [2**60 + 1]}, label=False).X, [[2.0**60]])


def test_float32_stays():
    single = pa.array([0.1, 2], pa.float32())
    X = read_arrow({"a": single, "s": ["u", "v"], "b": single}, label=False).X
    assert X.dtype == np.float32
    assert_array_equal(X, np.array([[0.1, 1, 0, 0.1], [2, 0, 1, 2]], np.float32))
    many = {"a": single, "s": ["u", "v"], "t": ["k", "l"], "r": ["o", "p"]}
    for n in range(10):
        many[f"zero{n}"] = pa.array([0, 0], pa.float32())
    X = read_arrow(many, label=False).X
    assert sp.issparse(X)
    assert X.dtype == np.float32
    assert read_arrow({"s": ["u", "v"]}, label=False).X.dtype == np.float64


TEXTS = [
    pa.array(["b", "é", "B", "b"]),
    pa.array(["b", "é", "B", "b"], pa.large_string()),
    pa.array(["b", "é", "B", "b"], pa.string_view()),
    pa.array(["b", "é", "B", "b"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(
        pa.array([1, 3, 0, 1], pa.uint8()), pa.array(["B", "b", "never", "é"])
    ),
]


@pytest.mark.parametrize("column", TEXTS, ids=[str(a.type) for a in TEXTS])
def test_one_hot(column):
    data = read_arrow({"s": column}, label=False)
    assert_array_equal(data.feature_names, ["s=B", "s=b", "s=é"])
    assert_array_equal(dense(data.X), [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_dictionaries_may_differ_between_batches():
    batches = [pa.array(v).dictionary_encode() for v in (["b", "a"], ["c", "b"], ["a", "a"])]
    data = read_arrow(pa.table({"s": pa.chunked_array(batches)}), label=False)
    assert_array_equal(dense(data.X), pd.get_dummies(list("bacbaa")).to_numpy(float))


def test_numbers_in_a_dictionary_are_categories():
    data = read_arrow({"s": pa.array([7, 5, 7]).dictionary_encode()}, label=False)
    assert_array_equal(data.feature_names, ["s=5", "s=7"])
    assert_array_equal(data.X, [[0, 1], [1, 0], [0, 1]])


UNSUPPORTED = [
    pa.array([datetime.datetime(2020, 1, 1)]),
    pa.array([datetime.time(1)]),
    pa.array([[1.0, 2.0]]),
    pa.array([{"u": 1}]),
    pa.array([b"u"]),
    pa.array([b"u"]).dictionary_encode(),
]


@pytest.mark.parametrize("column", UNSUPPORTED, ids=[str(a.type) for a in UNSUPPORTED])
def test_unsupported_types(column):
    with pytest.raises(ValueError) as caught:
        read_arrow({"a": [1], "odd one": column, "y": [1]})
    assert f"column 'odd one' is of type {column.type}" in str(caught.value)
    assert "drop it" in str(caught.value)


def test_text_that_is_not_utf8():
    with pytest.raises(ValueError, match=r"column 'a' is of type binary.*UTF-8"):
        read_table(io.BytesIO(b"a,y\n\xe9,1\n"), "csv")
    with pytest.raises(ValueError, match=r"the table: .*utf-8"):
        read_table(io.BytesIO(b"\xe9t\xe9,y\n1,1\n"), "csv")


@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf])
def test_bad_numbers(bad):
    columns = {"a": [1.0, 2, 3, bad], "b": [1.0, 2, bad, bad], "c": [0.0] * 4, "y": [0, 1, 0, 1]}
    with pytest.raises(ValueError, match=r"row 3, column 'b'.* of 3 such values; fill .* drop"):
        read_arrow(columns)


@pytest.mark.parametrize("text", ["b", "b\u00e9"])
def test_missing_text(text):
    with pytest.raises(ValueError, match=r"row 2, column 's'.* of 3 such"):
        read_arrow({"s": [text, None, None], "t": [text, None, text], "y": [0, 1, 0]})
    with pytest.raises(ValueError, match=r"row 1, column 's'.* of 2 such"):
        read_arrow({"s": pa.array([None, None], pa.string()), "y": [0, 1]})


@pytest.mark.parametrize("bad", ["", "NA", "nan", "null"])
@pytest.mark.parametrize("good", ["smith", "1.5"])
def test_missing_values_in_csv(good, bad):
    with pytest.raises(ValueError, match=r"row 2, column 'b'.* of 1 such"):
        read(f"a,b,y\n1,{good},1\n2,{bad},1\n")


def test_empty_column_in_csv():
    with pytest.raises(ValueError, match=r"row 1, column 'b'.* of 2 such"):
        read("a,b,y\n1,,1\n2,,1\n")


# ------------------------------------------------------------------ layout


@pytest.mark.parametrize("categories", [3, 4])
def test_compressed_below_a_third(categories):
    values = [f"v{i}" for i in range(categories)]
    X = read_arrow({"s": values}, label=False).X
    assert sp.issparse(X) == (categories > 3)
    assert_array_equal(dense(X), np.eye(categories))


def test_numbers_stay_dense():
    X = read_arrow({"a": np.zeros(5), "b": np.zeros(5)}, label=False).X
    assert isinstance(X, np.ndarray)


def test_compressed_rows_are_sorted_and_without_zeros():
    rng = np.random.default_rng(0)
    s, t = rng.choice(list("abcdefgh"), (2, 50))
    a = rng.integers(0, 2, 50)
    table = {"t": t, "a": a, "s": s}
    data = read_arrow(table, label=False)
    expected = pd.get_dummies(pd.DataFrame(table), prefix_sep="=", dtype=float)
    assert isinstance(data.X, sp.csr_array)
    assert data.X.indices.dtype in (np.int32, np.int64)
    assert all(np.all(np.diff(data.X.indices[i:j]) > 0) for i, j in pairwise(data.X.indptr))
    assert data.X.nnz == 100 + a.sum()
    assert_array_equal(data.X.toarray(), expected[list(data.feature_names)])
    names = rng.permutation(data.feature_names)
    X = read_arrow(table, label=False, columns=names).X
    assert all(np.all(np.diff(X.indices[i:j]) > 0) for i, j in pairwise(X.indptr))
    assert_array_equal(X.toarray(), expected[list(names)])


def test_many_categories_take_little_memory():
    n = 30_000  # 7 GB if it were dense
    source = io.BytesIO(stream_bytes(pa.table({"id": [f"v{i:05}" for i in range(n)]})))
    tracemalloc.start()
    X = read_table(source, "arrow", label=False).X
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert X.shape == (n, n)
    assert abs(X - sp.eye_array(n)).sum() == 0


# ------------------------------------------------------------------ a model's features


@each_writer
def test_model_features_in_any_order_of_columns(writer):
    write, format = writer
    order = [3, 0, 2, 4, 1]
    table = people().select(["pay", "job", "label", "age"])
    data = read_table(io.BytesIO(write(table)), format, columns=np.array(PEOPLE_NAMES)[order])
    assert_array_equal(data.X, PEOPLE[:, order])
    assert_array_equal(data.feature_names, np.array(PEOPLE_NAMES)[order])
    assert_array_equal(data.y, ["yes", "no", "yes", "no", "yes"])


@pytest.mark.parametrize("label", [None, "label", "3", 7, False])
def test_label_is_not_needed(label):
    data = read("b,a\n1,2\n", label=label, columns=["a", "b"])
    assert data.y is None
    assert_array_equal(data.X, [[2, 1]])


def test_features_of_the_model_are_not_its_label():
    data = read("x,y,class,target\n1,2,3,u\n", columns=["x", "y", "target=u"])
    assert_array_equal(data.y, [3])
    assert_array_equal(data.X, [[1, 2, 1]])
    with pytest.raises(ValueError, match="2 of the columns"):
        read("x,y,class\n1,2,3\n", columns=["x"])


def test_unknown_categories():
    text = "s,t,a\nu,k,1\nnew,k,2\nv,k,3\nother,k,4\n"
    expected = r"^p\.csv: column 's' has .* in 2 rows, first 'new'"
    with pytest.warns(UserWarning, match=expected) as caught:
        data = read(text, columns=["a", "s=u", "s=v", "t=k"], name="p.csv")
    assert len(caught) == 1
    assert_array_equal(data.X, [[1, 1, 0, 1], [2, 0, 0, 1], [3, 0, 1, 1], [4, 0, 0, 1]])


def test_warnings_point_at_the_caller():
    with pytest.warns(UserWarning, match="the model does not") as caught:
        read_table(io.BytesIO(b"a,b,s\n1,2,u\n"), "csv", columns=["a", "s=v"])
    assert [warning.filename for warning in caught] == [__file__, __file__]


def test_only_unknown_categories():
    with pytest.warns(UserWarning, match="in 2 rows, first 'new'"):
        X = read("s,a\nnew,1\nnew,0\n", columns=["s=u", "a"]).X
    assert_array_equal(dense(X), [[0, 1], [0, 0]])


def test_unused_columns():
    names = [f"c{i}" for i in range(9)]
    text = ",".join([*names, "label"]) + "\n" + ",".join("1" * 10) + "\n"
    expected = "not use the columns 'c0', 'c2', 'c4', 'c5', 'c6' and 2 more$"
    with pytest.warns(UserWarning, match=expected) as caught:
        data = read(text, columns=["c1", "c3"])
    assert len(caught) == 1
    assert data.X.shape == (1, 2)


def test_unused_columns_may_hold_anything():
    columns = {"a": [1.0], "when": [datetime.date(2020, 1, 1)], "none": [None]}
    with pytest.warns(UserWarning, match="'when', 'none'$"):
        assert_array_equal(read_arrow(columns, columns=["a"]).X, [[1]])


def test_missing_columns():
    with pytest.raises(ValueError, match="columns 'b', 's=u' are missing; the file has 'a', 'c'"):
        read("a,c\n1,2\n", columns=["a", "b", "s=u"])
    with pytest.raises(ValueError, match="columns 'a=b' are missing"):
        read("a,c\n1,2\n", columns=["a", "a=b"])  # of which a is a number


def test_text_where_the_model_has_numbers():
    with pytest.raises(ValueError, match="column 'a' is of type string, but the model needs num"):
        read("a\nx\n", columns=["a"])


def test_categories_that_look_like_numbers():
    names = read("s,label\n01,1\n1,1\n1.50,0\ntrue,0\nv,0\n").feature_names
    for value in ("01", "1", "1.50", "true"):
        X = read(f"s\n{value}\n", columns=names).X
        assert_array_equal(names[dense(X)[0] > 0], [f"s={value}"])
    assert_array_equal(dense(read_arrow({"s": [1]}, columns=names).X), [[0, 1, 0, 0, 0]])


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"a=b": [1, 2]}, ["a=b"]),
        ({"a": ["b=c", "=", ""]}, ["a=", "a==", "a=b=c"]),
        ({"a": ["x"], "a=b": ["c"]}, ["a=x", "a=b=c"]),
        ({"a": [1], "a=b": ["c"]}, ["a", "a=b=c"]),
        ({"a": ["x"], "a=b": [1]}, ["a=x", "a=b"]),
        ({"=": ["="], "": ["x"]}, ["===", "=x"]),
    ],
)
def test_equal_signs_in_names(columns, names):
    data = read_arrow(columns, label=False)
    assert_array_equal(data.feature_names, names)
    backwards = dict(reversed(columns.items()))
    assert_array_equal(dense(read_arrow(backwards, columns=names).X), dense(data.X))


@pytest.mark.parametrize("columns", [{"a": ["b"], "a=b": [1]}, {"a": ["b=c"], "a=b": ["c"]}])
def test_names_that_can_be_confused(columns):
    with pytest.raises(ValueError, match="rename"):
        read_arrow(columns, label=False)


@pytest.mark.parametrize("label", [None, -1, 0, "2", "label", False])
def test_by_position_without_header_and_labels(label):
    data = read("1,2,3\n4,5,6\n", columns=["u", "v", "w"], label=label)
    assert data.y is None
    assert_array_equal(data.X, [[1, 2, 3], [4, 5, 6]])
    assert_array_equal(data.feature_names, ["u", "v", "w"])


@pytest.mark.parametrize("label", [0, 1, -1])
def test_by_position_without_header(label):
    data = read("1,2,3\n4,5,6\n", columns=["u", "v"], label=label)
    rows = np.array([[1, 2, 3], [4, 5, 6]])
    assert_array_equal(data.y, rows[:, label])
    assert_array_equal(data.X, np.delete(rows, label, axis=1))


def test_without_header_a_number_of_columns_that_does_not_fit():
    with pytest.raises(ValueError, match="columns 'u', 'v' are missing"):
        read("1,2,3\n4,5,6\n", columns=["u", "v"])


def test_with_header_never_by_position():
    with pytest.raises(ValueError, match="columns 'u', 'v' are missing"):
        read("a,b\n1,2\n", columns=["u", "v"])


# ------------------------------------------------------------------ any table

names = st.text("ab=,;\"' \né1", max_size=4)
words = st.text("xyz=,;\"' \né", max_size=4).map(lambda text: "v" + text)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 8))
    kinds = st.sampled_from([st.integers(-(2**53), 2**53), finite, st.booleans(), words])
    columns = draw(st.dictionaries(names.map("c{}".format), kinds, min_size=1, max_size=5))
    return pa.table(
        {c: draw(st.lists(kind, min_size=n, max_size=n)) for c, kind in columns.items()}
        | {"label": draw(st.lists(words, min_size=n, max_size=n))}
    )


def expected_features(table):
    features = {}
    for column, values in table.drop_columns("label").to_pydict().items():
        if isinstance(values[0], str):
            for word in sorted(set(values)):
                features[f"{column}={word}"] = [float(value == word) for value in values]
        else:
            features[column] = [float(value) for value in values]
    return pd.DataFrame(features)


@given(table=tables(), data=st.data())
def test_any_table(table, data):
    assume(not any(b.startswith(f"{a}=") for a, b in permutations(table.column_names, 2)))
    expected = expected_features(table)
    shuffled = table.select(data.draw(st.permutations(table.column_names)))
    for write, format in (WRITERS["csv"], WRITERS["semicolons"], WRITERS["parquet"]):
        read_back = read_table(io.BytesIO(write(table)), format)
        assert list(read_back.feature_names) == list(expected)
        assert_array_equal(dense(read_back.X), expected)
        assert list(read_back.y) == table["label"].to_pylist()
        has_text = any(map(pa.types.is_string, table.schema.types[:-1]))
        is_mostly_zero = 3 * np.count_nonzero(expected) < expected.size
        assert sp.issparse(read_back.X) == (has_text and is_mostly_zero)
        again = read_table(io.BytesIO(write(shuffled)), format, columns=read_back.feature_names)
        assert_array_equal(dense(again.X), expected)


# ------------------------------------------------------------------ broken files


@each_binary
def test_cut_files(writer):
    write, format = writer
    whole = write(people())
    for length in range(0, len(whole), 3):
        with pytest.raises(ValueError, match=r"^cut: "):
            read_table(io.BytesIO(whole[:length]), format, name="cut")


def test_stream_cut_between_batches():
    whole = stream_bytes(people())
    assert pa.ipc.open_stream(whole[:-8]).read_all().num_rows == 5  # pyarrow does not mind
    with pytest.raises(ValueError, match="cut short"):
        read_table(io.BytesIO(whole[:-8]), "arrow")


@each_binary
def test_changed_bytes_do_no_harm(writer):
    write, format = writer
    whole = write(people())
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        with suppress(ValueError):
            read_table(io.BytesIO(changed), format, label=1)


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 40, b"\xff" * 40])
def test_no_table_at_all(format, content):
    with pytest.raises(ValueError, match=r"^odd: "):
        read_table(io.BytesIO(content), format, name="odd")


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
