"""The losses in Python and in the core: one noun, compared on single samples.

One row of one feature, whose 16 lanes are 16 problems: the weight of a lane is its decision.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import _core
from widemargin.losses import GAP, LOSS, LOSSES, N_SUMS, PG_MAX, PG_MIN, QUADRATIC

LANES, RANK = _core.LANES, 4  # double precision has loops for multiples of 4
NEVER = np.stack([np.full(LANES, np.inf), np.full(LANES, -np.inf)])

each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@dataclass
class Samples:
    """16 samples with feasible coefficients, some at their bounds, some without a problem."""

    loss: object
    c: float
    curvature: float  # k(x, x)
    target: np.ndarray
    decision: np.ndarray
    coef: np.ndarray

    @classmethod
    def random(cls, loss, seed, dtype=np.float64):
        rng = np.random.default_rng(seed)
        c = float(dtype(rng.lognormal()))
        target = rng.choice([1.0, 1.0, -1.0, -1.0, 0.0], LANES)
        decision = rng.normal(scale=2, size=LANES)
        decision[:3] = target[:3]  # right at the margin
        decision[target == 0] = 0  # an empty lane has no weights
        low, high = loss.bounds(target, np.full(LANES, c))
        inside = target * rng.lognormal(size=LANES) * c
        coef = np.clip(inside * rng.choice([0.0, 0.4, 1.0, 9.0], LANES), low, high)
        parts = (a.astype(dtype) for a in (target, decision, coef))
        return cls(loss, c, float(dtype(rng.lognormal())), *parts)

    def dual(self):
        """The core's dual, and the weights and coefficients that it writes."""
        dtype = self.target.dtype
        rows = _core.Rows(np.ones((1, 1), np.uint8), None, None, 1, 2)
        table = np.zeros((2, RANK), dtype)
        table[1, 0] = 1
        tables = _core.Tables(table, table, None, LANES)
        c, curvature = (np.array([x], dtype) for x in (self.c, self.curvature))
        label = np.zeros(1, np.int32)
        shared = _core.SharedProblem(rows, tables, label, c, curvature, 0.0, self.loss.core)
        weights = np.zeros((1, RANK, LANES), dtype)
        weights[0, 0] = self.decision
        coef, bias = self.coef[None].copy(), np.zeros(LANES, dtype)
        return _core.BoxDual(shared, self.target[None], weights, coef, bias, 1), weights, coef

    @property
    def gradient(self):
        return self.decision - self.target + self.loss.ridge(self.c) * self.coef

    @property
    def bounds(self):
        return self.loss.bounds(self.target, np.full(LANES, self.c))


def certified(samples):
    dual, _, _ = samples.dual()
    account = np.zeros((N_SUMS, LANES))
    assert dual.certify(0, 1.0, account) == 1
    return account


seeds = st.integers(0, 100_000)


@each_loss
@given(seed=seeds)
def test_values_and_gaps_are_those_of_the_core(loss, seed):
    s = Samples.random(loss, seed)
    account, values = certified(s), (s.target, s.decision)
    assert_allclose(account[LOSS], loss.value(*values, s.c), rtol=1e-14)
    assert_allclose(account[QUADRATIC], s.coef * s.decision, rtol=1e-14)
    scale = 1 + loss.value(*values, s.c) + np.abs(s.coef * s.decision)
    assert np.all(np.abs(account[GAP] - loss.gap(*values, s.coef, s.c)) <= 1e-13 * scale)


@each_loss
@given(seed=seeds)
def test_the_projected_gradient_of_the_core_stops_at_the_bounds(loss, seed):
    s = Samples.random(loss, seed)
    account, (low, high) = certified(s), s.bounds
    inward = np.where(s.coef <= low, np.minimum(s.gradient, 0), s.gradient)
    inward = np.where(s.coef >= high, np.maximum(inward, 0), inward)
    in_a = s.target * inward  # LIBLINEAR's variable is a = y b
    assert_allclose(account[PG_MAX], np.maximum(in_a, 0), rtol=1e-13, atol=1e-15)
    assert_allclose(account[PG_MIN], np.minimum(in_a, 0), rtol=1e-13, atol=1e-15)


@each_loss
@given(seed=seeds)
def test_a_step_of_the_core_has_the_bounds_and_the_curvature_of_the_loss(loss, seed):
    s = Samples.random(loss, seed)
    dual, weights, coef = s.dual()
    order, shrunk = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    assert dual.sweep(order, 0, 1.0, NEVER, shrunk, np.zeros((N_SUMS, LANES))) == 1
    step = s.gradient / (s.curvature + loss.ridge(s.c))
    best = np.clip(s.coef - step, *s.bounds)
    assert_allclose(coef[0], best, rtol=1e-13, atol=1e-14)
    assert_allclose(weights[0, 0], s.decision + coef[0] - s.coef, rtol=1e-13, atol=1e-14)
    assert not np.any(weights[0, 1:])


@each_loss
@each_dtype
@given(seed=seeds)
def test_no_sample_has_a_negative_gap_and_an_empty_lane_has_none(dtype, loss, seed):
    s = Samples.random(loss, seed, dtype)
    account, empty = certified(s), s.target == 0
    assert np.all(account[GAP] >= 0)
    assert not np.any(account[:, empty])
    assert_array_equal(s.bounds, np.sort(s.bounds, axis=0))
    assert not np.any(np.array(s.bounds)[:, empty])


@each_loss
@given(seed=seeds)
def test_the_gap_is_zero_at_the_optimum_only(loss, seed):
    """At fixed decisions the best coefficient closes the gap (Fenchel and Young)."""
    s = Samples.random(loss, seed)
    slack = np.maximum(s.target * (s.target - s.decision), 0)
    if loss.name == "hinge":
        best = s.target * np.where(slack > 0, s.c, 0.0)
    else:
        best = s.target * 2 * s.c * slack
    assert_allclose(loss.gap(s.target, s.decision, best, s.c), 0, atol=1e-12 * (1 + s.c) * 99)
    other = np.clip(best + 0.1 * s.target * s.c, *s.bounds)
    other = np.where(other == best, 0.5 * best, other)
    moved = (other != best) & (s.decision != s.target)
    assert np.all(loss.gap(s.target, s.decision, other, s.c)[moved] > 0)


@each_loss
def test_losses_carry_their_names_to_the_core(loss):
    assert loss.core.name == loss.name


def test_an_unknown_loss_is_refused_by_the_core():
    with pytest.raises(ValueError, match="'hinge' or 'squared_hinge'"):
        _core.Loss("logistic")
