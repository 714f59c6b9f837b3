"""Kernel rows that the core computes by itself, keeps, and solves with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import _core

from .helpers import (
    PARAMETERS,
    RELATIVE,
    each_dot_kernel,
    each_dtype,
    each_instruction_set,
    kernel_matrix,
)


def finish(name):
    parameters = PARAMETERS[name]
    return _core.Finish(name, parameters["gamma"], parameters["coef0"], parameters["degree"])


def all_at_once(X, name):
    pool = np.full((len(X), len(X)), np.nan, X.dtype)
    assert _core.KeptRows(pool, _core.DenseKernel(X, finish(name))).ask_all()
    return pool


def variables(n, alpha):
    """A working set of n variables, and its gradient."""
    one, gradient = np.ones(n), np.full(n, np.nan)
    return _core.WorkingSet(alpha, gradient, one, 2 * one, one, False, 0.0, np.inf), gradient


def one_by_one(X, name, wanted):
    """The rows of some variables, in this order of asking for them."""
    pool = np.full((len(X), len(X)), np.nan, X.dtype)
    kept, alpha = _core.KeptRows(pool, _core.DenseKernel(X, finish(name))), np.zeros(len(X))
    for i in wanted:
        alpha[i] = 1.0
        variables(len(X), alpha)[0].refresh(kept, np.zeros(len(X)))
    assert kept.n_used == len(wanted)
    return pool[: len(wanted)]


# ------------------------------------------------------------------ values


@each_dot_kernel
@each_dtype
@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 2), (16, 5), (37, 3), (70, 40), (65, 64)])
def test_values_are_those_of_an_independent_formula(name, dtype, n, d):
    X = (np.random.default_rng(0).normal(size=(n, d)) / np.sqrt(d)).astype(dtype)
    expected = kernel_matrix(name, X.astype(np.float64), **PARAMETERS[name])
    assert_allclose(all_at_once(X, name), expected, rtol=RELATIVE[dtype], atol=RELATIVE[dtype])


@each_dtype
@each_instruction_set
def test_a_row_is_the_same_whenever_it_is_asked_for(dtype, instructions, use_instruction_set):
    use_instruction_set(instructions)
    X = np.random.default_rng(0).normal(size=(45, 7)).astype(dtype)
    wanted = [44, 0, 17, 3, 16, 15, 31, 32, 2]
    assert_array_equal(one_by_one(X, "rbf", wanted), all_at_once(X, "rbf")[wanted])


@each_dtype
@given(seed=st.integers(0, 1000), d=st.integers(1, 70), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_equal_rows_are_at_no_distance(dtype, seed, d, scale):
    X = (scale * np.random.default_rng(seed).normal(size=(10, d))).astype(dtype)
    K = all_at_once(np.repeat(X, 3, axis=0), "rbf")
    assert np.all(K[np.kron(np.eye(10), np.ones((3, 3))) == 1] == 1.0)
    assert_array_equal(K, K.T)


def test_rows_without_features_are_all_alike():
    assert_array_equal(all_at_once(np.empty((5, 0)), "rbf"), np.ones((5, 5)))


# ------------------------------------------------------------------ what is measured


@each_dtype
def test_the_gradient_and_the_gap_are_those_of_the_definition(dtype):
    rng = np.random.default_rng(0)
    X, linear = rng.normal(size=(40, 3)).astype(dtype), rng.normal(size=40)
    sign, upper = np.where(rng.random(40) < 0.5, -1.0, 1.0), rng.random(40)
    alpha = upper * rng.choice([0.0, 0.5, 1.0], 40)
    gradient = np.empty(40)
    active = _core.WorkingSet(alpha, gradient, sign, upper, np.ones(40), False, 0.0, np.inf)
    kept = _core.KeptRows(np.empty((40, 40), dtype), _core.DenseKernel(X, finish("rbf")))
    dual, gap, slack, missing = active.refresh(kept, linear)
    Q = all_at_once(X, "rbf").astype(np.float64) * np.outer(sign, sign)
    assert_allclose(gradient, Q @ alpha + linear, rtol=1e-12, atol=1e-12)
    assert dual == pytest.approx(-(linear @ alpha + 0.5 * alpha @ Q @ alpha), rel=1e-12)
    terms = np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)
    assert gap == pytest.approx(terms.sum(), rel=1e-12)
    assert slack == 0  # there is no intercept, and no constraint to miss
    assert len(missing) == 0


def test_without_a_kernel_the_caller_is_told_what_is_missing():
    alpha = np.array([1.0, 0.0, 0.5])
    active, gradient = variables(3, alpha)
    kept = _core.KeptRows(np.eye(3), None)
    assert not kept.ask_all()
    *_, missing = active.refresh(kept, -np.ones(3))
    assert missing.tolist() == [0, 2]
    assert np.all(np.isnan(gradient))
    assert kept.add(missing) == 0
    assert kept.n_used == 2
    dual, *_, missing = active.refresh(kept, -np.ones(3))
    assert len(missing) == 0
    assert dual == pytest.approx(1.5 - 0.5 * (1 + 0.5 * 0.0))  # rows of the unit matrix, in order


def test_steps_end_where_a_row_is_missing():
    active, _ = variables(3, np.zeros(3))
    kept = _core.KeptRows(np.eye(3), None)
    active.refresh(kept, -np.ones(3))
    dual, gap, steps, missing = active.descend(kept, 0.0, 1e-3, 0.1, 10, 8)
    assert (dual, gap, steps, missing.tolist()) == (0.0, 6.0, 0, [0, 1, 2])
    kept.add(missing)
    dual, gap, steps, missing = active.descend(kept, dual, 1e-3, 0.1, 10, 8)
    assert (dual, steps, missing.tolist()) == (pytest.approx(1.5), 1, [])
    assert gap == pytest.approx(0.0, abs=1e-12)


# ------------------------------------------------------------------ refusals


def test_what_does_not_belong_together_is_refused():
    X = np.ones((3, 2))
    kernel = _core.DenseKernel(X, finish("rbf"))
    with pytest.raises(ValueError, match="must be square"):
        _core.KeptRows(np.empty((3, 4)), kernel)
    with pytest.raises(ValueError, match="the type of the pool"):
        _core.KeptRows(np.empty((3, 3), np.float32), kernel)
    with pytest.raises(ValueError, match="a row per variable"):
        _core.KeptRows(np.empty((4, 4)), kernel)
    with pytest.raises(ValueError, match="data must be a matrix"):
        _core.DenseKernel(np.ones(3), finish("rbf"))
    with pytest.raises(ValueError, match="float32 or float64"):
        _core.DenseKernel(np.ones((3, 2), np.int32), finish("rbf"))


def test_rows_are_added_once_and_in_range():
    kept = _core.KeptRows(np.eye(4), None)
    kept.add(np.array([1, 2]))
    for numbers in ([0, 2], [1]):
        with pytest.raises(ValueError, match="has a row already"):
            kept.add(np.array(numbers))
    for numbers in ([-1], [4], [3, 0], [3, 3]):
        with pytest.raises(ValueError, match="ascend and be in range"):
            kept.add(np.array(numbers))
    assert kept.n_used == 2


def test_a_working_set_of_another_size_is_refused():
    active, _ = variables(3, np.zeros(3))
    for kept in (_core.KeptRows(np.eye(4), None), _core.KeptRows(np.eye(2), None)):
        with pytest.raises(ValueError, match="a row per variable"):
            active.descend(kept, 0.0, 1e-3, 0.1, 10, 8)
        with pytest.raises(ValueError, match="a row per variable"):
            active.refresh(kept, np.zeros(3))
    kept = _core.KeptRows(np.eye(3), None)
    with pytest.raises(ValueError, match="at least one variable"):
        active.descend(kept, 0.0, 1e-3, 0.1, 10, 0)
    with pytest.raises(ValueError, match="linear must be float64"):
        active.refresh(kept, np.zeros(4))
