"""Tables: what a model knows of its columns is enough to read any other file."""

import datetime
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import widemargin
from widemargin.data import Layout

from .helpers import finite
from .table_helpers import (
    PEOPLE,
    WRITERS,
    columns,
    each_writer,
    pa,
    people,
    read,
    read_arrow,
    read_table,
)


@each_writer
def test_columns_of_a_model_in_any_order(writer):
    write, format = writer
    like = read_table(io.BytesIO(write(people())), format).layout
    table = people().select(["pay", "job", "label", "age"])
    data = read_table(io.BytesIO(write(table)), format, like=like)
    assert columns(data) == PEOPLE
    assert [*columns(data)] == data.feature_names.tolist() == [*PEOPLE]
    assert_array_equal(data.y, ["yes", "no", "yes", "no", "yes"])
    assert data.layout == like


@pytest.mark.parametrize("label", [None, "label", "3", 7, False])
def test_label_is_not_needed(label):
    data = read("b,a\n1,2\n", label=label, columns=["a", "b"])
    assert data.y is None
    assert columns(data) == {"a": [2], "b": [1]}


def test_features_of_the_model_are_not_its_label():
    data = read("x,y,class,target\n1,2,3,4\n", columns=["x", "y", "target"])
    assert_array_equal(data.y, [3])
    assert columns(data) == {"x": [1], "y": [2], "target": [4]}
    with pytest.raises(ValueError, match="2 of the columns"):
        read("x,y,class\n1,2,3\n", columns=["x"])


def test_unknown_categories_are_for_the_model():
    like = read("s,a,label\nu,1,0\nv,2,1\n").layout
    assert columns(read("a,s\n1,new\n", like=like)) == {"s": ["new"], "a": [1]}


def test_warnings_point_at_the_caller():
    with pytest.warns(UserWarning, match="the model does not") as caught:
        widemargin.read(io.BytesIO(b"a,b\n1,2\n"), format="csv", columns=["a"])
    assert [warning.filename for warning in caught] == [__file__]


def test_unused_columns():
    names = [f"c{i}" for i in range(9)]
    text = ",".join([*names, "label"]) + "\n" + ",".join("1" * 10) + "\n"
    expected = "not use the columns 'c0', 'c2', 'c4', 'c5', 'c6' and 2 more$"
    with pytest.warns(UserWarning, match=expected) as caught:
        data = read(text, columns=["c1", "c3"])
    assert len(caught) == 1
    assert columns(data) == {"c1": [1], "c3": [1]}


def test_unused_columns_may_hold_anything():
    given = {"a": [1.0], "when": [datetime.date(2020, 1, 1)], "none": [None]}
    with pytest.warns(UserWarning, match="'when', 'none'$"):
        assert columns(read_arrow(given, columns=["a"])) == {"a": [1]}


def test_missing_columns():
    with pytest.raises(ValueError, match="columns 'b', 's' are missing; the file has 'a', 'c'"):
        read("a,c\n1,2\n", columns=["a", "b", "s"])


def test_text_where_the_model_has_numbers():
    with pytest.raises(ValueError, match="row 1, column 'a': 'x' is not a number"):
        read("a\nx\n", columns=["a"])


def test_categories_that_look_like_numbers():
    like = read("s,label\n01,1\n1,1\n1.50,0\ntrue,0\nv,0\n").layout
    for value in ("01", "1", "1.50", "true"):
        assert columns(read(f"s\n{value}\n", like=like)) == {"s": [value]}
    assert columns(read_arrow({"s": [1]}, like=like)) == {"s": ["1"]}


def test_a_model_without_names_takes_columns_by_position():
    data = read("a,b\n1,2\n,4\n", like=Layout(2))
    assert_array_equal(data.X, [[1, 2], [np.nan, 4]])
    assert data.y is None
    with pytest.raises(ValueError, match=r"has 3 features without names.*has 2 columns"):
        read("a,b\n1,2\n", like=Layout(3), label=False)
    assert read("a,b\n1,2\n", like=Layout(), label=False).X.tolist() == [[1, 2]]


@pytest.mark.parametrize("label", [None, -1, 0, "2", "label", False])
def test_by_position_without_header_and_labels(label):
    data = read("1,2,3\n4,5,6\n", columns=["u", "v", "w"], label=label)
    assert data.y is None
    assert columns(data) == {"u": [1, 4], "v": [2, 5], "w": [3, 6]}


@pytest.mark.parametrize("label", [0, 1, -1])
def test_by_position_without_header(label):
    data = read("1,2,3\n4,5,6\n", columns=["u", "v"], label=label)
    rows = np.array([[1, 2, 3], [4, 5, 6]])
    assert_array_equal(data.y, rows[:, label])
    assert [*columns(data).values()] == np.delete(rows, label, axis=1).T.tolist()


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
    drawn = draw(st.dictionaries(names.map("c{}".format), kinds, min_size=1, max_size=5))
    return pa.table(
        {c: draw(st.lists(kind, min_size=n, max_size=n)) for c, kind in drawn.items()}
        | {"label": draw(st.lists(words, min_size=n, max_size=n))}
    )


@given(table=tables(), data=st.data())
def test_any_table(table, data):
    names = [name for name in table.column_names if name != "label"]
    shuffled = table.select(data.draw(st.permutations(table.column_names)))
    expected = {name: [_plain(v) for v in table[name].to_pylist()] for name in names}
    for write, format in (WRITERS["csv"], WRITERS["semicolons"], WRITERS["parquet"]):
        found = read_table(io.BytesIO(write(table)), format)
        assert columns(found) == expected
        assert list(found.y) == table["label"].to_pylist()
        again = read_table(io.BytesIO(write(shuffled)), format, like=found.layout)
        assert [*columns(again).items()] == [*expected.items()]


def _plain(value):
    return value if isinstance(value, str) else float(value)
