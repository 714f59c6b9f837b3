"""Files that are cut, changed or something else altogether: refused, or a working model."""

import json
import os
import pickle
import struct
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin import load
from widemargin.persistence import read_header

from .damage import damaged, each_kind, length_of_header, outcome, refused

# ------------------------------------------------------------------ the file as a whole


@each_kind
def test_the_undamaged_file_works(kind, path, content, parts, X):
    scores = outcome(path, content, X, finite=True)
    assert isinstance(scores, np.ndarray)
    np.testing.assert_array_equal(outcome(path, parts.content(), X, finite=True), scores)


@each_kind
def test_a_file_that_ends_early(kind, path, content, X):
    header = length_of_header(content)
    ends = set(range(header if kind == "rbf" else 60))
    ends |= set(np.linspace(0, len(content) - 1, 100).astype(int).tolist())
    for end in sorted(ends | {header, header + 1, len(content) - 1}):
        refused(path, content[:end], X)


@each_kind
def test_a_file_with_more_at_its_end(kind, path, content, X):
    for more in (b"\0", b"\n", content):
        refused(path, content + more, X)


@each_kind
def test_every_bit_of_the_length(kind, path, content, X):
    for bit in range(64):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        refused(path, bytes(damaged), X)


@each_kind
def test_bits_of_the_header(kind, path, content, X):
    """A sample of them: none of the damaged files is loaded."""
    n_bits = 8 * (length_of_header(content) - 8)
    for bit in np.random.default_rng(0).choice(n_bits, 500, replace=False).tolist():
        damaged = bytearray(content)
        damaged[8 + bit // 8] ^= 1 << bit % 8
        refused(path, bytes(damaged), X, what=f"bit {bit}")


@each_kind
def test_bits_of_the_arrays(kind, path, content, X):
    """Another weight is another model, and was loaded as one before there was a digest."""
    begin = 8 * length_of_header(content)
    for bit in np.random.default_rng(0).integers(begin, 8 * len(content), 500).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        refused(path, bytes(damaged), X, "its digest is not that of its content", f"bit {bit}")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"+1 1:0.5 2:1\n-1 1:0.25\n",
        b"{}",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 0),
        struct.pack("<Q", 2**64 - 1) + b"{}",
        struct.pack("<Q", 10**8) + b"{}",
        b"\xff" * 4096,
        b"\0" * 4096,
        b"PK\x03\x04" + b"\0" * 100,
        b"\x89HDF\r\n\x1a\n" + b"\0" * 100,
    ],
    ids=lambda c: repr(c[:20]),
)
def test_files_of_another_kind(content, path):
    refused(path, content, None)
    with pytest.raises(ValueError, match=r"damaged\.safetensors"):
        read_header(path)


def test_safetensors_of_another_kind(path):
    for metadata in (None, {}, {"format": "pt"}):
        content = bytearray(container_bytes({"a": np.zeros(3)}, metadata))
        refused(path, bytes(content), None, "not a widemargin model")


def container_bytes(arrays, metadata) -> bytes:
    from safetensors.numpy import save as to_bytes

    return to_bytes(arrays, metadata=metadata)


