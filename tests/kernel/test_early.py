"""The levels of a divided fit, the early models that stop at one, and the papers' settings."""

import numpy as np
import pytest
from sklearn.base import clone

from widemargin import KernelSVC, papers

from .helpers import assert_same_function, each_size, points, rbf2, svc, svc_matrix

pytestmark = each_size

# ------------------------------------------------------------------ levels


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_levels_do_not_change_the_optimum(levels, two):
    direct = svc(tol=1e-11, levels=0).fit(*two)
    model = svc(tol=1e-11, levels=levels, n_jobs=2).fit(*two)
    assert [level.level for level in model.levels_] == list(range(levels, -1, -1))
    assert_same_function(model, direct, two[0])


def test_small_data_is_solved_directly(two):
    model = svc().fit(*two)
    assert model.levels == "auto"
    assert [level.level for level in model.levels_] == [0]


def test_automatic_levels_divide_large_data_whose_kernel_is_local():
    rng = np.random.default_rng(0)
    centres = 10 * rng.random((16, 2))
    X = np.repeat(centres, 500, axis=0) + 0.1 * rng.normal(size=(8000, 2))
    y = rng.random(8000) < np.where(np.repeat(np.arange(16), 500) % 2, 0.9, 0.1)
    model = svc(gamma=0.5, C=0.1, branching=2, tol=0.05).fit(X, y)
    assert [level.level for level in model.levels_] == [2, 0]  # clusters of 2,000 rows
    assert model.duality_gap_ <= 0.05


def test_levels_tell_what_they_did(two):
    X, y = two
    model = svc(levels=2, branching=2, record_levels=True, tol=1e-6).fit(X, y)
    assert [level.level for level in model.levels_] == [2, 1, 0]
    coef = np.zeros(len(X))
    coef[model.support_] = model.dual_coef_[0]
    sign = np.where(y == 1, 1.0, -1.0)
    for level in model.levels_[:-1]:
        assert level.sizes.sum() == len(X)
        assert len(level.sizes) == level.n_clusters >= 2
        np.testing.assert_array_equal(np.bincount(level.label), level.sizes)
        assert level.n_support == np.count_nonzero(level.alpha)
        assert level.gap <= 1e-2
        K, own = rbf2(X, X), level.alpha * sign
        across = level.label[:, None] != level.label
        cut = np.where(across, 0, K)
        value = [level.alpha.sum() - 0.5 * own @ k @ own for k in (cut, K)]
        assert level.objective == pytest.approx(value[0], rel=1e-6)
        assert level.whole_objective == pytest.approx(value[1], rel=1e-6)
        assert level.across_mass == pytest.approx(K[across].sum(), rel=1e-6)
        assert model.objective_ - level.whole_objective <= level.bound
        assert level.bound >= 0.5 * 5.0**2 * level.across_mass
        found, final = level.alpha > 0, coef != 0
        assert level.precision == pytest.approx((found & final).sum() / found.sum())
        assert level.recall == pytest.approx((found & final).sum() / final.sum())


def test_levels_record_no_variables_unless_asked(two):
    for level in svc(levels=1).fit(*two).levels_:
        assert level.alpha is None
        assert np.isnan(level.recall)


def test_more_levels_than_rows_are_no_harm():
    X, y = points(30)
    deep = svc(levels=5, tol=1e-11).fit(X, y)
    assert deep.levels_[0].n_clusters == 30
    assert_same_function(deep, svc(levels=0, tol=1e-11).fit(X, y), X)


