"""Every field of the JSON header, hostile or damaged."""

import json
import sys

import numpy as np
import pytest

from widemargin import load
from widemargin.persistence import read_header

from .damage import (
    Parts,
    damaged,
    each_kind,
    machines,
    nodes,
    outcome,
    refused,
    replaced,
    without_notes,
)


def with_text(tree, where, text: str) -> str:
    """The header with something in one place that need not be JSON."""
    return json.dumps(replaced(tree, where, "@here@")).replace('"@here@"', text)


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
def test_a_header_is_read_or_refused(kind, path, parts):
    """Whatever its fields are, without a look at the arrays."""
    refused_fields, n = set(), 0
    for where, _ in nodes(parts.header):
        for value in VALUES:
            path.write_bytes(parts.content(json.dumps(replaced(parts.header, where, value))))
            try:
                n += len(read_header(path).kinds)
            except ValueError:
                refused_fields.add(where[-1])
    assert {"format", "kind", "n_features", "notes", "rows", "seconds", "gap"} <= refused_fields
    assert n > 0


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
    for header in machines(parts.header):
        for name in ("x", "__class__", "fit", "self", "_training", ""):
            header["parameters"][name] = 1
            refused(path, parts.content(), X, f"has no parameter {name!r}")
            del header["parameters"][name]


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
    given = machines(parts.header)[0]["parameters"]
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
    refused(path, content, X, "this version of widemargin reads format 1")
    with pytest.raises(ValueError, match="reads format 1"):
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


def test_a_machine_before_other_steps(path, folder):
    """Only the kind of a step can tell."""
    parts, _, X = damaged("pipeline", folder)
    header = replaced(parts.header, ("steps", 0, "kind"), "KernelSVC")
    refused(path, Parts(header, parts.arrays).content(), X, "kind must be one of TableEncoder, Min")


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
    refused(path, Parts(header, arrays).content(), X, "as many features as the step before returns")


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
