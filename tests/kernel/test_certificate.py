"""Certificates are true: gaps bound the error, and no stored gradient hides a violation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.kernel import active_set, solver
from widemargin.kernel.problem import gap_terms
from widemargin.kernel.solver import Descent

from .helpers import problem, shrinking_problem

# ------------------------------------------------------------------ the gap


@pytest.mark.parametrize("name", ["rbf", "poly"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_gap_is_never_below_the_true_error(name, C, monkeypatch):
    monkeypatch.setattr(active_set, "WORKING_SET", 8)
    monkeypatch.setattr(solver, "SHRINK_SHARE", 2.0)  # so that all of the gap is recorded
    p = problem(name, C=C)
    optimum = p.optimum()
    history = p.solve(tol=1e-9).history
    assert len(history) > 10
    for record in history:
        error = optimum - record["dual"]
        assert error >= -1e-10 * optimum
        assert record["gap"] >= error - 1e-10 * optimum


def test_the_dual_never_decreases_and_is_that_of_the_variables(monkeypatch):
    monkeypatch.setattr(active_set, "WORKING_SET", 8)
    p = problem()
    solution = p.solve(tol=1e-9)
    values = [record["dual"] for record in solution.history]
    assert len(values) > 10
    assert np.all(np.diff(values) >= 0)
    assert values[0] == 0
    assert values[-1] == pytest.approx(p.dual(solution.alpha), rel=1e-12)


@given(
    n=st.integers(1, 40),
    C=st.sampled_from([1e-2, 1.0, 30.0]),
    seed=st.integers(0, 1000),
    max_iter=st.integers(0, 4),
    name=st.sampled_from(["rbf", "poly", "laplacian"]),
)
def test_whatever_it_stops_at_is_feasible_with_its_own_objectives(n, C, seed, max_iter, name):
    p = problem(name, n=n, C=C, seed=seed)
    start = p.upper * np.random.default_rng(seed).uniform(-0.5, 1.5, n)
    s = p.solve(alpha=start, max_iter=max_iter, tol=1e-12)
    assert np.all((s.alpha >= 0) & (s.alpha <= p.upper))
    terms = gap_terms(s.alpha, s.gradient, p.upper)
    assert np.all(terms >= 0)
    scale = 1e-9 * max(p.dual(s.alpha) + p.gap(s.alpha), 1.0)
    np.testing.assert_allclose(s.gradient, p.gradient(s.alpha), atol=scale)
    assert s.dual == pytest.approx(p.dual(s.alpha), abs=scale)
    assert s.primal - s.dual == pytest.approx(terms.sum(), abs=scale)
    assert s.primal - s.dual == pytest.approx(p.gap(s.alpha), abs=scale)


def test_gap_terms_sum_to_primal_minus_dual_for_any_variables():
    p = problem()
    alpha = p.upper * np.random.default_rng(1).random(len(p.y))
    gradient = p.gradient(alpha)
    assert gap_terms(alpha, gradient, p.upper).sum() == pytest.approx(p.gap(alpha), rel=1e-12)
    assert p.programme.dual_value(alpha, gradient) == pytest.approx(p.dual(alpha), rel=1e-12)


def test_the_certificate_of_a_warm_start_is_true():
    for seed in range(120, 150):
        p = problem("poly", n=40, seed=seed, y=np.random.default_rng(seed).choice([-1.0, 1.0], 40))
        start = p.upper * np.random.default_rng(seed).choice([0.0, 0.5, 1.0], 40)
        solution = p.solve(alpha=start, tol=1e-6)
        assert p.gap(solution.alpha) <= 1.01e-6 * solution.primal


# ------------------------------------------------------------------ stored gradients


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("gamma", [0.1, 0.7])
@pytest.mark.parametrize("block", [16, 64])
def test_every_stored_gradient_is_exact_or_on_the_safe_side(block, gamma, seed, monkeypatch):
    n_skipped = 0
    for C in (1.0, 10.0, 100.0, 1000.0):
        p = shrinking_problem(seed, C, monkeypatch, block=block, gamma=gamma)
        solution = p.solve(tol=1e-3)
        n_skipped += p.skipped(solution, 1e-7).sum()
        assert p.gap(solution.alpha) <= 1.01e-3 * solution.primal
    assert n_skipped > 0


def test_variables_are_taken_in_with_their_exact_gradient(monkeypatch):
    errors = []

    class Watched(Descent):
        def reactivate(self, violators):
            before = len(self.active)
            super().reactivate(violators)
            new = self.active.ids[before:]
            true = p.gradient(self.alpha)[new]
            errors.extend(np.abs(self.active.gradient[before:] - true))

    monkeypatch.setattr(solver, "Descent", Watched)
    for seed in range(8):
        for C in (1.0, 100.0):
            p = shrinking_problem(seed, C, monkeypatch, block=16)
            p = replace(p, upper=np.full(300, C))
            p.solve(tol=1e-2)
    assert len(errors) > 10
    assert max(errors) < 1e-8
