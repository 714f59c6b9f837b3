"""`KernelSVC` as an estimator: its problem, its parameters, tools around it, and bad input."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from widemargin import KernelSVC, engine, papers
from widemargin.kernel.model import COMBINATIONS
from widemargin.kernel.rows import Threads


def points(n=120, n_classes=2, seed=0):
    """Rows in the unit cube, with classes that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    score = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


@pytest.fixture
def two():
    return points()


@pytest.fixture
def three():
    return points(n_classes=3)


def svc(kernel="rbf", **changes):
    return KernelSVC(kernel, **{"gamma": 2.0, "C": 5.0, "random_state": 0, **changes})


def rbf2(X, Z):
    """The kernel of `svc`, as a user's function."""
    return rbf_kernel(X, Z, gamma=2.0)


def distance_bound(*models):
    """How far two models of one problem can be apart at any x, for kernels with k(x, x) = 1.

    The primal is strongly convex, so |w - w*|^2 / 2 is at most the duality gap.
    """
    gaps = [max(m.objective_ - m.dual_objective_, 0.0) for m in models]
    return sum(np.sqrt(2 * gap) for gap in gaps) + 1e-8


def assert_same_function(a, b, X, Z=None, sign=1.0):
    """Both are certified solutions of one problem; Z is X as b has to be given it."""
    bound = distance_bound(a, b)
    assert bound < 1e-3
    first, second = a.decision_function(X), b.decision_function(X if Z is None else Z)
    np.testing.assert_allclose(first, sign * second, rtol=0, atol=bound)


def kernel_matrix(name, X, Z=None):
    extra = {"degree": 3, "coef0": 1.0} if name == "poly" else {}
    return pairwise_kernels(X, Z, metric=name, gamma=2.0, **extra)


# ------------------------------------------------------------------ the problem


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian", "chi2"])
def test_objectives_and_gap_are_those_of_the_dual_variables(name, multi_class, three):
    X, y = three
    model = svc(name, coef0=1.0, tol=1e-6, multi_class=multi_class).fit(X, y)
    K = kernel_matrix(name, X)
    coef = np.zeros((len(X), 3))
    coef[model.support_] = model.dual_coef_.T
    primals, duals = [], []
    for k, pair in enumerate([(0, 1), (0, 2), (1, 2)] if multi_class == "ovo" else range(3)):
        rows = np.isin(y, pair) if multi_class == "ovo" else np.ones(len(y), dtype=bool)
        sign = np.where(y[rows] == (pair[1] if multi_class == "ovo" else pair), 1.0, -1.0)
        own, c = coef[rows, k], np.full(rows.sum(), 5.0)
        assert not coef[~rows, k].any()
        assert np.all((own * sign >= 0) & (own * sign <= 5.0))
        part = K[np.ix_(rows, rows)]
        primals.append(reference.primal(part, own[:, None], sign[:, None], c, False).item())
        duals.append(reference.dual(part, own[:, None], c, False).item())
    assert model.objective_ == pytest.approx(sum(primals), rel=1e-9)
    assert model.dual_objective_ == pytest.approx(sum(duals), rel=1e-9)
    gap = max((p - d) / p for p, d in zip(primals, duals, strict=True))
    assert model.duality_gap_ == pytest.approx(gap, rel=1e-3)
    assert 0 < gap <= 1e-6


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian"])
def test_the_optimum_is_that_of_the_quadratic_programme(name, fit_intercept):
    X, y = points(60)
    model = svc(name, coef0=1.0, tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
    K = kernel_matrix(name, X)
    K = K + np.diag(K).mean() * fit_intercept
    best = reference.one_vs_rest(K, reference.signs(y), np.full(60, 5.0), squared=False)
    assert model.dual_objective_ == pytest.approx(best.objective, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), (K @ best.coef)[:, 0], atol=1e-3)


@pytest.mark.parametrize("name", ["rbf", "poly", "precomputed"])
def test_the_objective_is_libsvms_where_both_solve_the_same_problem(name):
    """Rows x and -x of opposite labels make the decision odd, so that SVC's free bias is zero."""
    X, y = points(60)
    X, y = np.vstack([X - 0.5, 0.5 - X]), np.concatenate([y, 1 - y])
    K = kernel_matrix("poly" if name == "poly" else "laplacian", X)
    K = kernel_matrix("rbf", X) if name == "rbf" else K
    given = K if name == "precomputed" else X
    parameters = {"C": 5.0, "gamma": 2.0, "coef0": 1.0}
    theirs = SVC(kernel=name, tol=1e-9, **parameters).fit(given, y)
    assert abs(theirs.intercept_[0]) < 1e-6
    coef = theirs.dual_coef_[0]
    own = K[np.ix_(theirs.support_, theirs.support_)]
    dual = np.abs(coef).sum() - 0.5 * coef @ own @ coef
    ours = svc(name, coef0=1.0, tol=1e-8).fit(given, y)
    assert ours.objective_ == pytest.approx(dual, rel=1e-7)
    np.testing.assert_allclose(
        ours.decision_function(given), theirs.decision_function(given), atol=1e-3
    )


@pytest.mark.parametrize("name", ["rbf", "poly"])
@pytest.mark.parametrize("data", ["two", "three"])
def test_an_intercept_is_the_mean_diagonal_added_to_the_kernel(request, data, name):
    X, y = request.getfixturevalue(data)
    weight = 1.0 + np.arange(len(X)) % 3
    constant = np.average(np.diag(kernel_matrix(name, X)), weights=weight)
    model = svc(name, coef0=1.0, fit_intercept=True, tol=1e-9).fit(X, y, sample_weight=weight)
    shifted = svc(lambda A, B: kernel_matrix(name, A, B) + constant, tol=1e-9)
    shifted.fit(X, y, sample_weight=weight)
    assert model.objective_ == pytest.approx(shifted.objective_, rel=2e-9)
    np.testing.assert_allclose(
        model.decision_function(X), shifted.decision_function(X), atol=1e-4 * constant
    )
    np.testing.assert_allclose(model.intercept_, constant * model.dual_coef_.sum(axis=1))
    assert np.all(model.intercept_ != 0)
    np.testing.assert_array_equal(shifted.intercept_, 0)


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_levels_do_not_change_the_optimum(levels, two):
    direct = svc(tol=1e-11, levels=0).fit(*two)
    model = svc(tol=1e-11, levels=levels, n_jobs=2).fit(*two)
    assert [level.level for level in model.levels_] == list(range(levels, 0, -1))
    assert_same_function(model, direct, two[0])


