"""`Problem` with any linear term, and rows that occur twice: what regression will ask for."""

import numpy as np
import pytest
from scipy.optimize import minimize

from widemargin.kernel.backend import Host
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.problem import dual_value, gap_terms
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import SolverSettings, solve

from .helpers import hinge, kernel_matrix

EPSILON = 0.1


def regression(n=40, C=3.0, seed=0):
    """epsilon-SVR (Smola and Schoelkopf 2004) as 2n variables on n rows, and its Q."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    kernel = make_kernel("rbf", 2.0, 0.0, 3, X, np.float64)
    variables = Variables(
        row=np.tile(np.arange(n), 2),
        sign=np.repeat([1.0, -1.0], n),
        linear=np.concatenate([EPSILON - y, EPSILON + y]),
        upper=np.full(2 * n, C),
    )
    K = kernel_matrix("rbf", X, gamma=2.0)
    Q = variables.sign[:, None] * K[np.ix_(variables.row, variables.row)] * variables.sign
    return X, y, variables.problem(KernelRows(kernel, kernel.prepare(X))), Q


@pytest.mark.parametrize("C", [0.3, 3.0, 30.0])
def test_a_regression_has_the_optimum_of_its_quadratic_programme(C):
    _, _, p, Q = regression(C=C)
    found = solve(p, Host(), SolverSettings(tol=1e-10))
    best = minimize(
        lambda a: 0.5 * a @ Q @ a + p.linear @ a,
        np.zeros(len(p)),
        jac=lambda a: Q @ a + p.linear,
        bounds=[(0, C)] * len(p),
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 200_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    assert found.dual == pytest.approx(-best.fun, rel=1e-7)
    residual = np.clip(found.alpha - (Q @ found.alpha + p.linear), 0, C) - found.alpha
    assert np.abs(residual).max() <= 1e-6


def test_its_gap_is_that_of_the_primal_with_the_insensitive_loss():
    _, y, p, Q = regression()
    alpha = p.upper * np.random.default_rng(1).random(len(p))
    gradient = Q @ alpha + p.linear
    n = len(y)
    beta, K = alpha[:n] - alpha[n:], Q[:n, :n]
    loss = np.maximum(np.abs(y - K @ beta) - EPSILON, 0)
    primal = 0.5 * beta @ K @ beta + p.upper[:n] @ loss
    dual = dual_value(alpha, gradient, p.linear)
    assert dual == pytest.approx(-(0.5 * alpha @ Q @ alpha + p.linear @ alpha), rel=1e-12)
    assert gap_terms(alpha, gradient, p.upper).sum() == pytest.approx(primal - dual, rel=1e-12)


def test_the_regression_follows_the_data():
    X, y, p, _ = regression(n=120, C=10.0)
    found = solve(p, Host(), SolverSettings(tol=1e-6))
    beta = found.alpha[:120] - found.alpha[120:]
    fitted = kernel_matrix("rbf", X, gamma=2.0) @ beta
    assert np.mean(np.abs(fitted - y) <= EPSILON + 0.2) > 0.9
    assert np.all(np.minimum(found.alpha[:120], found.alpha[120:]) <= 1e-9)


def test_the_diagonal_is_that_of_the_kernel():
    X = np.random.default_rng(0).random((5, 2))
    kernel = make_kernel("rbf", 1.0, 0.0, 3, X)
    p = hinge(kernel, kernel.prepare(X), np.ones(5), np.full(5, 2.0))
    np.testing.assert_array_equal(p.diagonal, np.ones(5))
    assert len(p) == 5
