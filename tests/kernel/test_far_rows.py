"""Rows so far from zero that squared norms cancel: values by differences, where they are not 0."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.kernel import kernels
from widemargin.kernel.kernels import FAR, ZERO, DotKernel

from .helpers import values

pytestmark = pytest.mark.slow

each_layout = pytest.mark.parametrize("compressed", [False, True], ids=["dense", "compressed"])


def exact_values(gamma: float, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """exp(-gamma |a - b|^2) of distances that are not rounded at all."""

    def distance(a, b):
        return sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a, b, strict=True))

    return np.array([[exp(-gamma * distance(list(a), list(b))) for b in B] for a in A])


def one_hot(n=300, groups=12, kinds=9, seed=0):
    """Rows of categories, some of them twice: any two others are at distance 2 at least."""
    rng = np.random.default_rng(seed)
    Z = np.eye(kinds)[rng.integers(kinds, size=(n, groups))].reshape(n, -1)
    Z[n // 2 : n // 2 + 5] = Z[:5]
    return Z


def taken_apart(monkeypatch) -> list[int]:
    """Will hold how many pairs every call takes by differences."""
    counts: list[int] = []
    original = kernels.pair_distances

    def counting(a, b, i, j):
        counts.append(len(i))
        return original(a, b, i, j)

    monkeypatch.setattr(kernels, "pair_distances", counting)
    return counts


def test_zero_is_where_the_exponential_ends():
    assert np.exp(-ZERO) == 0.0
    assert np.exp(-(ZERO - 1)) > 0.0


@each_layout
def test_only_pairs_with_a_value_are_taken_apart(monkeypatch, compressed):
    Z = one_hot()
    kernel = DotKernel("rbf", 1024.0, dtype=np.float64, compressed=compressed)
    rows = kernel.prepare(Z)
    assert kernel.is_far(rows)
    counts = taken_apart(monkeypatch)
    K = values(kernel, rows, rows)
    same = (Z[:, None] == Z[None]).all(axis=2)
    assert_array_equal(K, same)
    assert sum(counts) == same.sum() < 2 * len(Z)


@each_layout
def test_one_far_row_does_not_make_the_others_slow(monkeypatch, compressed):
    Z = one_hot()
    Z[7] *= 1000.0
    kernel = DotKernel("rbf", 0.01, dtype=np.float64, compressed=compressed)
    rows = kernel.prepare(Z)
    assert kernel.is_far(rows)
    counts = taken_apart(monkeypatch)
    K = values(kernel, rows, rows)
    assert sum(counts) == 1  # with itself
    assert_allclose(K, exact_values(kernel.gamma, Z, Z), rtol=1e-13)


@each_layout
@given(
    seed=st.integers(0, 10**6),
    away=st.floats(0, 6),  # of the rows from zero, as a power of ten
    apart=st.floats(-9, 1),  # of the rows from each other
    far=st.floats(0, 18),  # times FAR: up to where rounding alone is beyond ZERO
)
def test_far_values_are_those_of_exact_distances(compressed, seed, away, apart, far):
    rng = np.random.default_rng(seed)
    A, B = 10**away * (rng.random(8) < 0.5) + 10**apart * rng.standard_normal((2, 9, 8))
    B[:3] = A[:3]
    largest = max((Z * Z).sum(axis=1).max() for Z in (A, B))
    kernel = DotKernel("rbf", FAR * 10**far / largest * 1.01, dtype=np.float64,
                       compressed=compressed)  # fmt: skip
    K = values(kernel, kernel.prepare(A), kernel.prepare(B))
    # an exponent below ZERO is right to some units of its last place, or of a pair that is not far
    assert_allclose(K, exact_values(kernel.gamma, A, B), rtol=1e-10, atol=1e-300)
    assert np.all(K[:3, :3].diagonal() == 1.0)
