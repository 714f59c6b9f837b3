"""svmlight text: every fault is named by its place, and nothing is raised but ValueError."""

import io
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from widemargin import _core

from .helpers import assert_same_bits, assert_same_matrix, refused
from .svmlight_helpers import BOM, NUMBERS, each_jobs, parse

FAULTS = [  # line, column in it, what the message says
    ("1:2 3:4", 1, "'1:2' is in the place of the label"),
    ("  :2", 3, "':2' is in the place of the label"),
    ("1,2 1:2", 1, "'1,2' lists several labels"),
    ("a,b", 1, "'a,b' lists several labels"),
    ("nan 1:2", 1, "the label 'nan' is not a finite number"),
    ("\t-inf#5", 2, "the label '-inf' is not a finite number"),
    ("x" * 257 + " 1:2", 1, "the label '" + "x" * 40 + "...' is longer than 256 bytes"),
    (b"1\0 1:2", 2, "an unexpected byte, 0x00"),
    (b"\x7f", 1, "an unexpected byte, 0x7f"),
    (b"ab\x0bc", 3, "an unexpected byte, 0x0b"),
    (b"1 \x0c", 3, "an unexpected byte, 0x0c"),
    (b"1 1:2 \x1a", 7, "an unexpected byte, 0x1a"),
    (b"1 1:2\0", 5, "'2\\x00' is not a finite number"),
    (b"1 1\x01:2", 3, "'1\\x01:2' is not a feature"),
    (b"1 1:2 \xff:5", 7, "'\ufffd:5' is not a feature"),
    (b"ab\xff\xfe 1:2", 1, "the label 'ab\ufffd\ufffd' is not UTF-8 text"),
    (b" \xc3#", 2, "the label '\ufffd' is not UTF-8 text"),
    ("1 qid:", 3, "'qid:' is not a query number"),
    ("1 qid:1.5 1:2", 3, "'qid:1.5' is not a query number"),
    ("1 qid:9223372036854775808", 3, "'qid:9223372036854775808' is not a query number"),
    ("1 qid:x", 3, "'qid:x' is not a query number"),
    ("1 1:2 qid:3", 7, "'qid:3' must come right after the label"),
    ("1 qid:3 qid:4", 9, "'qid:4' must come right after the label"),
    ("1 qi:3", 3, "'qi:3' is not a feature"),
    ("1 x:2", 3, "'x:2' is not a feature"),
    ("1 3x:2", 3, "'3x:2' is not a feature"),
    ("1 1.5:2", 3, "'1.5:2' is not a feature"),
    ("1 +1:2", 3, "'+1:2' is not a feature"),
    ("1 :2", 3, "':2' is not a feature"),
    ("1 spam # eggs", 3, "'spam' is not a feature"),
    ("1 -1:2", 3, "'-1:2' has a negative feature index"),
    ("1 4611686018427387905:2", 3, "'4611686018427387905:2' has a feature index above 2^62"),
    ("1 99999999999999999999999:2", 3, "'99999999999999999999999:2' has a feature index above"),
    ("1 3:1 2:1", 7, "'2:1' comes after a larger feature index"),
    ("1 3:1  3:2", 8, "'3:2' repeats a feature index"),
    ("1 3 4:1", 3, "'3' is a feature without a value"),
    ("1 3", 3, "'3' is a feature without a value"),
    ("1 3:", 3, "'3:' is a feature without a value"),
    ("1 3: 5", 3, "'3:' is a feature without a value"),
    ("1 3:#5", 3, "'3:' is a feature without a value"),
    ("1 1:2:3", 5, "'2:3' is not a finite number"),
    ("1 1:x", 5, "'x' is not a finite number"),
    ("1 1:nan", 5, "'nan' is not a finite number"),
    ("1 1:-inf 2:3", 5, "'-inf' is not a finite number"),
    ("1 1:1e", 5, "'1e' is not a finite number"),
    ("1 1:1e+ 2:3", 5, "'1e+' is not a finite number"),
    ("1 1:.", 5, "'.' is not a finite number"),
    ("1 1:--5", 5, "'--5' is not a finite number"),
    ("1 1:0x1p3", 5, "'0x1p3' is not a finite number"),
    ("1 1:1,5", 5, "'1,5' is not a finite number"),
    ("1 1:1_0", 5, "'1_0' is not a finite number"),
    ("1 1:1e309 2:2", 5, "'1e309' is too large for the number type"),
    ("1 1:" + "ü" * 60, 5, "'" + "ü" * 40 + "...' is not a finite number"),
]


