"""Tables: the names of a model's features are enough to read any other file."""

import datetime
import io
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin.data.tables import read_table

from .helpers import finite
from .table_helpers import (
    PEOPLE,
    PEOPLE_NAMES,
    WRITERS,
    dense,
    each_writer,
    pa,
    people,
    read,
    read_arrow,
)


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
    with pytest.raises(ValueError, match="row 1, column 'a': 'x' is not a number"):
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
    unnamed = [column for column in columns if not column]  # which would pass for an index
    data = read_arrow(columns, label=False, categorical=unnamed)
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
