"""The data of the benchmarks: what is done to it on the way."""

import io

import numpy as np
import pytest
from benchmarks import data


def test_tables_become_numbers_between_0_and_1_and_a_column_per_value():
    table = data._csv(io.BytesIO(b"3, a, 7\n5, b, 7\n4, a, 7\n"))
    found = data._one_hot(table.columns).toarray()
    np.testing.assert_array_equal(found, [[0, 1, 0, 0], [1, 0, 1, 0], [0.5, 1, 0, 0]])


def test_held_out_rows_have_every_class_unless_one_has_a_single_row():
    X, y = np.arange(100.0)[:, None], np.repeat([0, 1], [90, 10])
    _, _, y_fit, y_held = data.held_out(X, y)
    assert ((y_held == 1).sum(), (y_fit == 1).sum()) == (2, 8)
    y[0] = 7
    X_fit, X_held, *_ = data.held_out(X, y)
    assert sorted(np.concatenate([X_fit, X_held]).ravel()) == list(range(100))


@pytest.mark.parametrize(
    ("name", "rows", "features"),
    [("census", (79_810, 19_952), 407), ("shuttle_signed", (43_500, 14_500), 9)],
)
def test_sets_have_the_rows_of_their_papers(data_folder, name, rows, features):
    X, y, X_test, y_test = getattr(data, name)()
    assert (X.shape, X_test.shape) == ((rows[0], features), (rows[1], features))
    assert (len(y), len(y_test)) == rows
    assert X.max() == pytest.approx(1)


@pytest.mark.parametrize("name", ["w8a", "usps", "satimage", "shuttle", "ijcnn1", "letter"])
def test_classes_are_as_frequent_in_the_test_rows_as_in_the_training_rows(data_folder, name):
    """Nearly: a file in the order of its classes, cut in two, would be far off."""
    _, y, _, y_test = getattr(data, name)()
    for label in np.unique(y):
        share, tested = (float(np.mean(part == label)) for part in (y, y_test))
        assert abs(tested - share) < 0.005 + share / 3