def test_the_seed_decides_the_clusters(two):
    def sizes(seed):
        return svc(levels=2, random_state=seed).fit(*two).levels_[0].sizes.tolist()

    assert sizes(0) == sizes(0) == sizes(np.random.RandomState(0))
    assert sizes(0) != sizes(1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_centres_beyond_single_precision_are_compared_in_double():
    X, y = points(20)
    model = KernelSVC("poly", gamma=10.0, early=1, max_iter=9, random_state=0)
    model.fit(1e6 + 100 * X, y)
    assert model.levels_[-1].n_clusters > 1


def test_laplacian_clusters_of_integers_are_those_of_the_same_floats():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (120, 4)).astype(np.uint8)
    y = (X[:, 0].astype(int) + X[:, 1] > 200).astype(int)
    sizes = [
        svc("laplacian", gamma=0.01, early=1, random_state=0).fit(Z, y).levels_[0].sizes
        for Z in (X, X.astype(float))
    ]
    np.testing.assert_array_equal(*sizes)


# ------------------------------------------------------------------ early models


def early_parts(model, X, Z):
    """Cluster of every row of Z, and each cluster's decision there, by plain formulas."""
    router, kernel = model.model_.router, model.model_.kernel
    name = kernel.name
    if name == "rbf":
        distance = ((Z[:, None] - (router.centres + kernel.centre)) ** 2).sum(axis=2)
    else:
        inner = svc_matrix(name, Z, router.sample.data) @ router.members
        distance = router.constants - 2 * inner
    cluster = model.model_.cluster
    K = svc_matrix(name, Z, X[model.support_])
    parts = [K[:, cluster == c] @ model.dual_coef_.T[cluster == c] for c in np.unique(cluster)]
    assert len(np.unique(cluster)) == router.n_clusters
    return distance.argmin(axis=1), np.stack(parts, axis=2), K, cluster


@pytest.mark.parametrize("name", ["rbf", "poly"])
@pytest.mark.parametrize("data", ["two", "three"])
def test_a_routed_model_sums_over_the_cluster_of_each_row(request, data, name):
    """DC-SVM, eq. 11, for rows that were not in training."""
    X, y = request.getfixturevalue(data)
    model = svc(name, coef0=1.0, early=1, tol=1e-6).fit(X, y)
    Z = points(50, seed=9)[0]
    label, parts, *_ = early_parts(model, X, Z)
    expected = parts[np.arange(len(Z)), :, label]
    assert len(np.unique(label)) > 1
    scores = model.decision_function(Z).reshape(expected.shape)
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_a_summed_model_adds_all_clusters(name, three):
    """DC-SVM, eq. 10."""
    X, y = three
    model = svc(name, coef0=1.0, early=1, early_prediction="sum", tol=1e-6).fit(X, y)
    Z = points(50, seed=9)[0]
    expected = svc_matrix(name, Z, X[model.support_]) @ model.dual_coef_.T
    np.testing.assert_allclose(model.decision_function(Z), expected, rtol=1e-8, atol=1e-8)
    routed = clone(model).set_params(early_prediction="routed").fit(X, y)
    np.testing.assert_array_equal(routed.dual_coef_, model.dual_coef_)
    assert np.abs(routed.decision_function(Z) - expected).max() > 0.1


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_a_committee_weighs_clusters_by_their_certainty(name, three):
    """Tresp's Bayesian committee machine, with noise of variance 1 / C."""
    X, y = three
    model = svc(name, coef0=1.0, early=1, early_prediction="bcm", tol=1e-6).fit(X, y)
    Z = points(50, seed=9)[0]
    _, parts, K, cluster = early_parts(model, X, Z)
    prior = np.diag(svc_matrix(name, Z))
    precisions = []
    for c in np.unique(cluster):
        own = X[model.support_[cluster == c]]
        noisy = svc_matrix(name, own) + np.eye(len(own)) / 5.0
        cross = K[:, cluster == c]
        precisions.append(1 / (prior - np.diag(cross @ np.linalg.inv(noisy) @ cross.T)))
    precisions = np.array(precisions).T
    total = precisions.sum(axis=1) - (precisions.shape[1] - 1) / prior
    expected = np.einsum("icm,im->ic", parts, precisions) / total[:, None]
    np.testing.assert_allclose(model.decision_function(Z), expected, rtol=1e-6, atol=1e-6)


