"""Problems: arrays as the core's loops want them, and sweeps through any `Problem`."""

import pickle

import numpy as np
import pytest

from widemargin import losses
from widemargin.additive.learn import Settings, learn
from widemargin.additive.problem import LANES, BoxProblem, Layout, SharedProblem, aligned
from widemargin.additive.solver import measure
from widemargin.additive.source import Values
from widemargin.engine import Control
from widemargin.multiclass import Coding

from .problems import LOSSES, histograms

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def shared_problem(X, y, layout, loss="squared_hinge", **settings):
    learned = learn(Values.of(X), np.ones(len(X)), Settings("chi2", **settings))
    diagonal = learned.diagonal()
    return SharedProblem.of(
        learned,
        layout,
        label=y,
        c=np.full(len(X), 1 / diagonal.mean()),
        kernel_diagonal=diagonal,
        bias_value=0.5,
        loss=losses.LOSSES[loss],
    )


@pytest.mark.parametrize("shape", [(3,), (5, 7), (2, 3, 16)])
@each_dtype
def test_aligned_arrays_are_zeros_that_start_on_a_cache_line(shape, dtype):
    a = aligned(shape, dtype)
    assert a.ctypes.data % 64 == 0
    assert a.dtype == dtype
    assert not a.any()


@pytest.mark.parametrize(
    ("layout", "ranks"),
    [
        (Layout(1, np.float32), {1: 1, 2: 4, 3: 4, 4: 4, 5: 8, 9: 16}),
        (Layout(1, np.float64), {1: 1, 2: 4, 5: 8, 9: 16}),
        (Layout(LANES, np.float32), {1: 1, 2: 2, 3: 3, 4: 4, 5: 8, 9: 12}),
        (Layout(LANES, np.float64), {1: 1, 3: 3, 5: 8}),
        (Layout(LANES, np.float32, simplex=True), {1: 4, 3: 4, 5: 8}),
    ],
)
def test_ranks_are_padded_to_those_that_have_a_loop(layout, ranks):
    assert {rank: layout.padded_rank(rank) for rank in ranks} == ranks


@each_dtype
@pytest.mark.parametrize("approximation", ["spectral", "chebyshev", "unary"])
def test_tables_are_aligned_again_where_they_arrive(approximation, dtype):
    X, y = histograms(3)
    tables = shared_problem(X, y, Layout(LANES, dtype), approximation=approximation).tables
    assert tables.core is not None  # which cannot travel
    there = pickle.loads(pickle.dumps(tables))
    for name in ("left", "right", "offset"):
        np.testing.assert_array_equal(getattr(there, name), getattr(tables, name))
    assert there.right.ctypes.data % 64 == 0
    assert (there.left is there.right) == (tables.left is tables.right)
    assert there.weights(20).shape == tables.weights(20).shape


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_start_is_brought_into_the_box_and_is_its_expansion(n_classes, loss):
    X, y = histograms(n_classes)
    coding = Coding("ovr", n_classes)
    lanes = 1 if coding.n_outputs == 1 else LANES
    shared = shared_problem(X, y, Layout(lanes, np.float64), loss)
    problem = BoxProblem(shared, coding.targets, shared.tables.weights(coding.n_outputs))
    assert not problem.started
    sign, c = coding.targets[y], shared.c[:, None]
    coef = sign * c * np.random.default_rng(0).uniform(-1, 2, sign.shape)
    problem.start(coef, Control())
    upper = np.inf if loss == "squared_hinge" else c
    np.testing.assert_array_equal(problem.coef, sign * np.clip(sign * coef, 0, upper))
    assert problem.started
    np.testing.assert_allclose(problem.bias[: sign.shape[1]], 0.5 * problem.coef.sum(axis=0))
    # At weights that are the expansion of the variables, no gap is negative.
    assert np.all(measure(problem, Control()).gap >= 0)
