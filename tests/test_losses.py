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
from widemargin.losses import (
    GAP,
    LOSS,
    LOSSES,
    N_SUMS,
    PG_MAX,
    PG_MIN,
    QUADRATIC,
    TUBES,
    Certificate,
)

LANES, RANK = _core.LANES, 4  # double precision has loops for multiples of 4
NEVER = np.stack([np.full(LANES, np.inf), np.full(LANES, -np.inf)])

EPSILON = np.tile([0.0, 0.25, 1.0, 9.0], LANES // 4)  # none, small, as the errors, above them

TUBE_LOSSES = {name: tube(EPSILON) for name, tube in TUBES.items()}
EVERY_LOSS = {**LOSSES, **TUBE_LOSSES}
each_loss = pytest.mark.parametrize("loss", EVERY_LOSS.values(), ids=EVERY_LOSS)
each_margin = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
each_tube = pytest.mark.parametrize("loss", TUBE_LOSSES.values(), ids=TUBE_LOSSES)
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
        if loss.by_row:
            target = target * np.round(rng.normal(scale=3, size=LANES), 2)
        decision = rng.normal(scale=2, size=LANES)
        decision[:3] = target[:3]  # right at the margin
        decision[target == 0] = 0  # an empty lane has no weights
        low, high = loss.bounds(target, np.full(LANES, c))
        side = rng.choice([-1.0, 1.0], LANES) if loss.by_row else 1.0
        inside = side * np.sign(target) * rng.lognormal(size=LANES) * c
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


@each_margin
@given(seed=seeds)
def test_the_projected_gradient_of_the_core_stops_at_the_bounds(loss, seed):
    s = Samples.random(loss, seed)
    account, (low, high) = certified(s), s.bounds
    inward = np.where(s.coef <= low, np.minimum(s.gradient, 0), s.gradient)
    inward = np.where(s.coef >= high, np.maximum(inward, 0), inward)
    in_a = s.target * inward  # LIBLINEAR's variable is a = y b
    assert_allclose(account[PG_MAX], np.maximum(in_a, 0), rtol=1e-13, atol=1e-15)
    assert_allclose(account[PG_MIN], np.minimum(in_a, 0), rtol=1e-13, atol=1e-15)


@each_tube
@given(seed=seeds)
def test_the_violation_of_a_tube_is_the_steepest_slope_that_the_bounds_allow(loss, seed):
    s = Samples.random(loss, seed)
    account, (low, high) = certified(s), s.bounds
    up = s.gradient + np.where(s.coef >= 0, EPSILON, -EPSILON)  # the slope to the right
    down = -s.gradient + np.where(s.coef <= 0, EPSILON, -EPSILON)  # and to the left
    steepest = np.minimum(np.minimum(up, down), 0)
    steepest = np.where(s.coef >= high, np.minimum(down, 0), steepest)
    steepest = np.where(s.coef <= low, np.minimum(up, 0), steepest)
    violation = np.maximum(account[PG_MAX], -account[PG_MIN])
    assert_allclose(violation, -steepest, rtol=1e-13, atol=1e-15)


@each_loss
@given(seed=seeds)
def test_a_step_of_the_core_has_the_bounds_and_the_curvature_of_the_loss(loss, seed):
    s = Samples.random(loss, seed)
    dual, weights, coef = s.dual()
    order, shrunk = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    assert dual.sweep(order, 0, 1.0, NEVER, shrunk, np.zeros((N_SUMS, LANES))) == 1
    best = best_coefficients(s)
    assert_allclose(coef[0], best, rtol=1e-13, atol=1e-14)
    assert_allclose(weights[0, 0], s.decision + coef[0] - s.coef, rtol=1e-13, atol=1e-14)
    assert not np.any(weights[0, 1:])


def best_coefficients(s):
    """The lowest of a few candidates of one variable each: 0, and either side's minimiser."""
    curvature = s.curvature + s.loss.ridge(s.c)
    epsilon = EPSILON if s.loss.by_row else np.zeros(LANES)

    def objective(b):
        move = b - s.coef
        return s.gradient * move + curvature * move**2 / 2 + epsilon * np.abs(b)

    slopes = (s.gradient - epsilon, s.gradient + epsilon)
    candidates = [np.clip(s.coef - slope / curvature, *s.bounds) for slope in slopes]
    candidates.append(np.zeros(LANES))
    return np.choose(np.argmin([objective(b) for b in candidates], axis=0), candidates)


@each_loss
@each_dtype
@given(seed=seeds)
def test_no_sample_has_a_negative_gap_and_an_empty_lane_has_none(dtype, loss, seed):
    s = Samples.random(loss, seed, dtype)
    account, empty = certified(s), (s.target == 0) & (s.coef == 0)
    assert np.all(account[GAP] >= 0)
    assert not np.any(account[:, empty])
    assert_array_equal(s.bounds, np.sort(s.bounds, axis=0))
    assert loss.by_row or not np.any(np.array(s.bounds)[:, s.target == 0])


@each_margin
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


@each_tube
@given(seed=seeds)
def test_the_gap_of_a_tube_is_zero_at_the_optimum_only(loss, seed):
    """Likewise: the best coefficient is the slope of the loss at the error."""
    s = Samples.random(loss, seed)
    error = s.target - s.decision
    slack = np.maximum(np.abs(error) - EPSILON, 0)
    slope = 2 * s.c * slack if "squared" in loss.name else np.where(slack > 0, s.c, 0.0)
    best = np.sign(error) * slope
    assert_allclose(loss.gap(s.target, s.decision, best, s.c), 0, atol=1e-12 * (1 + s.c) * 99)
    other = np.clip(best + 0.1 * s.c, *s.bounds)
    other = np.where(other == best, 0.5 * best, other)
    moved = (other != best) & (np.abs(np.abs(error) - EPSILON) > 1e-9)
    assert np.all(loss.gap(s.target, s.decision, other, s.c)[moved] > 0)


@each_loss
def test_losses_carry_their_names_to_the_core(loss):
    assert loss.core.name == loss.name


def test_an_unknown_loss_is_refused_by_the_core():
    with pytest.raises(ValueError, match="'hinge' or 'squared_hinge'"):
        _core.Loss("logistic", None)


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("hinge", np.zeros(1)),
        ("epsilon_insensitive", None),
        ("epsilon_insensitive", np.array([-1.0])),
        ("epsilon_insensitive", np.array([np.inf])),
        ("epsilon_insensitive", np.zeros(17)),
        ("epsilon_insensitive", np.zeros(1, np.float32)),
    ],
)
def test_an_epsilon_that_does_not_suit_the_loss_is_refused_by_the_core(name, epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        _core.Loss(name, epsilon)


@each_tube
def test_a_target_that_is_no_number_is_refused_by_the_core(loss):
    s = Samples.random(loss, 0)
    s.target[3] = np.nan
    with pytest.raises(ValueError, match="finite"):
        s.dual()


# ------------------------------------------------------------------ certificates from sums


@pytest.mark.parametrize(
    ("pg_max", "pg_min", "violation"),
    [(0.05, -0.08, 0.13), (0.3, 0.25, 0.3), (-0.25, -0.3, 0.3), (0.0, 0.0, 0.0)],
)
def test_liblinear_rule_has_three_parts(pg_max, pg_min, violation):
    account = np.zeros((N_SUMS, 16))
    account[PG_MAX], account[PG_MIN] = pg_max, pg_min
    assert Certificate.from_account(account, 1).violation == pytest.approx(violation)


def test_certificate_reads_only_the_lanes_that_hold_a_problem():
    account = np.full((N_SUMS, 16), np.nan)
    account[:, :2] = 0
    account[LOSS, :2], account[QUADRATIC, :2], account[GAP, :2] = [3, 5], [4, 2], [1, 3]
    certificate = Certificate.from_account(account, 2)
    assert_array_equal(certificate.primal, [5, 6])
    assert_array_equal(certificate.dual, [4, 3])
    assert_array_equal(certificate.relative_gap, [0.2, 0.5])
