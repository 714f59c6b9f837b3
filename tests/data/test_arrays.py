"""NumPy's files: dense and sparse, in splits; nothing unpickled, nothing believed unchecked."""

import io
import pickle
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin.data import Dataset, read

from .helpers import assert_same_bits, assert_same_matrix, refused, saved

X = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
ROWS = sp.csr_array(X)
PARTS = {"data": ROWS.data, "indices": ROWS.indices, "indptr": ROWS.indptr, "shape": ROWS.shape}


def npz(save=np.savez, split=None, **arrays) -> Dataset:
    return read(io.BytesIO(saved(save, **arrays)), format="npz", split=split)


def npy(array, label=None) -> Dataset:
    return read(io.BytesIO(saved(np.save, array)), format="npy", label=label)


# ------------------------------------------------------------------ what is read


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint16, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense(save, dtype, order):
    matrix = np.abs(X).astype(dtype, order=order)
    data = npz(save, X=matrix, y=[1, 2])
    assert_same_matrix(data.X, matrix)
    assert_same_bits(data.y, np.array([1, 2]))
    assert npz(save, X=matrix).y is None
    assert_same_matrix(npy(matrix).X, matrix)


@pytest.mark.parametrize("labels", [[1.5, 2.0], ["a", "ü"], [True, False]])
def test_labels_of_any_type(labels):
    assert_same_bits(npz(X=X, y=labels).y, np.array(labels))


def test_splits():
    arrays = {"X_train": X, "y_train": [1, 2], "X_test": X[:1], "y_test": [3]}
    assert_array_equal(npz(**arrays, split="train").y, [1, 2])
    assert_array_equal(npz(**arrays, split="test").y, [3])
    assert_array_equal(npz(**arrays).y, [1, 2])
    assert_array_equal(npz(**arrays, X=2 * X).X, 2 * X)
    with refused("the file: no array X_other, only X_train, y_train"):
        npz(**arrays, split="other")
    with refused("no array X_train, only X, y. Leave split= out to read X."):
        npz(X=X, y=[1, 2], split="train")
    with refused("no array X, only Z. Save with numpy.savez"):
        npz(Z=X)
    with refused("only nothing"):
        npz()


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_as_scipy_saves_it(layout, kind, compressed):
    matrix = kind(X[:, :2]).asformat(layout)  # square: rows and columns are easily confused
    content = saved(sp.save_npz, matrix, compressed=compressed)
    data = read(io.BytesIO(content))
    assert isinstance(data.X, sp.csr_array)
    assert_same_matrix(data.X, sp.csr_array(X[:, :2]))
    assert data.y is None


def test_sparse_by_its_parts():
    data = npz(**PARTS, y=[0, 1])
    assert_same_matrix(data.X, ROWS)
    assert_array_equal(data.y, [0, 1])


def test_npy_label():
    for label, column in ((0, 0), (2, 2), (-1, 2), ("1", 1), (np.int64(1), 1)):
        data = npy(X, label)
        assert_same_bits(data.y, X[:, column])
        assert_same_bits(data.X, np.delete(X, column, axis=1))
    for label in (None, False):
        assert npy(X, label).y is None


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"indices": [1, 0, 3]}, "indices"),
        ({"indices": [1, 0, -1]}, "indices"),
        ({"indices": [1, 0]}, "its sparse matrix is invalid"),
        ({"indices": [1.0, 0.0, 2.0]}, "whole numbers"),
        ({"indices": [[1, 0, 2]]}, "1-D"),
        ({"indptr": [0, 2, 1]}, "its sparse matrix is invalid"),
        ({"indptr": [0, 5, 3]}, "its sparse matrix is invalid"),
        ({"indptr": [1, 1, 3]}, "its sparse matrix is invalid"),
        ({"indptr": [0, 1, 4]}, "its sparse matrix is invalid"),
        ({"indptr": [0, 3]}, "its sparse matrix is invalid"),
        ({"indptr": [0.0, 1.0, 3.0]}, "whole numbers"),
        ({"indptr": [0, -1, 3]}, "its sparse matrix is invalid"),
        ({"data": [1.0]}, "its sparse matrix is invalid"),
        ({"data": ["a", "b", "c"]}, "the file: "),
        ({"data": [1j, 1, 1]}, "X must be a matrix of numbers, not complex128"),
        ({"shape": [2]}, "its sparse matrix is invalid"),
        ({"shape": [2, 3, 1]}, "its sparse matrix is invalid"),
        ({"shape": [2, -3]}, "its sparse matrix is invalid"),
        ({"shape": [3, 3]}, "its sparse matrix is invalid"),
        ({"shape": [2, 2]}, "its sparse matrix is invalid"),
        ({"shape": 6}, "its sparse matrix is invalid"),
        ({"shape": [2.0, 3.0]}, "whole numbers"),
        ({"shape": np.array([2, 2**64 - 1], dtype=np.uint64)}, "its sparse matrix is invalid"),
        ({"format": "bsr"}, "its format is bsr; save it as compressed rows"),
        ({"format": "csc"}, "its sparse matrix is invalid"),
        ({"format": ["csr", "csr"]}, "its sparse matrix is invalid"),
        ({"y": [1, 2, 3]}, "X has 2 rows, but y has the shape (3,)"),
    ],
)
def test_sparse_parts_that_do_not_fit(changes, says):
    with refused("the file: ", says):
        npz(**PARTS | changes)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"X": X[0]}, "X must be a matrix of numbers, not float64 of (3,)"),
        ({"X": X[None]}, "not float64 of (1, 2, 3)"),
        ({"X": 5.0}, "not float64 of ()"),
        ({"X": [["a"]]}, "X must be a matrix of numbers, not <U1"),
        ({"X": 1j * X}, "not complex128"),
        ({"X": X.astype("M8[s]")}, "not datetime64[s]"),
        ({"X": X, "y": [1]}, "X has 2 rows, but y has the shape (1,)"),
        ({"X": X, "y": [[1], [2]]}, "but y has the shape (2, 1)"),
        ({"X": X, "y": 1}, "but y has the shape ()"),
    ],
)
def test_shapes_and_types_that_do_not_fit(arrays, says):
    with refused("the file: ", says):
        npz(**arrays)
    if "y" not in arrays:
        with refused("the file: ", says):
            npy(np.asarray(arrays["X"]))


