"""Tables: columns as features, dense or compressed; what cannot be one is named."""

import datetime
import decimal
import io
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from widemargin.data.tables import read_table

from .table_helpers import dense, pa, read, read_arrow, stream_bytes

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
    X = read_table(source, "arrow", label=False, categorical=["id"]).X
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert X.shape == (n, n)
    assert abs(X - sp.eye_array(n)).sum() == 0