@pytest.mark.parametrize(("line", "column", "says"), FAULTS)
@pytest.mark.parametrize("size", [5, 4 << 20])
def test_faults_are_named_by_place(line, column, says, size, set_part):
    set_part(size)
    line = line if isinstance(line, bytes) else line.encode()
    good, n_before = b"1 1:1 2:5\n\n# comment\n-1\n", 20
    for before, after, n_jobs in [(0, 0, 1), (n_before, 1, 1), (n_before, 0, 2), (n_before, 2, 3)]:
        text = good * before + line + b"\n" + good * after
        with refused(f"some file, line {4 * before + 1}, column {column}: {says}"):
            parse(text, n_jobs=n_jobs, name="some file")
    with refused(f"line 1, column {column}: {says}"):
        parse(BOM + line)


@each_jobs
def test_the_first_of_many_faults_is_told(n_jobs, set_part):
    good, bad = "1 1:1\n", "1 2:2 1:x\n"
    for before in range(6):
        for size in (1, 16, 4 << 20):
            set_part(size)
            with refused(f"line {before + 1}, column 7: "):
                parse(good * before + bad + good + "1 spam\n" + bad * 5, n_jobs=n_jobs)


def test_fault_after_labels_turn_out_to_be_text():
    with refused("line 3, column 3: '-1:1' has a negative"):
        parse("1 1:1\na 1:2\nb -1:1\n")


# ------------------------------------------------------------------ nothing but ValueError


def assert_refused_or_as_sklearn(text, **options):
    """A ValueError or data, and where scikit-learn takes it too, the same data."""
    ours = theirs = None
    with suppress(ValueError):
        ours = parse(text, **options)
    with suppress(Exception):
        theirs = load_svmlight_file(io.BytesIO(text))
    if ours is not None and theirs is not None:
        X, y = theirs
        assert_same_matrix(ours.X, sp.csr_array(X))
        if ours.y.dtype.kind == "f":  # to us, but not to Python, 1_0 is a word
            assert_same_bits(ours.y, y)


pieces = st.sampled_from(
    b"1|-1| |\n|\t|\r\n|:|#|qid:|0.5|1e3|nan|,|1:1| 2:2| 3:3|\0|\xff|a|2147483648:|.|+".split(b"|")
)


@settings(max_examples=300)
@given(
    st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=30).map(b"".join)),
    st.integers(1, 3),
)
def test_arbitrary_bytes(text, n_jobs):
    assert_refused_or_as_sklearn(text, n_jobs=n_jobs)


@settings(max_examples=300)
@given(
    st.integers(0, len(NUMBERS) - 4), st.integers(0, 255), st.sampled_from(["put", "add", "cut"])
)
def test_one_byte_changed(at, byte, how):
    text = NUMBERS.removeprefix(BOM)
    put = b"" if how == "cut" else bytes([byte])
    assert_refused_or_as_sklearn(text[:at] + put + text[at + (how != "add") :], n_jobs=1)


def test_core_refuses_arrays_that_are_too_small():
    text = np.frombuffer(b"1 1:2 2:3\n-1\n", dtype=np.uint8)
    assert _core.measure_svmlight(text) == (2, 2)

    def call(rows, values, n_labels=None):
        return _core.parse_svmlight(
            text, np.empty(rows if n_labels is None else n_labels), None, np.empty(rows, np.int64),
            np.empty(rows, np.int64), np.empty(values, np.int32), np.empty(values),
        )  # fmt: skip

    assert call(2, 2)[:2] == (2, 2)
    for sizes in ((1, 2), (2, 1), (0, 0), (2, 2, 1)):
        with refused():
            call(*sizes)
