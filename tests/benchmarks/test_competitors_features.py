"""Landmarks and random features against the kernel that they stand for."""

import numpy as np
import pytest
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.landmarks import KMeansNystroem, RadialUnits
from benchmarks.competitors.random_features import Fastfood, hadamard
from competitor_references import GAMMA
from sklearn.metrics.pairwise import rbf_kernel


def test_landmarks_at_every_row_give_the_kernel_itself(problem):
    X, _ = problem
    Z = KMeansNystroem(gamma=GAMMA, n_components=300, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=GAMMA), atol=1e-6)
    few = KMeansNystroem(gamma=GAMMA, n_components=30, random_state=0)
    K, Z = rbf_kernel(X, gamma=GAMMA), few.fit_transform(X)
    assert few.n_components == 30
    values = np.linalg.eigvalsh(K)
    best = np.sqrt((values[:-30] ** 2).sum())  # no 30 columns come nearer
    assert best < np.linalg.norm(Z @ Z.T - K) < 3 * best


def test_units_of_ltpu_stand_at_k_means_centres(problem):
    X, _ = problem
    units = RadialUnits(GAMMA, number=10).fit(X)
    nearest = np.linalg.norm(X[:, None] - units.centres_, axis=2).argmin(axis=1)
    Z = units.transform(units.centres_)
    np.testing.assert_allclose(np.diag(Z), 1.0)
    spread = sum(((X[nearest == c] - units.centres_[c]) ** 2).sum() for c in range(10))
    assert spread < 0.75 * ((X - X.mean(axis=0)) ** 2).sum()


def test_hadamard_is_scipys():
    from scipy.linalg import hadamard as matrix

    Z = np.random.default_rng(0).standard_normal((3, 16))
    np.testing.assert_allclose(hadamard(Z), Z @ matrix(16))


@pytest.mark.parametrize("name", ["Fastfood", "Fourier features"])
def test_random_features_have_the_kernel_in_the_limit(name, problem):
    X, _ = problem
    error = {}
    for number in (64, 16384):
        Z = COMPETITORS[name](gamma=GAMMA, number=number)[0].fit_transform(X[:60])
        error[number] = np.abs(Z @ Z.T - rbf_kernel(X[:60], gamma=GAMMA)).mean()
    assert error[16384] < 0.012
    assert error[16384] < error[64] / 6


def test_rows_of_fastfood_are_as_long_as_gaussian_ones():
    d = 8
    V = Fastfood(number=2 * d * 400, seed=1).fit(np.eye(d)).project(np.eye(d)).T
    lengths = np.linalg.norm(V, axis=1)
    assert abs((lengths**2).mean() - d) < 0.4  # chi-square with d degrees
    assert abs((lengths**2).var() - 2 * d) < 3
    one = np.sort(np.linalg.norm(V[:d], axis=1))
    assert one[-1] > 1.1 * one[0]  # not all equal, as they would be without S
