"""The exact solver against the quadratic programme and closed forms; starts, shrinking and ends."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from reference import timeless

from widemargin.kernel import active_set, solver
from widemargin.kernel.backend import Host
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.rows import CompressedRows
from widemargin.kernel.solver import Descent, SolverSettings, solve

from .helpers import cheap, hinge, kernel_matrix, noisy_labels, problem, shrinking_problem

EXTREMES = [2.0**-10, 2.0**-6, 2.0, 2.0**6, 2.0**10]
ITS_LIMIT = 300  # blocks that none of the extremes may need


@dataclass
class Watch:
    """How often a descent shrank, and of how many variables it computed the gradient afresh."""

    shrinks: int = 0
    asked: list = field(default_factory=list)


@pytest.fixture
def watched(monkeypatch):
    """Solve and watch: ``watched(problem, **settings)`` gives a `Watch` and the solution."""

    def run(p, **settings):
        watch = Watch()

        class Watched(Descent):
            def shrink(self):
                before = len(self.active)
                super().shrink()
                watch.shrinks += len(self.active) < before

            def _compute_gradient(self, which):
                watch.asked.append(len(which))
                super()._compute_gradient(which)

        with monkeypatch.context() as patch:
            patch.setattr(solver, "Descent", Watched)
            return watch, p.solve(**{"tol": 1e-8, **settings})

    return run


# ------------------------------------------------------------------ against the exact optimum


@pytest.mark.parametrize("C", [1e-3, 1e-1, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian", "chi2"])
def test_the_solution_is_that_of_the_quadratic_programme(name, C):
    p = problem(name, C=C)
    solution = p.solve(tol=1e-12)
    assert solution.relative_gap <= 1e-10
    assert p.residual(solution.alpha) <= 1e-8
    assert p.dual(solution.alpha) == pytest.approx(p.optimum(), rel=1e-9)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_variables_are_those_of_the_quadratic_programme_where_it_has_one_solution(C):
    p = problem("laplacian", C=C)
    assert np.linalg.eigvalsh(p.K)[0] > 1e-2
    best = reference.box_qp(p.Q, p.upper)
    np.testing.assert_allclose(p.solve(tol=1e-13).alpha, best, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 15, 17, 33])
def test_any_number_of_rows_is_solved_whatever_the_width_of_a_vector(n):
    p = problem(n=n, y=np.where(np.arange(n) % 3 == 0, 1.0, -1.0))
    solution = p.solve(tol=1e-11)
    assert p.residual(solution.alpha) <= 1e-8
    assert solution.dual == pytest.approx(p.optimum(), rel=1e-9)


@pytest.mark.parametrize("block", [2, 3, 8, 13])
def test_any_size_of_block_finds_the_optimum(block, monkeypatch):
    monkeypatch.setattr(active_set, "WORKING_SET", block)
    p = problem()
    solution = p.solve(tol=1e-9)
    assert solution.n_iter > len(p.y) / block
    assert solution.dual == pytest.approx(p.optimum(), rel=1e-8)


def test_single_precision_solves_to_its_own_accuracy():
    single = problem(dtype=np.float32).solve(tol=1e-6)
    assert single.converged
    assert single.dual == pytest.approx(problem().optimum(), rel=1e-5)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_compressed_rows_are_solved_as_dense_ones(name):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((60, 10)) < 0.2, rng.random((60, 10)), 0.0)
    p = problem(name, X=X, y=noisy_labels(X, rng))
    given = replace(p, rows=p.kernel.prepare(sp.csr_array(X)))
    assert isinstance(given.rows, CompressedRows)
    assert p.residual(given.solve(tol=1e-11).alpha) <= 1e-8


def test_a_precomputed_matrix_and_a_function_are_solved_as_the_kernel_they_stand_for():
    p = problem("rbf", n=50)
    X = p.rows.data
    matrix = make_kernel("precomputed", 1.0, 0.0, 3, p.K, np.float64)
    function = make_kernel(partial(kernel_matrix, "rbf", gamma=0.7), 1.0, 0.0, 3, X, np.float64)
    for kernel, data in ((matrix, p.K), (function, X)):
        same = replace(p, kernel=kernel, rows=kernel.training_rows(data, np.arange(len(data))))
        assert p.residual(same.solve(tol=1e-11).alpha) <= 1e-8


# ------------------------------------------------------------------ closed forms


@pytest.mark.parametrize(("C", "best"), [(0.1, 0.1), (4.0, 0.5)])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_single_row_has_the_variable_that_its_kernel_value_or_its_bound_gives(sign, C, best):
    kernel = make_kernel("poly", 1.0, 1.0, 1, np.ones((1, 1)), np.float64)  # k(x, x) = 2
    rows = kernel.prepare(np.ones((1, 1)))
    p = hinge(kernel, rows, np.array([sign]), np.array([C]))
    solution = solve(p, Host(), SolverSettings(tol=1e-12))
    assert solution.alpha[0] == pytest.approx(best, rel=1e-12)
    assert solution.relative_gap <= 1e-12


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_identical_rows_of_opposite_labels_all_end_at_their_bound(C):
    """Both halves cancel: w = 0 at the optimum, and every loss is 1."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((20, 4)), 2, axis=0)
    p = problem(X=X, y=np.tile([1.0, -1.0], 20))
    p = replace(p, upper=np.full(40, C))
    solution = p.solve(tol=1e-10)
    np.testing.assert_allclose(solution.alpha, C, rtol=1e-12)
    assert solution.dual == pytest.approx(40 * C, rel=1e-12)
    assert solution.converged


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_labels_of_one_sign_have_the_optimum_of_the_quadratic_programme(sign):
    p = problem(y=np.full(60, sign))
    solution = p.solve(tol=1e-11)
    assert p.residual(solution.alpha) <= 1e-8
    assert solution.dual == pytest.approx(p.optimum(), rel=1e-9)


