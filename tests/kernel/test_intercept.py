"""The intercept of `KernelSVC`, free as that of SVC, against independent optima."""

import time
import warnings

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from widemargin import KernelSVC

from .helpers import Recorder, kernel_matrix, points

MANY = 2300  # rows, more than those that are solved as few
GAMMA = 2.0
EASY = {"gamma": GAMMA, "coef0": 1.0, "C": 5.0, "random_state": 0}
LOADED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}


@pytest.fixture(autouse=True)
def most_rows():
    """Few rows and many are what they are to users; conftest.py has all of them count as many."""


def matrix(name, X, Z=None):
    return kernel_matrix(name, X, Z, gamma=GAMMA, coef0=1.0)


def signs(model, y):
    """Of every row in every output, 0 where it takes no part."""
    if model.multi_class == "ovr" or len(model.classes_) == 2:
        return reference.signs(y)
    pairs = zip(*np.triu_indices(len(model.classes_), 1), strict=True)
    first, second = np.array(list(pairs)).T
    return 1.0 * (y[:, None] == second) - (y[:, None] == first)


def coefficients(model, n_rows):
    """Of every row in every output."""
    coef = np.zeros((n_rows, model.model_.coef.n_outputs))
    coef[model.support_] = model.model_.coef.dense()
    return coef


def assert_honest(model, K, y, upper, best):
    """The objectives bound the optimum, and the primal one is that of w and b."""
    coef, sign = coefficients(model, len(y)), signs(model, y)
    primal = reference.primal(K, coef, sign, upper, False, model.model_.intercept).sum()
    room = 1e-9 * primal
    assert model.objective_ >= primal - room
    assert model.dual_objective_ <= best.objective + room
    assert model.objective_ - model.dual_objective_ >= primal - best.objective - room
    if len(model.model_.intercept) == 1:
        assert model.duality_gap_ >= (primal - best.objective) / primal - 1e-9
    alpha = coef * sign
    assert np.all((alpha >= 0) & (alpha <= upper[:, None] * (1 + 1e-12)))


def assert_balanced(model):
    coef = model.model_.coef.dense()
    assert np.all(np.abs(coef.sum(axis=0)) <= 1e-6 * np.abs(coef).sum(axis=0))


# ------------------------------------------------------------------ the optimum


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian", "precomputed"])
def test_the_optimum_of_few_rows_is_libsvms(name, weighted, n_classes, multi_class):
    X, y = points(150, n_classes)
    check_optimum(name, X, y, 1.0 + weighted * (np.arange(150) % 4), multi_class, tol=1e-8)


@pytest.mark.parametrize(
    ("name", "weighted", "n_classes", "multi_class"),
    [
        ("rbf", False, 2, "ovo"),
        ("rbf", True, 3, "ovr"),
        ("poly", True, 2, "ovo"),
        ("laplacian", False, 3, "ovr"),
        ("precomputed", True, 2, "ovo"),
    ],
)
def test_the_optimum_of_many_rows_is_libsvms(name, weighted, n_classes, multi_class):
    X, y = points(MANY, n_classes)
    check_optimum(name, X, y, 1.0 + weighted * (np.arange(MANY) % 4), multi_class, tol=1e-6)


def check_optimum(name, X, y, weight, multi_class, tol):
    K = matrix("rbf" if name == "precomputed" else name, X)
    model = KernelSVC(name, **EASY, multi_class=multi_class, tol=tol)
    model.fit(K if name == "precomputed" else X, y, sample_weight=weight)
    best = reference.free_intercepts(K, signs(model, y), 5.0 * weight)
    assert model.duality_gap_ <= tol
    assert model.dual_objective_ == pytest.approx(best.objective, rel=3 * tol)
    assert model.objective_ == pytest.approx(best.objective, rel=3 * tol)
    assert_honest(model, K, y, 5.0 * weight, best)
    assert_balanced(model)


# ------------------------------------------------------------------ as SVC's


