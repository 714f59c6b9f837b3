"""What must not change a model: copies for weights, order, names, layout, threads and memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from widemargin.kernel import machine, tasks

from .helpers import assert_same_function, each_size, kernel_matrix, mostly_zero, points, rbf2, svc

pytestmark = [pytest.mark.slow, each_size]

few = settings(max_examples=8)
seeds = st.integers(0, 10_000)
tight = {"tol": 1e-10, "max_iter": 100_000}


@few
@given(seed=seeds, multi_class=st.sampled_from(["ovr", "ovo"]), n_classes=st.integers(2, 3))
def test_weight_two_is_two_copies_and_weight_zero_is_absence(seed, multi_class, n_classes):
    X, y = points(36, n_classes, seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(X))
    weight[[np.flatnonzero(y == c)[0] for c in range(n_classes)]] = 1
    model = svc(multi_class=multi_class, gamma="scale", **tight)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copied = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.gamma_ == pytest.approx(copied.gamma_, rel=1e-12)
    assert set(weighted.support_) <= set(np.flatnonzero(weight))
    if multi_class == "ovr" or n_classes == 2:  # votes jump where a score crosses zero
        assert_same_function(weighted, copied, X)
    else:
        np.testing.assert_array_equal(weighted.predict(X), copied.predict(X))


@few
@given(seed=seeds, levels=st.integers(0, 1))
def test_the_order_of_rows_does_not_matter(seed, levels):
    X, y = points(40, 3, seed)
    order = np.random.default_rng(seed).permutation(len(X))
    model = svc(levels=levels, branching=2, **tight)
    assert_same_function(clone(model).fit(X[order], y[order]), clone(model).fit(X, y), X)


@few
@given(seed=seeds)
def test_the_names_of_classes_do_not_matter(seed):
    X, y = points(40, 3, seed)
    names = np.array(["c", "a", "b"])
    numbered, named = svc(**tight).fit(X, y), svc(**tight).fit(X, names[y])
    assert named.classes_.tolist() == ["a", "b", "c"]
    assert_same_function(named, numbered, X, columns=[2, 0, 1])
    np.testing.assert_array_equal(named.predict(X), names[numbered.predict(X)])


@few
@given(seed=seeds)
def test_exchanged_names_of_two_classes_change_the_sign(seed):
    X, y = points(40, 2, seed)
    assert_same_function(svc(**tight).fit(X, 1 - y), svc(**tight).fit(X, y), X, sign=-1.0)


@few
@given(seed=seeds, name=st.sampled_from(["rbf", "poly"]), share=st.sampled_from([0.2, 0.8]))
def test_sparse_data_gives_the_model_of_dense_data(seed, name, share):
    X, y = mostly_zero(40, 12, share, seed), points(40, 3, seed)[1]
    model = svc(name, coef0=1.0, gamma="scale", **tight)
    dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_array(X), y)
    diagonal = np.diag(kernel_matrix(name, X, gamma=dense.gamma_, coef0=1.0))
    for Z in (X, sp.csr_array(X), sp.csc_array(X)):
        assert_same_function(dense, sparse, X, Z, reach=np.sqrt(diagonal.max()))


@few
@given(
    seed=seeds,
    changes=st.sampled_from(
        [
            {"levels": 2, "branching": 2},
            {"levels": 1, "early": 1},
            {"levels": 1, "multi_class": "ovo"},
            {"levels": 1, "kernel": "poly", "coef0": 1.0},
        ]
    ),
)
def test_the_number_of_threads_does_not_change_a_bit(seed, changes):
    X, y = points(90, 3, seed)
    one, other = (svc(n_jobs=n, **changes).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def fitted_bytes(model, X, y):
    """All that a fit leaves, to the bit."""
    model.fit(X, y)
    return (
        model.dual_coef_.tobytes(),
        model.support_.tobytes(),
        model.decision_function(X).tobytes(),
    )


MACHINES = {
    "rbf": {},
    "poly": {"kernel": "poly", "coef0": 1.0},
    "function": {"kernel": rbf2},  # dear, so that problems share its rows
    "double": {"tol": 1e-6},
    "intercept": {"fit_intercept": True},
    "early": {"early": 1},
}


@pytest.mark.parametrize("cache_size", [0.02, 0.2, "auto"])
@pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovr"), (4, "ovr"), (4, "ovo")])
@pytest.mark.parametrize("changes", MACHINES.values(), ids=MACHINES)
def test_threads_do_not_change_a_bit_however_tight_the_cache(
    changes, n_classes, multi_class, cache_size, monkeypatch
):
    monkeypatch.setattr("widemargin.kernel.cache.LEAST_SLOTS", 8)  # so that little data is tight
    X, y = points(240, n_classes)
    settings = {"levels": 2, "branching": 3, "multi_class": multi_class, **changes}
    models = [svc(n_jobs=n, cache_size=cache_size, **settings) for n in (1, 2, 3, 4)]
    assert len({fitted_bytes(model, X, y) for model in models}) == 1


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovr"), (4, "ovr"), (4, "ovo")])
@pytest.mark.parametrize("changes", MACHINES.values(), ids=MACHINES)
def test_a_cache_that_holds_the_kernel_matrix_four_times_changes_nothing(
    changes, n_classes, multi_class, levels
):
    X, y = points(240, n_classes)
    settings = {"levels": levels, "branching": 2, "multi_class": multi_class, **changes}
    matrix = 240**2 * (8 if "tol" in changes else 4) / 1e6
    models = [svc(cache_size=size, **settings) for size in (4 * matrix, 40 * matrix, 1e4)]
    assert len({fitted_bytes(model, X, y) for model in models}) == 1


@pytest.mark.parametrize("free", [0.3, 0.6, 0.9])
def test_free_memory_does_not_change_the_cache_unless_it_is_scarce(free, monkeypatch):
    monkeypatch.setattr(machine, "total_memory", lambda: 8e9)
    monkeypatch.setattr(machine, "free_memory", lambda: free * 8e9)
    assert svc()._cache_bytes(10_000) == (2e9 if free > 0.5 else 1.2e9)
    assert svc(cache_size=3.0)._cache_bytes(10_000) == 3e6


def test_no_more_clusters_at_once_than_the_cache_serves(monkeypatch):
    asked, at_once = [], []
    real = tasks.tasks_at_once

    def spy(*arguments):
        asked.append(real(*arguments))
        return asked[-1]

    monkeypatch.setattr(tasks, "tasks_at_once", spy)
    X, y = points(400)
    for cache_size in (0.001, 0.1, 100.0):
        asked.clear()
        model = svc(levels=1, branching=8, cache_size=cache_size, n_jobs=8).fit(X, y)
        at_once.append(asked[0])  # level 1 comes first
    n_clusters = model.levels_[0].n_clusters
    assert at_once[0] == tasks.CACHE_SHARES
    assert tasks.CACHE_SHARES <= at_once[1] <= at_once[2] == min(8, n_clusters)