class Mine:
    """An object whose pickle writes a file when it is read."""

    def __init__(self, victim: Path):
        self.victim = victim

    def __reduce__(self):
        return (Path.write_text, (self.victim, "executed"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_not_executed(protocol, path, tmp_path):
    victim = tmp_path / "victim"
    content = pickle.dumps(Mine(victim), protocol)
    refused(path, content, None)
    assert not victim.exists()
    pickle.loads(content)
    assert victim.read_text() == "executed"  # or the test would test nothing


def test_what_is_no_file(tmp_path):
    for read in (load, read_header):
        with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
            read(tmp_path / "nothing.safetensors")
        with pytest.raises(IsADirectoryError, match="folder"):
            read(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)  # so that this test fails where it would wait for ever
    try:
        for read in (load, read_header):
            with pytest.raises(ValueError, match="pipe or a device"):
                read(pipe)
    finally:
        os.close(held)


# ------------------------------------------------------------------ safetensors' own header


def raw(content: bytes) -> tuple[dict, bytes]:
    """safetensors' header and the bytes of the arrays."""
    at = length_of_header(content)
    return json.loads(content[8:at]), content[at:]


def unraw(header: dict | str, data: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + data


CHANGES = {
    "offsets past the end": lambda e: {**e, "data_offsets": [0, 10**6]},
    "offsets of 2^64": lambda e: {**e, "data_offsets": [0, 2**64 - 1]},
    "offsets that descend": lambda e: {**e, "data_offsets": e["data_offsets"][::-1]},
    "offsets of another": lambda e: {**e, "data_offsets": [1 + k for k in e["data_offsets"]]},
    "negative offsets": lambda e: {**e, "data_offsets": [-8, e["data_offsets"][1]]},
    "three offsets": lambda e: {**e, "data_offsets": [*e["data_offsets"], 0]},
    "no offsets": lambda e: {**e, "data_offsets": None},
    "a shape that overflows": lambda e: {**e, "shape": [2**32, 2**32]},
    "a shape of 2^63": lambda e: {**e, "shape": [2**63, 2**63]},
    "an empty shape of 2^62": lambda e: {**e, "shape": [0, 2**62]},
    "no shape": lambda e: {**e, "shape": []},
    "a thousand axes": lambda e: {**e, "shape": e["shape"] + [1] * 1000},
    "a negative shape": lambda e: {**e, "shape": [-n for n in e["shape"]]},
    "a shape that is a number": lambda e: {**e, "shape": 3},
    **{
        f"numbers of type {name}": lambda e, name=name: {**e, "dtype": name}
        for name in ("BF16", "F16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "C64", "I8",
                     "U64", "I64", "BOOL", "F128", "", None)
    },
    "nothing": lambda e: None,
    "a list": lambda e: [],
}  # fmt: skip


@each_kind
def test_entries_of_safetensors(kind, path, content, X):
    header, data = raw(content)
    for name, (what, change) in product(
        [n for n in header if n != "__metadata__"], CHANGES.items()
    ):
        entry = change(header[name])
        if entry == header[name] or (name.endswith("n_samples_seen_") and "type I64" in what):
            continue  # it may be of this type
        refused(path, unraw(header | {name: entry}, data), X, what=f"{name}, {what}")


def test_types_of_the_same_width(path, folder):
    """The sizes fit, so that safetensors has no objection; the digest knows the types."""
    _, content, X = damaged("spectral", folder)
    header, data = raw(content)
    for name in [n for n in header if n != "__metadata__"]:
        for types in (("F64", "I64", "U64", "C64"), ("F32", "I32", "U32")):
            for other in types:
                if header[name]["dtype"] in types and header[name]["dtype"] != other:
                    entry = header[name] | {"dtype": other}
                    refused(path, unraw(header | {name: entry}, data), X, "digest")


EIGHTHS = {"BF16": 2, "F16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "C64": 8, "U8": 1}


@pytest.mark.parametrize("dtype", EIGHTHS)
def test_types_that_numpy_has_not(dtype, path, folder):
    """Of the right number of bytes, so that safetensors passes them on."""
    _, content, X = damaged("rbf", folder)
    header, data = raw(content)
    begin, end = header["intercept"]["data_offsets"]
    entry = {"dtype": dtype, "shape": [(end - begin) // EIGHTHS[dtype]]}
    header["intercept"] = {**entry, "data_offsets": [begin, end]}
    refused(path, unraw(header, data), X)


def test_arrays_at_odd_places(path, folder):
    """Arrays need not lie where their type would have them: the numbers are the same."""
    _, content, X = damaged("rbf", folder)
    expected = outcome(path, content, X)
    header, data = raw(content)
    for shift in range(1, 8):
        at, moved = 0, {"__metadata__": header["__metadata__"]}
        blocks = []
        for name in sorted(n for n in header if n != "__metadata__"):  # another order, too
            begin, end = header[name]["data_offsets"]
            moved[name] = header[name] | {"data_offsets": [at, at + end - begin]}
            blocks.append(data[begin:end])
            at += end - begin
        text = json.dumps(moved)
        padded = text + " " * (shift - len(text) % 8 + 8)
        np.testing.assert_array_equal(outcome(path, unraw(padded, b"".join(blocks)), X), expected)


# ------------------------------------------------------------------ any bytes at all


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.floats(0, 1), st.binary(min_size=1, max_size=4)),
        st.tuples(st.just("insert"), st.floats(0, 1), st.binary(min_size=1, max_size=9)),
        st.tuples(st.just("drop"), st.floats(0, 1), st.integers(1, 9)),
    ),
    min_size=1,
    max_size=4,
)


@each_kind
@settings(max_examples=40)
@given(edits=EDITS, keep_length=st.booleans())
def test_random_edits(kind, edits, keep_length, folder):
    """Of the header, mostly; the length is mended where that is asked for."""
    _, content, X = damaged(kind, folder)
    header = length_of_header(content)
    text, data = content[8:header], content[header:]
    for what, where, how in edits:
        at = int(where * 1.2 * len(text))
        if at >= len(text):
            at = int(np.clip((where - 1 / 1.2) * 6, 0, 1) * len(data))
            data = _edited(data, at, what, how)
        else:
            text = _edited(text, at, what, how)
    length = len(text) if keep_length else header - 8
    outcome(folder / "edited.safetensors", struct.pack("<Q", length) + text + data, X)


def _edited(content: bytes, at: int, what: str, how) -> bytes:
    if what == "insert":
        return content[:at] + how + content[at:]
    if what == "drop":
        return content[:at] + content[at + how :]
    return (content[:at] + how + content[at + len(how) :])[: len(content)]
