"""Clusters: every row in one, none empty, none crowded, and one rule for old rows and new."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.kernel.backend import Host
from widemargin.kernel.kernels import KERNELS, make_kernel
from widemargin.kernel.partition import (
    KernelRouter,
    PointRouter,
    kernel_kmeans,
    partition,
)
from widemargin.kernel.rows import CompressedRows

from .helpers import each_kernel, exact, made, mostly_zero

ONE = Host(1)
BY_DISTANCE = [name for name, traits in KERNELS.items() if traits.by_distance]
BLOBS = 12.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def operands(name, X, dtype=np.float64):
    kernel = made(name, X, dtype)
    return kernel, kernel.prepare(X)


def linear(X):
    kernel = make_kernel("poly", 1.0, 0.0, 1, X, np.float64)
    return kernel, kernel.training_rows(X, np.arange(len(X)))


def divided(kernel, rows, k, *, seed=0, candidates=None, sample_size=60):
    candidates = np.arange(len(rows)) if candidates is None else candidates
    rng = np.random.default_rng(seed)
    return partition(kernel, rows, k, candidates, sample_size, rng, ONE)


def uniform(n=150, d=4, seed=0):
    return np.random.default_rng(seed).random((n, d))


def blobs(sizes, seed=0):
    """Rows around the corners of a square, far from each other, and their corner."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    return BLOBS[which] + np.random.default_rng(seed).normal(size=(len(which), 2)), which


def same_clusters(a, b):
    return np.array_equal(a[:, None] == a, b[:, None] == b)


# ------------------------------------------------------------------ the rule


@each_kernel
def test_a_partition_covers_all_rows_has_no_empty_cluster_and_routes_training_rows(name):
    kernel, rows = operands(name, uniform())
    router, label = divided(kernel, rows, 6)
    assert isinstance(router, PointRouter) == (name in BY_DISTANCE)
    assert len(label) == len(rows)
    assert router.n_clusters > 1
    np.testing.assert_array_equal(np.unique(label), np.arange(router.n_clusters))
    np.testing.assert_array_equal(router.assign(rows, ONE), label)
    np.testing.assert_array_equal(router.assign(rows[7:8], ONE), label[7:8])


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_a_partition_is_that_of_its_seed(name):
    kernel, rows = operands(name, uniform())
    _, first = divided(kernel, rows, 6)
    _, again = divided(kernel, rows, 6)
    _, other = divided(kernel, rows, 6, seed=1)
    np.testing.assert_array_equal(first, again)
    assert not same_clusters(first, other)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_a_partition_does_not_depend_on_the_number_of_threads(name):
    kernel, rows = operands(name, uniform(2500), np.float32)
    everything = np.arange(2500)
    labels = []
    for n in (1, 2):
        with Host(n) as host:
            rng = np.random.default_rng(0)
            labels.append(partition(kernel, rows, 5, everything, 60, rng, host)[1])
    np.testing.assert_array_equal(*labels)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2"])
def test_groups_of_rows_far_apart_are_the_clusters(name):
    X, which = blobs([40, 40, 40, 40])
    X -= X.min()  # chi2 wants no negative values
    kernel, rows = operands(name, X)
    _, label = divided(kernel, rows, 4)
    if name in BY_DISTANCE:
        assert same_clusters(label, which)
    mass = exact(name, X)
    across = mass[label[:, None] != label].sum() / mass.sum()
    shuffled = np.random.default_rng(0).permutation(label)
    assert across < 0.5 * mass[shuffled[:, None] != shuffled].sum() / mass.sum()


def test_new_rows_go_to_the_cluster_of_their_neighbours():
    X, _ = blobs([40, 40, 40, 40])
    kernel, rows = operands("rbf", X)
    router, label = divided(kernel, rows, 4)
    expected = [label[np.argmin(((X - corner) ** 2).sum(axis=1))] for corner in BLOBS]
    np.testing.assert_array_equal(router.assign(kernel.prepare(BLOBS), ONE), expected)


