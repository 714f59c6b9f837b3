"""svmlight text: what scikit-learn reads, to the last bit; every fault named by its place."""

import bz2
import io
import itertools
import tracemalloc
from contextlib import suppress
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from widemargin import _core
from widemargin.data import read, read_svmlight, stream_svmlight, svmlight

from .helpers import (
    assert_as_sklearn,
    assert_same,
    assert_same_bits,
    assert_same_matrix,
    finite,
    parse,
    refused,
)

BOM = b"\xef\xbb\xbf"
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_jobs = pytest.mark.parametrize("n_jobs", [1, 2, 3])

# All that may be in a file, with lines of all lengths.
NUMBERS = (
    BOM + b"+1 1:0.5 3:-2e-3 17:1 # first\r\n"
    b"\n"
    b"  # only a comment 1:2 : :\n"
    b"-1\n"
    b"\t 3.25\t2:.5   4:5.\t\r\n"
    b"# more\n\n\n"
    b"1e2 1:+1 2:-0 3:1E+3 100:0.1234567890123456789012345#9:9\n"
    b"-1 5:" + b"1" * 60 + b"\n"
    b"0 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1 15:1 16:1\n"
    b"7"
)
TEXTS = {
    "numbers": NUMBERS,
    "qid": b"1 qid:3 1:1\n# none here\n-1 qid:-4 2:1\n\n1 qid:9223372036854775807\n",
    "text labels": NUMBERS + "\nklasse 1:1\n猫\n1.50 2:1\n".encode(),
    "wide indices": NUMBERS + b"\n1 2147483648:1\n",
    "both": NUMBERS + b"\nb 2147483648:1\n" + b"c 4000000000:2",
}
each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@pytest.fixture
def set_part(monkeypatch):
    """Sets how many bytes of text a thread gets at once."""
    return lambda size: monkeypatch.setattr(svmlight, "PART", size)


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


# ------------------------------------------------------------------ blocks and threads


@each_text
@each_jobs
def test_cut_anywhere(text, n_jobs, set_part):
    whole = parse(text, n_jobs=1)
    for size in range(1, 201, 1 if text is NUMBERS else 5):
        set_part(size)
        assert_same(parse(text, n_jobs=n_jobs), whole)


def test_text_without_text_labels_is_as_sklearn_reads():
    plain = NUMBERS.removeprefix(BOM)
    assert_as_sklearn(parse(NUMBERS), plain)


def test_buffer_grows_while_arrays_of_it_are_alive(monkeypatch, set_part):
    alive, parts = [], svmlight._parts

    def keep(*args):
        alive.append(parts(*args))
        return alive[-1]

    monkeypatch.setattr(svmlight, "_parts", keep)
    set_part(8)
    text = b"1\n-1\n1 1:" + b"0" * 500 + b"1\n"
    assert_array_equal(parse(text, n_jobs=1).y, [1, -1, 1])


class Dribble(io.RawIOBase):
    """A file that gives a few bytes at a time, and cannot go back."""

    def __init__(self, content: bytes, step: int):
        self.rest, self.step = content, step

    def readable(self):
        return True

    def readinto(self, buffer):
        n = min(self.step, len(buffer), len(self.rest))
        buffer[:n], self.rest = self.rest[:n], self.rest[n:]
        return n


@pytest.mark.parametrize("step", [1, 2, 7, 64])
def test_short_reads(step):
    assert_same(read_svmlight(Dribble(NUMBERS, step)), parse(NUMBERS))


@pytest.mark.parametrize("name", ["text labels", "wide indices"])
def test_what_needs_a_second_look_cannot_come_from_a_pipe(name):
    with refused("pipe.txt: ", "second look", "Save it to a file"):
        read_svmlight(Dribble(TEXTS[name], 50), name="pipe.txt")


def test_reads_from_where_the_file_stands():
    file = io.BytesIO(b"header\na 1:1\nb 1:2\n")
    file.readline()
    assert_array_equal(read_svmlight(file).y, ["a", "b"])