def pair_of(name, C, scaled):
    """Our model and SVC's, both very near the optimum."""
    X, y = LOADED[name](return_X_y=True)
    X = StandardScaler().fit_transform(X) if scaled else X
    ours = KernelSVC(C=C, tol=1e-6).fit(X, y)
    theirs = SVC(C=C, tol=1e-9, break_ties=True, decision_function_shape="ovr").fit(X, y)
    return X, y, ours, theirs


each_penalty = pytest.mark.parametrize("C", [0.03, 0.3, 1.0, 10.0, 100.0, 1000.0])
each_set = pytest.mark.parametrize("name", LOADED)
each_scaling = pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])


@pytest.mark.filterwarnings("ignore:Feature")
@each_scaling
@each_set
@each_penalty
def test_predictions_and_intercepts_are_those_of_svc(C, name, scaled):
    X, _, ours, theirs = pair_of(name, C, scaled)
    assert ours.duality_gap_ <= 1e-6
    near = np.sort(theirs.decision_function(X).reshape(len(X), -1), axis=1)
    undecided = np.abs(near[:, 0]) if near.shape[1] == 1 else near[:, -1] - near[:, -2]
    decided = undecided > 1e-4
    assert decided.mean() > 0.97
    np.testing.assert_array_equal(ours.predict(X)[decided], theirs.predict(X)[decided])
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-3)
    assert_balanced(ours)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_an_intercept_that_many_values_suit_is_in_their_middle(multi_class):
    """Where every support vector is at its bound, as at a small C."""
    X, y = load_iris(return_X_y=True)
    model = KernelSVC(C=0.03, tol=1e-6, multi_class=multi_class).fit(X, y)
    coef, sign = coefficients(model, len(y)), signs(model, y)
    K = kernel_matrix("rbf", X, gamma=model.gamma_)
    n_all = 0
    for k, (own, t) in enumerate(zip((K @ coef).T, sign.T, strict=True)):
        alpha, edge = coef[:, k] * t, t - own
        if np.any((alpha > 1e-9) & (alpha < 0.03 - 1e-9)):
            continue
        n_all += 1
        low = edge[((t > 0) & (alpha < 1e-9)) | ((t < 0) & (alpha > 1e-9))].max()
        high = edge[((t < 0) & (alpha < 1e-9)) | ((t > 0) & (alpha > 1e-9))].min()
        assert model.model_.intercept[k] == pytest.approx((low + high) / 2, abs=1e-6)
    assert n_all > 0


@each_set
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_rows_beyond_the_margin_are_no_support_vectors(C, name):
    """They would cost time and memory at every prediction."""
    _, y, ours, theirs = pair_of(name, C, True)
    X = StandardScaler().fit_transform(LOADED[name]().data)
    K = kernel_matrix("rbf", X, gamma=ours.gamma_)
    coef, sign = coefficients(ours, len(y)), signs(ours, y)
    beyond = sign * (K @ coef + ours.model_.intercept) > 1.01
    assert np.count_nonzero(coef[beyond]) == 0
    assert len(ours.support_) <= 1.02 * len(theirs.support_) + 2


# ------------------------------------------------------------------ certificates


class StopAfter(Recorder):
    """Ends a fit after so many blocks."""

    def __init__(self, n_blocks):
        super().__init__()
        self.n_left = n_blocks

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.n_left -= 1
        return self.n_left <= 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", [300, MANY])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_a_fit_that_is_stopped_has_a_true_certificate(name, C, n):
    X, y = points(n)
    K, upper = matrix(name, X), np.full(n, C)
    best = reference.free_intercepts(K, reference.signs(y), upper)
    own = {**EASY, "C": C, "tol": 1e-7}
    for max_iter in (1, 3, 10):
        model = KernelSVC(name, **own, max_iter=max_iter).fit(X, y)
        assert_honest(model, K, y, upper, best)
    for n_blocks in (1, 2, 5):
        model = KernelSVC(name, **own).set_callbacks(StopAfter(n_blocks)).fit(X, y)
        assert_honest(model, K, y, upper, best)