@pytest.mark.parametrize("name", ["rbf", "poly"])
@pytest.mark.parametrize("k", [3, 8])
def test_no_cluster_of_distinct_rows_exceeds_the_cap(name, k):
    """Nine rows in ten are in one corner: plain k-means would leave them together."""
    X, _ = blobs([360, 15, 15, 10])
    kernel, rows = operands(name, X / 12)
    router, label = divided(kernel, rows, k, sample_size=400)
    assert np.bincount(label).max() <= 2 * len(X) / k
    np.testing.assert_array_equal(router.assign(rows, ONE), label)


def test_rows_that_are_similar_to_no_centre_are_not_split_in_vain():
    """They all go to one centre, whichever that is: every round costs a look at all rows and
    helps nothing."""
    kernel, rows = operands("rbf", uniform(2000, 20))
    narrow = replace(kernel, gamma=1e3)
    looks = []

    class Counting(Host):
        def nearest(self, *args):
            looks.append(1)
            return super().nearest(*args)

    rng = np.random.default_rng(0)
    router, label = partition(
        narrow, rows, 16, np.arange(2000), 100, rng, Counting(1), clustering="kernel_kmeans"
    )
    assert np.bincount(label).max() > 1000
    assert len(looks) <= 6
    np.testing.assert_array_equal(router.assign(rows, ONE), label)


def test_a_narrow_kernel_leaves_no_cluster_crowded():
    """Most rows are like no sampled one; centres of other norms than 1 would send three in four
    of them to one cluster."""
    kernel, rows = operands("rbf", uniform(2000, 4))
    narrow = replace(kernel, gamma=100.0)
    how = (100, np.random.default_rng(0), ONE, "kernel_kmeans")
    router, label = partition(narrow, rows, 16, np.arange(2000), *how)
    assert np.bincount(label).max() <= 2 * 2000 / 16
    np.testing.assert_array_equal(router.assign(rows, ONE), label)


@pytest.mark.parametrize("name", BY_DISTANCE)
def test_centres_of_rows_of_norm_1_have_norm_1(name):
    kernel, rows = operands(name, uniform(120))
    rng = np.random.default_rng(0)
    router = kernel_kmeans(kernel, rows, 5, rng, ONE)
    split = router.split(np.array([1]), rows, router.assign(rows, ONE), rng, ONE)
    K = ONE.product(kernel, rows, rows, np.eye(120))
    for one in (router, split):
        norms = np.einsum("ic,ij,jc->c", one.members, K, one.members)
        np.testing.assert_allclose(norms, one.constants, rtol=1e-12)
        np.testing.assert_array_equal(one.constants, 1.0)
        for c in range(one.n_clusters):  # along the mean of its rows
            assert len(np.unique(one.members[:, c])) == 2


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_centres_come_from_the_candidates_only(name):
    X, which = blobs([40, 40, 40, 40])
    kernel, rows = operands(name, X)
    candidates = np.flatnonzero(which == 2)
    if name == "poly":
        router, _ = divided(kernel, rows, 2, candidates=candidates)
        of_candidates = {tuple(row) for row in rows.data[candidates]}
        assert {tuple(row) for row in router.sample.data} <= of_candidates
    else:
        router, _ = divided(kernel, rows, 1, candidates=candidates)
        np.testing.assert_allclose(router.centres[0] + kernel.centre, X[candidates].mean(axis=0))


def test_one_cluster_holds_everything():
    kernel, rows = operands("poly", uniform())
    router, label = divided(kernel, rows, 1)
    assert router.n_clusters == 1
    assert not label.any()


# ------------------------------------------------------------------ other than by default


@pytest.mark.parametrize(
    ("name", "clustering", "router"),
    [
        ("rbf", "kmeans", PointRouter),
        ("rbf", "kernel_kmeans", KernelRouter),
        ("laplacian", "kernel_kmeans", KernelRouter),
        ("poly", "kmeans", PointRouter),
        ("chi2", "kmeans", PointRouter),
        ("poly", "kernel_kmeans", KernelRouter),
    ],
)
def test_every_kernel_has_both_kinds_of_centres(name, clustering, router):
    kernel, rows = operands(name, uniform())
    how = (60, np.random.default_rng(0), ONE, clustering)
    found, label = partition(kernel, rows, 6, np.arange(150), *how)
    assert type(found) is router
    assert found.n_clusters > 1
    np.testing.assert_array_equal(found.assign(rows, ONE), label)


