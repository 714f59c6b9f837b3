"""read(): files that are cut short, changed, or no data at all, in every wrapping."""

import gzip
import io
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin.data import Dataset, read, stream
from widemargin.data.reading import detect_format

from .helpers import assert_same, each_packer, refused, saved, zstandard

X = np.array([[0.5, 0.0, 2.0], [0.0, 1.0, 0.25]])
ROWS = "".join(f"{i % 3} 1:{i / 7} {i + 2}:{i * i}\n" for i in range(150)).encode()
OTHERS = {"npz": saved(np.savez, X=X, y=[1, -1]), "npy": saved(np.save, X)}
PLAIN = {"svmlight": ROWS, "words": ROWS.replace(b"0 1:", b"o 1:"), **OTHERS}
each_plain = pytest.mark.parametrize("plain", PLAIN.values(), ids=PLAIN)


def outcome(content: bytes, **options) -> Dataset | None:
    """The data, or None where it is refused; any other exception comes through."""
    with suppress(ValueError):
        return read(io.BytesIO(content), **options)


@each_plain
@each_packer
def test_truncated(plain, pack):
    content = pack(plain)
    ends = {*range(30), *range(30, len(content), 7), *range(len(content) - 20, len(content))}
    for end in sorted(ends):
        data = outcome(content[:end])
        # Of the first bytes, some are text: the label B.
        assert data is None or (end < 4 and data.X.shape == (1, 1))


@each_plain
@each_packer
def test_damaged(plain, pack):
    content = bytearray(pack(plain))
    whole = outcome(bytes(content))
    rng = np.random.default_rng(0)
    for at in {*range(30), *range(30, len(content), 11)}:
        bit = 1 << int(rng.integers(8))
        content[at] ^= bit
        data = outcome(bytes(content))
        content[at] ^= bit
        if data is not None and pack is not zstandard:  # which Arrow writes without a checksum
            assert_same(data, whole)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_npz_that_is_read_as_a_stream_is_refused(save, tmp_path):
    """A checksum that is wrong is found at the end of an array: it was a BadZipFile."""
    rng = np.random.default_rng(0)
    wide = rng.random((500, 20))
    content = bytearray(saved(save, X=wide, y=np.arange(500) % 2))
    path, n_refused = tmp_path / "data.npz", 0
    for at in range(0, len(content), len(content) // 60):
        changed = bytearray(content)
        changed[at] ^= 0x55
        path.write_bytes(changed)
        try:
            chunks = list(stream(path))
        except ValueError as error:
            n_refused += str(path) in str(error)
        else:
            np.testing.assert_array_equal(np.concatenate([c.X for c in chunks]), wide)
    assert n_refused > 40


@each_packer
def test_what_comes_after_the_first_stream(pack):
    first, second = b"1 1:2\n" * 9, b"-1 2:3\n" * 5
    packed = pack(first), pack(second)
    assert read(io.BytesIO(b"".join(packed))).X.shape == (14, 2)
    assert read(io.BytesIO(pack(b"") + packed[0])).X.shape == (9, 1)
    if pack is not zstandard:
        padding = bytes(70_000)
        assert read(io.BytesIO(packed[0] + padding)).X.shape == (9, 1)
        assert read(io.BytesIO(padding.join(packed))).X.shape == (14, 2)
    damaged = packed[1][:12] + b"?" + packed[1][13:]
    for rest in (b"junk", packed[1][:-1], packed[1][:7], damaged):
        with refused("the file"):
            read(io.BytesIO(packed[0] + rest))


def test_damage_in_a_file_the_caller_unpacks():
    content = gzip.compress(ROWS)
    with gzip.open(io.BytesIO(content)) as file:
        assert_same(read(file), read(io.BytesIO(ROWS)))
    for bad in (content[:-9], content[:40] + b"????" + content[44:], b"junk"):
        with gzip.open(io.BytesIO(bad)) as file, refused("the compressed data is damaged"):
            read(file)


MAGIC = [b"", b"\x1f\x8b", b"\x1f\x8b\x08\0", b"BZh9", b"BZh91AY&SY", b"\xfd7zXZ\0", b"\x93NUMPY"]


@settings(max_examples=300)
@given(st.sampled_from([*MAGIC, b"\x28\xb5\x2f\xfd", b"PK\x03\x04"]), st.binary(max_size=120))
def test_arbitrary_bytes(head, rest):
    if head == b"\x28\xb5\x2f\xfd":
        pytest.importorskip("pyarrow")
    content = head + rest
    found = "svmlight"
    with suppress(ValueError):  # what is certainly none
        found = detect_format(content)
    outcome(content, format=found if found in ("npz", "npy") else "svmlight")
