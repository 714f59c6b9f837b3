"""What a file says of categories and missing values, damaged."""

import pytest

from .damage import damaged, refused, replaced

COLUMNS = ("own", "columns")
FAULTS = {
    "missing": [[0, 0], [2, 0], [-1], [3], [0.0], ["0"], [True], "0"],
    "categories": [
        [[0]], [0], [["0", ["a"]]], [[3, ["a"]]], [[-1, ["a"]]], [[True, ["a"]]], "a",
        [[0, ["b", "a"]]], [[0, ["a", "a"]]], [[0, [1]]], [[0, "ab"]],
        [[1, ["a"]], [0, ["a"]]], [[0, ["a"]], [0, ["b"]]],
    ],
}  # fmt: skip


@pytest.mark.parametrize("field", FAULTS)
def test_columns_that_are_none(field, path, folder):
    parts, _, X = damaged("columns", folder)
    assert parts.header["own"]["columns"][field]
    for value in FAULTS[field]:
        header = replaced(parts.header, (*COLUMNS, field), value)
        changed = type(parts)(header, parts.arrays)
        refused(path, changed.content(), X, f"header.own.columns.{field} must be", repr(value))


def test_columns_that_the_arrays_do_not_have(path, folder):
    parts, _, X = damaged("columns", folder)
    own = parts.header["own"]["columns"]
    more = [[column, [*texts, "zz"]] for column, texts in own["categories"]]
    for columns in ({**own, "categories": more}, {**own, "missing": []}, None):
        changed = type(parts)(replaced(parts.header, COLUMNS, columns), parts.arrays)
        refused(path, changed.content(), X, "has the shape" if columns else "the array")


@pytest.mark.parametrize("value", [[1.5], [{}], [[0]], [0, "a"], [[[]]], [None], "x", 7])
def test_categorical_features_that_are_none(value, path, folder):
    parts, _, X = damaged("columns", folder)
    for given in (value, {"columns": value}):
        header = replaced(parts.header, ("parameters", "categorical_features"), given)
        refused(path, type(parts)(header, parts.arrays).content(), X, "categorical_features")