def test_a_tolerance_below_a_ten_thousandth_is_double_precision(two):
    X, y = two
    assert svc(tol=1e-4).fit(X, y).model_.kernel.dtype is np.float32
    model = svc(tol=0.99e-4).fit(X, y)
    assert model.model_.kernel.dtype is np.float64
    K = rbf2(X, X[model.support_])
    np.testing.assert_allclose(
        model.decision_function(X), K @ model.dual_coef_[0], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_by_name_is_that_of_svc(gamma, sparse, two):
    X, y = two
    X = np.where(X > 0.7, X, 0) + 3.0 * (not sparse)
    X = sp.csr_array(X) if sparse else X
    theirs = SVC(gamma=gamma).fit(sp.csr_matrix(X) if sparse else X, y)._gamma
    assert svc(gamma=gamma).fit(X, y).gamma_ == pytest.approx(theirs, rel=1e-10)


def test_gamma_by_name_counts_sample_weights_and_not_class_weights(two):
    X, y = two
    weight = 1 + y
    model = svc(gamma="scale", class_weight="balanced").fit(X, y, sample_weight=weight)
    assert model.gamma_ == pytest.approx(1 / (3 * np.repeat(X, weight, axis=0).var()))


# ------------------------------------------------------------------ invariances

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
    np.testing.assert_allclose(
        named.decision_function(X)[:, [2, 0, 1]],
        numbered.decision_function(X),
        atol=distance_bound(named, numbered),
    )
    np.testing.assert_array_equal(named.predict(X), names[numbered.predict(X)])


@few
@given(seed=seeds)
def test_exchanged_names_of_two_classes_change_the_sign(seed):
    X, y = points(40, 2, seed)
    assert_same_function(svc(**tight).fit(X, 1 - y), svc(**tight).fit(X, y), X, sign=-1.0)


@few
@given(seed=seeds, name=st.sampled_from(["rbf", "poly"]), share=st.sampled_from([0.2, 0.8]))
def test_sparse_data_gives_the_model_of_dense_data(seed, name, share):
    X, y = points(40, 3, seed)
    X = np.where(np.random.default_rng([seed, 1]).random(X.shape) < share, X, 0)
    model = svc(name, coef0=1.0, gamma="scale", **tight)
    dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_array(X), y)
    reach = np.sqrt(np.diag(pairwise_kernels(X, metric=name, gamma=dense.gamma_)).max())
    for Z in (X, sp.csr_array(X), sp.csc_array(X)):
        np.testing.assert_allclose(
            sparse.decision_function(Z),
            dense.decision_function(X),
            atol=distance_bound(dense, sparse) * (1 + reach) ** 2,
        )


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


# ------------------------------------------------------------------ classes


def test_one_vs_rest_is_one_binary_model_per_class(three):
    X, y = three
    model = svc(tol=1e-9).fit(X, y)
    single = [svc(tol=1e-9).fit(X, y == c) for c in range(3)]
    together = np.stack([m.decision_function(X) for m in single], axis=1)
    np.testing.assert_allclose(model.decision_function(X), together, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), together.argmax(axis=1))
    assert model.objective_ == pytest.approx(sum(m.objective_ for m in single), rel=1e-8)
    assert model.duality_gap_ <= 1e-9


