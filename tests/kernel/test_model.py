"""`KernelModel`: sums over support vectors, and the clusters of an early model."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelSVC
from widemargin.kernel.backend import Host
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.model import COMBINATIONS, KernelModel
from widemargin.kernel.partition import PointRouter

INTERCEPT = np.array([0.25, -3.0])
ONE = Host(1)


@pytest.fixture
def parts():
    """Twelve support vectors in three corners, whose third has none, and rows around them."""
    rng = np.random.default_rng(0)
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    cluster = np.arange(12) % 2
    vectors = corners[cluster] + 0.5 * rng.normal(size=(12, 2))
    coef = rng.normal(size=(12, 2))
    asked = np.repeat(np.arange(3), 20)
    rows = corners[asked] + 0.5 * rng.normal(size=(60, 2))
    return vectors, cluster, coef, corners, rows, asked


def build(parts, combination="routed", *, routed=True, dtype=np.float64):
    vectors, cluster, coef, corners, *_ = parts
    kernel = make_kernel("rbf", 0.5, 0.0, 3, vectors, dtype)
    router = PointRouter(np.ascontiguousarray(corners - kernel.centre, dtype=dtype))
    extra = (router, cluster, combination) if routed else ()
    return KernelModel(kernel, kernel.prepare(vectors), Coefficients(coef), INTERCEPT, *extra)


def test_a_plain_model_is_the_sum_over_its_support_vectors(parts):
    vectors, _, coef, _, rows, _ = parts
    decision = build(parts, routed=False).decision(rows, ONE)
    expected = rbf_kernel(rows, vectors, gamma=0.5) @ coef + INTERCEPT
    np.testing.assert_allclose(decision, expected, rtol=1e-12, atol=1e-12)


def test_a_summed_model_does_without_its_router(parts):
    rows = parts[4]
    np.testing.assert_array_equal(
        build(parts, "sum").decision(rows, ONE),
        build(parts, routed=False).decision(rows, ONE),
    )


def test_a_routed_model_sums_over_the_cluster_of_each_row(parts):
    vectors, cluster, coef, _, rows, asked = parts
    K = rbf_kernel(rows, vectors, gamma=0.5) * (asked[:, None] == cluster)
    np.testing.assert_allclose(
        build(parts).decision(rows, ONE), K @ coef + INTERCEPT, rtol=1e-12, atol=1e-12
    )


def test_a_cluster_without_support_vectors_gives_the_intercept(parts):
    *_, rows, asked = parts
    decision = build(parts).decision(rows, ONE)
    np.testing.assert_array_equal(decision[asked == 2], np.tile(INTERCEPT, (20, 1)))
    assert np.all(decision[asked < 2] != INTERCEPT)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_a_row_is_decided_alike_in_any_company(combination, dtype, n_threads, parts):
    rows = np.repeat(parts[4], 40, axis=0)  # more than a tile
    model = build(parts, combination, dtype=dtype)
    together = model.decision(rows, Host(n_threads))
    tolerance = {"rtol": 0, "atol": 1e-4 if dtype is np.float32 else 1e-11}
    order = np.random.default_rng(1).permutation(len(rows))
    np.testing.assert_allclose(
        model.decision(rows[order], Host(n_threads)), together[order], **tolerance
    )
    batches = [model.decision(part, Host(n_threads)) for part in np.array_split(rows, 7)]
    np.testing.assert_allclose(np.vstack(batches), together, **tolerance)
    for row in (0, 1000, 2399):
        alone = model.decision(rows[row : row + 1], Host(n_threads))
        np.testing.assert_allclose(alone[0], together[row], **tolerance)


def test_a_committee_of_one_cluster_is_that_clusters_model(parts):
    vectors, _, coef, corners, rows, _ = parts
    one = (vectors, np.zeros(12, dtype=int), coef, corners[:1], rows, None)
    np.testing.assert_allclose(
        build(one, "bcm").decision(rows, ONE),
        build(one, "sum").decision(rows, ONE),
        rtol=1e-9,
    )


def test_a_committee_listens_to_the_cluster_that_knows_the_row(parts):
    """Far from all others, a cluster's certainty outweighs their prior."""
    vectors, cluster, coef, *_ = parts
    sure = replace(build(parts, "bcm"), noise=1e-6)
    near = vectors[cluster == 1]
    own = rbf_kernel(near, near, gamma=0.5) @ coef[cluster == 1] + INTERCEPT
    np.testing.assert_allclose(sure.decision(near, ONE), own, atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_an_early_fit_decides_alike_in_any_order_on_sparse_and_dense_rows(kernel):
    rng = np.random.default_rng(0)
    X = rng.random((150, 3)) * (rng.random((150, 3)) < 0.7)
    y = (X.sum(axis=1) + 0.3 * rng.normal(size=150) > 1).astype(int)
    model = KernelSVC(kernel, coef0=1.0, gamma=2.0, early=1, tol=1e-6, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    order = rng.permutation(150)
    np.testing.assert_allclose(model.decision_function(X[order]), scores[order], atol=1e-9)
    np.testing.assert_allclose(model.decision_function(sp.csr_array(X)), scores, atol=1e-9)
    one_by_one = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(one_by_one, scores[:20], atol=1e-9)


def test_no_rows_at_all_are_refused_and_one_row_is_decided():
    X, y = np.random.default_rng(0).random((30, 2)), np.arange(30) % 2
    model = KernelSVC(early=1, random_state=0).fit(X, y)
    assert model.decision_function(X[:1]).shape == (1,)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.predict(X[:0])
