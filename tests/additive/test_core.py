"""The core's duals: what they refuse when they are made and called, and how they take a start."""

import gc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import _core
from widemargin.losses import N_SUMS

LANES, RANK, N_ROWS, N_FEATURES, N_CODES = _core.LANES, 4, 6, 3, 5
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
NEVER = np.stack([np.full(LANES, np.inf), np.full(LANES, -np.inf)])


def rows():
    codes = np.random.default_rng(0).integers(0, N_CODES, (N_ROWS, N_FEATURES)).astype(np.uint8)
    return codes, _core.Rows(codes, None, None, N_FEATURES, N_CODES)


def table(dtype=np.float64, rank=RANK):
    values = np.random.default_rng(1).normal(size=(N_CODES, rank)).astype(dtype)
    values[0] = 0
    return values


def shared_call(dtype=np.float64, lanes=LANES, n_labels=3):
    label = np.arange(N_ROWS, dtype=np.int32) % n_labels
    tables = _core.Tables(table(dtype), table(dtype), None, lanes)
    ones = np.ones(N_ROWS, dtype)
    return {"rows": rows()[1], "tables": tables, "label": label, "c": ones, "diagonal": ones,
            "bias_value": 0.5, "loss": _core.Loss("hinge", None)}  # fmt: skip


def box_call(dtype=np.float64, lanes=LANES):
    targets = np.zeros((3, lanes), dtype)
    targets[:, : min(3, lanes)] = np.where(np.eye(3)[:, :lanes] > 0, 1, -1)
    return {"shared": _core.SharedProblem(**shared_call(dtype, lanes)), "targets": targets,
            "weights": np.zeros((N_FEATURES, RANK, lanes), dtype),
            "coef": np.zeros((N_ROWS, lanes), dtype), "bias": np.zeros(lanes, dtype),
            "n_threads": 1}  # fmt: skip


