"""The loops of the compiled core: rows that are added, gathered and moved, and blocks."""

from itertools import pairwise

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import _core
from widemargin.kernel.problem import gap_terms

from .helpers import MINIMISED, block_problem, each_dtype, minimised, working_set

# ------------------------------------------------------------------ rows


@each_dtype
@given(n_rows=st.integers(0, 9), width=st.integers(0, 40), data=st.data())
def test_signed_rows_are_added_in_double_to_some_columns(dtype, n_rows, width, data):
    rng = np.random.default_rng(n_rows)
    pool = rng.normal(size=(5, width)).astype(dtype)
    slots, coef = rng.integers(0, 5, n_rows), rng.normal(size=n_rows)
    coef[rng.random(n_rows) < 0.3] = 0
    sign = rng.choice([-1.0, 1.0], width)
    begin = data.draw(st.integers(0, width))
    end = data.draw(st.integers(begin, width))
    out = rng.normal(size=width)
    expected, at = out.copy(), slice(begin, end)
    expected[at] += sign[at] * (coef @ pool[slots, at].astype(np.float64))
    whole, ones = out.copy(), np.ones(width)
    _core.add_rows(pool, slots, coef, sign, begin, end, out)
    assert_allclose(out, expected, rtol=0, atol=1e-14)
    untouched = np.r_[0:begin, end:width]
    assert_array_equal(out[untouched], expected[untouched])
    working = _core.WorkingSet(np.zeros(width), whole, sign, ones, ones, False, 0.0, np.inf)
    working.add_rows(pool, slots, coef, None)
    assert_array_equal(whole[at], out[at])


def test_a_sum_over_more_than_a_tile_of_columns_is_that_of_numpy():
    rng = np.random.default_rng(0)
    pool, coef = rng.normal(size=(7, 3003)).astype(np.float32), rng.normal(size=7)
    out, sign = np.zeros(3003), rng.choice([-1.0, 1.0], 3003)
    _core.add_rows(pool, np.arange(7), coef, sign, 5, 3001, out)
    assert_allclose(sign[5:3001] * out[5:3001], coef @ pool[:, 5:3001].astype(float), atol=1e-14)
    assert not np.any(np.r_[out[:5], out[3001:]])


@each_dtype
@pytest.mark.parametrize("n_sets", [1, 3, 40])
def test_a_team_changes_no_bit(dtype, n_sets):
    n, n_all = 600, 3100
    outcomes = []
    for team in (None, _core.Team(2), _core.Team(5)):
        _, call = block_problem(n, n_all, dtype, starts=np.linspace(0, n, n_sets + 1).astype(int))
        working = working_set(call)
        gain = working.minimise(*(call[name] for name in MINIMISED), team)
        working.add_rows(call["pool"], call["slots"], call["coef"], team)
        outcomes.append([gain, call["alpha"], call["coef"], call["gradient"]])
    assert outcomes[0][0] > 0
    for other in outcomes[1:]:
        for found, expected in zip(other, outcomes[0], strict=True):
            assert_array_equal(found, expected)


def test_a_team_has_as_many_threads_as_asked_for_and_at_least_one():
    assert [_core.Team(n).n_threads for n in (-3, 0, 1, 2, 7)] == [1, 1, 1, 2, 7]


@each_dtype
def test_instruction_sets_add_rows_alike(dtype, use_instruction_set):
    rng = np.random.default_rng(0)
    pool, coef = rng.normal(size=(50, 1500)).astype(dtype), rng.normal(size=50)
    found = []
    for instructions in _core.instruction_sets():
        use_instruction_set(instructions)
        found.append(np.zeros(1500))
        _core.add_rows(pool, np.arange(50), coef, np.ones(1500), 0, 1500, found[-1])
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=0, atol=1e-13)


@each_dtype
def test_gathering_takes_entries_and_writes_nothing_beside_them(dtype):
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(6, 11)).astype(dtype)
    slots, columns = np.array([5, 0, 5]), np.array([10, 3, 3, 0])
    out = np.full((5, 9), np.nan, dtype)
    _core.gather(pool, slots, columns, out[1:4, 2:6])
    assert_array_equal(out[1:4, 2:6], pool[np.ix_(slots, columns)])
    assert np.count_nonzero(np.isnan(out)) == out.size - 12


