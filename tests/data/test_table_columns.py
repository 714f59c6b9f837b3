"""Tables: columns as numbers and categories, with their gaps; what cannot be one is named."""

import datetime
import decimal
import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

from widemargin import AdditiveSVC
from widemargin import read as read_file

from .table_helpers import columns, pa, read, read_arrow, read_table, stream_bytes

# ------------------------------------------------------------------ types


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
    assert X.schema.types == [pa.float64(), pa.float32()]
    assert X.to_pydict() == {"a": [1, 0], "b": [0.5, 2]}


def test_large_integers_are_rounded():
    assert read_arrow({"a": [2**60 + 1]}, label=False).X["a"].to_pylist() == [2.0**60]


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
def test_texts_become_dictionaries(column):
    data = read_arrow({"s": column}, label=False)
    assert pa.types.is_dictionary(data.X["s"].type)
    assert data.X["s"].to_pylist() == ["b", "é", "B", "b"]
    assert data.columns.categorical == {"s": 3}


def test_dictionaries_may_differ_between_batches():
    batches = [pa.array(v).dictionary_encode() for v in (["b", "a"], ["c", "b"], ["a", "a"])]
    data = read_arrow(pa.table({"s": pa.chunked_array(batches)}), label=False)
    assert "".join(data.X["s"].to_pylist()) == "bacbaa"
    assert data.columns.categorical == {"s": 3}


def test_numbers_in_a_dictionary_are_categories():
    data = read_arrow({"s": pa.array([7, 5, 7]).dictionary_encode()}, label=False)
    assert data.X["s"].to_pylist() == ["7", "5", "7"]


def test_dates_are_days_where_they_are_called_numbers():
    days = [datetime.date(2026, 11, 18), None, datetime.date(1969, 12, 31)]
    times = [datetime.datetime(2026, 11, 18, 12), None, datetime.datetime(1970, 1, 1)]
    table = {"day": days, "time": times, "y": [0, 1, 0]}
    with pytest.raises(ValueError) as caught:
        read_arrow(table)
    assert str(caught.value).endswith(
        "column 'day' holds dates. Use numeric=['day'] to read them as days since 1970, or "
        "drop=['day']. Also, 'time' is refused; drop=['day', 'time'] drops all of them"
    )
    data = read_arrow(table, numeric=["day", "time"])
    assert columns(data) == {"day": [20775, None, -1], "time": [20775.5, None, 0]}
    text = "day,time,y\n2026-11-18,2026-11-18 12:00:00,0\n,,1\n1969-12-31,1970-01-01T00:00,0\n"
    assert columns(read(text, numeric=["day", "time"])) == columns(data)
    assert columns(read(text, like=data.layout)) == columns(data)
    assert columns(read(text, categorical=["day"], drop=["time"]))["day"][0] == "2026-11-18"