@given(
    n=st.integers(2, 60),
    C=st.sampled_from([1e-2, 1.0, 30.0, 1e3]),
    seed=st.integers(0, 1000),
    max_iter=st.sampled_from([1, 2, 3, 10, 1000]),
    name=st.sampled_from(["rbf", "poly", "laplacian"]),
    tol=st.sampled_from([1e-1, 1e-3, 1e-8]),
)
def test_a_certificate_is_true_whatever_the_data(n, C, seed, max_iter, name, tol):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.permutation(np.arange(n) % 3 == 0) * 1
    weight = rng.uniform(0.1, 2.0, n)
    K = kernel_matrix(name, X, gamma=0.5, coef0=1.0, degree=2)
    own = {"C": C, "gamma": 0.5, "coef0": 1.0, "degree": 2, "tol": tol, "max_iter": max_iter}
    model = KernelSVC(name, **own)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weight)
        upper = C * weight
        best = reference.free_intercepts(K, reference.signs(y), upper)
    assert_honest(model, K, y, upper, best)


@given(seed=st.integers(0, 1000), C=st.sampled_from([0.1, 1.0, 100.0]), n=st.integers(6, 60))
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_noise_is_solved_to_the_default_tolerance(name, seed, C, n):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % 2)
    model = KernelSVC(name, C=C).fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert model.n_iter_ < 1000


# ------------------------------------------------------------------ threads


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_no_bit(n_classes, levels):
    """On so many rows that a round has a working set in every cluster."""
    X, y = points(6000, n_classes)
    how = {"gamma": 20.0, "C": 5.0, "levels": levels, "branching": 4, "random_state": 0}
    one, two = (KernelSVC(**how, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.support_, two.support_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    assert one.duality_gap_ == two.duality_gap_ <= 1e-3
    assert reference.timeless(one.history_) == reference.timeless(two.history_)


def test_clusters_change_the_way_and_not_the_optimum():
    X, y = points(6000)
    how = {"gamma": 20.0, "C": 5.0, "tol": 1e-5, "branching": 4, "random_state": 0}
    with_clusters, without = (KernelSVC(**how, levels=levels).fit(X, y) for levels in (1, 0))
    assert max(with_clusters.duality_gap_, without.duality_gap_) <= 1e-5
    assert with_clusters.objective_ == pytest.approx(without.objective_, rel=2e-5)
    assert_balanced(with_clusters)


# ------------------------------------------------------------------ hardly any data


def within_a_second(model, X, y, **more):
    started = time.perf_counter()
    model.fit(X, y, **more)
    assert time.perf_counter() - started < 5  # a hang, on however busy a machine
    return model


@pytest.mark.parametrize("n", [40, MANY])
def test_a_class_of_weight_zero_is_not_there(n):
    X, y = points(n, 3)
    weight = 1.0 * (y != 1)
    model = within_a_second(KernelSVC(**EASY), X, y, sample_weight=weight)
    alone = KernelSVC(**EASY).fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(model.classes_, [0, 2])
    np.testing.assert_allclose(model.model_.intercept, alone.model_.intercept, atol=1e-6)
    with pytest.raises(ValueError, match="class"):
        KernelSVC().fit(X, y, sample_weight=1.0 * (y == 1))


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n", [40, MANY])
def test_a_class_of_one_row_is_solved(n, multi_class):
    X, _ = points(n)
    y = np.zeros(n, dtype=int)
    y[7] = 1
    model = within_a_second(KernelSVC(**EASY, multi_class=multi_class, tol=1e-6), X, y)
    assert model.duality_gap_ <= 1e-6
    best = reference.free_intercepts(matrix("rbf", X), reference.signs(y), np.full(n, 5.0))
    assert model.dual_objective_ == pytest.approx(best.objective, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [40, MANY])
@pytest.mark.parametrize("share", [0.5, 0.25])
def test_rows_that_are_all_the_same_go_to_the_larger_class(share, n):
    """w = 0 and any intercept on its side: the loss of the smaller class is 2 for each row."""
    y = 1 * (np.arange(n) < share * n)
    X = np.ones((n, 3))
    model = within_a_second(KernelSVC(**EASY), X, y)
    assert model.objective_ == pytest.approx(2 * 5.0 * y.sum(), rel=1e-3)
    assert np.abs(model.model_.intercept) <= 1 + 1e-6
    if share < 0.5:
        assert np.all(model.predict(X) == 0)
