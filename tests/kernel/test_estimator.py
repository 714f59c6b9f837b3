"""`KernelSVC` as an estimator: the problem it solves, gamma, and scikit-learn's tools around it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from widemargin import KernelSVC

from .helpers import assert_same_function, each_size, points, rbf2, svc, svc_matrix

pytestmark = each_size

# ------------------------------------------------------------------ the problem


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian", "chi2"])
def test_objectives_and_gap_are_those_of_the_dual_variables(name, multi_class, three):
    X, y = three
    model = svc(name, coef0=1.0, tol=1e-6, multi_class=multi_class).fit(X, y)
    K = svc_matrix(name, X)
    coef = np.zeros((len(X), 3))
    coef[model.support_] = model.model_.coef.dense()
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
    assert model.duality_gap_ == pytest.approx(gap, rel=1e-3, abs=1e-9)  # rounding is in it
    assert 0 < gap <= 1e-6


@pytest.mark.parametrize("levels", [0, 1])
def test_the_history_of_each_problem_ends_with_its_certificate(levels, three, most_rows):
    model = svc(tol=1e-6, levels=levels).fit(*three)
    assert len(model.history_) == 3
    last = [run[-1] for run in model.history_]
    assert sum(r["dual"] for r in last) == pytest.approx(model.dual_objective_, rel=1e-9)
    for run in model.history_:
        steps = [r["step"] for r in run]  # one may stand twice: before and after a look at all rows
        assert steps[0] == 0
        assert set(np.diff(steps)) <= set(range(17 if most_rows else 2))  # few rows: up to 16
        duals = np.array([r["dual"] for r in run])
        assert np.all(
            np.diff(duals) >= -1e-9 * duals[-1]
        )  # the last is less what rounding may hide
        assert run[-1]["gap"] <= 1e-6 * (run[-1]["dual"] + run[-1]["gap"])
        assert 0 < run[-1]["active"] <= len(three[0])


@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian"])
def test_the_optimum_is_that_of_the_quadratic_programme(name):
    X, y = points(60)
    model = svc(name, coef0=1.0, tol=1e-9).fit(X, y)
    K = svc_matrix(name, X)
    best = reference.one_vs_rest(K, reference.signs(y), np.full(60, 5.0), squared=False)
    assert model.dual_objective_ == pytest.approx(best.objective, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), (K @ best.coef)[:, 0], atol=1e-3)


@pytest.mark.parametrize("name", ["rbf", "poly", "precomputed"])
def test_the_objective_is_libsvms_where_both_solve_the_same_problem(name):
    """Rows x and -x of opposite labels make the decision odd, so that SVC's free bias is zero."""
    X, y = points(60)
    X, y = np.vstack([X - 0.5, 0.5 - X]), np.concatenate([y, 1 - y])
    K = svc_matrix("laplacian" if name == "precomputed" else name, X)
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


def test_a_tolerance_below_a_ten_thousandth_is_double_precision(two):
    X, y = two
    assert svc(tol=1e-4).fit(X, y).model_.kernel.dtype is np.float32
    model = svc(tol=0.99e-4).fit(X, y)
    assert model.model_.kernel.dtype is np.float64
    K = rbf2(X, X[model.support_])
    np.testing.assert_allclose(
        model.decision_function(X), K @ model.dual_coef_[0], rtol=1e-12, atol=1e-12
    )


# ------------------------------------------------------------------ gamma by name


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_by_name_is_that_of_svc(gamma, sparse, two):
    X, y = two
    X = np.where(X > 0.7, X, 0) + 3.0 * (not sparse)
    X = sp.csr_array(X) if sparse else X
    theirs = SVC(gamma=gamma).fit(sp.csr_matrix(X) if sparse else X, y)._gamma
    assert svc(gamma=gamma).fit(X, y).gamma_ == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize("dtype", [int, float])
def test_gamma_by_name_counts_sample_weights_and_not_class_weights(dtype, two):
    X, y = two
    weight = (1 + y).astype(dtype)
    model = svc(gamma="scale", class_weight="balanced").fit(X, y, sample_weight=weight)
    assert model.gamma_ == pytest.approx(1 / (3 * np.repeat(X, 1 + y, axis=0).var()))


def test_fit_leaves_sample_weights_as_they_were(two):
    weight = np.ones(len(two[1]))
    svc(class_weight={0: 2.0, 1: 3.0}).fit(*two, sample_weight=weight)
    np.testing.assert_array_equal(weight, 1.0)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_gamma_scale_of_bytes_is_that_of_the_same_floats(container):
    X = np.random.default_rng(0).integers(0, 255, (30, 4)).astype(np.uint8)
    expected = SVC().fit(X.astype(float), np.arange(30) % 2)._gamma
    assert svc(gamma="scale").fit(container(X), np.arange(30) % 2).gamma_ == pytest.approx(expected)


def test_gamma_scale_survives_a_large_offset(two):
    X, y = two
    expected = 1 / (X.shape[1] * X.var())
    assert svc(gamma="scale").fit(X + 1e6, y).gamma_ == pytest.approx(expected, rel=1e-6)


def test_constant_data_has_gamma_one():
    assert svc(gamma="scale").fit(np.ones((6, 2)), np.arange(6) % 2).gamma_ == 1.0


# ------------------------------------------------------------------ kernels that the user brings


@pytest.mark.parametrize("early", [False, 1])
def test_a_precomputed_matrix_gives_the_model_of_its_kernel(early):
    X, y = points(160)
    K = rbf2(X, X)
    given = svc("precomputed", tol=1e-10, early=early).fit(K[:100, :100], y[:100])
    if early:  # with the clusters of a user's function, which has no distances either
        direct = svc(rbf2, tol=1e-10, early=early).fit(X[:100], y[:100])
        scores = direct.decision_function(X[100:])
        np.testing.assert_allclose(given.decision_function(K[100:, :100]), scores, atol=1e-3)
    else:
        direct = svc(tol=1e-10).fit(X[:100], y[:100])
        assert_same_function(direct, given, X[100:], K[100:, :100])


def test_rows_of_weight_zero_keep_their_columns_of_a_precomputed_matrix(two):
    X, y = two
    weight = np.ones(len(y))
    weight[:40] = 0
    given = svc("precomputed", tol=1e-10).fit(rbf2(X, X), y, sample_weight=weight)
    direct = svc(tol=1e-10).fit(X, y, sample_weight=weight)
    assert given.support_.min() >= 40
    assert_same_function(direct, given, X, rbf2(X, X))


def test_a_user_kernel_may_take_sparse_rows(two):
    X, y = two
    sparse = svc(rbf2, tol=1e-11).fit(sp.csr_array(X), y)
    assert_same_function(sparse, svc(tol=1e-11).fit(X, y), sp.csr_array(X), X)


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
    ids=lambda changes: "-".join(changes) or "default",
)
def test_pickle_keeps_the_model_to_the_bit(changes, three):
    X, y = three
    model = svc(**changes).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(copy.support_, model.support_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_give_the_model_of_their_values_and_keep_feature_names(frame, two):
    X, y = two
    table = frame(dict(zip("abc", X.T, strict=True)))
    model = svc().fit(table, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(
        model.decision_function(table), svc().fit(X, y).decision_function(X)
    )
    assert KernelSVC().fit(table, y).gamma_ == KernelSVC().fit(X, y).gamma_
