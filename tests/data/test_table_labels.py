"""Tables: which column holds the labels, and of what types they are."""

import datetime
import decimal

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from .table_helpers import pa, read, read_arrow


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
    with pytest.raises(ValueError, match=r"^the file: there is no column .*label=.*'a', 'b', 'y'"):
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