def test_a_line_of_100_megabytes():
    n = 9_100_000  # features 10000000, 10000001, ...
    fours = np.frombuffer(b"".join(b"%04d" % i for i in range(10_000)), np.uint8).reshape(-1, 4)
    line = np.empty((n // 10_000, 10_000, 11), dtype=np.uint8)
    line[:] = np.frombuffer(b" 00000000:1", np.uint8)
    line[:, :, 1:5] = fours[1000 : 1000 + len(line), None]
    line[:, :, 5:9] = fours
    text = b"-1 1:1\n1" + line.tobytes() + b"\n2 2:5\n"
    del line
    tracemalloc.start()
    data = parse(text, n_jobs=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(text) > 100e6
    assert peak < 6 * len(text)
    assert data.X.shape == (3, 10_000_000 + n - 1)
    assert_array_equal(data.X.indptr, [0, 1, n + 1, n + 2])
    assert_array_equal(data.X.indices[1:-1], np.arange(9_999_999, 9_999_999 + n))
    assert_array_equal(data.y, [-1, 1, 2])


LONG = 20_000_000


@pytest.mark.parametrize(
    ("before", "byte", "column", "says"),
    [
        (b"", b"x", 1, "longer than 256 bytes"),
        (b"", b"1", 1, "not a finite number"),
        (b"1 1:", b"x", 5, "not a finite number"),
        (b"1 1:", b"9", 5, "too large"),
        (b"1 1:1e", b"9", 5, "too large"),
        (b"1 ", b"9", 3, "above 2^62"),
        (b"1 ", b"x", 3, "not a feature"),
        (b"1 qid:", b"1", 3, "not a query number"),
    ],
)
def test_a_token_of_20_megabytes(before, byte, column, says):
    text = b"1 1:1\n" + before + byte * LONG + b"\n"
    with refused(f"svmlight text, line 2, column {column}: ", says, "..."):
        parse(text, n_jobs=1)


def test_numbers_of_20_megabytes():
    text = b"1 " + b"0" * LONG + b"7:0." + b"0" * LONG + b"7e" + b"%d" % (LONG + 1)
    data = parse(text, n_jobs=1)
    assert data.X.shape == (1, 7)
    assert data.X.data[0] == 7.0


# ------------------------------------------------------------------ decimal text to numbers


def read_numbers(texts, dtype=np.float64):
    """Each text as a label and as a value."""
    data = parse("".join(f"{t} 1:{t}\n" for t in texts), dtype=dtype)
    return data.y, data.X.data


def assert_exact(texts, dtype=np.float64):
    expected = np.array([float(t) for t in texts])
    labels, values = read_numbers(texts, dtype)
    assert_same_bits(labels, expected)
    assert_same_bits(values, expected.astype(dtype))


@given(st.lists(finite, min_size=1, max_size=40))
def test_doubles_are_exact(numbers):
    formats = ("{!r}", "{:.17g}", "{:.25e}", "{:.3f}", "{:+.6G}")
    texts = [form.format(number) for number in numbers for form in formats]
    assert_exact([t for t in texts if np.isfinite(float(t))])


digits = st.text("0123456789", max_size=45)


@st.composite
def decimals(draw):
    whole, fraction = draw(digits), draw(digits)
    text = draw(st.sampled_from(["", "+", "-"])) + (whole or ("" if fraction else "0"))
    text += "." + fraction if fraction or draw(st.booleans()) else ""
    if draw(st.booleans()):
        text += draw(st.sampled_from("eE")) + draw(st.sampled_from(["", "+", "-"]))
        text += draw(st.integers(0, 400).map(str))
    return text


@each_dtype
@settings(max_examples=100)
@given(texts=st.lists(decimals(), min_size=1, max_size=40))
def test_decimals_are_exact_or_too_large(dtype, texts):
    with np.errstate(over="ignore"):
        fits = [bool(np.isfinite(dtype(float(t)))) for t in texts]
    texts_that_fit = list(itertools.compress(texts, fits))
    if texts_that_fit:
        assert_exact(texts_that_fit, dtype)
    for text in itertools.compress(texts, np.logical_not(fits)):
        with refused("line 1, column 5: ", "too large for the number type"):
            parse(f"1 1:{text}", dtype=dtype)


@given(
    number=st.floats(0, 1e308),
    form=st.sampled_from(["{:f}", "{:e}"]),
    beside=st.sampled_from([-1, 0, 1]),
)
@example(number=0.0, form="{:e}", beside=0)  # half of the least number
@example(number=5e-324, form="{:f}", beside=1)
@example(number=2.2250738585072009e-308, form="{:e}", beside=0)
@example(number=9007199254740992.0, form="{:f}", beside=1)
def test_halfway_between_doubles(number, form, beside):
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 2000, -5000, 5000
        half = (Decimal(number) + Decimal(np.nextafter(number, np.inf))) / 2
        assert_exact([form.format(half + beside * half.scaleb(-1000))])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0", -0.0), ("+5", 5.0), ("5.", 5.0), (".5", 0.5), ("-.5", -0.5), ("1E+3", 1000.0),
        ("0e999999999999999999999", 0.0), ("1e-400", 0.0), ("-1e-400", -0.0),
        ("1e-99999999999999999999", 0.0), ("0." + "0" * 400 + "1e401", 1.0),
        ("1" + "0" * 400 + "e-400", 1.0), ("4.9e-324", 5e-324), ("2.4e-324", 0.0),
        ("1.7976931348623157e308", 1.7976931348623157e308), ("9007199254740993", 2.0**53),
        ("0" * 30 + "1", 1.0), ("1e22", 1e22), ("1e23", 1e23), ("3e-23", 3e-23),
        ("18446744073709551615", 2.0**64), ("18446744073709551617", 2.0**64),
        ("8.5e22", 8.5e22), ("1e00000000000000000001", 10.0),
    ],
)  # fmt: skip
def test_notations(text, value):
    assert_same_bits(np.concatenate(read_numbers([text])), np.array([value, value]))


@pytest.mark.parametrize("text", ["1.7976931348623159e308", "1e309", "-2e308", "1" * 400, "1e9999"])
def test_too_large(text):
    with refused("line 1, column 5: ", "too large for the number type"):
        parse(f"1 1:{text}")
    with refused("line 1, column 1: ", "is not a finite number"):
        parse(f"{text} 1:1")


def test_largest_of_float32():
    large = "3.4028235677973366e38"  # halfway to what would be infinite
    assert_same_bits(
        parse("1 1:3.4028235677973362e38", dtype=np.float32).X.data,
        np.array([np.finfo(np.float32).max]),
    )
    with refused("line 1, column 5: ", large):
        parse(f"1 1:{large}", dtype=np.float32)
    assert parse(f"1 1:{large}").X.data[0] == float(large)


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
    with refused("some.txt: 1 of 3 rows have a qid; give all or none"):
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
    with refused("empty.txt: no rows in it"):
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


# ------------------------------------------------------------------ faults

FAULTS = [  # line, column in it, what the message says
    ("1:2 3:4", 1, "'1:2' stands where the label should be"),
    ("  :2", 3, "':2' stands where the label should be"),
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


# ------------------------------------------------------------------ streams


def stacked(blocks):
    return sp.vstack([b.X for b in blocks], format="csr"), np.concatenate([b.y for b in blocks])


@each_jobs
@pytest.mark.parametrize("size", [1, 20, 64, 4 << 20])
def test_stream_gives_the_whole(size, n_jobs, set_part):
    set_part(size)
    blocks = list(stream_svmlight(io.BytesIO(NUMBERS), n_features=120, n_jobs=n_jobs))
    assert len(blocks) > 1  # what comes after the last newline is one of its own
    whole = parse(NUMBERS, n_features=120)
    X, y = stacked(blocks)  # only now: a block does not change when the next is read
    assert_same_matrix(X, whole.X)
    assert_same_bits(y, whole.y)


def test_stream_in_memory_that_does_not_grow(tmp_path, set_part):
    set_part(1 << 14)
    peaks = []
    for n in (5_000, 50_000):
        path = tmp_path / "rows"
        path.write_bytes(b"1 1:0.5 7:0.25 9:1\n" * n)
        with open(path, "rb") as file:
            tracemalloc.start()
            rows = sum(b.X.shape[0] for b in stream_svmlight(file, n_features=9, n_jobs=1))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert rows == n
    assert peaks[1] < 1.2 * peaks[0] < 2e6


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("1 1:1\n" * 9 + "a 1:1\n", {}, "f: labels are text or indices above 2^31"),
        ("1 1:1\n" * 9 + "1 2147483648:1\n", {"n_features": 2**40}, "indices above 2^31"),
        ("1 1:1\n" * 9 + "1 x\n", {}, "f, line 10, column 3: "),
        ("1 1:1\n" * 9 + "1 6:1\n", {}, "f: the feature index 6 occurs"),
        ("1 1:1\n" * 9 + "1 0:1\n", {}, "f: the feature index 0 occurs"),
        ("1 1:001\n" * 4 + "1 qid:1\n", {}, "f: only some rows have a qid"),
        ("1 qid:1\n" * 4 + "1 1:001\n", {}, "f: only some rows have a qid"),
        ("1 qid:1\n" * 3 + "1 1:001\n", {}, "f: 1 of 2 rows have a qid"),
        ("1 1:1\n", {"zero_based": "auto"}, "zero_based='auto'"),
        ("1 1:1\n", {"n_features": 0}, "n_features=0"),
    ],
)
def test_stream_refuses(text, options, says, set_part):
    set_part(16)
    with refused(says):
        for _ in stream_svmlight(
            io.BytesIO(text.encode()), **{"n_features": 5, "name": "f"} | options
        ):
            pass
