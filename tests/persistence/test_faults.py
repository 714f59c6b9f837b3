"""Damaged and hostile files: a ValueError or a working model, never anything else."""

import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import tracemalloc
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError

from widemargin import AdditiveSVC, load, save
from widemargin.persistence import container, parameters, read_header

from .helpers import DAMAGED, Case, Parts, damaged, fitted, outcome, rows

each_kind = pytest.mark.parametrize("kind", DAMAGED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def path():
    """Thousands of files are written there: in memory, where the system has such a folder."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "damaged.safetensors"


@pytest.fixture
def parts(kind, folder):
    return damaged(kind, folder)[0].copy()


@pytest.fixture
def content(kind, folder):
    return damaged(kind, folder)[1]


@pytest.fixture
def X(kind, folder):
    return damaged(kind, folder)[2]


def refused(path, content: bytes, X, match: str = "", what: str = "") -> None:
    """This file is not even loaded, and the message says why."""
    path.write_bytes(content)
    try:
        model = load(path)
    except ValueError as error:
        message = str(error)
    else:
        pytest.fail(f"{what}: a model was made of it, {model!r}")
    assert str(path) in message, what
    assert match in message, what


def length_of_header(content: bytes) -> int:
    return 8 + struct.unpack("<Q", content[:8])[0]


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
    """A sample of them."""
    n_bits = 8 * (length_of_header(content) - 8)
    rng = np.random.default_rng(0)
    survived = 0
    for bit in rng.choice(n_bits, 500, replace=False).tolist():
        damaged = bytearray(content)
        damaged[8 + bit // 8] ^= 1 << bit % 8
        result = outcome(path, bytes(damaged), X, finite=True)
        survived += not isinstance(result, ValueError)
    assert 0 < survived < 350  # digits of numbers that only tell of the training


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
    """The sizes fit, so that safetensors has no objection and the types are ours to check."""
    _, content, X = damaged("spectral", folder)
    header, data = raw(content)
    for name in [n for n in header if n != "__metadata__"]:
        for types in (("F64", "I64", "U64", "C64"), ("F32", "I32", "U32")):
            for other in types:
                if header[name]["dtype"] in types and header[name]["dtype"] != other:
                    entry = header[name] | {"dtype": other}
                    refused(path, unraw(header | {name: entry}, data), X, name)


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


# ------------------------------------------------------------------ the JSON header


def nodes(tree, where=()):
    """Every node below the root, with the way there; of lists the first and the last."""
    keys = tree if isinstance(tree, dict) else sorted({0, len(tree) - 1} if tree else ())
    for key, value in [(key, tree[key]) for key in keys]:
        yield (*where, key), value
        if isinstance(value, (dict, list)):
            yield from nodes(value, (*where, key))


def replaced(tree, where, value):
    tree = json.loads(json.dumps(tree))
    at = tree
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    return tree


def with_text(tree, where, text: str) -> str:
    """The header with something in one place that need not be JSON."""
    return json.dumps(replaced(tree, where, "@here@")).replace('"@here@"', text)


def without_notes(header):
    return [(w, v) for w, v in nodes(header) if w[0] not in ("notes", "package")]


VALUES = [None, True, -1, 2**63, "x", [], {}, 1e308, 0, "nan", 5e-324]


@each_kind
def test_every_field_replaced_by_anything(kind, path, parts, X):
    survived = n = 0
    for where, old in without_notes(parts.header):
        for value in VALUES:
            if type(value) is type(old) and value == old:
                continue
            header = replaced(parts.header, where, value)
            result = outcome(path, parts.content(json.dumps(header)), X)
            survived += not isinstance(result, ValueError)
            n += 1
    assert 0 < survived < 0.5 * n


@each_kind
def test_every_field_left_out(kind, path, parts, X):
    optional = {"notes", "package", "parameters", "feature_names", "weights", "levels"}
    for where, _ in nodes(parts.header):
        header = json.loads(json.dumps(parts.header))
        at = header
        for key in where[:-1]:
            at = at[key]
        del at[where[-1]]
        result = outcome(path, parts.content(json.dumps(header)), X)
        if not optional & set(where) and "history" not in where and "sizes" not in where:
            assert isinstance(result, ValueError), where


@each_kind
@pytest.mark.parametrize("count", [-1, 2**63, 10**30, 10**400], ids=["-1", "2^63", "1e30", "1e400"])
def test_counts_out_of_range(kind, count, path, parts, X):
    found = 0
    for where, old in without_notes(parts.header):
        of_ours = {"parameters", "history", "values"}.isdisjoint(where)
        if type(old) is int and (of_ours or count > 2**63):
            header = replaced(parts.header, where, count)
            result = outcome(path, parts.content(json.dumps(header)), X)
            if {"history", "weights"}.isdisjoint(where):
                assert isinstance(result, ValueError), where
            found += 1
    assert found > 3


@each_kind
def test_unknown_parameters(kind, path, parts, X):
    for header in _machines(parts.header):
        for name in ("x", "__class__", "fit", "self", "_training", ""):
            header["parameters"][name] = 1
            refused(path, parts.content(), X, f"has no parameter {name!r}")
            del header["parameters"][name]


def _machines(header) -> list[dict]:
    found = [header, *header.get("steps", [])]
    return [h for h in found if "parameters" in h]


HOSTILE_PARAMETERS = {
    "a place to write to": ("checkpoint", "/tmp/elsewhere"),
    "a million threads": ("n_jobs", 10**6),
    "C of a function": ("C", {"function": "f"}),
    "a state of a function": ("random_state", {"function": "f"}),
    "weights of a function": ("class_weight", {"function": "f"}),
    "a state of a power mean": ("random_state", {"power_mean": -1.0}),
    "a positive power mean": ("kernel", {"power_mean": 1.0}),
    "a power mean of nan": ("kernel", {"power_mean": "nan"}),
    "two kernels": ("kernel", {"power_mean": -1.0, "function": "f"}),
    "a kernel of a list": ("kernel", ["rbf"]),
    "an unknown kernel": ("kernel", "x"),
    "weights that are pairs of lists": ("class_weight", {"weights": [[[1], 2]]}),
    "weights that are no pairs": ("class_weight", {"weights": [[1, 2, 3]]}),
    "C of 400 digits": ("C", 10**400),
    "C of 1e999": ("C", float("inf")),
    "tol of nan": ("tol", "nan"),
}


@each_kind
def test_hostile_parameters(kind, path, parts, X):
    given = _machines(parts.header)[0]["parameters"]
    before = dict(given)
    for what, (name, value) in HOSTILE_PARAMETERS.items():
        if name in before:
            given[name] = value
            text = json.dumps(parts.header).replace("Infinity", "1e999")
            refused(path, parts.content(text), X, what=what)
            given[name] = before[name]


def test_a_power_mean_is_no_kernel_of_rows(path, folder):
    parts, _, X = damaged("rbf", folder)
    header = replaced(parts.header, ("parameters", "kernel"), {"power_mean": -1.0})
    refused(path, parts.content(json.dumps(header)), X, "power mean")


@pytest.mark.parametrize(
    ("field", "value"),
    [("degree", 2**31), ("degree", 2**63), ("degree", 10**6), ("coef0", 1e30), ("coef0", -1e308)],
)
def test_a_kernel_that_overflows(field, value, path, folder):
    parts, _, X = damaged("compressed", folder)
    header = replaced(parts.header, ("parameters", field), value)
    header["parameters"]["coef0"] = header["parameters"]["coef0"] or 2.0
    refused(path, parts.content(json.dumps(header)), X)


@pytest.mark.parametrize("gamma", [0, -1.0, 1e39, 1e308])
def test_a_gamma_out_of_range(gamma, path, folder):
    parts, _, X = damaged("rbf", folder)
    header = replaced(parts.header, ("own", "gamma"), gamma)
    refused(path, parts.content(json.dumps(header)), X, "gamma")


@pytest.mark.parametrize("noise", [0, 0.0, -1.0])
def test_a_noise_out_of_range(noise, path, folder):
    parts, _, X = damaged("points", folder)
    header = replaced(parts.header, ("own", "noise"), noise)
    refused(path, parts.content(json.dumps(header)), X, "noise must be positive")


NOT_JSON = {
    "nothing": "",
    "a number": "1",
    "a list": "[]",
    "null": "null",
    "half": '{"format": 1',
    "two": '{"format": 1}{}',
    "nested lists": '{"format": 1, "kind": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "nested objects": '{"format": 1, "kind": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
    "nested lists that do not end": '{"format": 1, "kind": ' + "[" * 100_000,
    "a bad escape": '{"format": 1, "kind": "\\x"}',
    "a control character": '{"format": 1, "kind": "\n"}',
    "single quotes": "{'format': 1}",
    "a comment": '{"format": 1 /* one */}',
    "a last comma": '{"format": 1,}',
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_headers_that_are_not_json(name, path, folder):
    parts, _, X = damaged("rbf", folder)
    content = parts.content(NOT_JSON[name])
    refused(path, content, X, "header")
    with pytest.raises(ValueError, match="header"):
        read_header(path)


@each_kind
@pytest.mark.parametrize(
    "constant", ["NaN", "Infinity", "-Infinity", pytest.param("1" * 10_000, id="10,000 digits")]
)
def test_numbers_that_are_not_json(kind, constant, path, parts, X):
    for where, old in without_notes(parts.header)[::5]:
        if not isinstance(old, (dict, list)):
            text = with_text(parts.header, where, constant)
            refused(path, parts.content(text), X, "not valid JSON")


@each_kind
def test_names_that_occur_twice(kind, path, parts, X):
    for where, old in [((), parts.header), *without_notes(parts.header)]:
        if isinstance(old, dict) and old:
            name = next(iter(old))
            text = twice = json.dumps(old)[:-1] + f', "{name}": {json.dumps(old[name])}}}'
            if where:
                text = with_text(parts.header, where, twice)
            refused(path, parts.content(text), X, "a name occurs twice")


@each_kind
@pytest.mark.parametrize("depth", [50, 400])
def test_fields_that_are_deep(kind, depth, path, parts, X):
    deep = "[" * depth + "]" * depth
    for where, _ in without_notes(parts.header)[:: 3 if depth == 50 else 20]:
        refused(path, parts.content(with_text(parts.header, where, deep)), X, what=str(where))


def test_fields_almost_too_deep(path, folder):
    """Just not so deep that JSON gives up: then the message must not, either."""
    parts = damaged("points", folder)[0]
    messages = set()
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        text = with_text(parts.header, ("own", "levels", 0, "gap"), "[" * depth + "]" * depth)
        path.write_bytes(parts.content(text))
        with pytest.raises(ValueError, match=r"damaged\.safetensors") as error:
            load(path)
        messages.add("not valid JSON" in str(error.value))
    assert False in messages


FINITE = ("seconds", "raw_C", "gamma", "noise")


@each_kind
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_numbers_that_must_be_finite(kind, value, path, parts, X):
    found = 0
    for where, _ in without_notes(parts.header):
        if where[-1] in FINITE and "parameters" not in where:
            header = replaced(parts.header, where, value)
            refused(path, parts.content(json.dumps(header)), X, f"{where[-1]} must be a finite")
            found += 1
    assert found >= 2


@pytest.mark.parametrize("value", [0, 2, 2**63, -1, "1", 1.0, True, None, [], {}])
def test_other_formats(value, path, folder):
    parts, _, X = damaged("rbf", folder)
    content = parts.content(json.dumps(parts.header | {"format": value}))
    refused(path, content, X, "this version reads 1 to 1")
    with pytest.raises(ValueError, match="Install a newer widemargin"):
        read_header(path)


LABELS = {
    "one": [0],
    "none": [],
    "descending": [2, 1, 0],
    "the same twice": [0, 0, 1],
    "of several types": [0, "1", 2],
    "bools": [False, True, 2],
    "too large": [0, 1, 2**63],
    "nothing": [0, 1, None],
    "lists": [[0], [1], [2]],
    "one more": [0, 1, 2, 3],
    "one less": [0, 1],
    "400 digits": [0, 1, 10**400],
}


@pytest.mark.parametrize("kind", ["spectral", "rbf"])
@pytest.mark.parametrize("name", LABELS)
def test_labels_that_are_none(kind, name, path, parts, X):
    for dtype in ("int64", "str", "bool", "uint8", "object", "float64"):
        if name == "too large" and dtype == "float64":
            continue
        parts.header["classes"] = {"dtype": dtype, "values": LABELS[name]}
        refused(path, parts.content(), X)


@pytest.mark.parametrize(
    "dtype", ["V8", "S3", "complex128", "datetime64[s]", "O", "x", "U99999999"]
)
def test_labels_of_other_types(dtype, path, folder):
    parts, _, X = damaged("rbf", folder)
    header = parts.header | {"classes": {"dtype": dtype, "values": [0, 1, 2]}}
    refused(path, parts.content(json.dumps(header)), X)


STEPS = {
    "none": lambda s: [],
    "the machine first": lambda s: s[::-1],
    "two machines": lambda s: [s[-1], s[-1]],
    "no machine": lambda s: s[:-1],
    "a pipeline": lambda s: [{"kind": "Pipeline", "name": "a", "steps": s}, s[-1]],
    "of one name": lambda s: [t | {"name": "a"} for t in s],
    "a reserved name": lambda s: [s[0] | {"name": "steps"}, *s[1:]],
    "a name with two underlines": lambda s: [s[0] | {"name": "a__b"}, *s[1:]],
    "of several widths": lambda s: [s[0] | {"n_features": 4}, *s[1:]],
    "an unknown scaler": lambda s: [s[0] | {"kind": "RobustScaler"}, *s[1:]],
}


@pytest.mark.parametrize("kind", ["pipeline", "scaled"])
@pytest.mark.parametrize("name", STEPS)
def test_pipelines_that_are_none(kind, name, path, parts, X):
    parts.header["steps"] = STEPS[name](parts.header["steps"])
    refused(path, parts.content(), X)


def test_a_pipeline_of_scalers_alone(path, folder):
    """Its arrays fit, so that only the kind of its last step can tell."""
    parts, _, X = damaged("pipeline", folder)
    header = parts.header | {"steps": parts.header["steps"][:1]}
    arrays = {name: array for name, array in parts.arrays.items() if name.startswith("0/")}
    refused(path, Parts(header, arrays).content(), X, "kind must be one of AdditiveSVC, KernelSVC")


def test_a_pipeline_of_two_widths(path, folder):
    """Each step is as wide as its arrays; only together they make no sense."""
    parts, _, X = damaged("pipeline", folder)
    header = replaced(parts.header, ("steps", 0, "n_features"), 4)
    arrays = {
        name: np.append(array, array[-1:])
        if name.startswith("0/") and "seen" not in name
        else array
        for name, array in parts.arrays.items()
    }
    refused(path, Parts(header, arrays).content(), X, "the same number of features")


NAMES = [[], ["a", "b"], ["a", "b", "c", "d"], ["a", "b", 3], ["a", "b", None], "abc", {"a": 1}, 3]


@pytest.mark.parametrize("names", NAMES, ids=str)
@pytest.mark.parametrize("kind", ["spectral", "rbf"])
def test_feature_names_that_are_none(kind, names, path, parts, X):
    parts.header["feature_names"] = names
    refused(path, parts.content(), X, "feature_names must be a list")


@pytest.mark.parametrize("bounds", [[0.0], [1.0, 0.0], [0.0, 0.0], ["0", "1"], [0.0, 1e999], "x"])
def test_ranges_that_are_none(bounds, path, folder):
    parts = damaged("pipeline", folder)[0].copy()
    parts.header["steps"][0]["own"]["feature_range"] = bounds
    text = json.dumps(parts.header).replace("Infinity", "1e999")
    refused(path, parts.content(text), None, "feature_range")


# ------------------------------------------------------------------ arrays


def changed(parts: Parts, name: str, array: np.ndarray) -> bytes:
    return Parts(parts.header, parts.arrays | {name: np.ascontiguousarray(array)}).content()


@each_kind
def test_arrays_that_are_missing(kind, path, parts, X):
    for name in parts.arrays:
        fewer = {k: v for k, v in parts.arrays.items() if k != name}
        refused(path, Parts(parts.header, fewer).content(), X)
        renamed = fewer | {name[:-1]: parts.arrays[name]}
        refused(path, Parts(parts.header, renamed).content(), X)


@each_kind
def test_arrays_that_nobody_knows(kind, path, parts, X):
    for name in ("x", "0/x", "offsets", "router.x", "1/coef2", "../weights", ""):
        refused(path, changed(parts, name, np.zeros(2)), X, "unexpected arrays")


@each_kind
def test_arrays_that_belong_elsewhere(kind, path, parts, X):
    """Of the right name, but not for a model of this kind."""
    prefix = "1/" if "steps" in parts.header else ""
    for name in ("offset", "centre", "cluster", "router.centres", "tables.left", "router.members"):
        if prefix + name not in parts.arrays:
            refused(path, changed(parts, prefix + name, np.zeros(2)), X)


# float32 or float64 or, of counts, whole numbers: as it comes
EITHER = ("tables.right", "tables.left", "_")


@each_kind
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i1", "i4", "i8", "u1", "u8", "?"])
def test_arrays_of_another_type(kind, dtype, path, parts, X):
    for name, array in parts.arrays.items():
        allowed = ("f4", "f8") if name.endswith(EITHER) else ()
        allowed = ("f4", "f8", "i8") if name.endswith("n_samples_seen_") else allowed
        if array.dtype != dtype and dtype not in allowed:
            with np.errstate(over="ignore"):
                refused(path, changed(parts, name, array.astype(dtype)), X, what=name)


SHAPES = {
    "one more": lambda a: np.concatenate([a, a[-1:]]),
    "one less": lambda a: a[:-1],
    "none": lambda a: a[:0],
    "another axis": lambda a: a[None],
    "a last axis": lambda a: a[..., None],
    "a wider last axis": lambda a: np.concatenate([a, a[..., -1:]], axis=-1),
    "a narrower last axis": lambda a: a[..., :-1],
    "flat": lambda a: a.ravel(),
    "turned": lambda a: a.T,
    "a number": lambda a: a.ravel()[0],
}


@each_kind
@pytest.mark.parametrize("change", SHAPES)
def test_arrays_of_another_shape(kind, change, path, parts, X):
    tested = 0
    for name, array in parts.arrays.items():
        other = np.asarray(SHAPES[change](array))
        if other.shape == array.shape or (name, change) == ("router.centres", "one more"):
            continue  # there can be any number of centres
        content = Parts(parts.header, parts.arrays | {name: other.copy(order="C")}).content()
        refused(path, content, X)
        tested += 1
    assert tested


@each_kind
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_arrays_with_numbers_that_are_none(kind, value, path, parts, X):
    for name, array in parts.arrays.items():
        if array.dtype.kind != "f":
            continue
        for at in {0, array.size // 2, array.size - 1}:
            if name.endswith("thresholds") and at == 0 and value == -np.inf:
                continue  # zero is a value: this is how the encoder says so
            other = array.copy()
            other.flat[at] = value
            refused(path, changed(parts, name, other), X, name)


INDICES = ("support", "cluster", "column", "index")
POINTERS = ("start", "offset")
ASCENDING = ("thresholds", "representatives", "vectors.index", "sample.index")


def _named(arrays, endings):
    return [n for n in arrays if n.endswith(endings)]


@each_kind
@pytest.mark.parametrize("value", [-1, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1])
def test_indices_out_of_range(kind, value, path, parts, X):
    for name in _named(parts.arrays, INDICES):
        array = parts.arrays[name]
        top = np.iinfo(array.dtype).max
        if not -top - 1 <= value <= top or (name.endswith("support") and 0 <= value < 2**62):
            continue
        for at in (0, -1):
            other = array.copy()
            other[at] = value
            refused(path, changed(parts, name, other), X, name)


@each_kind
@pytest.mark.parametrize("value", [-1, 1, 10**6, 2**63 - 1, -(2**63)])
def test_pointers_that_do_not_ascend(kind, value, path, parts, X):
    for name in _named(parts.arrays, POINTERS):
        for at in range(len(parts.arrays[name])):
            other = parts.arrays[name].copy()
            other[at] = value
            monotone = other[0] == 0 and other[-1] == parts.arrays[name][-1]
            monotone = monotone and np.all(np.diff(other.astype(object)) >= 0)
            result = outcome(path, changed(parts, name, other), X)
            assert monotone or isinstance(result, ValueError)


@each_kind
def test_arrays_that_descend(kind, path, parts, X):
    for name in _named(parts.arrays, ASCENDING):
        array = parts.arrays[name]
        if len(np.unique(array)) > 1:
            refused(path, changed(parts, name, array[::-1]), X, name)
            other = array.copy()
            other[-1] = np.sort(array)[0] if name.endswith("thresholds") else -1
            refused(path, changed(parts, name, other), X, name)


EMPTY = ("coef", "support", "cluster", "data", "norms", "index", "value", "column")


@pytest.mark.parametrize("kind", ["rbf", "points", "compressed", "precomputed"])
def test_a_model_without_vectors(kind, path, parts, X):
    """Nothing is wrong with it; but a router has a centre at least."""
    for name, array in list(parts.arrays.items()):
        if not name.startswith("router") and name.endswith(EMPTY):
            parts.arrays[name] = array[:0]
        elif name == "vectors.start":
            parts.arrays[name] = np.zeros(1, dtype=np.int64)
    np.testing.assert_array_equal(outcome(path, parts.content(), X), np.zeros((3, 3)))
    if "router.centres" in parts.arrays:
        parts.arrays["router.centres"] = parts.arrays["router.centres"][:0]
        refused(path, parts.content(), X, "'router.centres' must not be empty")
    if "router.members" in parts.arrays:
        parts.arrays["router.members"] = parts.arrays["router.members"][:, :0]
        parts.arrays["router.constants"] = np.zeros(0)
        refused(path, parts.content(), X, "'router.members' must not be empty")


@pytest.mark.parametrize("n", [0, 2, 4])
def test_scales_of_other_widths(n, path, folder):
    parts, _, X = damaged("spectral", folder)
    arrays = parts.arrays | {"shift": np.zeros(n), "factor": np.ones(n)}
    refused(path, Parts(parts.header, arrays).content(), X, f"'shift' has {n} entries")


def test_bins_below_zero(path, folder):
    parts, _, X = damaged("direct", folder)
    t = parts.arrays["representatives"]
    below = np.append(0, np.linspace(-2, -1, len(t) - 1))
    refused(path, changed(parts, "representatives", below), X, "representatives")


@pytest.mark.parametrize("rank", [0, 5, 6, 7])
def test_ranks_that_the_core_has_no_loop_for(rank, path, folder):
    parts, _, X = damaged("spectral", folder)
    n_codes, n_features = len(parts.arrays["representatives"]), 2**31 - 1 if rank == 0 else 3
    header = parts.header | {"n_features": n_features}
    arrays = parts.arrays | {
        "table": np.zeros((n_codes, rank), dtype=np.float32),
        "weights": np.zeros((1, n_features, rank, 16), dtype=np.float32),
        "shift": np.zeros(1),
        "factor": np.ones(1),
    }
    refused(path, Parts(header, arrays).content(), X, "'table' is not one that predicts")


@pytest.mark.parametrize("kind", ["unary", "scaled"])
def test_tables_that_are_not_of_logarithms(kind, path, parts, X):
    _machines(parts.header)[0]["own"]["direct"] = True
    refused(path, parts.content(), X, "own.direct must be false")


def test_unary_tables_of_any_sizes(path, folder):
    """A feature without cells, or with all of them, is odd but within the array."""
    parts, _, X = damaged("unary", folder)
    n_cells = parts.arrays["weights"].shape[1]
    n_codes = len(parts.arrays["representatives"])
    for offset in ([0, 0, 0, n_cells], [0, n_cells, n_cells, n_cells], [0, 1, 1, n_cells]):
        result = outcome(path, changed(parts, "offset", np.array(offset)), X)
        assert (np.max(np.diff(offset)) > n_codes) == isinstance(result, ValueError)


@pytest.mark.parametrize("kind", ["rbf", "pipeline"])
def test_norms_below_zero(kind, path, parts, X):
    name = next(n for n in parts.arrays if n.endswith("vectors.norms"))
    refused(path, changed(parts, name, -1 - parts.arrays[name]), X, name)


@pytest.mark.parametrize("name", ["0/scale_", "0/n_samples_seen_"])
@pytest.mark.parametrize("kind", ["pipeline", "scaled"])
def test_scales_of_zero_and_counts_below(kind, name, path, parts, X):
    value = 0 if name == "0/scale_" else -1
    refused(path, changed(parts, name, 0 * parts.arrays[name] + value), X, name)


@each_kind
def test_extreme_but_finite_numbers(kind, path, parts, X):
    """Decision values may overflow; nothing else may happen."""
    for name, array in parts.arrays.items():
        if array.dtype.kind == "f":
            top = np.finfo(array.dtype).max
            for value in (top, -top, np.finfo(array.dtype).smallest_subnormal, 0):
                outcome(path, changed(parts, name, np.full_like(array, value)), X)
                other = array.copy()
                other.flat[-1] = value
                outcome(path, changed(parts, name, other), X)


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


# ------------------------------------------------------------------ memory


def _peak(run) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_a_large_model(path):
    X = rows(6, 200_000, seed=1)
    model = Case(AdditiveSVC("chi2", rank=4, max_iter=2), X, [0, 1, 2, 0, 1, 2]).fit()
    save(model, path)
    size = path.stat().st_size
    assert 50e6 < size < 60e6
    found = []
    assert size < _peak(lambda: found.append(load(path))) < 1.5 * size
    np.testing.assert_array_equal(found[0].decision_function(X), model.decision_function(X))


@each_kind
def test_memory_of_large_claims(kind, path, parts, X):
    """A few kilobytes that speak of billions."""
    peaks = {}
    for where, old in without_notes(parts.header):
        if type(old) is int:
            header = replaced(parts.header, where, 2**31 - 1)
            content = parts.content(json.dumps(header))
            peaks[where] = _peak(lambda content=content: outcome(path, content, X))
    assert max(peaks.values()) < 5e6, max(peaks, key=peaks.get)


@pytest.mark.parametrize("layout", ["precomputed", "compressed"])
def test_memory_of_many_features(layout, path, folder):
    """Layouts whose arrays say nothing of the number of features."""
    parts = damaged(layout, folder)[0].copy()
    parts.header["n_features"] = 2**31 - 1
    assert _peak(lambda: outcome(path, parts.content(), np.ones((2, 3)))) < 5e6


def test_memory_of_unequal_labels(path, folder):
    """NumPy gives every text the room of the longest."""
    parts = damaged("rbf", folder)[0].copy()
    values = sorted([*(f"{k:05d}" for k in range(20_000)), "x" * 1_000_000])
    parts.header["classes"] = {"dtype": "str", "values": values}
    content = parts.content()
    assert _peak(lambda: refused(path, content, None, "labels")) < 10 * len(content)


def test_labels_that_would_not_load_are_not_saved(path, monkeypatch):
    monkeypatch.setattr(parameters, "_MOST_CHARACTERS", 5)
    with pytest.raises(ValueError, match="labels are too long"):
        save(fitted("two texts")[0], path)
    assert not path.exists()


def test_threads_of_a_file_are_few(folder, path):
    parts = damaged("rbf", folder)[0].copy()
    parts.header["parameters"]["n_jobs"] = 1025
    refused(path, parts.content(), None, "n_jobs")
    parts.header["parameters"]["n_jobs"] = 8
    path.write_bytes(parts.content())
    before = threading.active_count()
    load(path).decision_function(rows(10, 3))
    assert threading.active_count() == before


# ------------------------------------------------------------------ writing


@pytest.fixture
def older(path):
    """An older model at the path, and its bytes."""
    save(fitted("rbf")[0], path)
    return path.read_bytes()


FAILURES = {
    "writing": (container, "save_file", SafetensorError("I/O error: No space left on device")),
    "writing, plainly": (container, "save_file", OSError(28, "No space left on device")),
    "interrupted": (container, "save_file", KeyboardInterrupt()),
    "reaching the disk": (os, "fsync", OSError(5, "Input/output error")),
    "taking the place": (os, "replace", OSError(18, "Invalid cross-device link")),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_leaves_the_older_model(name, path, older, monkeypatch):
    where, function, error = FAILURES[name]
    real = getattr(where, function)

    def fail(*arguments, **options):
        if function == "save_file":  # half of it has been written
            Path(arguments[1]).write_bytes(older[: len(older) // 2])
        raise error

    monkeypatch.setattr(where, function, fail)
    with pytest.raises(KeyboardInterrupt if name == "interrupted" else OSError) as caught:
        save(fitted("chi2")[0], path)
    if isinstance(error, SafetensorError):
        assert str(path) in str(caught.value)
        assert "No space left" in str(caught.value)
    monkeypatch.setattr(where, function, real)
    assert path.read_bytes() == older
    assert os.listdir(path.parent) == [path.name]


def test_a_file_that_may_not_grow(path, older):
    """The system refuses to write more than so many bytes, as a full disk does."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(fitted("chi2")[0], path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == older
    assert os.listdir(path.parent) == [path.name]


def test_a_disk_that_is_full(tmp_path):
    """A small one, where this user may mount it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        path = disk / "model.safetensors"
        save(fitted("rbf")[0], path)
        older = path.read_bytes()
        large = Case(AdditiveSVC("chi2", max_iter=2), rows(6, 2000), [0, 1, 2] * 2).fit()
        with pytest.raises(OSError, match="No space left on device"):
            save(large, path)
        assert path.read_bytes() == older
        assert os.listdir(disk) == [path.name]
        load(path)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_folders_that_are_missing(tmp_path):
    path = tmp_path / "nowhere" / "model.safetensors"
    with pytest.raises(FileNotFoundError, match=r"nowhere/model\.safetensors"):
        save(fitted("rbf")[0], path)
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(NotADirectoryError, match=r"file/model\.safetensors"):
        save(fitted("rbf")[0], file / "model.safetensors")
    assert os.listdir(tmp_path) == ["file"]


def test_folders_that_may_not_be_written(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("read-only")
    path = folder / "model.safetensors"
    model = fitted("rbf")[0]
    save(model, path)
    older = path.read_bytes()
    folder.chmod(0o555)
    root = os.geteuid() == 0  # may write everywhere: be nobody for a moment
    opened = []
    try:
        if root:
            for parent in [folder.parent, *folder.parent.parents]:
                mode = parent.stat().st_mode & 0o7777
                if not mode & 0o001:
                    opened.append((parent, mode))
                    parent.chmod(mode | 0o001)
            os.seteuid(65534)
        with pytest.raises(PermissionError, match=r"read-only0/model\.safetensors"):
            save(model, path)
    finally:
        if root:
            os.seteuid(0)
        for parent, mode in opened:
            parent.chmod(mode)
        folder.chmod(0o755)
    assert path.read_bytes() == older
    assert os.listdir(folder) == [path.name]


def test_what_is_no_plain_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a plain file"):
        save(fitted("rbf")[0], pipe)
    assert pipe.is_fifo()
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="not a plain file"):
        save(fitted("rbf")[0], tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_links_are_followed(tmp_path, path):
    link = tmp_path / "latest"
    link.symlink_to(path)
    for name in ("rbf", "chi2"):  # the file is not there yet, and is
        save(fitted(name)[0], link)
        assert link.is_symlink()
        assert type(load(path)) is type(fitted(name)[0])


def test_permissions(path, monkeypatch):
    """Those of any new file, and later those that somebody gave it."""
    before = os.umask(0o027)
    try:
        save(fitted("rbf")[0], path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    save(fitted("rbf")[0], path)
    assert path.stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize("name", ["x" * 255, "größe" * 30, "a b", ".hidden", "ü", "a\nb"])
def test_names_of_any_length(name, tmp_path):
    save(fitted("rbf")[0], tmp_path / name)
    load(tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_several_threads_save_to_one_file(path):
    models = [fitted(name)[0] for name in ("rbf", "chi2")]
    errors = []

    def work(model):
        try:
            for _ in range(15):
                save(model, path)
                load(path)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert os.listdir(path.parent) == [path.name]


KILLS = """
import os, random, signal, sys, time
import numpy as np
from widemargin import AdditiveSVC, load, save

folder, n_kills = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "model.safetensors")
X = np.random.default_rng(0).random((6, 20_000))
models = [
    AdditiveSVC("chi2", rank=4, max_iter=1, tol=0.9, C=C).fit(X, [0, 1, 2] * 2) for C in (1, 2)
]
expected = [model.decision_function(X).tobytes() for model in models]
started = time.perf_counter()
save(models[0], path)
took = time.perf_counter() - started
rng, found, stray = random.Random(0), [0, 0], 0
for _ in range(n_kills):
    child = os.fork()
    if child == 0:
        while True:
            for model in models[::-1]:
                save(model, path)
    time.sleep(rng.uniform(0, 4 * took))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found[expected.index(load(path).decision_function(X).tobytes())] += 1
    left = set(os.listdir(folder)) - {"model.safetensors"}
    assert all(name.startswith(".") for name in left), left
    assert len(left) <= 2, left  # ours, and safetensors' own
    stray += bool(left)
    for name in left:
        os.unlink(os.path.join(folder, name))
print(*found, stray)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the child that is killed is a fork")
def test_a_process_killed_while_it_saves(tmp_path):
    n_kills = 20
    arguments = [sys.executable, "-c", KILLS, str(tmp_path), str(n_kills)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, stray = map(int, done.stdout.split())
    assert first + second == n_kills
    assert first > 0
    assert second > 0
    assert stray > n_kills // 4  # most were killed half way
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_the_damaged_models_are_small(folder):
    """Small enough to be damaged in every place, within seconds."""
    for kind in DAMAGED:
        parts, content, X = damaged(kind, folder)
        assert len(content) < 20_000
        assert X.shape[0] == 3
        assert len(list(nodes(parts.header))) < 150