def test_a_pool_that_is_not_contiguous_is_read_all_the_same():
    pool = np.random.default_rng(0).normal(size=(8, 6))
    out, total = np.zeros((2, 2)), np.zeros(4)
    _core.gather(pool.T, np.array([5, 0]), np.array([7, 1]), out)
    assert_array_equal(out, pool[np.ix_([7, 1], [5, 0])].T)
    _core.add_rows(pool[:, ::2][:4], np.array([3]), np.ones(1), np.ones(4), 0, 3, total)
    assert_array_equal(total, [*pool[3, ::2], 0])


@each_dtype
@given(data=st.data())
def test_compacted_and_widened_rows_are_those_of_numpy_or_refused(dtype, data):
    size = data.draw(st.integers(0, 40))
    number = st.integers(-2, 12)
    slots, columns = (data.draw(st.lists(number, max_size=5)) for _ in range(2))
    old, new, n_rows = (data.draw(number) for _ in range(3))
    buffer = np.arange(size, dtype=dtype)

    legal = 0 < new <= old and len(columns) <= new
    legal = legal and all(0 <= k < size // old for k in slots) and ascends(slots)
    legal = legal and all(0 <= j < old for j in columns) and ascends(columns)
    moved = buffer.copy()
    call = (moved, np.array(slots, np.int64), np.array(columns, np.int64), old, new)
    if legal:
        _core.compact_rows(*call)
        for k, slot in enumerate(slots):
            expected = buffer[slot * old :][columns] if columns else []
            assert_array_equal(moved[k * new :][: len(columns)], expected)
    else:
        with pytest.raises(ValueError):
            _core.compact_rows(*call)
        assert_array_equal(moved, buffer)

    moved = buffer.copy()
    if 0 < old <= new and 0 <= n_rows <= size // new:
        _core.widen_rows(moved, n_rows, old, new)
        for k in range(n_rows):
            assert_array_equal(moved[k * new :][:old], buffer[k * old :][:old])
        assert_array_equal(moved[n_rows * new :], buffer[n_rows * new :])
    else:
        with pytest.raises(ValueError):
            _core.widen_rows(moved, n_rows, old, new)
        assert_array_equal(moved, buffer)


def ascends(numbers):
    return all(a < b for a, b in pairwise(numbers))


def test_rows_compacted_and_widened_again_are_where_they_were():
    matrix = np.random.default_rng(0).normal(size=(9, 13))
    buffer = matrix.ravel().copy()
    keep, columns = np.array([0, 2, 3, 7, 8]), np.array([1, 2, 6, 9, 11, 12])
    _core.compact_rows(buffer, keep, columns, 13, 7)
    _core.widen_rows(buffer, 5, 7, 13)
    assert_array_equal(buffer.reshape(9, 13)[:5, :6], matrix[np.ix_(keep, columns)])


# ------------------------------------------------------------------ a block's quadratic programme


def objective(Q, alpha):
    return 0.5 * alpha @ Q @ alpha - alpha.sum()


@each_dtype
@pytest.mark.parametrize("instructions", _core.instruction_sets())
@pytest.mark.parametrize(("n", "n_all"), [(1, 3), (8, 8), (21, 50), (40, 40)])
def test_a_block_is_minimised_to_the_optimum_of_its_quadratic_programme(
    n, n_all, instructions, dtype, use_instruction_set
):
    use_instruction_set(instructions)
    Q, call = block_problem(n, n_all, dtype)
    block, before, gradient = call["block"], call["alpha"].copy(), call["gradient"].copy()
    gain = minimised(call)
    after, upper = call["alpha"], call["upper"]
    others = np.setdiff1d(np.arange(n_all), block)
    assert_array_equal(after[others], before[others])
    assert_array_equal(call["gradient"], gradient)
    assert np.all((after >= 0) & (after <= upper))
    assert_allclose(call["coef"], (call["sign"] * (after - before))[block], rtol=1e-15)
    assert gain == pytest.approx(objective(Q, before) - objective(Q, after), rel=1e-6)
    slope = np.clip(after - (Q @ after - 1), 0, upper) - after
    assert np.abs(slope[block]).max() <= 1e-9  # nothing in the block wants to move
    if n == n_all:
        best = reference.box_qp((Q + Q.T) / 2, upper)
        assert objective(Q, after) == pytest.approx(objective(Q, best), rel=1e-9)


def test_a_block_within_its_tolerance_stays_as_it_is():
    _, call = block_problem(12, 20)
    before = call["alpha"].copy()
    call["tol"] = np.abs(call["gradient"]).max()
    assert minimised(call) == 0
    assert_array_equal(call["alpha"], before)
    assert_array_equal(call["coef"], np.zeros(12))


def test_an_empty_block_gains_nothing():
    _, call = block_problem(0, 5)
    before = call["alpha"].copy()
    assert minimised(call) == 0
    assert_array_equal(call["alpha"], before)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["pool", "diagonal", "upper", "alpha", "gradient"])