def test_rows_that_are_all_identical_share_what_one_row_would_have():
    p = problem(X=np.ones((20, 3)), y=np.ones(20))
    p = replace(p, upper=np.full(20, 10.0))
    solution = p.solve(tol=1e-10)
    assert solution.alpha.sum() == pytest.approx(1.0, rel=1e-9)
    assert solution.dual == pytest.approx(0.5, rel=1e-9)


# ------------------------------------------------------------------ starts


def test_a_start_at_the_optimum_takes_no_step():
    p = problem()
    best = p.solve(tol=1e-8)
    again = p.solve(tol=1e-8, alpha=best.alpha)
    assert best.n_iter > 0
    assert again.n_iter == 0
    assert again.converged
    np.testing.assert_array_equal(again.alpha, best.alpha)
    np.testing.assert_allclose(again.gradient, p.gradient(best.alpha), atol=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_any_feasible_start_reaches_the_optimum(name, share):
    p = problem(name)
    rng = np.random.default_rng(4)
    start = np.where(rng.random(60) < share, p.upper * rng.choice([0.3, 1.0], 60), 0.0)
    solution = p.solve(tol=1e-11, alpha=start)
    assert solution.history[0]["active"] == np.count_nonzero(start)
    assert solution.history[0]["dual"] == pytest.approx(p.dual(start), rel=1e-9, abs=1e-9)
    assert p.residual(solution.alpha) <= 1e-8


def test_a_start_without_room_in_the_cache_for_its_rows_reaches_the_optimum(monkeypatch):
    monkeypatch.setattr("widemargin.kernel.cache.LEAST_SLOTS", 8)
    p = problem()
    solution = p.solve(tol=1e-9, alpha=p.upper / 2, cache_bytes=1.0)
    assert solution.history[0]["rows"] == 0  # the gradient came without the cache
    assert p.residual(solution.alpha) <= 1e-6
    assert solution.dual == pytest.approx(p.optimum(), rel=1e-8)


def test_a_start_is_clipped_to_the_bounds_and_left_untouched():
    p = problem()
    start = np.linspace(-1.0, 20.0, 60)
    copy = start.copy()
    solution = p.solve(tol=1e-9, alpha=start)
    np.testing.assert_array_equal(start, copy)
    clipped = np.clip(start, 0, p.upper)
    assert solution.history[0]["dual"] == pytest.approx(p.dual(clipped), rel=1e-9)


def test_a_start_on_the_wrong_variables_takes_in_all_that_matter():
    p = problem(n=150)
    best = p.solve(tol=1e-10)
    start = np.where(best.alpha == 0, 0.1 * p.upper, 0.0)
    solution = p.solve(tol=1e-10, alpha=start)
    assert np.diff([record["active"] for record in solution.history]).max() > 0
    assert solution.dual == pytest.approx(best.dual, rel=1e-9)


def test_a_start_moves_its_support_vectors_first():
    """DC-SVM's refinement: no other variable is looked at before these are nearly solved."""
    p = problem(n=150)
    start = np.zeros(150)
    start[:20] = 0.1 * p.upper[:20]
    before = p.solve(tol=1e-10, alpha=start).history[0]
    assert before["active"] <= 20
    assert p.solve(tol=1e-10).history[0]["active"] > 20


# ------------------------------------------------------------------ cache and shrinking


def test_a_small_cache_computes_rows_again_and_finds_the_same_optimum(monkeypatch):
    monkeypatch.setattr("widemargin.kernel.cache.LEAST_SLOTS", 16)
    monkeypatch.setattr(solver, "SHRINK_SHARE", 2.0)
    p = problem(n=150)
    large = p.solve(tol=1e-9)
    small = p.solve(tol=1e-9, cache_bytes=1.0)
    assert small.n_rows_computed > large.n_rows_computed
    assert small.dual == pytest.approx(large.dual, rel=1e-8)
    assert p.residual(small.alpha) <= 1e-6


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_shrinking_does_not_change_the_optimum(seed, C, watched, monkeypatch):
    p = shrinking_problem(seed, C, monkeypatch)
    watch, shrunk = watched(p)
    assert watch.shrinks > 0
    assert min(record["active"] for record in shrunk.history) < len(p.y) / 2
    monkeypatch.setattr(solver, "SHRINK_SHARE", 2.0)
    watch, plain = watched(p)
    assert watch.shrinks == 0
    assert shrunk.dual == pytest.approx(plain.dual, rel=1e-7)
    assert p.residual(shrunk.alpha) <= 1e-4
    assert p.gap(shrunk.alpha) <= 1.01e-8 * shrunk.primal


def test_shrinking_waits_until_keeping_a_variable_has_cost_as_much_as_looking_again(
    watched, monkeypatch
):
    p = shrinking_problem(0, 3.0, monkeypatch)
    dear = replace(p, kernel=replace(p.kernel, cost=1e9))
    assert watched(dear)[0].shrinks == 0
    assert watched(p)[0].shrinks > 0


def test_shrinking_with_a_small_cache_finds_the_same_optimum(watched, monkeypatch):
    monkeypatch.setattr("widemargin.kernel.cache.LEAST_SLOTS", 40)
    p = shrinking_problem(0, 3.0, monkeypatch)
    large = p.solve(tol=1e-8)
    watch, small = watched(p, cache_bytes=1.0)
    assert watch.shrinks > 0
    assert small.n_rows_computed > large.n_rows_computed
    assert small.dual == pytest.approx(large.dual, rel=1e-7)
    assert p.gap(small.alpha) <= 1.01e-8 * small.primal


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("C", [0.3, 3.0, 30.0])
def test_the_gradient_of_a_skipped_variable_is_a_bound_on_the_safe_side(
    seed, C, watched, monkeypatch
):
    monkeypatch.setattr(solver, "SHRINK_SHARE", 0.7)
    p = shrinking_problem(seed, C, monkeypatch)
    watch, solution = watched(p, tol=1e-4)
    skipped = p.skipped(solution, 1e-8)
    assert watch.shrinks > 0
    assert skipped.sum() > 100
    assert np.all(p.outward(solution.alpha, solution.gradient)[skipped] >= 0)
    assert solution.primal - solution.dual == pytest.approx(p.gap(solution.alpha), rel=1e-6)


# ------------------------------------------------------------------ ends


def test_it_ends_unconverged_at_the_limit_of_steps_with_a_true_gap(monkeypatch):
    monkeypatch.setattr(active_set, "WORKING_SET", 8)
    p = problem()
    solution = p.solve(tol=1e-9, max_iter=5)
    assert solution.n_iter == 5
    assert not solution.converged
    assert solution.primal - solution.dual == pytest.approx(p.gap(solution.alpha), rel=1e-9)


def test_a_step_that_asks_to_stop_is_the_last(monkeypatch):
    monkeypatch.setattr(active_set, "WORKING_SET", 8)
    p = problem()
    calls = []

    def on_step(gap):
        calls.append(gap)
        return len(calls) == 3

    solution = p.solve(tol=1e-9, on_step=on_step)
    assert len(calls) == solution.n_iter == 3
    first, second, _ = solution.history[:3]
    relative = [h["gap"] / (h["gap"] + h["dual"]) for h in (first, second)]
    assert calls[:2] == pytest.approx(relative)
    assert not solution.converged
    assert solution.primal - solution.dual == pytest.approx(p.gap(solution.alpha), rel=1e-9)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("block", [8, 1024])
def test_an_indefinite_kernel_comes_to_an_end_within_its_bounds(C, block, monkeypatch):
    monkeypatch.setattr(active_set, "WORKING_SET", block)
    p = problem("sigmoid", C=C, gamma=2.0, coef0=-1.0)
    assert np.linalg.eigvalsh(p.K)[0] < -1e-2
    solution = p.solve(tol=1e-6, max_iter=2000)
    assert solution.n_iter < 2000
    assert np.all((solution.alpha >= 0) & (solution.alpha <= p.upper))
    assert np.all(np.isfinite(solution.gradient))
    assert np.isfinite(solution.relative_gap)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", EXTREMES)
@pytest.mark.parametrize("gamma", EXTREMES)
def test_extreme_parameters_end_soon_with_a_true_gap(gamma, C, dtype):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((300, 5)), rng.choice([-1.0, 1.0], 300)
    p = replace(problem(X=X, y=y, gamma=gamma, dtype=dtype), upper=np.full(300, C))
    solution = p.solve(tol=1e-3, max_iter=ITS_LIMIT)
    assert solution.n_iter < ITS_LIMIT
    assert solution.converged
    assert p.gap(solution.alpha) <= 1.1e-3 * solution.primal


@pytest.mark.parametrize("name", ["rbf", "poly"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_are_the_same_to_the_last_bit_for_any_number_of_threads(name, dtype):
    p = cheap(problem(name, n=2300, dtype=dtype))  # three tiles of columns
    one, two = (p.solve(tol=1e-9, max_iter=6, n_threads=n) for n in (1, 2))
    assert one.n_iter == 6
    np.testing.assert_array_equal(one.alpha, two.alpha)
    np.testing.assert_array_equal(one.gradient, two.gradient)
    assert timeless(one.history) == timeless(two.history)