def test_one_vs_one_votes_like_scikit_learns(three):
    X, y = three
    ours = svc(tol=1e-9, multi_class="ovo").fit(X, y)
    theirs = OneVsOneClassifier(svc(tol=1e-9)).fit(X, y)
    assert ours.decision_function(X).shape == (len(X), 3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_one_vs_one_and_one_vs_rest_differ_for_three_classes(three):
    X, y = three
    one, rest = (svc(multi_class=m).fit(X, y).decision_function(X) for m in ("ovo", "ovr"))
    assert np.abs(one - rest).max() > 0.1


def test_two_classes_are_one_problem_either_way(two):
    X, y = two
    one, rest = (svc(multi_class=m).fit(X, y) for m in ("ovo", "ovr"))
    np.testing.assert_array_equal(one.decision_function(X), rest.decision_function(X))
    assert one.dual_coef_.shape == (1, len(one.support_))
    assert one.decision_function(X).shape == (len(X),)
    np.testing.assert_array_equal(one.predict(X), (one.decision_function(X) > 0).astype(int))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_class_weights_multiply_the_sample_weights(three, multi_class):
    X, y = three
    by_class, own = np.array([0.5, 2.0, 3.0]), 1.0 + np.arange(len(X)) % 2
    model = svc(multi_class=multi_class, levels=1)
    explicit = clone(model).fit(X, y, sample_weight=own * by_class[y])
    model.set_params(class_weight=dict(enumerate(by_class))).fit(X, y, sample_weight=own)
    np.testing.assert_array_equal(model.decision_function(X), explicit.decision_function(X))
    assert not np.allclose(model.decision_function(X), svc().fit(X, y, own).decision_function(X))


def test_balanced_class_weights_are_the_inverse_frequencies(two):
    X, y = two[0][:90], two[1][:90]
    weight = len(y) / (2 * np.bincount(y))
    explicit = svc().fit(X, y, sample_weight=weight[y])
    balanced = svc(class_weight="balanced").fit(X, y)
    np.testing.assert_array_equal(balanced.decision_function(X), explicit.decision_function(X))
    assert weight[0] != weight[1]


def test_a_class_of_weight_zero_is_absent(three):
    X, y = three
    model = svc(class_weight={0: 0.0, 1: 1.0, 2: 1.0}).fit(X, y)
    absent = svc().fit(X[y > 0], y[y > 0])
    assert model.classes_.tolist() == [1, 2]
    np.testing.assert_array_equal(model.decision_function(X), absent.decision_function(X))
    np.testing.assert_array_equal(model.support_, np.flatnonzero(y > 0)[absent.support_])


def test_boolean_labels_come_back(two):
    X, y = two
    model = svc().fit(X, y == 1)
    assert model.predict(X).dtype == bool
    np.testing.assert_array_equal(model.predict(X), svc().fit(X, y).predict(X) == 1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_give_the_model_of_their_values_and_keep_feature_names(frame, two):
    X, y = two
    table = frame(dict(zip("abc", X.T, strict=True)))
    model = svc().fit(table, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(
        model.decision_function(table), svc().fit(X, y).decision_function(X)
    )


# ------------------------------------------------------------------ paths and warm starts


def counting(X):
    """A user kernel on rows with their number in the last column, and the rows it computed."""
    computed = []

    def kernel(A, B):
        diagonal = len(A) <= 64 and np.array_equal(A[:, -1], B[:, -1])
        if not diagonal:
            computed.extend(A[:, -1].astype(int))
        return rbf_kernel(A[:, :-1], B[:, :-1], gamma=2.0)

    return kernel, computed, np.column_stack([X, np.arange(len(X))])


@pytest.mark.parametrize("by_clone", [False, True])
def test_a_warm_start_takes_fewer_blocks(by_clone, two):
    model = svc(tol=1e-10, warm_start=True).fit(*two)
    cold = model.n_iter_
    if by_clone:
        model = clone(model)
        with pytest.raises(NotFittedError):
            model.predict(two[0])
    assert model.fit(*two).n_iter_ == 1 < cold
    assert model.duality_gap_ <= 1e-10
    nearby = model.set_params(C=5.5).fit(*two)
    alone = svc(tol=1e-10, C=5.5).fit(*two)
    assert nearby.n_iter_ < alone.n_iter_
    assert_same_function(nearby, alone, two[0])


def test_without_warm_start_a_refit_and_a_clone_start_afresh(two):
    model = svc(tol=1e-8).fit(*two)
    cold = model.n_iter_
    assert model.fit(*two).n_iter_ == cold > 1
    assert clone(model).fit(*two).n_iter_ == cold


def test_a_warm_start_divides_no_more(two):
    model = svc(levels=1, warm_start=True).fit(*two)
    assert len(model.levels_) == 1
    assert model.fit(*two).levels_ == []


@pytest.mark.parametrize(
    "change",
    ["data", "labels", "weights", {"gamma": 2.1}, {"kernel": "laplacian"}, {"fit_intercept": True}],
    ids=str,
)
def test_a_warm_start_is_not_used_for_another_problem(change, three):
    X, y = three
    model = svc(tol=1e-8, warm_start=True).fit(X, y)
    weight = None
    if isinstance(change, dict):
        model.set_params(**change)
    elif change == "data":
        X = X + 1e-9
    elif change == "labels":
        y = np.where(np.arange(len(y)) == 5, (y + 1) % 3, y)
    else:
        weight = np.where(np.arange(len(y)) == 5, 1.001, 1.0)
    cold = clone(model).set_params(warm_start=False).fit(X, y, sample_weight=weight)
    model.fit(X, y, sample_weight=weight)
    assert model.n_iter_ == cold.n_iter_ > 1
    np.testing.assert_array_equal(model.dual_coef_, cold.dual_coef_)


def test_a_grid_over_c_runs_along_a_path_with_warm_starts(two):
    grid = {"C": [1.0, 1.1, 1.2, 1.3]}
    blocks = {}
    for warm in (False, True):
        search = GridSearchCV(
            svc(tol=1e-8, warm_start=warm), grid, cv=2, scoring=lambda m, X, y: float(m.n_iter_)
        )
        blocks[warm] = search.fit(*two).cv_results_["mean_test_score"]
    assert blocks[True][0] == blocks[False][0]
    assert np.all(blocks[True][1:] < blocks[False][1:])


# ------------------------------------------------------------------ levels


def test_small_data_is_solved_directly(two):
    model = svc().fit(*two)
    assert model.levels == "auto"
    assert model.levels_ == []


def test_automatic_levels_divide_large_data_whose_kernel_is_local():
    rng = np.random.default_rng(0)
    centres = 10 * rng.random((16, 2))
    X = np.repeat(centres, 500, axis=0) + 0.1 * rng.normal(size=(8000, 2))
    y = rng.random(8000) < np.where(np.repeat(np.arange(16), 500) % 2, 0.9, 0.1)
    model = svc(gamma=0.5, C=0.1, branching=2, tol=0.05).fit(X, y)
    assert [level.level for level in model.levels_] == [1]
    assert model.duality_gap_ <= 0.05


def test_levels_tell_what_they_did(two):
    X, y = two
    model = svc(levels=2, branching=2, record_levels=True, tol=1e-6).fit(X, y)
    assert [level.level for level in model.levels_] == [2, 1]
    coef = np.zeros(len(X))
    coef[model.support_] = model.dual_coef_[0]
    sign = np.where(y == 1, 1.0, -1.0)
    for level in model.levels_:
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
        assert level.bound == pytest.approx(0.5 * 5.0**2 * level.across_mass)
        found, final = level.alpha > 0, coef != 0
        assert level.precision == pytest.approx((found & final).sum() / found.sum())
        assert level.recall == pytest.approx((found & final).sum() / final.sum())


def test_levels_record_no_variables_unless_asked(two):
    (level,) = svc(levels=1).fit(*two).levels_
    assert level.alpha is None
    assert np.isnan(level.recall)


def test_more_levels_than_rows_are_no_harm():
    X, y = points(30)
    deep = svc(levels=5, tol=1e-11).fit(X, y)
    assert deep.levels_[0].n_clusters == 30
    assert_same_function(deep, svc(levels=0, tol=1e-11).fit(X, y), X)


# ------------------------------------------------------------------ early models


def early_parts(model, X, Z):
    """Cluster of every row of Z, and each cluster's decision there, by plain formulas."""
    router, kernel = model.model_.router, model.model_.kernel
    name = kernel.name
    if name == "rbf":
        distance = ((Z[:, None] - (router.centres + kernel.centre)) ** 2).sum(axis=2)
    else:
        inner = kernel_matrix(name, Z, router.sample.data) @ router.members
        distance = router.constants - 2 * inner
    cluster = model.model_.cluster
    K = kernel_matrix(name, Z, X[model.support_])
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
    expected = kernel_matrix(name, Z, X[model.support_]) @ model.dual_coef_.T
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
    prior = np.diag(kernel_matrix(name, Z))
    precisions = []
    for c in np.unique(cluster):
        own = X[model.support_[cluster == c]]
        noisy = kernel_matrix(name, own) + np.eye(len(own)) / 5.0
        cross = K[:, cluster == c]
        precisions.append(1 / (prior - np.diag(cross @ np.linalg.inv(noisy) @ cross.T)))
    precisions = np.array(precisions).T
    total = precisions.sum(axis=1) - (precisions.shape[1] - 1) / prior
    expected = np.einsum("icm,im->ic", parts, precisions) / total[:, None]
    np.testing.assert_allclose(model.decision_function(Z), expected, rtol=1e-6, atol=1e-6)


def test_early_true_is_the_level_of_eight_thousand_rows(monkeypatch, two):
    assert [level.level for level in svc(early=True).fit(*two).levels_] == [1]
    monkeypatch.setattr("widemargin.kernel.estimator.EARLY_ROWS", 8)
    model = svc(early=True).fit(*two)  # 120 rows: round(log4(15)) = 2
    assert [level.level for level in model.levels_] == [2]


def test_an_early_model_stops_at_its_level_and_certifies_its_clusters(two):
    model = svc(levels=3, branching=2, early=2, tol=1e-5).fit(*two)
    assert [level.level for level in model.levels_] == [3, 2]
    assert model.duality_gap_ == model.levels_[-1].gap <= 1e-5 < model.levels_[0].gap
    assert model.dual_objective_ == model.levels_[-1].objective
    assert np.isnan(model.objective_)


@pytest.mark.parametrize("early_prediction", COMBINATIONS)
def test_an_early_model_predicts_well(early_prediction, two):
    X, y = points(600)
    model = svc(early=1, early_prediction=early_prediction).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.8


# ------------------------------------------------------------------ the papers' settings


def test_presets_are_set_as_the_paper_says():
    params = papers.dcsvm(C=32.0, gamma=32.0).get_params()
    said = {"kernel": "rbf", "levels": 4, "branching": 4, "sample_size": 1000, "tol": 1e-3,
            "C": 32.0, "gamma": 32.0, "early": False, "early_prediction": "routed",
            "fit_intercept": False}  # fmt: skip
    assert {key: params[key] for key in said} == said
    early = papers.dcsvm_early(levels=5).get_params()
    assert {k: v for k, v in early.items() if v != KernelSVC().get_params()[k]} == {
        "levels": 5,
        "early": 3,
    }
    assert early["branching"] ** early["early"] == 64


def test_presets_run_through_the_papers_levels():
    X, y = points(600)
    assert [level.level for level in papers.dcsvm(random_state=0).fit(X, y).levels_] == [4, 3, 2, 1]
    early = papers.dcsvm_early(random_state=0).fit(X, y)
    assert [level.level for level in early.levels_] == [4, 3]
    assert early.model_.router.n_clusters >= 64


# ------------------------------------------------------------------ warnings and logs


def test_too_few_blocks_warn_with_the_gap(two):
    with pytest.warns(ConvergenceWarning, match="relative duality gap of ") as caught:
        model = svc(max_iter=1, tol=1e-6).fit(*two)
    assert f"gap of {model.duality_gap_:.2g}, above tol=1e-06" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.duality_gap_ > 1e-6


def test_the_sigmoid_kernel_warns_that_the_gap_is_no_certificate(two):
    with pytest.warns(UserWarning, match="not positive definite"):
        svc("sigmoid", gamma=0.1).fit(*two)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_an_unscaled_feature_is_named_with_its_range(kernel, two):
    X, y = two
    X = X * [1, 1000, 1]
    low, high = X[:, 1].min(), X[:, 1].max()
    message = f"Feature 1 ranges from {low:g} to {high:g},"
    with pytest.warns(UserWarning, match=message) as caught:
        svc(kernel, gamma="scale").fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=f"Feature 'price' ranges from {low:g} to {high:g},"):
        svc(kernel, gamma="scale").fit(pd.DataFrame(X, columns=["size", "price", "age"]), y)


def test_scaled_features_do_not_warn(two):
    X, y = two
    svc().fit(X * [1, 99, 1], y)  # warnings are errors here
    make_pipeline(StandardScaler(), svc()).fit(X * [1, 1000, 1], y)


def test_verbose_logs_a_summary(two, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="widemargin"):
        svc(verbose=0, levels=1).fit(*two)
        assert caplog.records == []
        model = svc(verbose=1, levels=1).fit(*two)
    level, whole = (r.getMessage() for r in caplog.records if r.name == "widemargin")
    assert level.startswith(f"level 1: {model.levels_[0].n_clusters} clusters")
    assert whole.startswith(f"{len(model.support_)} support vectors")
    assert f"relative duality gap {model.duality_gap_:.2g}" in whole
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------ callbacks and interrupts


class Recorder:
    """A callback that writes down every task, and can stop or interrupt the fit."""

    def __init__(self, stop_at=None, interrupt_at=None):
        self.ended, self.stop_at, self.interrupt_at = [], stop_at, interrupt_at

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        path = []
        while context is not None:
            path.append(context.task_name)
            context = context.parent
        self.ended.append(tuple(reversed(path)))
        if self.interrupt_at is not None and self.interrupt_at in path:
            raise KeyboardInterrupt
        return path[0] == "epoch" and self.stop_at in path


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_see_levels_clusters_and_epochs(n_jobs, two):
    recorder = Recorder()
    model = svc(levels=1, n_jobs=n_jobs, tol=1e-6).set_callbacks(recorder).fit(*two)
    tasks = [task[1:] for task in recorder.ended]
    n_clusters = model.levels_[0].n_clusters
    assert {t for t in tasks if len(t) == 1} == {("level 1",), ("level 0",)}
    clusters = {t for t in tasks if len(t) == 2 and t[0] == "level 1"}
    assert clusters == {("level 1", f"cluster {c}") for c in range(n_clusters)}
    for c in range(n_clusters):
        assert ("level 1", f"cluster {c}", "epoch") in tasks
    assert tasks.count(("level 0", "problem 0", "epoch")) == model.n_iter_
    assert tasks[-1] == ()


def test_a_callback_does_not_change_the_model(two):
    silent = svc(levels=1).fit(*two)
    heard = svc(levels=1).set_callbacks(Recorder()).fit(*two)
    np.testing.assert_array_equal(heard.dual_coef_, silent.dual_coef_)


def test_a_callback_that_returns_true_stops_the_fit_with_a_warning(two):
    recorder = Recorder(stop_at="level 0")
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        model = svc(tol=1e-6).set_callbacks(recorder).fit(*two)
    assert sum(task[-1] == "epoch" for task in recorder.ended) == model.n_iter_ == 1
    assert model.duality_gap_ > 1e-6
    assert model.predict(two[0]).shape == (len(two[0]),)


@pytest.mark.parametrize("changes", [{}, {"levels": 1}, {"early": 1, "n_jobs": 2}], ids=str)
def test_progress_bar_runs(changes, three, capsys):
    svc(**changes).set_callbacks(ProgressBar()).fit(*three)
    assert "KernelSVC - fit" in capsys.readouterr().out


def test_an_interrupt_raises_by_default(two):
    model = svc(levels=1, tol=1e-6).set_callbacks(Recorder(interrupt_at="level 0"))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*two)
    assert not hasattr(model, "model_")


@pytest.mark.filterwarnings("ignore:KernelSVC stopped")
def test_an_interrupted_whole_problem_can_keep_the_last_level(three):
    X, y = three
    kept = svc(levels=2, branching=2, tol=1e-3, on_interrupt="keep")
    kept.set_callbacks(Recorder(interrupt_at="level 0"))
    with pytest.warns(ConvergenceWarning, match="Interrupted: the model is that of level 1, with"):
        kept.fit(X, y)
    early = svc(levels=2, branching=2, tol=1e-2, early=1).fit(X, y)
    np.testing.assert_array_equal(kept.dual_coef_, early.dual_coef_)
    np.testing.assert_array_equal(kept.decision_function(X), early.decision_function(X))
    assert kept.model_.router.n_clusters == kept.levels_[-1].n_clusters
    assert kept.duality_gap_ == kept.levels_[-1].gap
    assert np.isnan(kept.objective_)
    assert kept.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore:KernelSVC stopped")
def test_a_user_kernel_that_is_interrupted_in_the_second_problem_keeps_the_level(three):
    X, y = three
    kept = svc(rbf2, levels=1, tol=1e-6, on_interrupt="keep")
    kept.set_callbacks(Recorder(interrupt_at="problem 1"))
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        kept.fit(X, y)
    label, K = kept.model_.cluster, rbf2(X, X[kept.support_])
    routed = kept.model_.router.assign(kept.model_.kernel.operand(X), Threads(1))
    expected = [K[i, label == c] @ kept.dual_coef_.T[label == c] for i, c in enumerate(routed)]
    np.testing.assert_allclose(kept.decision_function(X), expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore:KernelSVC stopped")
def test_a_level_that_is_kept_has_no_intercept_because_it_was_solved_without(two):
    kept = svc(levels=1, fit_intercept=True, on_interrupt="keep")
    kept.set_callbacks(Recorder(interrupt_at="level 0"))
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        kept.fit(*two)
    early = svc(levels=1, early=1, tol=1e-2).fit(*two)
    assert kept.intercept_ == 0
    np.testing.assert_array_equal(kept.decision_function(two[0]), early.decision_function(two[0]))


@pytest.mark.parametrize("levels", [0, 1])
def test_an_interrupt_before_any_level_is_done_always_raises(levels, two):
    model = svc(levels=levels, tol=1e-6, on_interrupt="keep")
    model.set_callbacks(Recorder(interrupt_at=f"level {levels}"))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*two)


ENDLESS = """
import sys, threading, time
import numpy as np
from widemargin import KernelSVC
rng = np.random.default_rng(0)
X, y = rng.random((20_000, 10)), rng.integers(0, 2, 20_000)
levels, n_jobs = int(sys.argv[1]), int(sys.argv[2])
model = KernelSVC(gamma=0.5, C=1e4, tol=1e-12, levels=levels, n_jobs=n_jobs, max_iter=10**9)
print("fitting", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    while threading.active_count() > 1:  # no cluster may go on unseen
        time.sleep(0.01)
"""


@pytest.mark.parametrize(("levels", "n_jobs"), [(0, 1), (0, 2), (1, 2)])
def test_ctrl_c_ends_a_long_fit_at_once(levels, n_jobs):
    command = [sys.executable, "-c", ENDLESS, str(levels), str(n_jobs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "fitting\n"
            time.sleep(1.0)
            assert process.poll() is None
            os.kill(process.pid, signal.SIGINT)
            sent = time.perf_counter()
            assert process.stdout.readline() == "interrupted\n"
            assert time.perf_counter() - sent < 3.0
            assert process.wait(timeout=3) == 0
        finally:
            process.kill()


# ------------------------------------------------------------------ scikit-learn's tools


def test_clone_has_the_same_parameters_and_no_fitted_state(two):
    model = svc("poly", degree=2, class_weight={0: 2.0, 1: 1.0}).fit(*two)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(two[0])


def test_parameters_are_those_of_the_constructor():
    changed = {"kernel": "poly", "C": 3.0, "levels": 2, "early": 1, "checkpoint": "folder"}
    model = KernelSVC(**changed)
    assert {k: v for k, v in model.get_params().items() if k in changed} == changed
    assert model.set_params(gamma=0.5).gamma == 0.5


def test_fit_leaves_every_parameter_as_it_was(two):
    weights = {0: 2.0, 1: 1.0}
    model = svc(class_weight=weights, levels=1, n_jobs=2)
    before = model.get_params()
    model.fit(*two)
    assert all(value is before[name] for name, value in model.get_params().items())
    assert weights == {0: 2.0, 1: 1.0}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kernel": "laplacian", "multi_class": "ovo"},
        {"kernel": rbf2, "fit_intercept": True},
        {"early": 1},
        {"early": 1, "kernel": "poly", "early_prediction": "bcm"},
        {"warm_start": True},
    ],
    ids=str,
)
def test_pickle_keeps_the_model_to_the_bit(changes, three):
    X, y = three
    model = svc(**changes).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(copy.support_, model.support_)


def test_the_seed_decides_the_clusters(two):
    def sizes(seed):
        return svc(levels=2, random_state=seed).fit(*two).levels_[0].sizes.tolist()

    assert sizes(0) == sizes(0) == sizes(np.random.RandomState(0))
    assert sizes(0) != sizes(1)


@pytest.mark.parametrize("early", [False, 1])
def test_a_precomputed_matrix_gives_the_model_of_its_kernel(early):
    X, y = points(160)
    K = rbf2(X, X)
    ours = svc(tol=1e-10).fit(X[:100], y[:100])
    given_matrix = svc("precomputed", tol=1e-10, early=early).fit(K[:100, :100], y[:100])
    if early:
        by_function = svc(rbf2, tol=1e-9, early=1).fit(X[:100], y[:100])
        scores = by_function.decision_function(X[100:])
        np.testing.assert_allclose(given_matrix.decision_function(K[100:, :100]), scores, atol=1e-3)
    else:
        assert_same_function(ours, given_matrix, X[100:], K[100:, :100])


# ------------------------------------------------------------------ memory


def meminfo(monkeypatch, files):
    """Let `free_memory` read these files only."""

    class Files:
        def __init__(self, name):
            self.name = str(name)

        def __truediv__(self, name):
            return Files(f"{self.name}/{name}")

        def read_text(self):
            if self.name not in files:
                raise FileNotFoundError(self.name)
            return files[self.name]

    monkeypatch.setattr(engine, "Path", Files)


INFO = "MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: 8000000 kB\n"
LIMIT, USED = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/meminfo": INFO}, 8_000_000 * 1024),
        ({"/proc/meminfo": INFO, LIMIT: "max\n", USED: "5\n"}, 8_000_000 * 1024),
        ({"/proc/meminfo": INFO, LIMIT: "3000000000\n", USED: "1000000000\n"}, 2_000_000_000),
        ({"/proc/meminfo": INFO, LIMIT: "3000000000\n", USED: "2999999999\n"}, 1 << 28),
        ({}, 4 << 30),
    ],
    ids=["available", "no limit", "a container's limit", "the least", "unknown"],
)
def test_free_memory_is_what_is_available_within_the_containers_limit(files, expected, monkeypatch):
    meminfo(monkeypatch, files)
    assert engine.free_memory() == expected


