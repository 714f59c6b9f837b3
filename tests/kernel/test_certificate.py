"""Certificates are true: no stored gradient, however it came about, hides a violation."""

from dataclasses import replace

import numpy as np
import pytest

from widemargin.kernel import solver
from widemargin.kernel.solver import Descent

from .test_divide import assert_exact_for_the_cut_kernel, each_kernel, task
from .test_partition import divided, operands
from .test_solver import problem, shrinking_problem


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("gamma", [0.1, 0.7])
@pytest.mark.parametrize("block", [16, 64])
def test_every_stored_gradient_is_exact_or_on_the_safe_side(block, gamma, seed, monkeypatch):
    for C in (1.0, 10.0, 100.0, 1000.0):
        p = shrinking_problem(seed, C, monkeypatch, block=block, gamma=gamma)
        solution = p.solve(tol=1e-3)
        true, held = p.gradient(solution.alpha), np.where(solution.alpha <= 0, 1.0, -1.0)
        off = np.abs(solution.gradient - true) > 1e-7
        assert np.all((solution.alpha <= 0) | (solution.alpha >= p.upper), where=off)
        assert np.all((solution.gradient * held)[off] <= (true * held)[off])
        assert p.gap(solution.alpha) <= 1.01e-3 * solution.primal


def test_the_certificate_of_a_warm_start_is_true():
    for seed in range(120, 150):
        p = problem("poly", n=40, seed=seed, y=np.random.default_rng(seed).choice([-1.0, 1.0], 40))
        start = p.upper * np.random.default_rng(seed).choice([0.0, 0.5, 1.0], 40)
        solution = p.solve(alpha=start, tol=1e-6)
        assert p.gap(solution.alpha) <= 1.01e-6 * solution.primal


def test_variables_are_taken_in_with_their_exact_gradient(monkeypatch):
    errors = []

    class Watched(Descent):
        def take_in(self, violators):
            before = len(self.active)
            super().take_in(violators)
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


@each_kernel
def test_an_early_one_vs_rest_model_is_as_exact_after_a_lower_level(name):
    t = task(name, 4, "ovr")
    assert_exact_for_the_cut_kernel(t, t.run(levels=2, early=1))


def test_identical_rows_are_one_cluster_of_a_distance_kernel_without_a_warning():
    """Pending: scikit-learn's ConvergenceWarning leaks from `_kmeans`."""
    kernel, rows = operands("rbf", np.ones((40, 3)))
    router, label = divided(kernel, rows, 4, sample_size=20)
    assert router.n_clusters == 1
    assert not label.any()