def simplex_call(n_classes=3):
    blocks = -(-n_classes // LANES)
    shared = _core.SharedProblem(**shared_call(n_labels=n_classes))
    return {"shared": shared, "n_classes": n_classes,
            "weights": np.zeros((blocks, N_FEATURES, RANK, LANES)),
            "coef": np.zeros((N_ROWS, blocks, LANES)),
            "bias": np.zeros((blocks, LANES)), "n_threads": 1}  # fmt: skip


def sweep_call():
    return {"order": np.arange(N_ROWS, dtype=np.int32), "begin": 0, "seconds": 1.0,
            "shrink": NEVER, "status": np.zeros(N_ROWS, np.uint8),
            "account": np.zeros((N_SUMS, LANES))}  # fmt: skip


def read_only(array):
    array.flags.writeable = False
    return array


REFUSED = [
    (_core.SharedProblem, shared_call, [
        ({"label": np.zeros(5, np.int32)}, ValueError, "label must be int32"),
        ({"label": np.zeros(6, np.int64)}, ValueError, "label must be int32"),
        ({"c": np.ones(6, np.float32)}, ValueError, "c must have n_rows entries"),
        ({"c": np.ones(7)}, ValueError, "c must have n_rows entries"),
        ({"diagonal": np.ones(5)}, ValueError, "diagonal must have n_rows entries"),
        ({"tables": lambda: _core.Tables(table()[:4], table()[:4], None, LANES)},
         ValueError, "the codes exceed the table"),
        ({"tables": lambda: _core.Tables(None, np.eye(N_CODES), np.array([0, 5]), LANES)},
         ValueError, "offset must have n_features"),
        ({"loss": "hinge"}, TypeError, "incompatible"),
    ]),
    (_core.BoxDual, box_call, [
        ({"targets": np.zeros((2, LANES))}, ValueError, "a label is out of range"),
        ({"targets": np.full((3, LANES), 0.5)}, ValueError, "targets must be"),
        ({"targets": np.full((3, LANES), np.nan)}, ValueError, "targets must be"),
        ({"targets": np.zeros((3, LANES), np.float32)}, ValueError, "targets must be"),
        ({"weights": np.zeros((N_FEATURES, RANK + 1, LANES))}, ValueError, "weights have"),
        ({"weights": np.zeros((N_FEATURES, RANK, LANES), np.float32)}, ValueError, "weights have"),
        ({"weights": np.zeros((N_FEATURES, RANK, 2 * LANES))[:, :, ::2]}, TypeError, "incompat"),
        ({"weights": read_only(np.zeros((N_FEATURES, RANK, LANES)))}, TypeError, "incompat"),
        ({"coef": np.zeros((N_ROWS, LANES - 1))}, ValueError, "coef must be"),
        ({"coef": np.zeros((LANES, N_ROWS)).T}, TypeError, "incompat"),
        ({"bias": np.zeros(1)}, ValueError, "bias must have one entry per lane"),
    ]),
    (_core.SimplexDual, simplex_call, [
        ({"n_classes": 2}, ValueError, "a label is out of range"),
        ({"n_classes": 1}, ValueError, "needs 16 lanes"),
        ({"n_classes": 17}, ValueError, "one block per 16 classes"),
        ({"weights": np.zeros(N_FEATURES * RANK * LANES)}, ValueError, "one block per"),
        ({"weights": np.zeros((1, N_FEATURES, RANK, LANES - 1))}, ValueError, "weights have"),
        ({"coef": np.zeros((N_ROWS, 2, LANES))}, ValueError, "coef has the wrong size"),
        ({"bias": np.zeros(LANES, np.float32)}, ValueError, "bias has the wrong size"),
        ({"shared": lambda: _core.SharedProblem(**shared_call(np.float32, lanes=1))},
         ValueError, "needs 16 lanes"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "call", "change", "error", "message"),
    [(make, call, *case) for make, call, cases in REFUSED for case in cases],
)
def test_the_duals_refuse_arrays_that_do_not_fit(make, call, change, error, message):
    make(**call())
    change = {k: v() if callable(v) else v for k, v in change.items()}
    with pytest.raises(error, match=message):
        make(**call() | change)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"order": np.array([0, 6], np.int32)}, ValueError, "a row out of range"),
        ({"order": np.array([-1], np.int32)}, ValueError, "a row out of range"),
        ({"order": np.arange(6)}, ValueError, "order must be int32"),
        ({"order": None}, TypeError, "incompatible"),
        ({"begin": 7}, ValueError, "begin is out of range"),
        ({"begin": -1}, ValueError, "begin is out of range"),
        ({"shrink": NEVER[:1]}, ValueError, "shrink must be"),
        ({"status": np.zeros(5, np.uint8)}, ValueError, "status must be uint8"),
        ({"status": np.zeros(6, bool)}, ValueError, "status must be uint8"),
        ({"status": np.zeros(12, np.uint8)[::2]}, TypeError, "incompatible"),
        ({"account": np.zeros((4, LANES))}, ValueError, "account must be"),
        ({"account": np.zeros((LANES, N_SUMS)).T}, TypeError, "incompatible"),
    ],
)
@pytest.mark.parametrize(("make", "call"), [(_core.BoxDual, box_call),
                                            (_core.SimplexDual, simplex_call)])  # fmt: skip
def test_sweeps_refuse_bad_arguments_and_write_nothing(make, call, change, error, message):
    given = call()
    dual = make(**given)
    with pytest.raises(error, match=message):
        dual.sweep(**sweep_call() | change)
    assert not any(given[name].any() for name in ("weights", "coef", "bias"))
    if "begin" in change or "account" in change:
        arguments = {k: v for k, v in (sweep_call() | change).items()
                     if k in ("begin", "seconds", "account")}  # fmt: skip
        with pytest.raises(error, match=message):
            dual.certify(**arguments)


@pytest.mark.parametrize(("begin", "end"), [(-1, 2), (3, 2), (0, 7)])
def test_a_start_is_refused_where_there_are_no_rows(begin, end):
    with pytest.raises(ValueError, match="rows out of range"):
        _core.BoxDual(**box_call()).accumulate(begin, end)