def test_a_small_cache_gives_the_same_optimum(monkeypatch, three):
    monkeypatch.setattr("widemargin.kernel.rows.LEAST_SLOTS", 16)
    X, y = three
    kernel, computed, numbered = counting(X)
    large = svc(kernel, tol=1e-10).fit(numbered, y)
    few_rows = len(computed)
    computed.clear()
    small = svc(kernel, tol=1e-10, cache_size=1e-3).fit(numbered, y)
    assert len(computed) > 2 * few_rows
    assert_same_function(small, large, numbered)


# ------------------------------------------------------------------ bad data

X4 = np.array([[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.5, 0.6, 0.0], [0.7, 0.0, 0.8]])
Y4 = np.array([0, 1, 0, 1])


def replaced(value, dtype=np.float64):
    X = X4.astype(dtype)
    X[2, 1] = value
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_a_value_that_is_not_finite_is_named_by_place(value, name, layout, dtype):
    X = layout(replaced(value, dtype))
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(X, Y4)
    with pytest.raises(ValueError, match=f"{name}.* row 2, column 1"):
        svc().fit(layout(X4), Y4).predict(X)


BAD_LABELS = {
    "one class": (np.zeros(4, dtype=int), r"KernelSVC needs .*at least 2 classes.*1 class: \[0\]"),
    "two columns": (np.zeros((4, 2)), "y should be a 1d array"),
    "too few": (Y4[:3], r"inconsistent numbers of samples: \[4, 3\]"),
    "continuous": (np.array([0.1, 0.2, 0.3, 0.4]), "Unknown label type: continuous"),
    "NaN": (np.array([0.0, 1.0, np.nan, 1.0]), "y contains NaN"),
    "none": (None, "requires y to be passed"),
}