def test_blocks_of_no_numbers_end_and_stay_within_bounds_of_memory(name, poison):
    """Such values are refused far above; here it matters that the core returns."""
    _, call = block_problem(30, 40)
    call[name].ravel()[3::7] = poison
    minimised(call)
    last = np.arange(0, 40, 3)
    block, *_ = working_set(call).select(last, 20, None, 1)
    assert len(block) <= 20
    assert np.all((block >= 0) & (block < 40))


# ------------------------------------------------------------------ the choice of a block


@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), size=st.integers(1, 35))
def test_the_chosen_block_is_half_free_variables_and_then_the_worst_violators(seed, n, size):
    rng = np.random.default_rng(seed)
    upper, diagonal = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n)
    alpha = upper * rng.choice([0.0, 0.3, 1.0], n)
    gradient = rng.integers(-2, 3, n) * rng.choice([1.0, 0.5], n)
    last = np.sort(rng.permutation(n)[: rng.integers(0, n + 1)])
    block, _, violation, gap = chosen(alpha, gradient, upper, diagonal, last, size)

    projected = np.where(alpha <= 0, np.minimum(gradient, 0), gradient)
    projected = np.where(alpha >= upper, np.maximum(gradient, 0), projected)
    score = projected**2 / diagonal
    steepest = sorted(range(n), key=lambda i: (-score[i], i))
    free = (alpha > 0) & (alpha < upper)
    kept = [i for i in steepest if free[i] and i in last][: size // 2]
    rest = [i for i in steepest if score[i] > 0 and i not in kept][: size - len(kept)]
    assert_array_equal(block, sorted(kept + rest))
    assert violation == np.abs(projected).max()
    slack = np.where(gradient < 0, (alpha - upper) * gradient, alpha * gradient)
    assert gap == pytest.approx(slack.sum(), abs=1e-12)


def chosen(alpha, gradient, upper, diagonal, last, size):
    last = np.array(last, dtype=np.int64)
    return _core.WorkingSet(
        alpha, gradient, np.ones(len(alpha)), upper, diagonal, False, 0.0, np.inf
    ).select(last, size, None, 1)


def test_a_block_keeps_free_variables_of_the_last_one_and_adds_the_worst_violators():
    gradient = np.array([0.1, -5.0, 4.0, 0.01, 3.0, 0.2, -2.0, 0.0])
    alpha = np.full(8, 0.5)
    alpha[5] = 0.0  # in the last block, but no longer free
    block, *_ = chosen(alpha, gradient, np.ones(8), np.ones(8), [0, 3, 5], 4)
    np.testing.assert_array_equal(np.sort(block), [0, 1, 2, 3])


def test_a_block_has_the_largest_decrease_first_not_the_largest_gradient():
    gradient, diagonal = np.array([-3.0, -2.0, -1.0]), np.array([100.0, 1.0, 1.0])
    block, _, violation, _ = chosen(np.zeros(3), gradient, np.ones(3), diagonal, [], 2)
    np.testing.assert_array_equal(np.sort(block), [1, 2])
    assert violation == 3.0


def test_the_core_leaves_out_of_the_violation_what_a_bound_forbids():
    upper, diagonal = np.ones(2), np.ones(2)
    for alpha, gradient, violation in [
        ([0.0, 0.0], [3.0, -2.0], 2.0),
        ([1.0, 1.0], [2.0, -3.0], 2.0),
        ([0.5, 0.5], [2.0, -3.0], 3.0),
        ([0.0, 1.0], [2.0, -3.0], 0.0),
    ]:
        alpha, gradient = np.array(alpha), np.array(gradient)
        *_, found, gap = chosen(alpha, gradient, upper, diagonal, [], 2)
        assert found == violation
        assert gap == pytest.approx(gap_terms(alpha, gradient, upper).sum(), rel=1e-14)
