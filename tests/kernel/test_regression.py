"""`KernelSVR` against independent optima, and what its targets may be."""

import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.svm import SVR

from widemargin import KernelSVR

from .helpers import Recorder, each_size, kernel_matrix

GAMMA = 2.0
EASY = {"gamma": GAMMA, "coef0": 1.0, "random_state": 0}


def noisy(n=150, d=5, seed=0):
    """Rows, and numbers that depend on them, with some outliers."""
    X, y = make_friedman1(n, max(d, 5), noise=1.0, random_state=seed)
    rng = np.random.default_rng(seed)
    y[rng.random(n) < 0.05] += 30
    return X, y


def coefficients(model, n_rows):
    coef = np.zeros((n_rows, model.coding_.n_outputs))
    coef[model.support_] = model.dual_coef_.T
    return coef


def assert_optimal(model, K, y, c, tol, unit=1.0):
    """Within the tolerance of the independent optimum, and certified on the safe side.

    The reference works in a unit in which numbers are moderate.
    """
    intercept = model.fit_intercept is not False
    scaled = (y / unit, c / unit, model.epsilon / unit)
    best = unit**2 * reference.regression(K, *scaled, intercept=intercept).objective
    coef = coefficients(model, len(y))[:, 0]
    primal = reference.regression_primal(K, coef, y, c, model.epsilon, model.intercept_[0])
    dual = reference.regression_dual(K, coef, y, model.epsilon)
    room = 1e-9 * primal + 1e-14 * c.sum() * np.abs(y).max()
    assert model.duality_gap_ <= tol
    assert np.all(np.abs(coef) <= c * (1 + 1e-12))
    assert model.objective_ >= primal - room
    assert model.dual_objective_ <= best + room
    assert primal - best <= model.duality_gap_ * model.objective_ + room
    if intercept:
        assert abs(coef.sum()) <= 1e-9 * np.abs(coef).sum()
        assert dual <= best + room


@each_size
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian"])
def test_optimum(name, epsilon, fit_intercept, most_rows):
    X, y = noisy()
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    changes = {"degree": 2, "C": 2.0} if name == "poly" else {"C": 5.0}
    how = {"epsilon": epsilon, "fit_intercept": fit_intercept, "tol": 1e-6}
    model = KernelSVR(name, **{**EASY, **changes, **how}).fit(X, y, weight)
    K = kernel_matrix(name, X, gamma=GAMMA, coef0=1.0, degree=2)
    assert_optimal(model, K, y, changes["C"] * weight, 1e-6)


