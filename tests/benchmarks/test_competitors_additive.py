"""Competitors with additive kernels: maps, codes and look-up tables."""

import numpy as np
import pytest
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.additive_pca import AdditiveKernelPCA
from benchmarks.competitors.feature_maps import HomogeneousMap
from benchmarks.competitors.pegasos import Pegasos
from benchmarks.competitors.pwlsgd import PWLSGD, PiecewiseLinearCode, roughness
from benchmarks.competitors.sikma import SIKMA
from competitor_references import intersection, signs
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.linear_model import SGDClassifier
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.svm import LinearSVC


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_chi2_map_is_scikit_learns(n):
    X = np.random.default_rng(0).random((20, 4)) * (np.arange(4) > 0)
    ours = HomogeneousMap("chi2", n, step=0.4).fit_transform(X)
    theirs = AdditiveChi2Sampler(sample_steps=n + 1, sample_interval=0.4).fit_transform(X)
    # columns are in another order: compare what the maps are for
    np.testing.assert_allclose((ours @ ours.T).toarray(), theirs @ theirs.T, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "scalar"),
    [
        ("chi2", lambda x, y: 2 * x * y / (x + y)),
        ("intersection", np.minimum),
        (
            "jensen_shannon",
            lambda x, y: (x * np.log2((x + y) / x) + y * np.log2((x + y) / y)) / 2,
        ),
    ],
)
def test_maps_come_near_their_kernels_as_they_grow(kernel, scalar):
    x = np.linspace(0.05, 1, 30)[:, None]
    true = scalar(x, x.T)

    def error(n):
        z = HomogeneousMap(kernel, n).fit_transform(x)
        return np.abs((z @ z.T).toarray() - true).max()

    assert error(1) < 0.2
    assert error(12) < error(1) / 2
    assert error(12) < 0.05


def test_the_look_up_table_cuts_values_to_its_bins():
    x = np.array([[0.1239], [0.0004], [1.0]])
    cut = HomogeneousMap("chi2", bins=1000).fit(x).transform(x).toarray()
    plain = HomogeneousMap("chi2").fit(x).transform(np.array([[0.123], [0.0], [1.0]])).toarray()
    np.testing.assert_allclose(cut, plain)
    with pytest.raises(ValueError, match="at least 0"):
        HomogeneousMap().fit(x).transform(-x)


def test_libhik_has_three_levels(digits):
    X, y, *_ = digits
    model = COMPETITORS["libHIK"]().fit(X, y)
    values = np.linspace(0, 1, 1000)[:, None] * np.ones((1, 64))
    assert len(np.unique(model.decision_function(values)[:, 0].round(6))) <= 4


def test_pegasos_reaches_the_optimum_of_the_hinge(problem):
    X, y = problem
    C, n = 0.1, len(X)
    reference = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    w = reference.fit(X, y).coef_[0]

    def value(w):
        return w @ w / 2 + C * np.maximum(0, 1 - signs(y) * (X @ w)).sum()

    model = Pegasos(C=C, passes=200, batch=10).fit(X, y)
    assert value(w) <= value(model.coef_) <= 1.01 * value(w)
    assert np.linalg.norm(model.coef_) <= np.sqrt(C * n) * (1 + 1e-12)
    far = SGDClassifier(alpha=1 / (C * n), max_iter=1, tol=None, random_state=0).fit(X, y)
    assert value(far.coef_[0]) > value(model.coef_)


def test_the_piecewise_linear_code_interpolates_and_has_the_intersection_kernel():
    X = np.array([[0.0, 5.0], [4.0, 9.0], [1.0, 6.0], [3.5, 7.25]])
    Z = PiecewiseLinearCode(4).fit_transform(X)
    ends = Z.toarray().reshape(4, 2, 4)
    np.testing.assert_allclose(ends @ np.arange(1, 5), X - [0, 5])
    kernel = np.einsum("ijb,bc,kjc->ik", ends, np.linalg.inv(roughness(4)), ends)
    np.testing.assert_allclose(kernel[:3, :3], intersection(X - [0, 5], X - [0, 5])[:3, :3])


def test_pwlsgd_reaches_the_optimum_with_its_regulariser(problem):
    X, y = problem
    C, bins = 0.05, 5
    model = PWLSGD(C=C, bins=bins, passes=250, batch=20).fit(X, y)
    Z = model.code_.transform(X).toarray()
    H = np.kron(np.eye(X.shape[1]), roughness(bins))

    def value(w):
        return w @ H @ w / 2 + C * np.maximum(0, 1 - signs(y) * (Z @ w)).sum()

    root = np.linalg.inv(np.linalg.cholesky(H)).T  # H^-1 = root root'
    reference = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    best = root @ reference.fit(Z @ root, y).coef_[0]
    assert value(best) <= value(model.coef_) <= 1.05 * value(best)
    plain = LinearSVC(C=C, loss="hinge", fit_intercept=False).fit(Z, y).coef_[0]
    assert value(plain) > value(model.coef_)  # |w|^2 is another problem


def test_sikma_is_the_kernel_gradient_descent_that_its_tables_stand_for(problem):
    X, y = problem
    X, s = X[:80], signs(y)[:80]
    model = SIKMA(C=0.5, bins=30, passes=2, offset=3, seed=4).fit(X, y[:80])
    values = model._codes(X) / 30 * (model.high_ - model.low_)
    kernel = intersection(values, values)
    rng = np.random.default_rng(4)
    strength, coef = 1 / (0.5 * 80), np.zeros(80)
    for t, i in enumerate(np.concatenate([rng.permutation(80) for _ in range(2)])):
        rate = 1 / (strength * (t + 3))
        violates = s[i] * (kernel[i] @ coef) < 1
        coef *= 1 - rate * strength
        coef[i] += rate * s[i] * violates
    np.testing.assert_allclose(model.decision_function(X), kernel @ coef, atol=1e-9)


def test_additive_pca_is_exact_with_all_components_and_best_with_few():
    X = np.random.default_rng(0).integers(0, 8, (60, 3)) / 7
    full = AdditiveKernelPCA("intersection", rank=8).fit_transform(X)
    np.testing.assert_allclose(full @ full.T, intersection(X, X), atol=1e-9)
    one = AdditiveKernelPCA("intersection", rank=2).fit_transform(X[:, :1])
    true = intersection(X[:, :1], X[:, :1])
    left = np.sort(np.linalg.eigvalsh(true))[:-2]
    np.testing.assert_allclose(np.linalg.norm(one @ one.T - true), np.linalg.norm(left))
    chi2 = AdditiveKernelPCA("chi2", rank=8).fit_transform(X)
    true = (chi2_kernel(X, X, gamma=1e-9) - 1) / 1e-9  # sum of (x - y)^2 / (x + y), negative
    total = X.sum(axis=1)
    np.testing.assert_allclose(chi2 @ chi2.T, (total[:, None] + total + true) / 2, atol=1e-5)
