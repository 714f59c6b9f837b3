"""What the compiled core refuses, and that it writes nothing before it does."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import _core
from widemargin.kernel.rows import CompressedRows, Panels

from .helpers import RELATIVE, block_problem, each_dtype


def read_only(array):
    array.flags.writeable = False
    return array


def overlapping(shape, strides, dtype=np.float64):
    base = np.zeros(shape[0] * shape[1], dtype)
    return np.lib.stride_tricks.as_strided(base, shape, strides)


def select(last, size, **variables):
    made = _core.WorkingSet(**variables, has_offset=False, offset=0.0, turn=np.inf)
    return made.select(last, size, None, 1)


def minimise(pool, slots, block, starts, tol, q, coef, **variables):
    return _core.WorkingSet(**variables, has_offset=False, offset=0.0, turn=np.inf).minimise(
        pool, slots, block, starts, tol, q, coef, None
    )


def add_to_gradient(pool, slots, coef, **variables):
    made = _core.WorkingSet(**variables, has_offset=False, offset=0.0, turn=np.inf)
    made.add_rows(pool, slots, coef, None)


def finish(values, row_norms, column_norms, **parameters):
    _core.Finish(**parameters).apply(values, row_norms, column_norms)


def fill(rows, panels, out, slots=None, **parameters):
    panels = _core.Panels(*panels)
    panels.fill(_core.CompressedRows(*rows), _core.Finish(**parameters), out, slots, None)


def fill_from(start, index, value, column_norms, n_features, place, panels, row_norms, **rest):
    rows = (start, index, value, column_norms, n_features)
    fill(rows, (panels, place, row_norms), **rest)


def add_from(start, index, value, column_norms, n_features, panels, row_norms, weights, sums):
    rows = _core.CompressedRows(start, index, value, column_norms, n_features)
    finish = _core.Finish("linear", 1.0, 0.0, 3)
    _core.Panels(panels, None, row_norms).add(rows, finish, weights, sums, None)


def panels_of(start, index, value, norms, n_features, place, n_places):
    rows = _core.CompressedRows(start, index, value, norms, n_features)
    return _core.make_panels(rows, place, n_places)


FUNCTIONS = {"add_rows": _core.add_rows, "gather": _core.gather, "select": select,
             "compact_rows": _core.compact_rows, "widen_rows": _core.widen_rows,
             "minimise": minimise, "add_to_gradient": add_to_gradient, "finish": finish,
             "fill": fill_from, "add": add_from, "take_rows": _core.take_rows,
             "make_panels": panels_of}  # fmt: skip


def good_call(name, dtype=np.float32):
    """Arguments that are answered; values and panels of a type, all else in double precision."""
    if name == "minimise":
        return block_problem(7, 9)[1]
    return {
        "add_rows": {"pool": np.ones((3, 5)), "slots": np.array([0, 2]), "coef": np.ones(2),
                     "sign": np.ones(5), "begin": 1, "end": 4, "out": np.zeros(5)},
        "add_to_gradient": {"alpha": np.zeros(5), "gradient": np.zeros(5), "sign": np.ones(5),
                            "upper": np.ones(5), "diagonal": np.ones(5), "pool": np.ones((3, 5)),
                            "slots": np.array([0, 2]), "coef": np.ones(2)},
        "select": {"alpha": np.zeros(4), "gradient": -np.ones(4), "sign": np.ones(4),
                   "upper": np.ones(4), "diagonal": np.ones(4), "last": np.array([0, 3]),
                   "size": 2},
        "gather": {"pool": np.ones((3, 5)), "slots": np.array([0, 2]),
                   "columns": np.array([4, 0, 1]), "out": np.zeros((2, 3))},
        "compact_rows": {"buffer": np.arange(20.0), "slots": np.array([1, 3]),
                         "columns": np.array([0, 2, 4]), "old_stride": 5, "new_stride": 4},
        "widen_rows": {"buffer": np.arange(20.0), "n_rows": 3, "old_stride": 4, "new_stride": 6},
        "finish": {"values": np.ones((3, 5), dtype), "row_norms": np.full(3, 2, dtype),
                   "column_norms": np.full(5, 2, dtype), "name": "rbf", "gamma": 1.0,
                   "coef0": 0.0, "degree": 3},
        # three dense rows of four features and two compressed rows
        "fill": {"start": np.array([0, 2, 3]), "index": np.array([0, 3, 1], np.int32),
                 "value": np.ones(3, dtype), "column_norms": np.ones(2, dtype), "n_features": 4,
                 "place": None, "panels": np.ones((1, 4, 64), dtype),
                 "row_norms": np.ones(64, dtype), "name": "linear", "gamma": 1.0, "coef0": 0.0,
                 "degree": 3, "out": np.zeros((3, 2), dtype)},
        "add": {"start": np.array([0, 2, 3]), "index": np.array([0, 3, 1], np.int32),
                "value": np.ones(3, dtype), "column_norms": np.ones(2, dtype), "n_features": 4,
                "panels": np.ones((1, 4, 64), dtype), "row_norms": np.ones(64, dtype),
                "weights": np.ones((3, 64), dtype), "sums": np.zeros((3, 2))},
        "take_rows": {"start": np.array([0, 2, 3]), "index": np.array([0, 3, 1], np.int32),
                      "value": np.ones(3, dtype), "rows": np.array([1, 0, 1])},
        "make_panels": {"start": np.array([0, 2, 3]), "index": np.array([0, 3, 1], np.int32),
                        "value": np.ones(3, dtype), "norms": np.ones(2, dtype), "n_features": 4,
                        "place": None, "n_places": 4},
    }[name]  # fmt: skip


WRITTEN = {"add_rows": ["out"], "gather": ["out"], "compact_rows": ["buffer"],
           "widen_rows": ["buffer"], "minimise": ["alpha", "coef"], "select": [],
           "add_to_gradient": ["gradient"], "finish": ["values"], "fill": ["out"], "add": ["sums"],
           "take_rows": [], "make_panels": []}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_the_calls_that_the_refused_ones_differ_from_are_answered(name):
    call = good_call(name)
    FUNCTIONS[name](**call)
    for output in WRITTEN[name]:
        assert not np.array_equal(call[output], good_call(name)[output], equal_nan=True)


def test_the_answers_of_calls_that_write_nothing_are_those_worked_out_by_hand():
    # Variables 1 and 2 promise the same: 2 times 0x9E3779B97F4A7C15 is smaller, modulo 2^64.
    assert_array_equal(select(**good_call("select"))[0], [0, 2])
    start, index, value = _core.take_rows(**good_call("take_rows"))
    assert_array_equal(start, [0, 1, 3, 4])
    assert_array_equal(index, [1, 0, 3, 1])
    assert_array_equal(value, np.ones(4))
    panels = panels_of(**good_call("make_panels"))
    expected = np.zeros((1, 4, 64))
    expected[0, [0, 3], 0] = expected[0, 1, 1] = 1
    assert_array_equal(panels, expected)


@each_dtype
def test_the_answers_of_small_blocks_are_those_worked_out_by_hand(dtype):
    call = good_call("finish", dtype)
    finish(**call)
    assert_allclose(call["values"], np.exp(-2.0), rtol=RELATIVE[dtype])
    for place, expected in ((None, [2, 1]), (np.array([-1, 0, 0, 3], np.int32), [1, 1])):
        call = good_call("fill", dtype) | {"place": place}
        fill_from(**call)
        assert_array_equal(call["out"], [expected] * 3)


REFUSED = {
    "add_rows": [
        ({"pool": np.ones(15)}, ValueError, "pool must be a matrix"),
        ({"pool": np.ones((3, 5), int)}, ValueError, "float32 or float64"),
        ({"pool": None}, TypeError, "incompatible"),
        ({"slots": np.array([0, 3])}, ValueError, "a slot is out of range"),
        ({"slots": np.array([-1, 2])}, ValueError, "a slot is out of range"),
        ({"slots": np.array([0, 2], np.int32)}, ValueError, "slots must be int64"),
        ({"slots": np.array([0.0, 2.0])}, ValueError, "slots must be int64"),
        ({"coef": np.ones(3)}, ValueError, "coef: one per slot"),
        ({"coef": np.ones(2, np.float32)}, ValueError, "coef: one per slot"),
        ({"sign": np.ones(4)}, ValueError, "sign must be float64, as long as out"),
        ({"sign": np.ones(5, int)}, ValueError, "sign must be float64"),
        ({"begin": -1}, ValueError, "columns out of range"),
        ({"begin": 5}, ValueError, "columns out of range"),
        ({"end": 6}, ValueError, "columns out of range"),
        ({"end": 6, "out": np.zeros(9), "sign": np.ones(9)}, ValueError, "columns out"),
        ({"end": 2**70}, TypeError, "incompatible"),
        ({"begin": 0.5}, TypeError, "incompatible"),
        ({"out": np.zeros(3), "sign": np.ones(3)}, ValueError, "columns out of range"),
        ({"out": np.zeros(5, np.float32)}, ValueError, "out must be float64"),
        ({"out": np.zeros(10)[::2]}, TypeError, "incompatible"),
        ({"out": read_only(np.zeros(5))}, TypeError, "incompatible"),
    ],
    "gather": [
        ({"pool": np.ones((3, 5), np.float32)}, ValueError, "the type of the pool"),
        ({"pool": np.ones((3, 5, 1))}, ValueError, "pool must be a matrix"),
        ({"slots": np.array([0, 3])}, ValueError, "a slot is out of range"),
        ({"slots": np.array([0, -1])}, ValueError, "a slot is out of range"),
        ({"slots": np.array([0, 1], np.int32)}, ValueError, "slots must be int64"),
        ({"slots": np.array([0])}, ValueError, "a row per slot"),
        ({"columns": np.array([4, 5, 1])}, ValueError, "a column is out of range"),
        ({"columns": np.array([4, -1, 1])}, ValueError, "a column is out of range"),
        ({"columns": np.array([4, 0])}, ValueError, "a column per column"),
        ({"columns": np.zeros(3, np.uint64)}, ValueError, "columns must be int64"),
        ({"out": np.zeros((3, 3))}, ValueError, "a row per slot"),
        ({"out": np.zeros((2, 2))}, ValueError, "a row per slot"),
        ({"out": np.zeros((3, 2)).T}, ValueError, "contiguous rows"),
        ({"out": np.zeros((2, 6))[:, ::2]}, ValueError, "contiguous rows"),
        ({"out": np.zeros((2, 3))[::-1]}, ValueError, "do not overlap"),
        ({"out": overlapping((2, 3), (16, 8))}, ValueError, "do not overlap"),
        ({"out": read_only(np.zeros((2, 3)))}, TypeError, "incompatible"),
        ({"out": np.zeros(6)}, TypeError, "incompatible"),
    ],
    "compact_rows": [
        ({"buffer": np.arange(20)}, ValueError, "float32 or float64"),
        ({"buffer": np.arange(40.0)[::2]}, TypeError, "incompatible"),
        ({"buffer": read_only(np.zeros(20))}, TypeError, "incompatible"),
        ({"slots": np.array([1, 4])}, ValueError, "slots must ascend"),
        ({"slots": np.array([-1, 1])}, ValueError, "slots must ascend"),
        ({"slots": np.array([1, 1])}, ValueError, "slots must ascend"),
        ({"slots": np.array([3, 1])}, ValueError, "slots must ascend"),
        ({"slots": np.array([1], np.int32)}, ValueError, "slots must be int64"),
        ({"columns": np.array([0, 5])}, ValueError, "columns must ascend"),
        ({"columns": np.array([2, 0])}, ValueError, "columns must ascend"),
        ({"columns": np.array([-1, 0])}, ValueError, "columns must ascend"),
        ({"columns": np.arange(5)}, ValueError, "only become shorter"),
        ({"columns": np.ones(1)}, ValueError, "columns must be int64"),
        ({"new_stride": 6}, ValueError, "only become shorter"),
        ({"new_stride": 0}, ValueError, "only become shorter"),
        ({"old_stride": 2**62}, ValueError, "slots must ascend"),
        ({"old_stride": -5}, ValueError, "only become shorter"),
    ],
    "widen_rows": [
        ({"buffer": np.arange(20)}, ValueError, "float32 or float64"),
        ({"buffer": np.arange(40.0)[::2]}, TypeError, "incompatible"),
        ({"buffer": read_only(np.zeros(20))}, TypeError, "incompatible"),
        ({"n_rows": 4}, ValueError, "the buffer is too small"),
        ({"n_rows": -1}, ValueError, "the buffer is too small"),
        ({"n_rows": 2**62}, ValueError, "the buffer is too small"),
        ({"new_stride": 3}, ValueError, "only become longer"),
        ({"old_stride": 0}, ValueError, "only become longer"),
        ({"new_stride": 2**62}, ValueError, "the buffer is too small"),
    ],
    "minimise": [
        ({"q": np.ones((8, 7))}, ValueError, "q must hold Q of every set"),
        ({"starts": np.array([0, 3, 2, 7])}, ValueError, "starts must ascend"),
        ({"starts": np.array([0, 2**40, 7])}, ValueError, "starts must ascend"),
        ({"starts": np.array([0, 6])}, ValueError, "starts must span the block"),
        ({"starts": np.array([1, 7])}, ValueError, "starts must span the block"),
        ({"starts": np.array([7])}, ValueError, "starts must span the block"),
        ({"starts": np.array([], np.int64)}, ValueError, "starts must span the block"),
        ({"starts": np.array([0.0, 7.0])}, ValueError, "starts must be int64"),
        ({"q": np.ones((8, 8), np.float32)}, ValueError, "the type of the pool"),
        ({"pool": np.ones((7, 9), int), "q": np.ones((8, 8), int)}, ValueError, "float32 or"),
        ({"pool": np.ones((7, 8))}, ValueError, "a row of the pool is too short"),
        ({"pool": np.ones(63)}, ValueError, "pool must be a matrix"),
        ({"slots": np.arange(1, 8)}, ValueError, "a slot is out of range"),
        ({"slots": np.arange(6)}, ValueError, "a slot per variable"),
        ({"q": np.ones((8, 16))[:, ::2]}, TypeError, "incompatible"),
        ({"q": read_only(np.ones((8, 8)))}, TypeError, "incompatible"),
        ({"block": np.arange(3, 10)}, ValueError, "a variable is out of range"),
        ({"block": np.arange(-1, 6)}, ValueError, "a variable is out of range"),
        ({"block": np.arange(7.0)}, ValueError, "block must be int64"),
        ({"block": np.arange(9)}, ValueError, "a slot per variable"),
        (
            {"block": np.arange(6), "slots": np.arange(6), "starts": np.array([0, 6])},
            ValueError,
            "coef must be float64",
        ),
        ({"sign": np.ones(7)}, ValueError, "sign must be float64"),
        ({"diagonal": np.ones(7)}, ValueError, "diagonal must be float64"),
        ({"diagonal": np.ones(9, np.float32)}, ValueError, "diagonal must be"),
        ({"upper": np.ones(16)}, ValueError, "upper must be float64"),
        ({"gradient": np.zeros(7)}, ValueError, "gradient must be float64"),
        ({"alpha": np.zeros(16)}, ValueError, "gradient must be float64"),
        ({"alpha": np.zeros(9, np.float32)}, ValueError, "alpha must be"),
        ({"alpha": np.zeros(18)[::2]}, TypeError, "incompatible"),
        ({"alpha": read_only(np.zeros(9))}, TypeError, "incompatible"),
        ({"coef": np.zeros(8)}, ValueError, "coef must be float64"),
        ({"coef": np.zeros(7, np.float32)}, ValueError, "coef must be"),
        ({"coef": np.zeros(14)[::2]}, TypeError, "incompatible"),
        ({"tol": None}, TypeError, "incompatible"),
    ],
    "select": [
        ({"alpha": np.zeros(3)}, ValueError, "gradient must be float64"),
        ({"alpha": np.zeros(4, int)}, ValueError, "alpha must be float64"),
        ({"gradient": np.zeros(5)}, ValueError, "gradient must be float64"),
        ({"upper": np.ones(4, np.float32)}, ValueError, "upper must be float64"),
        ({"diagonal": np.ones(3)}, ValueError, "diagonal must be float64"),
        ({"last": np.array([4])}, ValueError, "last block is out of range"),
        ({"last": np.array([-1])}, ValueError, "last block is out of range"),
        ({"last": np.zeros(2)}, ValueError, "last must be int64"),
        ({"size": 0}, ValueError, "at least one variable"),
        ({"size": -3}, ValueError, "at least one variable"),
        ({"size": 1.5}, TypeError, "incompatible"),
        ({"sign": np.ones(5)}, ValueError, "sign must be float64"),
        ({"gradient": np.zeros(8)[::2]}, TypeError, "incompatible"),
        ({"alpha": read_only(np.zeros(4))}, TypeError, "incompatible"),
        ({"gradient": read_only(np.zeros(4))}, TypeError, "incompatible"),
    ],
    "add_to_gradient": [
        ({"pool": np.ones(15)}, ValueError, "pool must be a matrix"),
        ({"pool": np.ones((3, 5), int)}, ValueError, "float32 or float64"),
        ({"slots": np.array([0, 3])}, ValueError, "a slot is out of range"),
        ({"coef": np.ones(3)}, ValueError, "coef: one per slot"),
        ({"pool": np.ones((3, 3))}, ValueError, "columns out of range"),
    ],
    "finish": [
        ({"values": np.ones((3, 5))}, ValueError, "row_norms: one per row, of the values' type"),
        ({"values": np.ones((3, 5), np.float16)}, ValueError, "float32 or float64"),
        ({"values": np.ones((3, 5), np.int32)}, ValueError, "float32 or float64"),
        ({"values": np.ones((5, 3), np.float32).T}, ValueError, "contiguous rows"),
        ({"values": np.ones((3, 10), np.float32)[:, ::2]}, ValueError, "contiguous rows"),
        ({"values": np.ones((3, 5), np.float32)[::-1]}, ValueError, "do not overlap"),
        ({"values": overlapping((3, 5), (4, 4), np.float32)}, ValueError, "do not overlap"),
        ({"values": overlapping((3, 5), (0, 4), np.float32)}, ValueError, "do not overlap"),
        ({"values": read_only(np.ones((3, 5), np.float32))}, TypeError, "incompatible"),
        ({"values": np.ones(5, np.float32)}, TypeError, "incompatible"),
        ({"values": [[1.0]]}, TypeError, "incompatible"),
        ({"values": None}, TypeError, "incompatible"),
        ({"row_norms": np.ones(2, np.float32)}, ValueError, "row_norms"),
        ({"row_norms": np.ones(3)}, ValueError, "row_norms"),
        ({"column_norms": np.ones(6, np.float32)}, ValueError, "column_norms"),
        ({"column_norms": np.ones(5, np.int32)}, ValueError, "column_norms"),
        ({"name": "cubic"}, ValueError, "'rbf', 'poly', 'sigmoid' or 'linear'"),
        ({"name": None}, TypeError, "incompatible"),
        ({"degree": -1}, ValueError, "degree must not be negative"),
        ({"degree": 2.5}, TypeError, "incompatible"),
        ({"degree": 2**40}, TypeError, "incompatible"),
        ({"gamma": "scale"}, TypeError, "incompatible"),
    ],
    "fill": [
        ({"start": np.array([0, 2])}, ValueError, "norms: one per row"),
        (
            {"start": np.array([0, 2]), "column_norms": np.ones(1, np.float32)},
            ValueError,
            "a column per row",
        ),
        ({"start": np.array([], np.int64)}, ValueError, "start must not be empty"),
        ({"start": np.array([0, 2, 3], np.int32)}, ValueError, "start must be int64"),
        ({"start": np.array([0, 2, 3.0])}, ValueError, "start must be int64"),
        ({"start": np.array([0, 3, 2])}, ValueError, "start must not descend"),
        ({"start": np.array([0, 9, 3])}, ValueError, "start must not descend"),
        ({"start": np.array([2, -9, 3])}, ValueError, "start must not descend"),
        ({"start": np.array([0, 2, 4])}, ValueError, "start is out of range"),
        ({"start": np.array([-1, 2, 3])}, ValueError, "start is out of range"),
        ({"start": np.array([3, 2, 0])}, ValueError, "start is out of range"),
        ({"index": np.array([0, 4, 1], np.int32)}, ValueError, "a feature is out of range"),
        ({"index": np.array([0, -1, 1], np.int32)}, ValueError, "a feature is out of range"),
        ({"index": np.array([0, 3, 1])}, ValueError, "index must be int32"),
        ({"index": np.array([0, 3], np.int32)}, ValueError, "value: one per index"),
        ({"value": np.ones(3)}, ValueError, "norms: one per row, of the values' type"),
        ({"value": np.ones(3), "column_norms": np.ones(2)}, ValueError, "rows must have the type"),
        ({"value": np.ones(3, np.int32)}, ValueError, "float32 or float64"),
        ({"n_features": 3}, ValueError, "a feature is out of range"),
        ({"n_features": -1}, ValueError, "n_features must not be negative"),
        ({"n_features": 5}, ValueError, "the same features"),
        ({"place": np.array([0, 1, 2, 4], np.int32)}, ValueError, "a place is out of range"),
        ({"place": np.array([0, 1, 2], np.int32)}, ValueError, "the same features"),
        ({"place": np.array([0, 1, 2, 3])}, ValueError, "place must be int32"),
        ({"column_norms": np.ones(3, np.float32)}, ValueError, "norms: one per"),
        ({"column_norms": np.ones(2)}, ValueError, "norms: one per"),
        ({"row_norms": np.ones(3, np.float32)}, ValueError, "norms: one per row of the panels"),
        ({"row_norms": np.ones(64)}, ValueError, "norms: one per row of the panels"),
        ({"name": "cubic"}, ValueError, "the kernel must be"),
        ({"degree": -1}, ValueError, "degree must not be negative"),
        (
            {"panels": np.ones((1, 4, 64)), "row_norms": np.ones(64)},
            ValueError,
            "panels must have the type of out",
        ),
        ({"panels": np.ones((1, 4, 63), np.float32)}, ValueError, "panels must be"),
        ({"panels": np.ones((4, 64), np.float32)}, ValueError, "panels must be"),
        ({"panels": np.ones((1, 4, 64), int)}, ValueError, "float32 or float64"),
        ({"panels": np.ones((1, 3, 64), np.float32)}, ValueError, "the same features"),
        (
            {"panels": np.ones((0, 4, 64), np.float32), "row_norms": np.ones(0, np.float32)},
            ValueError,
            "more rows than the panels",
        ),
        ({"out": np.zeros((65, 2), np.float32)}, ValueError, "more rows than the panels"),
        ({"slots": np.zeros(65, np.int64)}, ValueError, "more rows than the panels"),
        ({"slots": np.array([0, 3])}, ValueError, "a slot is out of range"),
        ({"slots": np.array([-1])}, ValueError, "a slot is out of range"),
        ({"slots": np.array([0, 1], np.int32)}, ValueError, "slots must be int64"),
        ({"out": np.zeros((3, 3), np.float32)}, ValueError, "a column per row"),
        ({"out": np.zeros((3, 2))}, ValueError, "must have the type of out"),
        ({"out": np.zeros((3, 2), np.int32)}, ValueError, "must have the type of out"),
        ({"out": np.zeros((2, 3), np.float32).T}, ValueError, "contiguous rows"),
        ({"out": overlapping((3, 2), (4, 4), np.float32)}, ValueError, "do not overlap"),
        ({"out": read_only(np.zeros((3, 2), np.float32))}, TypeError, "incompatible"),
        ({"out": np.zeros(6, np.float32)}, TypeError, "incompatible"),
    ],
    "add": [
        ({"weights": np.ones((3, 63), np.float32)}, ValueError, "weights: one per"),
        ({"weights": np.ones((3, 64))}, ValueError, "weights: one per"),
        ({"weights": np.ones((2, 64), np.float32)}, ValueError, "as many rows"),
        ({"weights": np.ones((64, 3), np.float32).T}, ValueError, "contiguous rows"),
        ({"weights": np.ones((3, 128), np.float32)[:, :64]}, ValueError, "weights: one per"),
        ({"weights": np.ones(64, np.float32)}, TypeError, "incompatible"),
        ({"sums": np.zeros((3, 2), np.float32)}, ValueError, "sums must be float64"),
        ({"sums": np.zeros((3, 3))}, ValueError, "a column per row"),
        ({"sums": np.zeros((2, 3)).T}, ValueError, "contiguous rows"),
        ({"sums": overlapping((3, 2), (8, 8), np.float64)}, ValueError, "do not overlap"),
        ({"sums": read_only(np.zeros((3, 2)))}, TypeError, "incompatible"),
        ({"value": np.ones(3), "column_norms": np.ones(2)}, ValueError, "the type of the panels"),
        ({"n_features": 5}, ValueError, "the same features"),
    ],
    "take_rows": [
        ({"rows": np.array([2])}, ValueError, "a row is out of range"),
        ({"rows": np.array([-1])}, ValueError, "a row is out of range"),
        ({"rows": np.array([1], np.int32)}, ValueError, "rows must be int64"),
        ({"start": np.array([], np.int64)}, ValueError, "start must not be empty"),
        ({"start": np.array([0, 2, 4])}, ValueError, "start is out of range"),
        ({"start": np.array([0, 2, 1])}, ValueError, "start is out of range"),
        ({"start": np.array([-1, 2, 3])}, ValueError, "start is out of range"),
        ({"index": np.array([0, 3, 1])}, ValueError, "index must be int32"),
        ({"value": np.ones(2, np.float32)}, ValueError, "value: one per index"),
        ({"value": np.ones(3, int)}, ValueError, "float32 or float64"),
    ],
    "make_panels": [
        ({"place": np.array([0, 1, 2, 4], np.int32)}, ValueError, "a place is out of range"),
        ({"place": np.array([0, 1, 2, 3])}, ValueError, "place must be int32"),
        ({"place": np.array([0, 1, 2], np.int32)}, ValueError, "the same features"),
        ({"n_places": 3}, ValueError, "the same features"),
        ({"place": np.zeros(4, np.int32), "n_places": -1}, ValueError, "n_features must not be"),
    ],
}


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [(name, *case) for name, cases in REFUSED.items() for case in cases],
)
def test_the_core_refuses_bad_arguments_and_writes_nothing(name, change, error, message):
    call = good_call(name) | change
    before = {output: np.array(call[output]) for output in WRITTEN[name]}
    with pytest.raises(error, match=message):
        FUNCTIONS[name](**call)
    for output, kept in before.items():
        assert_array_equal(call[output], kept)


@given(
    start=st.lists(st.integers(-2, 8), min_size=1, max_size=5),
    index=st.lists(st.integers(-2, 5), max_size=6),
    place=st.none() | st.lists(st.integers(-2, 4), max_size=5),
)
def test_sparse_products_of_any_numbers_are_right_or_refused(start, index, place):
    rng = np.random.default_rng(0)
    dense, stored = rng.normal(size=(3, 4)), rng.normal(size=len(index))
    panels = Panels.of(CompressedRows.of(sp.csr_array(dense))).values
    out = np.zeros((3, len(start) - 1))
    arrays = [None if a is None else np.array(a, np.int32) for a in (index, place)]
    known = 4 if place is None else len(place)
    rows = (np.array(start), arrays[0], stored, np.zeros(len(start) - 1), known)
    call = {"rows": rows, "panels": (panels, arrays[1], np.zeros(64)), "out": out}
    call |= {"name": "linear", "gamma": 0.0, "coef0": 0.0, "degree": 0}
    used = index[start[0] : start[-1]]
    legal = 0 <= start[0] <= start[-1] <= len(index) and start == sorted(start)
    legal = legal and all(0 <= i < known for i in used)
    if not (legal and (place is None or all(at < 4 for at in place))):
        with pytest.raises(ValueError):
            fill(**call)
        assert not out.any()
        return
    fill(**call)
    expected = np.zeros_like(out)
    for column, (begin, end) in enumerate(pairwise(start)):
        for p in range(begin, end):
            at = index[p] if place is None else place[index[p]]
            if at >= 0:
                expected[:, column] += stored[p] * dense[:, at]
    assert_allclose(out, expected, atol=1e-14)