def test_two_step_kernel_kmeans_samples_as_many_rows_as_it_is_told():
    """DC-SVM, sec. 4: m = 1,000, at 256 clusters too."""
    kernel, rows = operands("rbf", uniform(1500))
    how = (1000, np.random.default_rng(0), ONE, "kernel_kmeans")
    router, _ = partition(kernel, rows, 256, np.arange(1500), *how)
    assert len(router.sample) == 1000


def test_rows_are_routed_alike_in_parts_and_whatever_the_order_of_the_sample():
    kernel, rows = operands("rbf", uniform(300))
    router = kernel_kmeans(kernel, rows[:200], 40, np.random.default_rng(0), ONE)
    K = np.exp(-kernel.gamma * ((uniform(300)[:, None] - uniform(300)[:200]) ** 2).sum(axis=2))
    expected = np.argmin(router.constants - 2 * K @ router.members, axis=1)
    ordered = router.by_centre()
    assert np.all(np.diff(ordered.members.argmax(axis=1)) >= 0)
    for one in (router, ordered):
        parts = [one.assign(rows[begin : begin + 70], ONE) for begin in range(0, 300, 70)]
        np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_kernel_kmeans_of_a_wide_rbf_has_the_clusters_of_plain_kmeans():
    X, which = blobs([40, 40, 40, 40])
    kernel = make_kernel("rbf", 1e-4, 0.0, 3, X, np.float64)
    rows = kernel.training_rows(X, np.arange(160))
    for clustering in ("kmeans", "kernel_kmeans"):
        how = (160, np.random.default_rng(0), ONE, clustering)
        assert same_clusters(partition(kernel, rows, 4, np.arange(160), *how)[1], which)


@pytest.mark.parametrize(("n", "k", "sizes"), [(150, 6, {25}), (20, 3, {6, 7}), (3, 8, {1})])
def test_a_random_partition_is_even_and_knows_no_other_rows(n, k, sizes):
    kernel, rows = operands("rbf", uniform(n))
    labels = []
    for seed in (0, 0, 1):
        how = (60, np.random.default_rng(seed), ONE, "random")
        router, label = partition(kernel, rows, k, np.arange(n), *how)
        assert router is None
        assert set(np.bincount(label)) == sizes
        labels.append(label)
    np.testing.assert_array_equal(labels[0], labels[1])
    assert n == 3 or not same_clusters(labels[0], labels[2])


# ------------------------------------------------------------------ identical rows


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_identical_rows_are_one_cluster_without_a_warning(name):
    kernel, rows = operands(name, np.ones((40, 3)))
    router, label = divided(kernel, rows, 4, sample_size=20)
    assert router.n_clusters == 1
    assert not label.any()


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_identical_rows_share_a_cluster(name):
    X = np.repeat(uniform(30), 5, axis=0)
    kernel, rows = operands(name, X)
    _, label = divided(kernel, rows, 4, sample_size=150)
    assert label.max() > 0
    groups = label.reshape(30, 5)
    np.testing.assert_array_equal(groups, np.broadcast_to(groups[:, :1], groups.shape))


def test_more_clusters_than_distinct_rows_become_as_many_as_those():
    X = np.repeat(np.eye(3), 20, axis=0) * [1.0, 2.0, 3.0]
    kernel, rows = operands("poly", X)
    router, label = divided(kernel, rows, 8, sample_size=60)
    assert router.n_clusters == 3
    assert same_clusters(label, np.repeat(np.arange(3), 20))


# ------------------------------------------------------------------ routers and explicit centres


def explicit(X, centres):
    return np.argmin(((X[:, None] - centres) ** 2).sum(axis=2), axis=1)


def test_a_point_router_sends_rows_to_the_nearest_centre():
    kernel, rows = operands("rbf", uniform())
    router, label = divided(kernel, rows, 6)
    np.testing.assert_array_equal(label, explicit(rows.data, router.centres))


