"""Theorems 1 to 3 of the DC-SVM paper: bounds that levels report, and what they are made of."""

import numpy as np
import pytest

from widemargin import papers
from widemargin.kernel import levels

from .helpers import points, rbf2, svc

C = 5.0


def islands(n=400, apart=60.0, seed=0):
    """Two classes that overlap, in four places so far apart that no kernel reaches across."""
    rng = np.random.default_rng(seed)
    place = apart * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    X = place[np.arange(n) % 4] + rng.normal(size=(n, 2))
    return X, (X.sum(axis=1) - place[np.arange(n) % 4].sum(axis=1) + rng.normal(size=n) > 0) * 1


def exact(X, y, **changes):
    """Levels against a solution without an intercept, to the last digits."""
    settings = {"C": C, "levels": 2, "tol": 1e-9, "record_levels": "exact", "random_state": 0}
    return svc(**{**settings, "fit_intercept": False, **changes}).fit(X, y)


@pytest.mark.parametrize("seed", range(3))
def test_a_bound_holds_where_clusters_have_nothing_in_common_but_were_left_early(seed):
    """D(pi) is 1e-100 here; all of the distance is what the clusters' own tolerance left."""
    X, y = islands(seed=seed)
    model = exact(X, y, levels=1)
    level, whole = model.levels_
    assert level.across_mass < 1e-50
    distance = model.dual_objective_ - level.whole_objective
    assert 1e-6 < distance <= level.bound
    assert level.bound < 0.02 * model.objective_
    assert whole.bound <= 1.01e-9 * model.objective_


@pytest.mark.parametrize("clustering", ["kmeans", "kernel_kmeans", "random"])
def test_bounds_hold_whatever_the_clusters_are(clustering):
    X, y = points(300)
    model = exact(X, y, clustering=clustering)
    for level in model.levels_:
        distance = model.dual_objective_ - level.whole_objective
        assert distance <= level.support_bound + 1e-6 <= level.bound + 2e-6
    assert model.levels_[0].support_bound < 0.9 * model.levels_[0].bound  # Theorem 3 is the finer


def test_the_mass_between_clusters_is_exact_on_request(monkeypatch):
    X, y = points(300)
    monkeypatch.setattr(levels, "_TILE", 70)
    monkeypatch.setattr(levels, "COUPLING_SAMPLE", 50)
    for level in exact(X, y).levels_:
        across = level.label[:, None] != level.label
        assert level.across_mass == pytest.approx(rbf2(X, X)[across].sum(), rel=1e-9)


def test_theorem_1_bounds_the_distance_of_the_variables_too():
    """|a* - a|^2 <= C^2 D / sigma_n, of a level that is solved."""
    X, y = points(60)
    model = exact(X, y, levels=1, level_tol=1e-9, gamma=20.0)
    level, whole = model.levels_
    K = np.exp(-20.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    D = K[level.label[:, None] != level.label].sum()
    squared = ((whole.alpha - level.alpha) ** 2).sum()
    assert 0 < squared <= C**2 * D / np.linalg.eigvalsh(K)[0]


def test_theorem_2_names_rows_that_are_no_support_vectors():
    """Those with a = 0 and a gradient above C D (1 + sqrt(n) K_max / sqrt(sigma_n D)).

    That asks for clusters that hardly meet and for a kernel matrix far from singular; the solver's
    own rule (`Descent._sync`) needs neither.
    """
    rng = np.random.default_rng(0)
    corner = np.repeat([[0.0, 0.0], [9.0, 9.0]], 20, axis=0)
    X = corner + 3.0 * rng.random((40, 2))
    y = (X - corner).sum(axis=1) > 3.0
    gamma = 1.0
    model = exact(X, y, levels=1, branching=2, level_tol=1e-9, gamma=gamma)
    level, whole = model.levels_
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    sign = np.where(y, 1.0, -1.0)
    across = level.label[:, None] != level.label
    D, sigma = K[across].sum(), np.linalg.eigvalsh(K)[0]
    gradient = sign * (np.where(across, 0, K) @ (sign * level.alpha)) - 1
    threshold = C * D * (1 + np.sqrt(len(X)) / np.sqrt(sigma * D))
    named = (level.alpha == 0) & (gradient > threshold)
    assert named.sum() >= 2
    assert not whole.alpha[named].any()


@pytest.mark.parametrize(("level_tol", "largest"), [(0.3, 0.3), (1e-6, 1e-6), (1e-12, 1e-9)])
def test_levels_are_solved_as_far_as_they_are_told(level_tol, largest):
    X, y = points(300)
    model = exact(X, y, level_tol=level_tol)
    gaps = [level.gap for level in model.levels_[:-1]]
    assert max(gaps) <= largest
    assert model.duality_gap_ <= 1e-9
    if level_tol == 0.3:
        assert max(gaps) > 1e-2


def test_an_early_level_is_solved_to_the_fits_own_tolerance():
    model = svc(early=1, levels=2, tol=1e-5, level_tol=0.1).fit(*points(300))
    assert model.levels_[0].gap > 1e-3
    assert model.levels_[1].gap <= 1e-5


def test_the_whole_problem_is_level_0():
    X, y = points(300)
    model = exact(X, y)
    whole = model.levels_[-1]
    assert (whole.level, whole.n_clusters, whole.sizes.tolist()) == (0, 1, [300])
    assert whole.objective == model.dual_objective_
    assert whole.gap == model.duality_gap_
    assert whole.n_support == len(model.support_)
    assert whole.precision == whole.recall == 1.0
    assert whole.across_mass == 0.0
    assert 0 < whole.seconds_training < model.fit_record_.seconds
    total = sum(level.seconds_clustering + level.seconds_training for level in model.levels_)
    assert total <= model.fit_record_.seconds


@pytest.mark.parametrize("n", [300, 2200])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_history_says_when(n, tol):
    """Figure 3 draws the objective against time: that of the levels, and then of each step."""
    model = svc(levels=1, tol=tol).fit(*points(n))
    (run,) = model.history_
    seconds = [record["seconds"] for record in run]
    assert seconds[0] >= 0
    assert np.diff(seconds).min(initial=0.0) >= 0
    assert seconds[-1] <= model.levels_[-1].seconds_training


def test_the_preset_solves_all_levels_to_one_tolerance():
    model = papers.dcsvm(random_state=0, C=5.0).fit(*points(600))
    assert max(level.gap for level in model.levels_) <= 1e-3
