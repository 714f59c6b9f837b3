"""`NuSVC` and `NuSVR` against the textbook's objectives and scikit-learn's optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelSVC, KernelSVR, NuSVC, NuSVR, load, save

from .helpers import each_size


def classes(n=200, seed=0, k=2):
    return make_classification(
        n, 6, n_informative=5, n_redundant=0, n_classes=k, class_sep=0.5, random_state=seed
    )


def numbers(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(3, n)


def of_classes(model, K, sign, weight):
    """Primal and dual of nu-SVC by the textbook, and the size that the gap is compared with."""
    a = np.zeros(len(K))
    C = model.C_[0]
    a[model.support_] = model.dual_coef_[0] * sign[model.support_] / C
    total, score = model.nu * weight.sum(), K @ (sign * a)
    assert a.min() >= -1e-12
    assert np.all(a <= weight * (1 + 1e-9))
    assert a.sum() == pytest.approx(total, rel=1e-7)
    assert sign @ a == pytest.approx(0, abs=1e-7 * total)
    loss = weight @ np.maximum(1 / C - sign * (score + model.intercept_[0] / C), 0)
    quadratic = a * sign @ score / 2
    return quadratic - total / C + loss, -quadratic, quadratic + loss


@each_size
@pytest.mark.parametrize("nu", [0.1, 0.4, 0.75])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_optimum_of_classes(nu, gamma, seed, most_rows):
    X, y = classes(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.8, 1.2, len(X))
    model = NuSVC(nu=nu, gamma=gamma, tol=1e-6).fit(X, y, sample_weight=weight)
    assert model.duality_gap_ <= 1e-6
    primal, dual, size = of_classes(model, rbf_kernel(X, gamma=gamma), 2.0 * y - 1, weight)
    assert primal - dual <= model.duality_gap_ * size + 1e-9 * size
    assert size * model.C_[0] ** 2 == pytest.approx(model.objective_, rel=1e-5)


@each_size
@pytest.mark.parametrize("nu", [0.02, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_optimum_of_numbers(nu, C, seed, most_rows):
    X, y = numbers(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(X))
    model = NuSVR(nu=nu, C=C, gamma=0.3, tol=1e-6).fit(X, y, sample_weight=weight)
    assert model.duality_gap_ <= 1e-6
    b, K = np.zeros(len(X)), rbf_kernel(X, gamma=0.3)
    b[model.support_] = model.dual_coef_[0]
    total, score, epsilon = C * nu * weight.sum(), K @ b, model.epsilon_[0]
    assert np.all(np.abs(b) <= C * weight * (1 + 1e-9))
    assert np.abs(b).sum() <= total * (1 + 1e-7)
    assert b.sum() == pytest.approx(0, abs=1e-7 * total)
    loss = np.maximum(np.abs(y - score - model.intercept_[0]) - epsilon, 0)
    primal = b @ score / 2 + epsilon * total + C * weight @ loss
    dual = y @ b - b @ score / 2
    assert primal - dual <= (model.duality_gap_ + 1e-9) * model.objective_
    assert primal == pytest.approx(model.objective_, rel=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_same_as_scikit_learn_of_classes(kernel, n_classes):
    X, y = classes(240, k=n_classes)
    how = {
        "kernel": kernel,
        "nu": 0.92 if kernel == "linear" else 0.6,
        "gamma": 0.2,
        "coef0": 1.0,
        "degree": 2,
    }
    how |= {"decision_function_shape": "ovo", "break_ties": False}
    ours = NuSVC(**how, tol=1e-9).fit(X, y)
    theirs = svm.NuSVC(**how, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), rtol=1e-3, atol=1e-3
    )
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
    if n_classes == 2 and kernel != "linear":  # whose variables are not unique
        coef = np.zeros((2, len(X)))
        coef[0, ours.support_], coef[1, theirs.support_] = ours.dual_coef_, theirs.dual_coef_
        np.testing.assert_allclose(coef[0], coef[1], atol=1e-3 * np.abs(coef).max())


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_same_as_scikit_learn_of_numbers(kernel):
    X, y = numbers()
    ours = NuSVR(kernel, nu=0.3, C=5, gamma=0.2, tol=1e-5).fit(X, y)
    theirs = svm.NuSVR(kernel=kernel, nu=0.3, C=5, gamma=0.2, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-2)


def test_the_machine_is_that_of_its_c_and_epsilon():
    X, y = classes()
    found = NuSVC(nu=0.5, gamma=0.3, tol=1e-8).fit(X, y)
    same = KernelSVC(C=found.C_[0], gamma=0.3, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), same.decision_function(X), atol=1e-3)
    assert found.objective_ == pytest.approx(same.objective_, rel=1e-6)
    X, y = numbers()
    found = NuSVR(nu=0.3, C=10, gamma=0.3, tol=1e-8).fit(X, y)
    same = KernelSVR(C=10, epsilon=found.epsilon_[0], gamma=0.3, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(found.predict(X), same.predict(X), atol=1e-3)


@each_size
def test_what_nu_says(most_rows):
    X, y = classes(300)
    model = NuSVC(nu=0.4, gamma=0.3, tol=1e-7).fit(X, y)
    misses = (2 * y - 1) * model.decision_function(X) < 1 - 1e-4
    assert misses.mean() <= 0.4 <= len(model.support_) / len(X)
    X, y = numbers(300)
    model = NuSVR(nu=0.4, C=10, gamma=0.3, tol=1e-7).fit(X, y)
    outside = np.abs(y - model.predict(X)) > model.epsilon_[0] * (1 + 1e-4)
    assert outside.mean() <= 0.4 <= len(model.support_) / len(X)


def test_infeasible_and_hopeless_nu():
    X, y = classes(100)
    X, y = X[:80], np.append(y[:80][:0], np.arange(80) < 20).astype(int)
    NuSVC(nu=0.5).fit(X, y)  # just feasible
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.6).fit(X, y)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.4).fit(X, y, sample_weight=np.where(y, 0.3, 1.0))
    overlapping = np.repeat([[0.0], [1.0]], 20, axis=0)
    half = np.tile([0, 1], 20)
    too_small = pytest.warns(UserWarning, match="nu=0.1 is too small for these data")
    with pytest.warns(UserWarning, match="NuSVC stopped with"), too_small:
        hopeless = NuSVC("linear", nu=0.1).fit(overlapping, half)
    assert not hopeless.converged_
    for nu in (0, -1, 1.5, "half", np.nan):
        with pytest.raises((ValueError, TypeError), match="nu"):
            NuSVC(nu=nu).fit(X, y)
        with pytest.raises((ValueError, TypeError), match="nu"):
            NuSVR(nu=nu).fit(X, y)
    with pytest.raises(AttributeError, match="nu instead of C"):
        NuSVC().fit_path(X, y, [1, 2])


def test_equal_rows_with_other_targets():
    """Here the sum of |b| jumps as epsilon grows, and the solution is a mixture."""
    X = np.repeat(np.arange(6.0)[:, None], 10, axis=0)
    y = np.tile([-1.0, 1.0], 30)
    model = NuSVR(nu=0.33, C=2, gamma=1.0, tol=1e-6).fit(X, y)
    theirs = svm.NuSVR(nu=0.33, C=2, gamma=1.0, tol=1e-9).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-2)
    constant = NuSVR(nu=0.5)
    with pytest.warns(UserWarning, match="in every row"):
        constant.fit(X, np.full(60, 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0)


def test_several_targets_and_a_path():
    X, y = numbers()
    both = NuSVR(C=5, nu=0.3, tol=1e-7).fit(X, np.stack([y, 100 * y[::-1]], axis=1))
    for k, target in enumerate([y, 100 * y[::-1]]):
        alone = NuSVR(C=5, nu=0.3, tol=1e-7).fit(X, target)
        np.testing.assert_allclose(both.predict(X)[:, k], alone.predict(X), atol=1e-3 * 100**k)
        np.testing.assert_allclose(both.epsilon_[k], alone.epsilon_[0], rtol=1e-3)
    for model in NuSVR(nu=0.3, tol=1e-7).fit_path(X, y, [1.0, 10.0]):
        alone = NuSVR(C=model.C, nu=0.3, tol=1e-7).fit(X, y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-6)


@each_size
def test_weights_are_copies_and_sparse_is_dense(most_rows):
    X, y = classes(200)
    X *= np.random.default_rng(1).random(X.shape) < 0.6
    copies = np.random.default_rng(2).integers(0, 3, len(X))
    weighted = NuSVC(nu=0.4, gamma=0.3, tol=1e-8).fit(X, y, sample_weight=copies)
    repeated = NuSVC(nu=0.4, gamma=0.3, tol=1e-8).fit(
        np.repeat(X, copies, axis=0), np.repeat(y, copies)
    )
    np.testing.assert_allclose(weighted.C_, repeated.C_, rtol=1e-4)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-3
    )
    sparse = NuSVC(nu=0.4, gamma=0.3, tol=1e-8).fit(sp.csr_array(X), y, sample_weight=copies)
    np.testing.assert_allclose(sparse.C_, weighted.C_, rtol=1e-4)


@each_size
def test_threads_change_no_bit(most_rows):
    X, y = classes(700, k=3)
    models = [NuSVC(nu=0.4, n_jobs=n).fit(X, y) for n in (1, 3)]
    for name in ("dual_coef_", "intercept_", "support_", "C_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))


@each_size
def test_a_time_limit_keeps_an_honest_gap(most_rows):
    X, y = classes(600)
    with pytest.warns(UserWarning, match="time limit"):
        model = NuSVC(nu=0.3, gamma=0.5, max_seconds=1e-6).fit(X, y)
    assert model.duality_gap_ > 1e-3
    assert np.isfinite(model.decision_function(X)).all()


def test_saved_and_loaded(tmp_path):
    X, y = classes(k=3)
    model = NuSVC(nu=0.4).fit(X, y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    np.testing.assert_array_equal(model.C_, again.C_)
    X, y = numbers()
    model = NuSVR(nu=0.4).fit(X, y)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(model.epsilon_, load(tmp_path / "m").epsilon_)