def test_a_kernel_router_of_the_linear_kernel_sends_rows_to_the_nearest_mean():
    X, new = uniform(), uniform(80, seed=9)
    kernel, rows = linear(X)
    router, label = divided(kernel, rows, 6)
    assert isinstance(router, KernelRouter)
    np.testing.assert_allclose(router.members.sum(axis=0), 1.0)
    centres = router.members.T @ router.sample.data
    np.testing.assert_allclose(router.constants, (centres**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(label, explicit(X, centres))
    np.testing.assert_array_equal(router.assign(kernel.prepare(new), ONE), explicit(new, centres))


def test_a_kernel_router_measures_distances_in_the_feature_space_of_its_kernel():
    """k(x, z) = (xz)^2 for numbers: the feature is x^2, so signs do not matter."""
    X = np.concatenate([np.linspace(-3, -2, 20), np.linspace(2, 3, 20), np.linspace(-0.5, 0.5, 20)])
    kernel = make_kernel("poly", 1.0, 0.0, 2, X[:, None], np.float64)
    rows = kernel.prepare(X[:, None])
    router = kernel_kmeans(kernel, rows, 2, np.random.default_rng(0), ONE)
    expected = np.repeat([0, 1], [40, 20])
    assert same_clusters(router.assign(rows, ONE), expected)


def test_kernel_kmeans_ends_where_every_row_is_nearest_to_its_own_mean():
    X = uniform(90)
    kernel, rows = linear(X)
    router = kernel_kmeans(kernel, rows, 4, np.random.default_rng(0), ONE)
    own = np.argmax(router.members, axis=1)
    assert router.n_clusters == 4
    np.testing.assert_array_equal(router.assign(rows, ONE), own)
    for c in range(4):
        np.testing.assert_allclose(router.members[own == c, c], 1 / np.sum(own == c))


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_some_of_the_clusters_are_routed_to_as_if_the_others_had_never_been(name):
    X = uniform()
    kernel, rows = linear(X) if name == "poly" else operands(name, X)
    router, _ = divided(kernel, rows, 6)
    kept = np.array([0, 2, 3])
    centres = router.centres if name == "rbf" else router.members.T @ router.sample.data
    some = router.only(kept)
    assert some.n_clusters == 3
    np.testing.assert_array_equal(some.assign(rows, ONE), explicit(rows.data, centres[kept]))


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_splitting_clusters_moves_rows_of_no_other_centre(name):
    X = uniform()
    kernel, rows = linear(X) if name == "poly" else operands(name, X)
    router, label = divided(kernel, rows, 3, sample_size=150)
    rng = np.random.default_rng(0)
    split = router.split(np.array([1]), rows, label, rng, ONE)
    assert split.n_clusters == router.n_clusters + 1

    def centres(r):
        return r.centres if name == "rbf" else r.members.T @ r.sample.data

    kept = np.delete(np.arange(router.n_clusters), 1)
    np.testing.assert_allclose(centres(split)[: len(kept)], centres(router)[kept], rtol=1e-12)


# ------------------------------------------------------------------ other rows


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_compressed_rows_are_routed_as_dense_ones(name):
    X = mostly_zero(200, share=0.2, seed=1)
    kernel, rows = operands(name, sp.csr_array(X))
    assert isinstance(rows, CompressedRows)
    router, label = divided(kernel, rows, 5)
    assert np.bincount(label).min() > 0
    assert router.n_clusters > 1
    np.testing.assert_array_equal(router.assign(rows, ONE), label)
    if name == "rbf":
        np.testing.assert_array_equal(label, explicit(X, router.centres))
    else:
        K = exact(name, X, router.sample.matrix)
        np.testing.assert_array_equal(
            label, np.argmin(router.constants - 2 * K @ router.members, axis=1)
        )


def test_rows_of_a_given_matrix_are_clustered_as_those_of_its_kernel():
    X = uniform()
    kernel, rows = operands("poly", X)
    K = exact("poly", X)
    given = make_kernel("precomputed", 1.0, 0.0, 3, K, np.float64)
    of_matrix = divided(given, given.training_rows(K, np.arange(len(K))), 5)[1]
    np.testing.assert_array_equal(of_matrix, divided(kernel, rows, 5)[1])


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_fewer_rows_than_clusters_give_every_row_at_most_one(name):
    kernel, rows = operands(name, uniform(5))
    router, label = divided(kernel, rows, 8)
    assert router.n_clusters <= 5
    np.testing.assert_array_equal(np.unique(label), np.arange(router.n_clusters))
