"""`OneClassSVM` against the textbook's objectives and scikit-learn's optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import OneClassSVM

from .helpers import each_size

SHARES = [0.02, 0.3, 0.9]


def cloud(n=300, d=2, seed=0):
    """Two groups of rows, and some far from both."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 4 * (rng.random(n) < 0.3)[:, None]
    X[rng.random(n) < 0.03] *= 5
    return X


def objectives(model, K, weight):
    """Primal and dual by the textbook, which are equal at the optimum; and the scale of the gap."""
    a = np.zeros(len(K))
    a[model.support_] = model.dual_coef_[0]
    total, score, offset = model.nu * weight.sum(), K @ a, float(model.offset_[0])
    assert a.min() >= 0
    assert np.all(a <= weight * (1 + 1e-12))
    assert a.sum() == pytest.approx(total, rel=1e-9)
    loss = weight @ np.maximum(offset - score, 0)
    return a @ score / 2 - offset * total + loss, -a @ score / 2, a @ score / 2 + loss


@each_size
@pytest.mark.parametrize("nu", SHARES)
@pytest.mark.parametrize("gamma", [0.05, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_optimum(nu, gamma, seed, most_rows):
    X = cloud(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(X))
    model = OneClassSVM(nu=nu, gamma=gamma, tol=1e-6).fit(X, sample_weight=weight)
    primal, dual, size = objectives(model, rbf_kernel(X, gamma=gamma), weight)
    assert primal - dual <= model.duality_gap_ * model.objective_ + 1e-9 * size
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(size, rel=1e-8)


@each_size
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_same_as_scikit_learn(nu, most_rows):
    X = cloud()
    ours = OneClassSVM(nu=nu, gamma=0.3, tol=1e-10).fit(X)
    theirs = svm.OneClassSVM(nu=nu, gamma=0.3, tol=1e-9).fit(X)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-4)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert ours.dual_coef_.shape == (1, len(ours.support_))
    assert np.mean(ours.predict(X) < 0) <= nu + 1e-9
    assert len(ours.support_) >= nu * len(X) - 1e-9
    np.testing.assert_array_equal(ours.fit_predict(X), ours.predict(X))


@pytest.mark.parametrize("nu", [1.0, 1e-3])
def test_the_ends_of_nu(nu):
    X = cloud(50)
    model = OneClassSVM(nu=nu, gamma=0.3, tol=1e-8).fit(X)
    primal, dual, size = objectives(model, rbf_kernel(X, gamma=0.3), np.ones(50))
    assert primal - dual <= 1e-8 * size
    assert len(model.support_) == 50 if nu == 1 else len(model.support_) > 0


# ------------------------------------------------------------------ invariances


@each_size
def test_weights_are_copies(most_rows):
    X = cloud(200)
    copies = np.random.default_rng(2).integers(0, 3, len(X))
    weighted = OneClassSVM(nu=0.2, gamma=0.3, tol=1e-9).fit(X, sample_weight=copies)
    repeated = OneClassSVM(nu=0.2, gamma=0.3, tol=1e-9).fit(np.repeat(X, copies, axis=0))
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-7)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-3)


@each_size
def test_dense_is_sparse(most_rows):
    X = cloud(200, 5) * (np.random.default_rng(3).random((200, 5)) < 0.4)
    dense, sparse = (OneClassSVM(nu=0.2, gamma=0.3, tol=1e-9).fit(A) for A in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.objective_, sparse.objective_, rtol=1e-7)
    np.testing.assert_allclose(
        dense.score_samples(X), sparse.score_samples(sp.csr_array(X)), rtol=1e-3
    )


@each_size
def test_threads_change_no_bit(most_rows):
    X = cloud(900)
    models = [OneClassSVM(nu=0.3, gamma=0.3, n_jobs=n).fit(X) for n in (1, 3)]
    for name in ("dual_coef_", "intercept_", "support_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))


def test_kernels_and_matrices():
    X = cloud(150)
    K = rbf_kernel(X, gamma=0.3)
    plain = OneClassSVM(nu=0.2, gamma=0.3, tol=1e-9).fit(X)
    matrix = OneClassSVM("precomputed", nu=0.2, tol=1e-9).fit(K)
    np.testing.assert_allclose(matrix.score_samples(K), plain.score_samples(X), rtol=1e-4)
    linear = OneClassSVM("linear", nu=0.2, tol=1e-9).fit(X + 5)
    theirs = svm.OneClassSVM(kernel="linear", nu=0.2, tol=1e-9).fit(X + 5)
    np.testing.assert_allclose(linear.coef_, theirs.coef_, rtol=1e-3)
    for kernel in ("poly", "laplacian"):
        model = OneClassSVM(kernel, nu=0.2, gamma=0.1, coef0=1.0, degree=2).fit(X)
        assert model.duality_gap_ <= 1e-3


# ------------------------------------------------------------------ ways to fit


def test_levels_lead_to_the_same_optimum_and_early_models_are_near():
    X = cloud(3000)
    whole = OneClassSVM(nu=0.1, gamma=2.0, levels=0, tol=1e-5).fit(X)
    divided = OneClassSVM(nu=0.1, gamma=2.0, levels=2, tol=1e-5, random_state=0).fit(X)
    assert divided.levels_[0].n_clusters > 1
    np.testing.assert_allclose(divided.objective_, whole.objective_, rtol=2e-5)
    early = OneClassSVM(nu=0.1, gamma=2.0, early=1, random_state=0).fit(X)
    assert early.model_.router is not None
    assert np.mean(early.predict(X) < 0) == pytest.approx(0.1, abs=2e-3)
    assert np.mean(early.predict(X) == whole.predict(X)) > 0.9


def test_checkpoint_and_warm_start(tmp_path):
    X = cloud(400)
    how = {"gamma": 0.3, "tol": 1e-6, "random_state": 0}
    first, second = (OneClassSVM(**how, checkpoint=tmp_path).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    warm = OneClassSVM(**how, nu=0.3, warm_start=True).fit(X)
    again = warm.set_params(nu=0.25).fit(X)
    np.testing.assert_allclose(
        again.objective_, OneClassSVM(**how, nu=0.25).fit(X).objective_, rtol=3e-6
    )


def test_parameters_are_checked():
    for nu in (0, -1, 1.5, "half", np.nan):
        with pytest.raises((ValueError, TypeError), match="nu"):
            OneClassSVM(nu=nu).fit(cloud(20))
    with pytest.raises(AttributeError, match="nu instead of C"):
        OneClassSVM().fit_path(cloud(20), None, [1.0])