UNSUPPORTED = [
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
    with pytest.raises(ValueError, match=r"the file: .*utf-8"):
        read_table(io.BytesIO(b"\xe9t\xe9,y\n1,1\n"), "csv")


# ------------------------------------------------------------------ gaps


@pytest.mark.parametrize("bad", ["", "NA", "nan", "null"])
@pytest.mark.parametrize("good", ["smith", "1.5"])
def test_missing_values_in_csv(good, bad):
    data = read(f"a,b,y\n1,{good},1\n2,{bad},1\n")
    assert columns(data)["b"] == [good if good == "smith" else 1.5, None]
    assert data.columns.missing == {"b": 1}


def test_a_column_without_values_is_one_of_numbers():
    assert columns(read("a,b,y\n1,,1\n2,,1\n"))["b"] == [None, None]
    data = read_arrow({"s": pa.array([None, None], pa.string()), "y": [0, 1]})
    assert columns(data) == {"s": [None, None]}


def test_many_categories_take_little_memory():
    n = 30_000
    source = io.BytesIO(stream_bytes(pa.table({"id": [f"v{i:05}" for i in range(n)]})))
    tracemalloc.start()
    X = read_table(source, "arrow", label=False, categorical=["id"]).X
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert X["id"].to_pylist()[-1] == "v29999"


ROWS = b"age,job,pay,label\n31,smith,1.5,yes\n,clerk,?,no\n60,,3.5,no\n44,smith,2.5,yes\n"


def whole(content: bytes, **options):
    return read_file(io.BytesIO(content), **options)


def same(found, expected) -> bool:
    """Whether the columns are, missing values too."""
    return found.X.to_pandas().equals(expected.X.to_pandas())


def test_columns_stay_as_they_are():
    data = whole(ROWS, na=["?"])
    assert data.X.column_names == data.feature_names.tolist() == ["age", "job", "pay"]
    assert data.X["age"].to_pylist() == [31.0, pytest.approx(np.nan, nan_ok=True), 60.0, 44.0]
    assert pa.types.is_dictionary(data.X["job"].type)
    assert data.X["job"].to_pylist() == ["smith", "clerk", None, "smith"]
    said = "2 numeric, 1 categorical (job 2), 3 values missing (age 1, job 1, pay 1)"
    assert str(data.columns) == said
    assert data.layout.categorical == (1,)
    model = AdditiveSVC(missing="learn", random_state=0).fit(data.X, data.y)
    assert model.predict(data.X).tolist() == ["yes", "no", "no", "yes"]


def test_the_rule_is_that_of_other_machines():
    with pytest.raises(ValueError, match="column 'pay': 10 of its 11 values are numbers"):
        whole(b"pay,label\n" + 10 * b"1,yes\n" + b"x,no\n")
    data = whole(ROWS, numeric=["pay"], na=["?"], drop=["job"])
    assert data.X.column_names == ["age", "pay"]
    assert whole(ROWS, categorical=["age"], na=["?"]).layout.categorical == (0, 1)


def test_new_data_is_read_likewise_whatever_the_order_of_its_columns():
    data = whole(ROWS, na=["?"])
    new = b"id,pay,job,age\n1,?,pilot,20\n2,3,7,\n"
    with pytest.warns(UserWarning, match="does not use the columns 'id'"):
        found = read_file(io.BytesIO(new), like=data.layout)
    assert found.X.column_names == ["age", "job", "pay"]
    assert found.X["job"].to_pylist() == ["pilot", "7"]
    assert np.isnan(found.X["pay"].to_numpy()).tolist() == [True, False]
    assert found.layout.categorical == (1,)
    with pytest.raises(ValueError, match="the model's columns 'pay' are missing"):
        read_file(io.BytesIO(b"age,job\n1,a\n"), like=data.layout)
    with pytest.raises(ValueError, match="row 1, column 'pay': 'much' is not a number"):
        read_file(io.BytesIO(b"age,job,pay\n1,a,much\n"), like=data.layout)


def test_parquet_and_arrow_are_taken_like_text(tmp_path):
    frame = pd.read_csv(io.BytesIO(ROWS), na_values="?")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.astype({"job": "category"}).to_feather(tmp_path / "a.arrow")
    expected = whole(ROWS, na=["?"]).X.to_pandas()
    for name in ("a.parquet", "a.arrow"):
        found = read_file(tmp_path / name).X.to_pandas()
        pd.testing.assert_frame_equal(found, expected, check_categorical=False)


# ------------------------------------------------------------------ blanks after commas


def test_blanks_after_commas_count_as_nothing():
    spaced = ROWS.replace(b",", b", ")
    expected = whole(ROWS, na=["?"])
    found = whole(spaced, na=["?"])
    assert same(found, expected)
    assert found.y.tolist() == expected.y.tolist()
    assert (found.label_name, found.columns) == ("label", expected.columns)
    data = read("a, job, label\n1, smith, x\n2, a b , y\n")
    assert columns(data) == {"a": [1, 2], "job": ["smith", "a b "]}
    assert data.y.tolist() == ["x", "y"]


def test_blanks_in_other_files_are_text(tmp_path):
    pd.DataFrame({"a": [" x", "y"], "label": [0, 1]}).to_parquet(tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", "parquet")
    assert columns(found) == {"a": [" x", "y"]}


# ------------------------------------------------------------------ zip archives


def zipped(*names: str, content: bytes = ROWS) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return file.getvalue()


def test_the_only_file_of_a_zip_archive_is_read_file(tmp_path):
    expected = whole(ROWS, na=["?"])
    (tmp_path / "a.zip").write_bytes(zipped("folder/a.csv"))
    assert same(read_file(tmp_path / "a.zip", na=["?"]), expected)
    assert same(whole(gzip.compress(ROWS), na=["?"]), expected)
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[0, 1])
    assert read_file(tmp_path / "a.npz").X.tolist() == np.eye(2).tolist()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped("a", "b"), r"2 files in a zip archive, but .* a spreadsheet, .* as CSV\.$"),
        (zipped("a")[:80], "damaged"),
        (zipped("a", content=ROWS * 99).replace(b"PK\x01\x02", b"PK\x01\x03"), "damaged"),
    ],
    ids=["two files", "cut off", "another signature"],
)
def test_other_zip_archives_are_refused(content, said, tmp_path):
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ValueError, match=f"a.zip: .*{said}"):
        read_file(tmp_path / "a.zip")


def test_every_damaged_byte_of_a_zip_archive_is_refused_or_read_file(tmp_path):
    content, path = zipped("a.csv"), tmp_path / "a.zip"
    refused = 0
    for k in range(len(content)):
        path.write_bytes(content[:k] + bytes([content[k] ^ 0xFF]) + content[k + 1 :])
        try:
            read_file(path, na=["?"])
        except ValueError:
            refused += 1
    assert refused > len(content) / 4