@pytest.mark.parametrize("which", [0, 1], ids=["left", "right"])
def test_tables_have_no_numbers_for_what_is_absent(which):
    tables = [table(), table()]
    tables[which][0, -1] = 1e-9
    with pytest.raises(ValueError, match="code 0 is absent"):
        _core.Tables(*tables, None, LANES)


@each_dtype
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 8, 12, 16])
def test_a_start_adds_rows_whatever_the_rank(rank, dtype):
    """More rows than are added at once, half of whose values are absent."""
    rng, n, d = np.random.default_rng(rank), 300, 5
    codes = rng.integers(0, N_CODES, (n, d)) * rng.integers(0, 2, (n, d))
    codes, t, ones = codes.astype(np.uint8), table(dtype, rank), np.ones(n, dtype)
    shared = _core.SharedProblem(
        _core.Rows(codes, None, None, d, N_CODES), _core.Tables(t, t, None, LANES),
        np.zeros(n, np.int32), ones, ones, 0.5, _core.Loss("hinge", None),
    )  # fmt: skip
    coef = rng.normal(size=(n, LANES)).astype(dtype)
    coef[rng.random(n) < 0.3] = 0
    weights, bias = np.ones((d, rank, LANES), dtype), np.zeros(LANES, dtype)
    dual = _core.BoxDual(shared, np.ones((1, LANES), dtype), weights, coef, bias, 1)
    dual.accumulate(10, n)
    expected = 1 + np.einsum("ijr,il->jrl", t.astype(float)[codes[10:]], coef[10:].astype(float))
    assert_allclose(weights, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-5)
    assert_allclose(bias, 0.5 * coef[10:].sum(axis=0, dtype=float), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("lanes", "ranks"), [(1, {1, 4, 8, 16}), (LANES, {1, 2, 3, 4, 8, 12, 16})])
@each_dtype
def test_tables_have_a_rank_that_there_is_a_loop_for(lanes, dtype, ranks):
    for rank in range(1, 17):
        arguments = (table(dtype, rank), table(dtype, rank), None, lanes)
        if rank in ranks:
            _core.Tables(*arguments)
        else:
            with pytest.raises(ValueError, match="pad the rank"):
                _core.Tables(*arguments)


@pytest.mark.parametrize(
    ("lanes", "dtype"), [(1, np.float32), (LANES, np.float32), (LANES, np.float64)]
)
def test_a_start_is_the_sum_of_the_coefficients_times_the_table(lanes, dtype):
    call = box_call(dtype, lanes)
    call["coef"][:] = np.random.default_rng(2).normal(size=call["coef"].shape)
    call["coef"][1] = 0
    dual = _core.BoxDual(**call)
    for begin, end in [(0, 2), (2, 2), (2, N_ROWS)]:
        dual.accumulate(begin, end)
    phi = table(dtype)[rows()[0]]  # (row, feature, rank)
    expected = np.einsum("ijr,il->jrl", phi, call["coef"])
    tolerance = 1e-5 if dtype == np.float32 else 1e-14
    assert_allclose(call["weights"], expected, atol=tolerance)
    assert_allclose(call["bias"], 0.5 * call["coef"].sum(axis=0), atol=tolerance)


def test_a_start_of_all_classes_fills_every_block():
    call = simplex_call(n_classes=20)
    call["coef"][:] = np.random.default_rng(2).normal(size=call["coef"].shape)
    _core.SimplexDual(**call).accumulate(0, N_ROWS)
    expected = np.einsum("ijr,ibl->bjrl", table()[rows()[0]], call["coef"])
    assert_allclose(call["weights"], expected, atol=1e-14)
    assert_allclose(call["bias"], 0.5 * call["coef"].sum(axis=0), atol=1e-14)


def test_a_dual_keeps_the_arrays_alive_that_it_was_made_of():
    def made():
        call = box_call()
        return _core.BoxDual(**call), call["coef"]

    dual, coef = made()
    again, coef_again = made()
    gc.collect()
    filler = [np.full(5000, 7, np.uint8) for _ in range(200)]  # takes what was freed, if any was
    for one in (dual, again):
        one.sweep(**sweep_call())
    assert len(filler) == 200
    assert coef.any()
    assert_array_equal(coef, coef_again)