def test_early_true_is_the_level_of_eight_thousand_rows(monkeypatch, two):
    assert [level.level for level in svc(early=True).fit(*two).levels_] == [1]
    monkeypatch.setattr("widemargin.kernel.machine.EARLY_ROWS", 8)
    model = svc(early=True).fit(*two)  # 120 rows: round(log4(15)) = 2
    assert [level.level for level in model.levels_] == [2]


def test_numpys_false_is_no_early_level(two):
    model = svc(early=np.False_, fit_intercept=True).fit(*two)
    assert model.model_.router is None


def test_an_early_model_stops_at_its_level_and_certifies_its_clusters(two):
    model = svc(levels=3, branching=2, early=2, tol=1e-5).fit(*two)
    assert [level.level for level in model.levels_] == [3, 2]
    assert model.duality_gap_ == model.levels_[-1].gap <= 1e-5 < model.levels_[0].gap
    assert model.dual_objective_ == model.levels_[-1].objective
    assert np.isnan(model.objective_)


def test_an_early_model_measures_its_levels_as_far_as_it_can(two):
    X, y = two
    level = svc(early=1, tol=1e-9, record_levels=True).fit(X, y).levels_[0]
    best = svc(tol=1e-9).fit(X, y).dual_objective_
    assert best - level.bound <= level.whole_objective <= best + 1e-6
    assert np.isnan(level.precision)
    assert np.isnan(level.recall)


@pytest.mark.parametrize("early_prediction", ["routed", "sum", "bcm"])
def test_an_early_model_predicts_well(early_prediction):
    X, y = points(600)
    model = svc(early=1, early_prediction=early_prediction).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.8


@pytest.mark.parametrize("clustering", ["kmeans", "kernel_kmeans", "random"])
def test_the_clustering_does_not_change_the_optimum(clustering, two):
    X, y = two
    model = svc(levels=2, clustering=clustering, tol=1e-11, random_state=0).fit(X, y)
    assert model.levels_[0].n_clusters > 4
    assert_same_function(model, svc(levels=0, tol=1e-11).fit(X, y), X)


def test_random_clusters_are_farther_from_the_optimum_than_those_of_kernel_kmeans():
    """DC-SVM, Figure 1."""
    X, y = points(600)
    found = {
        how: svc(gamma=3.0, levels=1, clustering=how, random_state=0, record_levels=True)
        .fit(X, y)
        .levels_[0]
        for how in ("kernel_kmeans", "random")
    }
    assert found["kernel_kmeans"].across_mass < 0.8 * found["random"].across_mass
    assert found["kernel_kmeans"].whole_objective > found["random"].whole_objective


# ------------------------------------------------------------------ the papers' settings


def test_presets_are_set_as_the_paper_says():
    params = papers.dcsvm(C=32.0, gamma=32.0).get_params()
    said = {"kernel": "rbf", "levels": 4, "branching": 4, "sample_size": 1000, "tol": 1e-3,
            "C": 32.0, "gamma": 32.0, "early": False, "early_prediction": "routed",
            "fit_intercept": False, "clustering": "kernel_kmeans",
            "level_tol": 1e-3}  # fmt: skip
    assert {key: params[key] for key in said} == said
    early = papers.dcsvm_early(levels=5).get_params()
    assert {k: v for k, v in early.items() if v != KernelSVC().get_params()[k]} == {
        "levels": 5,
        "clustering": "kernel_kmeans",
        "level_tol": 1e-3,
        "fit_intercept": False,
        "early": 3,
    }
    assert early["branching"] ** early["early"] == 64


def test_presets_run_through_the_papers_levels():
    X, y = points(600)
    whole = papers.dcsvm(random_state=0).fit(X, y)
    assert [level.level for level in whole.levels_] == [4, 3, 2, 1, 0]
    early = papers.dcsvm_early(random_state=0).fit(X, y)
    assert [level.level for level in early.levels_] == [4, 3]
    assert early.model_.router.n_clusters >= 64