@each_size
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 60),
    C=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    epsilon=st.sampled_from([0.0, 0.01, 0.3, 2.0]),
    fit_intercept=st.booleans(),
    unit=st.sampled_from([1e-6, 1.0, 1e5]),
)
def test_optimum_of_many_problems(seed, n, C, epsilon, fit_intercept, unit, most_rows):
    """Whatever the unit of the targets: C and epsilon are in it too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_t(2, n) + rng.choice([0.0, 5.0])
    weight = rng.choice([0.5, 1.0, 2.0], n)
    how = {"epsilon": epsilon * unit, "C": C * unit, "fit_intercept": fit_intercept, "tol": 1e-7}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of an epsilon that lets all errors pass
        model = KernelSVR(gamma=0.5, **how).fit(X, y * unit, weight)
    K = kernel_matrix("rbf", X, gamma=0.5)
    assert_optimal(model, K, y * unit, C * unit * weight, 1e-7, unit)


@each_size
def test_same_as_scikit_learn(most_rows):
    X, y = noisy(400)
    ours = KernelSVR(C=10.0, epsilon=0.3, gamma=0.1, tol=1e-9).fit(X, y)
    theirs = SVR(C=10.0, epsilon=0.3, gamma=0.1, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert ours.n_support_.tolist() == theirs.n_support_.tolist()


def test_linear_kernel_has_weights():
    X, y = noisy(200)
    ours = KernelSVR("linear", C=1.0, epsilon=0.3, tol=1e-9).fit(X, y)
    theirs = SVR(kernel="linear", C=1.0, epsilon=0.3, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    sparse = KernelSVR("linear", C=1.0, epsilon=0.3, tol=1e-9).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_.toarray(), ours.coef_, atol=1e-4)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = KernelSVR().fit(X, y).coef_


# ------------------------------------------------------------------ invariances


@each_size
def test_weights_are_copies(most_rows):
    X, y = noisy()
    copies = np.random.default_rng(2).integers(0, 3, len(y))
    how = {**EASY, "C": 3.0, "epsilon": 0.2, "tol": 1e-8}
    weighted = KernelSVR(**how).fit(X, y, copies)
    repeated = KernelSVR(**how).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-2)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-7)
    np.testing.assert_array_equal(copies[weighted.support_] > 0, True)


@each_size
def test_dense_is_sparse(most_rows):
    X, y = noisy()
    X *= np.random.default_rng(3).random(X.shape) < 0.3
    how = {**EASY, "C": 3.0, "tol": 1e-8}
    dense, sparse = (KernelSVR(**how).fit(A, y) for A in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.predict(X), sparse.predict(sp.csr_array(X)), atol=1e-2)
    np.testing.assert_allclose(dense.objective_, sparse.objective_, rtol=1e-7)


@each_size
def test_threads_change_no_bit(most_rows):
    X, y = noisy(700)
    Y = np.column_stack([y, -(y**2)])
    models = [KernelSVR(C=10.0, n_jobs=n, random_state=0).fit(X, Y) for n in (1, 3)]
    for name in ("dual_coef_", "intercept_", "support_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))
    np.testing.assert_array_equal(*(model.predict(X) for model in models))


def test_the_order_of_rows_does_not_matter():
    X, y = noisy()
    order = np.random.default_rng(4).permutation(len(y))
    how = {**EASY, "C": 3.0, "tol": 1e-9}
    plain, mixed = KernelSVR(**how).fit(X, y), KernelSVR(**how).fit(X[order], y[order])
    np.testing.assert_allclose(plain.predict(X), mixed.predict(X), atol=1e-3)


def test_several_targets_are_fits_of_their_own():
    X, y = noisy()
    Y = np.column_stack([y, 100 * X[:, 0], 0.1 * y])
    how = {**EASY, "C": 3.0, "tol": 1e-7}
    model = KernelSVR(**how).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    for k, own in enumerate(Y.T):
        alone = KernelSVR(**how).fit(X, own)
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), rtol=1e-2, atol=1e-2)


# ------------------------------------------------------------------ ways to fit


def test_path_warm_start_and_checkpoint(tmp_path):
    X, y = noisy(500)
    how = {"gamma": 0.2, "epsilon": 0.3, "tol": 1e-6}
    for model in KernelSVR(**how).fit_path(X, y, [0.1, 1.0, 10.0]):
        fresh = KernelSVR(**how, C=model.C).fit(X, y)
        np.testing.assert_allclose(model.objective_, fresh.objective_, rtol=2e-6)
    warm = KernelSVR(**how, warm_start=True).fit(X, y)
    again = warm.set_params(C=1.5).fit(X, y)
    fresh = KernelSVR(**how, C=1.5).fit(X, y)
    assert again.n_iter_[0] <= fresh.n_iter_[0]
    np.testing.assert_allclose(again.objective_, fresh.objective_, rtol=2e-6)
    first = KernelSVR(**how, checkpoint=tmp_path, random_state=0).fit(X, y)
    second = KernelSVR(**how, checkpoint=tmp_path, random_state=0).fit(X, y)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    with pytest.raises(ValueError, match="other data"):
        KernelSVR(**how, checkpoint=tmp_path, random_state=0).fit(X, y + X[:, 0])


def test_levels_lead_to_the_same_optimum():
    X, y = noisy(600)
    how = {"gamma": 2.0, "C": 5.0, "tol": 1e-5, "random_state": 0}
    whole = KernelSVR(**how, levels=0).fit(X, y)
    divided = KernelSVR(**how, levels=2, record_levels="exact").fit(X, y)
    np.testing.assert_allclose(divided.objective_, whole.objective_, rtol=2e-5)
    scale = divided.coding_.scale[0] ** 2
    lowest = divided.levels_[0]
    assert lowest.n_clusters > 1
    assert 0 <= divided.dual_objective_ / scale - lowest.whole_objective <= lowest.bound


def test_early_model_is_near_and_has_the_median_for_an_intercept():
    X, y = noisy(2000)
    y += 1000
    early = KernelSVR(gamma=1.0, C=10.0, early=1, random_state=0).fit(X, y)
    assert early.intercept_[0] == np.median(y)
    assert early.model_.router is not None
    assert early.score(X, y) > 0.8 * KernelSVR(gamma=1.0, C=10.0).fit(X, y).score(X, y)
    assert early.duality_gap_ <= 1e-3
    with pytest.raises(ValueError, match="needs the whole problem"):
        KernelSVR(early=True, fit_intercept=True).fit(X, y)


def test_a_callback_and_a_time_limit_end_a_fit():
    X, y = noisy(800)
    recorder = Recorder(stop_at="level 0")
    with pytest.warns(UserWarning, match="KernelSVR stopped with a relative duality gap"):
        model = KernelSVR(C=100.0, tol=1e-9).set_callbacks(recorder).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert any("epoch" in path for path in recorder.ended)
    with pytest.warns(UserWarning, match="time limit"):
        KernelSVR(C=1e5, gamma=50.0, tol=1e-12, max_seconds=1e-9).fit(X, y)


# ------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    ("bad", "said"),
    [(np.nan, "nan in row 3"), (np.inf, "inf in row 3"), ("tall", "'tall' in row 3"),
     (None, "None in row 3")],
)  # fmt: skip
def test_bad_targets_are_named_by_row(bad, said):
    X, y = noisy(10)
    y = y.tolist()
    y[3] = bad
    with pytest.raises(ValueError, match=said):
        KernelSVR().fit(X, y)


@pytest.mark.parametrize("value", [0.0, 7.25, -1e9])
def test_constant_targets_give_the_constant_and_a_warning(value):
    X, _ = noisy(20)
    with pytest.warns(UserWarning, match="in every row"):
        model = KernelSVR().fit(X, np.full(20, value))
    np.testing.assert_array_equal(model.predict(X), value)
    assert len(model.support_) == 0
    assert model.duality_gap_ == 0


def test_an_epsilon_above_the_spread_is_said():
    X, y = noisy(20)
    with pytest.warns(UserWarning, match="epsilon=100.0 lets every error pass"):
        model = KernelSVR(epsilon=100.0).fit(X, y)
    assert len(model.support_) == 0
    assert np.ptp(model.predict(X)) == 0


def test_targets_too_large_are_refused():
    X, y = noisy(20)
    with pytest.raises(ValueError, match="y is too large"):
        KernelSVR().fit(X, y * 1e200)


def test_parameters_of_others_are_refused_by_name():
    with pytest.raises(TypeError, match=r"KernelSVR has no parameter 'loss'.*AdditiveSVR"):
        KernelSVR(loss="squared_epsilon_insensitive")
    with pytest.raises(ValueError, match="epsilon=-1"):
        KernelSVR(epsilon=-1).fit(*noisy(10))
