"""svmlight text: what scikit-learn reads, to the last bit; labels, lines and features."""

import bz2
import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

from widemargin.data import read

from .helpers import assert_same, assert_same_bits, refused
from .svmlight_helpers import TEXTS, assert_as_sklearn, each_dtype, parse

# ------------------------------------------------------------------ the same as scikit-learn


@st.composite
def files(draw):
    """A random matrix as scikit-learn writes it, and how to read it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.tuples(st.integers(1, 30), st.integers(1, 40)))
    X = sp.random_array(shape, density=draw(st.floats(0, 1)), format="csr", rng=rng)
    X.data = rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-30, 30, X.nnz)
    y = rng.integers(-3, 4, shape[0]) if draw(st.booleans()) else rng.standard_normal(shape[0])
    zero_based = draw(st.booleans())
    file = io.BytesIO()
    dump_svmlight_file(
        sp.csr_matrix(X), y, file, zero_based=zero_based,
        comment=draw(st.sampled_from([None, "a comment: 1:2"])),
        query_id=rng.integers(0, 9, shape[0]) if draw(st.booleans()) else None,
    )  # fmt: skip
    options = draw(st.sampled_from([{}, {"zero_based": zero_based, "n_features": shape[1]}]))
    return file.getvalue(), options


@each_dtype
@given(file=files(), n_jobs=st.integers(1, 3))
def test_as_sklearn_reads(dtype, file, n_jobs):
    text, options = file
    ours = parse(text, dtype=dtype, n_jobs=n_jobs, **options)
    assert_as_sklearn(ours, text, dtype=dtype, **options)


@pytest.mark.parametrize("name", ["a9a.bz2", "ijcnn1.trn.bz2", "sector.scale.bz2"])
def test_real_data_as_sklearn_reads(name, data_folder, tmp_path):
    text = bz2.decompress((data_folder / name).read_bytes())
    if name.startswith("ijcnn1"):
        text = text[: text.index(b"\n", 1_000_000)]
    (tmp_path / "plain").write_bytes(text)
    ours = read(tmp_path / "plain", n_jobs=1)
    assert_as_sklearn(ours, text)
    for n_jobs in (2, 3):
        assert_same(read(tmp_path / "plain", n_jobs=n_jobs), ours)
    if name == "a9a.bz2":
        assert_same(read(data_folder / name, n_jobs=2), ours)


# ------------------------------------------------------------------ labels and queries


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1\n-1\n+2\n", [1.0, -1.0, 2.0]),
        ("1.5\n1e3\n", [1.5, 1000.0]),
        ("1\n+1.50\nspam\n", ["1", "+1.50", "spam"]),
        ("dog 1:1\ncat\n", ["dog", "cat"]),
        ("Füße 1:1\n猫 2:1\n\U0001f431\n", ["Füße", "猫", "\U0001f431"]),
        ("1\n0x10\n", ["1", "0x10"]),
        ("1_000\n", ["1_000"]),
        ("1e999x\n", ["1e999x"]),
        ("+\n-\n.\n", ["+", "-", "."]),
        ("nano\ninfo\n", ["nano", "info"]),
        ("a=b|c;d\n", ["a=b|c;d"]),
        ("x" * 256 + "\n", ["x" * 256]),
    ],
)
def test_labels(text, labels):
    y = parse(text).y
    assert_same_bits(y, np.array(labels))


@pytest.mark.parametrize("word", ["nan", "NaN", "-nan", "+inf", "Infinity", "nan(1)", "1e999"])
@pytest.mark.parametrize("before", ["1", "a"])
def test_labels_that_are_no_numbers(word, before):
    with refused("line 2, column 1: ", repr(word), "not a finite number"):
        parse(f"{before} 1:1\n{word} 1:1\n")


def test_qid_of_all_or_none():
    data = parse(TEXTS["qid"])
    assert_same_bits(data.qid, np.array([3, -4, 2**63 - 1]))
    assert parse("1 1:1\n").qid is None
    with refused("some.txt: 1 of 3 rows have a qid; give a qid to all rows or to none"):
        parse("1 1:1\n2 qid:1 1:1\n3\n", name="some.txt")


# ------------------------------------------------------------------ lines


@pytest.mark.parametrize(
    "text",
    [
        "1 1:2\n-1 3:4\n",
        "1 1:2\n-1 3:4",
        "1 1:2\r\n-1 3:4\r\n",
        "  1  1:2  \n\t-1\t3:4\t\n",
        "\n\n1 1:2\n \n-1 3:4\n\n\n",
        "# head\n1 1:2 # 2:3\n #\n-1 3:4#5:6\n# tail",
        "\ufeff1 1:2\n-1 3:4\n",
        "\ufeff\n1 1:2\n-1 3:4\n",
        "1 1:2 # \0\x01 ü\n-1 3:4 #\udcff".encode(errors="surrogateescape"),
        "1 0001:2\n-1 3:4\n",
    ],
)
def test_spaces_comments_and_line_ends(text):
    data = parse(text)
    assert_array_equal(data.X.toarray(), [[2, 0, 0], [0, 0, 4]])
    assert_array_equal(data.y, [1, -1])


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n  # here", "\ufeff", "\ufeff\n", " "])
@pytest.mark.parametrize("size", [1, 4 << 20])
def test_no_rows(text, size, set_part):
    set_part(size)
    with refused("empty.txt: the file has no rows"):
        parse(text, name="empty.txt")


def test_rows_without_features():
    data = parse("1\n-1\n")
    assert data.X.shape == (2, 1)
    assert data.X.nnz == 0
    assert parse("1\n", n_features=5).X.shape == (1, 5)


# ------------------------------------------------------------------ features


@pytest.mark.parametrize(
    ("text", "options", "shape", "zero_based"),
    [
        ("1 1:2 3:4", {}, (1, 3), False),
        ("1 2:2\n1 0:4", {}, (2, 3), True),
        ("1 1:2 3:4", {"zero_based": True}, (1, 4), True),
        ("1 1:2 3:4", {"zero_based": False, "n_features": 7}, (1, 7), False),
        ("1 0:2 3:4", {"n_features": np.int32(4)}, (1, 4), True),
    ],
)
def test_where_features_begin(text, options, shape, zero_based):
    data = parse(text, **options)
    assert data.X.shape == shape
    assert data.zero_based is zero_based
    first = 0 if zero_based else 1
    indices = [int(t.split(":")[0]) - first for t in text.split() if ":" in t]
    assert_array_equal(data.X.indices, indices)
    assert_same_bits(data.X.indices, data.X.indices.astype(np.int32))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"zero_based": False}, "f: the feature index 0 occurs, but zero_based=False"),
        ({"n_features": 3}, "f: the feature index 3 occurs, but there are only 3 features"),
        ({"n_features": 0}, "n_features=0"),
        ({"zero_based": 1}, "zero_based=1 is not known. Use one of True, False, 'auto'"),
        ({"zero_based": "yes"}, "zero_based='yes'"),
        ({"dtype": np.int64}, "dtype=int64 must be float32 or float64"),
    ],
)
def test_options_refused(options, says):
    with refused(says):
        parse("1 0:1 3:1", name="f", **options)


@pytest.mark.parametrize(
    ("index", "dtype"),
    [
        (2**31 - 2, np.int32),
        (2**31 - 1, np.int64),
        (2**31, np.int64),
        (2**40, np.int64),
        (2**62, np.int64),
    ],
)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("label", ["1", "a"])
def test_large_indices(index, dtype, first, label):
    data = parse(f"{label} {first}:1 {index}:2\n{label} {first}:3\n")
    assert data.X.shape == (2, index + 1 - first)
    assert data.X.indices.dtype == dtype
    assert_array_equal(data.X.indices, [0, index - first, 0])
    assert_array_equal(data.X.data, [1, 2, 3])
