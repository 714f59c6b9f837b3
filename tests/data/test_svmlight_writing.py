"""Text that `write_svmlight` writes: it reads back to the same bits, or it is not written."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from widemargin.data import read, write_svmlight

from .helpers import assert_same_bits, assert_same_matrix, finite, refused
from .svmlight_helpers import parse

bits32 = st.integers(0, 2**32 - 1).map(lambda b: np.uint32(b).view(np.float32))
bits64 = st.integers(0, 2**64 - 1).map(lambda b: np.uint64(b).view(np.float64))
VALUES = {
    np.float64: bits64.filter(np.isfinite),
    np.float32: bits32.filter(np.isfinite),
    np.int64: st.integers(-(2**53), 2**53),
    np.uint8: st.integers(0, 255),
    np.bool_: st.booleans(),
}
printable = st.characters(exclude_characters="#:,\ufeff", exclude_categories=["Z", "C"])
LABELS = {
    "int": st.integers(-(2**53), 2**53),
    "float": finite,
    "float32": bits32.filter(np.isfinite),
    "str": st.text(printable, max_size=20).map("w{}".format),
    "bool": st.booleans(),
}


def written(*args, **options) -> bytes:
    file = io.StringIO()
    write_svmlight(file, *args, **options)
    return file.getvalue().encode()


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("kind", LABELS)
@settings(max_examples=20)
@given(data=st.data(), zero_based=st.booleans())
def test_written_and_read_again(dtype, kind, data, zero_based):
    shape = n, n_features = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 6)))
    dense = data.draw(hnp.arrays(dtype, shape, elements=VALUES[dtype], fill=st.just(dtype(0))))
    X = sp.csr_array(dense)
    y = np.array(data.draw(st.lists(LABELS[kind], min_size=n, max_size=n)))
    qid = data.draw(st.none() | hnp.arrays(np.int64, n))
    given = data.draw(st.sampled_from([dense, dense.tolist(), X, X.tocsc(), X.tocoo()]))
    text = written(given, y, qid=qid, zero_based=zero_based)
    number = dtype if np.issubdtype(dtype, np.floating) else np.float64
    back = parse(text, dtype=number, n_features=n_features, zero_based=zero_based)
    assert_same_matrix(back.X, X.astype(number))
    assert_same_bits(back.y, y if kind == "str" else y.astype(np.float64))
    assert (back.qid is None) == (qid is None)
    if qid is not None:
        assert_same_bits(back.qid, qid)


def test_shortest_text_is_written():
    X = np.array([[0.1, 1e-5, 3.0, 1e16, 0.0]])
    assert written(X) == b"0 1:0.1 2:1e-05 3:3 4:1e+16\n"
    assert written(X.astype(np.float32), ["a"], zero_based=True) == (
        b"a 0:0.1 1:1e-05 2:3 3:1e+16\n"
    )


def test_float32_whose_shortest_text_would_be_rounded_twice():
    X = np.array([[0x15AE43FD]], dtype=np.uint32).view(np.float32)
    assert np.float32(float(str(X[0, 0]))) != X[0, 0]
    assert_same_bits(parse(written(X), dtype=np.float32).X.data, X[0])


def test_stored_zeros_are_written():
    X = sp.csr_array((np.array([0.0, -0.0, 1.0]), np.array([0, 2, 1]), np.array([0, 2, 3])))
    assert written(X) == b"0 1:0 3:-0\n0 2:1\n"
    assert_same_matrix(parse(written(X)).X, X)


def test_numbers_that_occur_often_are_written_as_they_are():
    """Zero and minus zero are two numbers."""
    X = sp.csr_array(([0.5, -0.0, 0.5, 0.0, 0.5], [0, 1, 2, 3, 4], [0, 3, 5]))
    assert written(X, ["a", "b"]) == b"a 1:0.5 2:-0 3:0.5\nb 4:0 5:0.5\n"


def test_numbers_wider_than_a_reader_has_are_written_as_it_has_them():
    assert written(np.array([[0.5, -2.0]], np.longdouble) / 3) == written([[0.5 / 3, -2.0 / 3]])


def test_written_in_order_and_the_matrix_left_alone():
    parts = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])
    X = sp.csr_array(tuple(part.copy() for part in parts), shape=(1, 3))
    assert written(X) == b"0 1:2 3:4\n"
    for now, before in zip((X.data, X.indices, X.indptr), parts, strict=True):
        assert_array_equal(now, before)


def test_written_to_a_path_in_pieces(tmp_path):
    X, y = np.arange(1.0, 2501.0)[:, None], np.arange(2500)
    write_svmlight(tmp_path / "rows", X, y)
    assert (tmp_path / "rows").read_bytes() == written(X, y)
    assert_array_equal(read(tmp_path / "rows").X.toarray(), X)
    assert list(tmp_path.iterdir()) == [tmp_path / "rows"]


UNWRITABLE = ["", " ", "a b", "a\tb", "a\nb", "a#", "1:2", "1,2", "nan", "-Inf", "1e999", "NaN(x)"]
UNWRITABLE += ["\0a", "\x7f", "\x1b", "\xa0", "\u3000", "\ufeffa"]
REFUSED = [
    ("X must be a matrix", [1.0, 2.0], [1, 2], {}),
    ("X must be a matrix of finite", [[np.nan]], [1], {}),
    ("X must be a matrix of finite", [[np.inf, 1]], [1], {}),
    ("X must be a matrix of finite", sp.csr_array(([9e307] * 3, [0] * 3, [0, 3])), [1], {}),
    ("real numbers", [[1j]], [1], {}),
    ("X has 1 rows", [[1]], [1, 2], {}),
    ("X has 1 rows", [[1]], [[1]], {}),
    ("X has 1 rows", [[1]], [1], {"qid": [1, 2]}),
    ("qid must be whole numbers", [[1]], [1], {"qid": [1.5]}),
    ("label nan is not finite", [[1]], [np.nan], {}),
    *((repr(word), [[1]], [word], {}) for word in UNWRITABLE),
    ("cannot be written", [[1]], ["ü" * 129], {}),
]  # fmt: skip


@pytest.mark.parametrize(("says", "X", "y", "options"), REFUSED)
def test_refused_and_nothing_left_behind(says, X, y, options, tmp_path):
    with refused(says):
        write_svmlight(tmp_path / "new", X, y, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"the old file")
    with refused("surrogates"):  # found by the encoder, when there are rows on the disk already
        write_svmlight(path, np.ones((2500, 2)), ["a"] * 2499 + ["\ud800"])
    assert path.read_bytes() == b"the old file"
    with refused(kind=FileNotFoundError):
        write_svmlight(tmp_path / "nowhere" / "rows.txt", [[1]])
    assert list(tmp_path.iterdir()) == [path]


# A word that write_svmlight takes is a word that read_svmlight gives back.
@settings(max_examples=300)
@given(st.text(max_size=6) | st.from_regex(r"[+-]?(?i:nan|inf|infinity|1e999)[()a-z]{0,3}"))
def test_words_are_refused_or_read_again(word):
    try:
        text = written([[1], [1]], [word, "w"])
    except ValueError:
        return
    assert parse(text).y.tolist() == np.array([word, "w"]).tolist()  # arrays drop zeros at the end