@pytest.mark.parametrize("label", [3, -4, 1.5, "spam", "0.5", [1], np.nan])
def test_no_such_label_column(label):
    with refused("the file: label=", "is not a column; its array has 3"):
        npy(X, label)
    with refused("is not a column; its array has 0"):
        npy(X[0], 0)


class Bomb:
    """Unpickling it is an error of its own kind."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('unpickled')",))


def test_nothing_is_ever_unpickled(tmp_path):
    objects = np.array([[Bomb()]], dtype=object)
    contents = {
        "npy": saved(np.save, objects, allow_pickle=True),
        "npz": saved(np.savez, X=objects),
        "labels": saved(np.savez, X=X, y=objects[:, 0]),
        "raw": pickle.dumps(Bomb()),
    }
    for content in contents.values():
        for format in (None, "npz", "npy"):
            with refused("the file"):
                read(io.BytesIO(content), format=format)
    assert npz(X=X, y=[1, 2], other=objects).X.shape == X.shape  # which nobody looks at


def test_one_format_is_not_the_other():
    with refused("not a readable .npy file"):
        read(io.BytesIO(saved(np.savez, X=X)), format="npy")
    with refused("not a readable .npz file"):
        read(io.BytesIO(saved(np.save, X)), format="npz")


def test_zip_that_is_no_npz():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "X")
        archive.writestr("X.npy", "not an array")
    with refused("the file: "):
        read(file)


def test_header_that_promises_too_much():
    promise = b"(2, 3), }".ljust(21)
    content = saved(np.save, X)
    assert promise in content
    huge = content.replace(promise, b"(2, 3999999999999), }")
    with refused("the file: its array takes 6.4e+04 GB or more, but max_bytes="):
        read(io.BytesIO(huge))
    for some in (content[:-1], content[:90], content[:20]):
        with refused("the file: not a readable .npy file"):
            read(io.BytesIO(some))


# ------------------------------------------------------------------ nothing but ValueError

WHOLE = {
    "npy": saved(np.save, X),
    "npz": saved(np.savez, X=X, y=[0, 1]),
    "compressed": saved(np.savez_compressed, X=X, y=[0, 1]),
    "sparse": saved(sp.save_npz, ROWS, compressed=False),
}
each_whole = pytest.mark.parametrize("content", WHOLE.values(), ids=WHOLE)


def assert_data_or_value_error(content, **options):
    with suppress(ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about headers that only look like Python 2's
        assert isinstance(read(io.BytesIO(content), **options), Dataset)


@each_whole
def test_cut_anywhere(content):
    for end in range(len(content)):
        assert_data_or_value_error(content[:end])


@each_whole
def test_any_byte_changed(content):
    rng = np.random.default_rng(0)
    for at, byte in enumerate(rng.integers(0, 256, len(content)).tolist()):
        assert_data_or_value_error(content[:at] + bytes([byte]) + content[at + 1 :])


@settings(max_examples=300)
@given(
    st.sampled_from([b"", b"\x93NUMPY", b"\x93NUMPY\x01\0\x20\0{'descr': '", b"PK\x03\x04"]),
    st.binary(max_size=100),
    st.sampled_from(["npy", "npz"]),
)
def test_arbitrary_bytes(head, rest, format):
    assert_data_or_value_error(head + rest, format=format)


@settings(max_examples=200)
@given(st.text("{}()[]'\",: \n\\0129fiOUdescrfortran_ordershapeTrueFalseNone<>|L#", max_size=60))
def test_arbitrary_headers(header):
    text = header.encode() + b"\n"
    assert_data_or_value_error(b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text)
