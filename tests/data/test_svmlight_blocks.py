"""svmlight text in blocks: cut anywhere, by any number of threads, as a whole or as a stream."""

import io
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from widemargin.data import read_svmlight, stream_svmlight, svmlight

from .helpers import assert_same, assert_same_bits, assert_same_matrix, refused
from .svmlight_helpers import BOM, NUMBERS, TEXTS, assert_as_sklearn, each_jobs, each_text, parse


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
    with refused("pipe.txt: ", "second pass", "Save it to a file"):
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
        ("1 1:1\n", {"zero_based": "maybe"}, "zero_based='maybe'"),
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


def test_pieces_of_a_stream_stay_as_they_were_when_the_next_is_read(set_part):
    set_part(8)
    text = b"".join(b"%d 1:%d 3:%d\n" % (k % 2, k, k + 1) for k in range(50))
    pieces = list(stream_svmlight(io.BytesIO(text), n_features=3))
    assert len(pieces) > 3
    assert_same_matrix(sp.vstack([piece.X for piece in pieces], format="csr"), parse(text).X)
    assert_array_equal(np.concatenate([piece.y for piece in pieces]), np.arange(50) % 2)


def test_a_stream_parses_into_the_arrays_that_it_hands_out(monkeypatch):
    parsed, parse_svmlight = [], svmlight._core.parse_svmlight

    def noted(text, label, span, qid, end, index, value):
        parsed.append(value)
        return parse_svmlight(text, label, span, qid, end, index, value)

    monkeypatch.setattr(svmlight._core, "parse_svmlight", noted)
    (piece,) = stream_svmlight(io.BytesIO(b"1 1:0.5 2:2\n"))
    assert np.shares_memory(piece.X.data, parsed[0])


@pytest.mark.parametrize(
    "text", ["b 1:1 3:0.5\na 2:7\n" * 40, "1 4294967296:1\n2 4294967297:2\n" * 40]
)
def test_pieces_with_labels_of_text_or_large_indices(text, set_part):
    """A first piece that has them begins the file again, as reading the whole file does."""
    set_part(64)
    whole = parse(text)
    pieces = list(stream_svmlight(io.BytesIO(text.encode()), n_features=whole.X.shape[1], n_jobs=1))
    assert len(pieces) > 1
    assert_array_equal(np.concatenate([piece.y for piece in pieces]), whole.y)
    assert_same_matrix(sp.vstack([piece.X for piece in pieces], format="csr"), whole.X)
    with refused("a pipe cannot be read twice"):
        next(stream_svmlight(Dribble(text.encode(), 50), n_jobs=1))