@pytest.mark.parametrize(("y", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        svc().fit(X4, y)


BAD_WEIGHTS = {
    "one class left": (Y4, "at least 2 classes.*weight 0 do not count"),
    "none left": (0 * Y4, "at least one non-zero"),
    "negative": (np.array([1, 1, -1, 1]), "Negative values.*sample_weight"),
    "NaN": (np.array([1, 1, np.nan, 1]), "sample_weight contains NaN"),
    "too few": (np.ones(3), r"sample_weight\.shape == \(3,\), expected \(4,\)"),
}


@pytest.mark.parametrize(("weight", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_sample_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        svc().fit(X4, Y4, sample_weight=weight)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_a_wrong_number_of_features_is_refused(method, layout):
    model = svc().fit(X4, Y4)
    with pytest.raises(ValueError, match="X has 2 features, but KernelSVC is expecting 3"):
        getattr(model, method)(layout(X4[:, :2]))


def test_a_precomputed_matrix_must_be_square():
    with pytest.raises(ValueError, match=r"square matrix, got shape \(4, 3\)"):
        svc("precomputed").fit(X4, Y4)


def test_a_precomputed_matrix_must_be_symmetric():
    K = rbf2(X4, X4)
    K[1, 3] = 0.25
    with pytest.raises(ValueError, match=rf"not symmetric: 0\.25 at \(1, 3\), {K[3, 1]:g} at"):
        svc("precomputed").fit(K, Y4)


def test_a_precomputed_matrix_may_be_asymmetric_by_rounding():
    K = rbf2(X4, X4)
    K[1, 3] *= 1 + 1e-7
    assert svc("precomputed").fit(K, Y4).duality_gap_ <= 1e-3


@pytest.mark.parametrize("levels", [0, 1])
def test_a_user_kernel_of_the_wrong_shape_is_named(levels, two):
    def transposed(A, B):
        return rbf2(A, B)[:, :-1]

    with pytest.raises(ValueError, match=r"'transposed' returned shape \(\d+, \d+\) for \d+ and"):
        svc(transposed, levels=levels).fit(*two)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_user_kernel_that_is_not_finite_is_named_by_place(bad, two):
    def broken(A, B):
        K = rbf2(A, B)
        K[2, 1] = bad
        return K

    with pytest.raises(ValueError, match=rf"'broken' returned {bad} at \(2, 1\) of a block"):
        svc(broken).fit(*two)


def test_an_error_of_a_user_kernel_is_passed_on(two):
    def failing(A, B):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        svc(failing, levels=1, n_jobs=2).fit(*two)


def test_negative_data_is_named_by_place_for_the_chi2_kernel():
    with pytest.raises(ValueError, match=r"chi2.*non-negative.*row 2, column 1"):
        svc("chi2").fit(replaced(-0.1), Y4)


@pytest.mark.parametrize("kernel", ["laplacian", "chi2", "precomputed"])
def test_sparse_data_is_refused_where_the_kernel_needs_dense_rows(kernel):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        svc(kernel).fit(sp.csr_array(np.eye(4)), Y4)


def test_a_user_kernel_may_take_sparse_rows(two):
    X, y = two
    sparse = svc(rbf2, tol=1e-11).fit(sp.csr_array(X), y)
    assert_same_function(sparse, svc(tol=1e-11).fit(X, y), sp.csr_array(X), X)


def test_an_intercept_is_refused_for_an_early_model():
    for early in (True, 1):
        with pytest.raises(ValueError, match="fit_intercept=True needs the whole problem"):
            svc(fit_intercept=True, early=early).fit(X4, Y4)


# ------------------------------------------------------------------ bad parameters

OUT_OF_RANGE = {
    "kernel": ["cubic", None, 3, ["rbf"]],
    "C": [0, -1.0, np.inf, np.nan],
    "gamma": [0.0, -1.0, np.nan, "mean"],
    "degree": [-1],
    "coef0": [np.nan],
    "levels": [-1, 21, "many"],
    "branching": [1, 0],
    "sample_size": [1, -5],
    "early": [0, -1, 21],
    "early_prediction": ["vote", None],
    "multi_class": ["crammer_singer", None],
    "class_weight": ["heavy", {0: -1.0, 1: 1.0}, 3],
    "tol": [0, -1e-3, np.nan],
    "max_iter": [0, -5],
    "cache_size": [0, -1.0, np.nan, "much"],
    "on_interrupt": ["stop", None],
    "verbose": [-1],
    "n_jobs": [0],
}
WRONG_TYPE = {
    "C": ["1", None, True, [1.0]],
    "gamma": [None, True],
    "degree": [2.5, None, "3"],
    "coef0": ["0", None],
    "levels": [1.5, None, True],
    "branching": [2.5, "4", None],
    "sample_size": [10.5, None],
    "early": ["yes", None, 1.5],
    "fit_intercept": ["no", 1, None],
    "tol": ["1e-3", None],
    "max_iter": [1.5, "10", None, True],
    "cache_size": [None, True],
    "warm_start": ["no", 1],
    "record_levels": ["no", None],
    "verbose": ["loud", None],
    "n_jobs": ["two", 1.5],
}


def pairs(table):
    return [pytest.param(k, v, id=f"{k}={v!r}") for k, values in table.items() for v in values]


@pytest.mark.parametrize(("name", "value"), pairs(OUT_OF_RANGE))
def test_a_parameter_out_of_range_is_named(name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        svc(**{name: value}).fit(X4, Y4)


@pytest.mark.parametrize(("name", "value"), pairs(WRONG_TYPE))
def test_a_parameter_of_the_wrong_type_is_named(name, value):
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        svc(**{name: value}).fit(X4, Y4)


def test_every_parameter_is_checked_here_or_free():
    free = {"checkpoint", "random_state"}
    assert set(OUT_OF_RANGE) | set(WRONG_TYPE) | free == set(KernelSVC().get_params())


def test_numpy_scalars_are_numbers():
    numbers = {
        "C": np.float32(1),
        "levels": np.int64(1),
        "early": np.int32(1),
        "degree": np.uint8(2),
    }
    flags = {"warm_start": np.True_, "record_levels": np.False_}
    assert svc(**numbers, **flags).fit(X4, Y4).score(X4, Y4) >= 0.5


def test_constant_data_has_gamma_one():
    assert svc(gamma="scale").fit(np.ones((6, 2)), np.arange(6) % 2).gamma_ == 1.0


def test_a_path_is_the_separate_fits_of_its_values(three):
    X, y = three
    Cs = [0.1, 1.0, 10.0, 2.0]
    for model, C in zip(svc(tol=1e-8).fit_path(X, y, Cs), Cs, strict=True):
        alone = svc(tol=1e-8, C=C).fit(X, y)
        assert model.C == C
        assert model.duality_gap_ <= 1e-8
        assert model.objective_ == pytest.approx(alone.objective_, rel=3e-8)
        np.testing.assert_allclose(
            model.decision_function(X), alone.decision_function(X), atol=1e-2
        )
        assert not model.warm_start


def test_a_path_with_an_intercept_and_weights_is_the_separate_fits(two):
    X, y = two
    weight = 1.0 + y
    path = svc(tol=1e-9, fit_intercept=True).fit_path(X, y, [0.5, 5.0], sample_weight=weight)
    alone = svc(tol=1e-9, fit_intercept=True).fit(X, y, sample_weight=weight)
    assert path[1].objective_ == pytest.approx(alone.objective_, rel=3e-9)
    np.testing.assert_allclose(path[1].intercept_, alone.intercept_, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_path_computes_each_kernel_row_once(n_classes):
    X, y = points(100, n_classes)
    kernel, computed, numbered = counting(X)
    svc(kernel, tol=1e-6).fit_path(numbered, y, [0.1, 1.0, 10.0])
    assert len(computed) == len(set(computed))
    once = len(computed)
    computed.clear()
    for C in (0.1, 1.0, 10.0):
        svc(kernel, tol=1e-6, C=C).fit(numbered, y)
    assert len(computed) > 1.5 * once


def test_a_path_takes_fewer_blocks_than_separate_fits(two):
    Cs = [8.0, 9.0, 10.0]
    path = svc(tol=1e-8).fit_path(*two, Cs)
    alone = [svc(tol=1e-8, C=C).fit(*two) for C in Cs]
    assert path[0].n_iter_ == alone[0].n_iter_
    assert sum(m.n_iter_ for m in path[1:]) < sum(m.n_iter_ for m in alone[1:])


def test_a_path_checks_every_c(two):
    with pytest.raises(ValueError, match=r"C=-1\.0"):
        svc().fit_path(*two, [1.0, -1.0])


def test_progress_bar_runs_along_a_path(two, capsys):
    models = svc().set_callbacks(ProgressBar()).fit_path(*two, [0.1, 1.0])
    assert [m.C for m in models] == [0.1, 1.0]
    assert "KernelSVC" in capsys.readouterr().out


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_every_model_of_a_path_keeps_feature_names(frame, two):
    X, y = two
    path = svc().fit_path(frame(dict(zip("abc", X.T, strict=True))), y, [1.0, 2.0])
    assert [m.feature_names_in_.tolist() for m in path] == [["a", "b", "c"]] * 2


def test_rows_of_weight_zero_keep_their_columns_of_a_precomputed_matrix(two):
    X, y = two
    weight = np.ones(len(y))
    weight[:40] = 0
    given = svc("precomputed", tol=1e-9).fit(rbf_kernel(X, gamma=2.0), y, sample_weight=weight)
    direct = svc("rbf", gamma=2.0, tol=1e-9).fit(X, y, sample_weight=weight)
    assert given.support_.min() >= 40
    np.testing.assert_allclose(
        given.decision_function(rbf_kernel(X, gamma=2.0)), direct.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_gamma_scale_of_bytes_is_that_of_the_same_floats(container):
    X = np.random.default_rng(0).integers(0, 255, (30, 4)).astype(np.uint8)
    expected = SVC().fit(X.astype(float), np.arange(30) % 2)._gamma
    assert svc(gamma="scale").fit(container(X), np.arange(30) % 2).gamma_ == pytest.approx(expected)


def test_gamma_scale_survives_a_large_offset(two):
    X, y = two
    expected = 1 / (X.shape[1] * X.var())
    assert svc(gamma="scale").fit(X + 1e6, y).gamma_ == pytest.approx(expected, rel=1e-6)


def test_laplacian_clusters_of_integers_are_those_of_the_same_floats():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (120, 4)).astype(np.uint8)
    y = (X[:, 0].astype(int) + X[:, 1] > 200).astype(int)
    sizes = [
        svc("laplacian", gamma=0.01, early=1, random_state=0).fit(Z, y).levels_[0].sizes
        for Z in (X, X.astype(float))
    ]
    np.testing.assert_array_equal(*sizes)


def test_sparse_training_data_is_left_as_it_was(two):
    X, y = two
    sparse = sp.csr_array(np.where(X > 0.8, X, 0).astype(np.float32))
    sparse.data[::3] = 0  # stored zeros
    parts = [a.copy() for a in (sparse.data, sparse.indices, sparse.indptr)]
    for a in (sparse.data, sparse.indices, sparse.indptr):
        a.flags.writeable = False
    svc(gamma=1.0).fit(sparse, y)
    for before, after in zip(parts, (sparse.data, sparse.indices, sparse.indptr), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"gamma": np.inf}, ValueError, "gamma=inf"),
        ({"coef0": np.nan}, ValueError, "coef0=nan is out of range: it must be finite"),
        ({"cache_size": np.inf}, ValueError, "cache_size=inf"),
        ({"checkpoint": 3}, TypeError, "checkpoint"),
        ({"kernel": "poly", "gamma": 1e300, "tol": 1e-9}, ValueError, "overflows"),
        ({"kernel": "precomputed", "early_prediction": "bcm"}, ValueError, "bcm"),
    ],
)
def test_values_that_no_arithmetic_can_hold_are_refused(change, error, message, two):
    with pytest.raises(error, match=message):
        svc(**change).fit(*two)


def test_rows_too_large_for_their_arithmetic_are_refused(two):
    X, y = two
    with pytest.raises(ValueError, match="too large for float32"):
        svc(gamma=1.0).fit(X * 1e25, y)


def test_free_memory_has_an_answer_where_the_system_has_none(monkeypatch):
    def nothing(self, *args, **kwargs):
        raise OSError

    monkeypatch.setattr("pathlib.Path.read_text", nothing)
    assert engine.free_memory() == 4 << 30


def test_numpys_false_is_no_early_level(two):
    exact = svc(early=np.False_, fit_intercept=True).fit(*two)
    assert exact.model_.router is None


def test_an_early_model_measures_its_levels_as_far_as_it_can(two):
    X, y = two
    level = svc(early=1, tol=1e-9, record_levels=True).fit(X, y).levels_[0]
    best = svc(tol=1e-9).fit(X, y).dual_objective_
    assert best - level.bound <= level.whole_objective <= best + 1e-6
    assert np.isnan(level.precision)
    assert np.isnan(level.recall)


def test_a_warm_start_remembers_the_latest_fits_only(two, monkeypatch):
    monkeypatch.setattr("widemargin.kernel.estimator.MOST_DUALS", 2)
    X, y = two
    model = svc(warm_start=True)
    blocks = {}
    for gamma in (1.0, 2.0, 3.0):
        blocks[gamma] = model.set_params(gamma=gamma).fit(X, y).n_iter_
    assert len(model._duals) == 2
    assert model.set_params(gamma=3.0).fit(X, y).n_iter_ < blocks[3.0]
    assert model.set_params(gamma=1.0).fit(X, y).n_iter_ == blocks[1.0]
