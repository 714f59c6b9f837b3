"""svm-scale's range files, and what is scaled with them."""

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.data.ranges import Range, Span, is_range_file, read_range
from widemargin.errors import TooLargeError

X = np.array([[0.1, 5.0, 0.0, -3.0], [0.7, 5.0, 2.0, 1e-3]])
# With -y 0 1 and labels -1 and 3; svm-scale prints 17 digits, which tell any two numbers apart.
TEXT = """\
y
0 1
-1 3
x
-1 1
1 0.10000000000000001 0.69999999999999996
3 0 2
4 -3 0.001
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "range"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_file_is_that_of_svm_scale(make, path):
    found = Range.of(make(X), 1, Span(-1, 1)).with_labels(np.array([-1.0, 3.0]), Span(0, 1))
    found.write(path)
    assert path.read_text() == TEXT
    again = read_range(path)
    np.testing.assert_array_equal(again.index, found.index)
    np.testing.assert_array_equal(again.low, found.low)
    np.testing.assert_array_equal(again.high, found.high)
    assert (again.to, again.labels, again.labels_to) == (found.to, found.labels, found.labels_to)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_ends_are_exact_and_features_of_one_value_are_left_out(make):
    found = Range.of(make(X), 1, Span(-0.1, 0.3))
    scaled = found.scaled(make(X), 1)
    np.testing.assert_array_equal(scaled[:, [0, 2, 3]], [[-0.1] * 3, [0.3] * 3])
    np.testing.assert_array_equal(scaled[:, 1], 0)
    between = found.scaled(make([[0.4, 9.0, 1.0, 1e-3]]), 1)
    np.testing.assert_allclose(between, [[0.1, 0, 0.1, 0.3]])


def test_features_are_found_by_their_numbers():
    found = Range.of(X, 1, Span(-1, 1))
    zero_based = np.hstack([[[7.0], [8.0]], X])
    np.testing.assert_array_equal(found.scaled(zero_based, 0)[:, 1:], found.scaled(X, 1))
    np.testing.assert_array_equal(found.not_seen(zero_based, 0), [0])
    assert found.scaled(X[:, :2], 1).shape == (2, 2)
    wide = np.hstack([X, X])
    np.testing.assert_array_equal(found.not_seen(wide, 1), [5, 7, 8])
    assert not found.scaled(wide, 1)[:, 4:].any()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x\n-1 1\n", "x\n1 -1\n", "line 5 must be two finite numbers"),
        ("-1 3", "-1 nan", "line 3 must be two finite numbers"),
        ("-1 3", "-1 3 4", "line 3 must be two finite numbers"),
        ("3 0 2", "3 0 1e999", "line 7 must be two finite numbers"),
        ("3 0 2", "3 0 1_0", "line 7 must be two finite numbers"),
        ("3 0 2", "3 0", "line 7 must be two finite numbers"),
        ("3 0 2", "1 0 2", "line 7 must be a larger feature number"),
        ("3 0 2", "-3 0 2", "line 7 must be the number of a feature"),
        ("3 0 2", "3333333333333 0 2", "line 7 must be the number of a feature"),
        ("3 0 2", "", "line 7 must be not empty"),
        ("x\n", "z\n", "line 4 must be x"),
        (TEXT[10:], "", "line 4 must be not empty"),
    ],
)
def test_every_line_is_checked(path, old, new, said):
    assert old in TEXT
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(ValueError, match=said) as error:
        read_range(path)
    assert str(error.value).startswith(str(path))


def test_large_files_are_refused(path):
    path.write_text(TEXT)
    with pytest.raises(TooLargeError, match="its numbers take"):
        read_range(path, max_bytes=1000)


def test_range_files_are_told_by_their_first_line(path):
    path.write_text(TEXT)
    assert is_range_file(path)
    path.write_text("x\r\n-1 1\r\n1 0 1\r\n")
    assert is_range_file(path)
    assert read_range(path).index.tolist() == [1]
    for text in ("", "xy", "1 1:2\n", "y", "x\n\0\0\0\0\0\0{}"):
        path.write_text(text)
        assert not is_range_file(path)
    assert not is_range_file(path.parent)
    assert not is_range_file(path.with_name("none"))
