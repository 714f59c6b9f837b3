"""Every competitor against a reference, an optimality condition or a known limit."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.additive_pca import AdditiveKernelPCA
from benchmarks.competitors.cascade import CascadeSVM
from benchmarks.competitors.committees import RandomPartition
from benchmarks.competitors.feature_maps import HomogeneousMap
from benchmarks.competitors.landmarks import KMeansNystroem, RadialUnits
from benchmarks.competitors.lasvm import LaSVM
from benchmarks.competitors.pegasos import Pegasos
from benchmarks.competitors.pwlsgd import PWLSGD, PiecewiseLinearCode, roughness
from benchmarks.competitors.quantisation import UnaryCode
from benchmarks.competitors.random_features import Fastfood, hadamard
from benchmarks.competitors.sikma import SIKMA
from benchmarks.competitors.spsvm import SpSVM
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.linear_model import SGDClassifier
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, LinearSVC

from widemargin import KernelSVC

GAMMA = 2.0


def intersection(A, B):
    return np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2)


@pytest.fixture(scope="module")
def problem():
    """Two classes that overlap, features in [0, 1]."""
    X, y = make_classification(
        300, 6, n_informative=4, n_redundant=0, flip_y=0.1, class_sep=0.7, random_state=0
    )
    return MinMaxScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:300] / 16, y[:300], X[300:] / 16, y[300:]


def signs(y):
    return np.where(y == np.unique(y)[1], 1.0, -1.0)


def dual_value(coef, kernel):
    return np.abs(coef).sum() - coef @ kernel @ coef / 2


OPTIONAL = {"intelex RBF": "sklearnex", "LightGBM": "lightgbm"}
SMALL = {
    "LIBSVM HIK": {"levels": 10, "C": 0.1},
    "Pegasos": {"batch": 8},
    "PWLSGD": {"bins": 5},
    "LIBSVM polynomial": {"gamma": 0.1},
    "CascadeSVM": {"parts": 4},
    "BCM": {"clusters": 4, "C": 10.0},
    "random partition": {"parts": 2},
    "SpSVM": {"basis": 40},
    "LLSVM": {"rank": 100, "gamma": 0.05, "C": 10.0},
    "LTPU": {"number": 100, "gamma": 0.05, "C": 10.0},
    "Fastfood": {"number": 512, "gamma": 0.05, "C": 10.0},
    "Fourier features": {"number": 512, "gamma": 0.05, "C": 10.0},
    "LaSVM": {"gamma": 0.05, "C": 10.0},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(COMPETITORS.keys() - {"EBM"}))  # slow; see its own test
def test_four_classes_are_learned_and_a_clone_learns_the_same(name, digits):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    X, y, X_test, y_test = digits
    model = COMPETITORS[name](**SMALL.get(name, {}))
    first = clone(model).fit(X, y).predict(X_test)
    again = clone(model).fit(X, y).predict(X_test)
    assert np.mean(first == y_test) > 0.85
    np.testing.assert_array_equal(first, again)


def test_a_missing_package_is_named():
    from benchmarks.competitors.optional import MissingPackageError, needed

    with pytest.raises(MissingPackageError, match="pip install no-such-thing"):
        needed("no_such_thing", "no-such-thing")


def test_machines_of_two_classes_say_so(digits):
    with pytest.raises(ValueError, match="separates two classes and y has 4"):
        Pegasos().fit(digits[0], digits[1])


# ------------------------------------------------------------------ LIBLINEAR, LIBSVM


def test_liblinear_solves_the_squared_hinge_without_a_bias(problem):
    X, y = problem
    model = COMPETITORS["LIBLINEAR"](C=0.3, tol=1e-8).fit(X, y)
    slack = np.maximum(0, 1 - signs(y) * (X @ model.coef_[0]))
    np.testing.assert_allclose(model.coef_[0], 2 * 0.3 * (signs(y) * slack) @ X, atol=1e-5)
    assert model.intercept_ == 0


def test_unary_codes_have_the_intersection_kernel_of_equation_13():
    X = np.random.default_rng(0).random((40, 5))
    code = UnaryCode(levels=10).fit(X)
    v = np.clip(np.floor(10 * (X - X.min()) / (np.percentile(X, 97.5) - X.min())), 0, 10)
    np.testing.assert_array_equal(code.quantise(X), v)
    Z = code.transform(X)
    np.testing.assert_array_equal((Z @ Z.T).toarray(), intersection(v, v))
    np.testing.assert_array_equal(code.transform(sp.csr_matrix(X)).toarray(), Z.toarray())


def test_libsvm_hik_is_libsvm_with_that_kernel(problem):
    X, y = problem
    model = COMPETITORS["LIBSVM HIK"](C=1e-2, tol=1e-6).fit(X, y)
    v = model[0].quantise(X).astype(float)
    reference = SVC(kernel=intersection, C=1e-2, tol=1e-6).fit(v, y)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(v), atol=1e-4
    )


def test_libsvm_rbf_has_svm_trains_gamma(problem):
    X, y = problem
    assert COMPETITORS["LIBSVM RBF"]().fit(X, y)._gamma == 1 / 6
    assert COMPETITORS["LIBSVM linear"](C=2.0).fit(X, y).get_params()["C"] == 2.0


def test_intelex_solves_the_same_problem(problem):
    pytest.importorskip("sklearnex")
    X, y = problem
    found = [
        COMPETITORS[name](C=2.0, gamma=GAMMA, tol=1e-5).fit(X, y).decision_function(X)
        for name in ("LIBSVM RBF", "intelex RBF")
    ]
    np.testing.assert_allclose(*found, atol=1e-3)


# ------------------------------------------------------------------ additive kernels


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_chi2_map_is_scikit_learns(n):
    X = np.random.default_rng(0).random((20, 4)) * (np.arange(4) > 0)
    ours = HomogeneousMap("chi2", n, step=0.4).fit_transform(X)
    theirs = AdditiveChi2Sampler(sample_steps=n + 1, sample_interval=0.4).fit_transform(X)
    # columns are in another order: compare what the maps are for
    np.testing.assert_allclose((ours @ ours.T).toarray(), theirs @ theirs.T, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "scalar"),
    [
        ("chi2", lambda x, y: 2 * x * y / (x + y)),
        ("intersection", np.minimum),
        (
            "jensen_shannon",
            lambda x, y: (x * np.log2((x + y) / x) + y * np.log2((x + y) / y)) / 2,
        ),
    ],
)
def test_maps_come_near_their_kernels_as_they_grow(kernel, scalar):
    x = np.linspace(0.05, 1, 30)[:, None]
    true = scalar(x, x.T)

    def error(n):
        z = HomogeneousMap(kernel, n).fit_transform(x)
        return np.abs((z @ z.T).toarray() - true).max()

    assert error(1) < 0.2
    assert error(12) < error(1) / 2
    assert error(12) < 0.05


def test_the_look_up_table_cuts_values_to_its_bins():
    x = np.array([[0.1239], [0.0004], [1.0]])
    cut = HomogeneousMap("chi2", bins=1000).fit(x).transform(x).toarray()
    plain = HomogeneousMap("chi2").fit(x).transform(np.array([[0.123], [0.0], [1.0]])).toarray()
    np.testing.assert_allclose(cut, plain)
    with pytest.raises(ValueError, match="at least 0"):
        HomogeneousMap().fit(x).transform(-x)


def test_libhik_has_three_levels(digits):
    X, y, *_ = digits
    model = COMPETITORS["libHIK"]().fit(X, y)
    values = np.linspace(0, 1, 1000)[:, None] * np.ones((1, 64))
    assert len(np.unique(model.decision_function(values)[:, 0].round(6))) <= 4


def test_pegasos_reaches_the_optimum_of_the_hinge(problem):
    X, y = problem
    C, n = 0.1, len(X)
    reference = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    w = reference.fit(X, y).coef_[0]

    def value(w):
        return w @ w / 2 + C * np.maximum(0, 1 - signs(y) * (X @ w)).sum()

    model = Pegasos(C=C, passes=200, batch=10).fit(X, y)
    assert value(w) <= value(model.coef_) <= 1.01 * value(w)
    assert np.linalg.norm(model.coef_) <= np.sqrt(C * n) * (1 + 1e-12)
    far = SGDClassifier(alpha=1 / (C * n), max_iter=1, tol=None, random_state=0).fit(X, y)
    assert value(far.coef_[0]) > value(model.coef_)


def test_the_piecewise_linear_code_interpolates_and_has_the_intersection_kernel():
    X = np.array([[0.0, 5.0], [4.0, 9.0], [1.0, 6.0], [3.5, 7.25]])
    Z = PiecewiseLinearCode(4).fit_transform(X)
    ends = Z.toarray().reshape(4, 2, 4)
    np.testing.assert_allclose(ends @ np.arange(1, 5), X - [0, 5])
    kernel = np.einsum("ijb,bc,kjc->ik", ends, np.linalg.inv(roughness(4)), ends)
    np.testing.assert_allclose(kernel[:3, :3], intersection(X - [0, 5], X - [0, 5])[:3, :3])


def test_pwlsgd_reaches_the_optimum_with_its_regulariser(problem):
    X, y = problem
    C, bins = 0.05, 5
    model = PWLSGD(C=C, bins=bins, passes=250, batch=20).fit(X, y)
    Z = model.code_.transform(X).toarray()
    H = np.kron(np.eye(X.shape[1]), roughness(bins))

    def value(w):
        return w @ H @ w / 2 + C * np.maximum(0, 1 - signs(y) * (Z @ w)).sum()

    root = np.linalg.inv(np.linalg.cholesky(H)).T  # H^-1 = root root'
    reference = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    best = root @ reference.fit(Z @ root, y).coef_[0]
    assert value(best) <= value(model.coef_) <= 1.05 * value(best)
    plain = LinearSVC(C=C, loss="hinge", fit_intercept=False).fit(Z, y).coef_[0]
    assert value(plain) > value(model.coef_)  # |w|^2 is another problem


def test_sikma_is_the_kernel_gradient_descent_that_its_tables_stand_for(problem):
    X, y = problem
    X, s = X[:80], signs(y)[:80]
    model = SIKMA(C=0.5, bins=30, passes=2, offset=3, seed=4).fit(X, y[:80])
    values = model._codes(X) / 30 * (model.high_ - model.low_)
    kernel = intersection(values, values)
    rng = np.random.default_rng(4)
    strength, coef = 1 / (0.5 * 80), np.zeros(80)
    for t, i in enumerate(np.concatenate([rng.permutation(80) for _ in range(2)])):
        rate = 1 / (strength * (t + 3))
        violates = s[i] * (kernel[i] @ coef) < 1
        coef *= 1 - rate * strength
        coef[i] += rate * s[i] * violates
    np.testing.assert_allclose(model.decision_function(X), kernel @ coef, atol=1e-9)


def test_additive_pca_is_exact_with_all_components_and_best_with_few():
    X = np.random.default_rng(0).integers(0, 8, (60, 3)) / 7
    full = AdditiveKernelPCA("intersection", rank=8).fit_transform(X)
    np.testing.assert_allclose(full @ full.T, intersection(X, X), atol=1e-9)
    one = AdditiveKernelPCA("intersection", rank=2).fit_transform(X[:, :1])
    true = intersection(X[:, :1], X[:, :1])
    left = np.sort(np.linalg.eigvalsh(true))[:-2]
    np.testing.assert_allclose(np.linalg.norm(one @ one.T - true), np.linalg.norm(left))
    chi2 = AdditiveKernelPCA("chi2", rank=8).fit_transform(X)
    true = (chi2_kernel(X, X, gamma=1e-9) - 1) / 1e-9  # sum of (x - y)^2 / (x + y), negative
    total = X.sum(axis=1)
    np.testing.assert_allclose(chi2 @ chi2.T, (total[:, None] + total + true) / 2, atol=1e-5)


# ------------------------------------------------------------------ landmarks, random features


def test_landmarks_at_every_row_give_the_kernel_itself(problem):
    X, _ = problem
    Z = KMeansNystroem(gamma=GAMMA, n_components=300, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=GAMMA), atol=1e-6)
    few = KMeansNystroem(gamma=GAMMA, n_components=30, random_state=0)
    K, Z = rbf_kernel(X, gamma=GAMMA), few.fit_transform(X)
    assert few.n_components == 30
    values = np.linalg.eigvalsh(K)
    best = np.sqrt((values[:-30] ** 2).sum())  # no 30 columns come nearer
    assert best < np.linalg.norm(Z @ Z.T - K) < 3 * best


def test_units_of_ltpu_stand_at_k_means_centres(problem):
    X, _ = problem
    units = RadialUnits(GAMMA, number=10).fit(X)
    nearest = np.linalg.norm(X[:, None] - units.centres_, axis=2).argmin(axis=1)
    Z = units.transform(units.centres_)
    np.testing.assert_allclose(np.diag(Z), 1.0)
    spread = sum(((X[nearest == c] - units.centres_[c]) ** 2).sum() for c in range(10))
    assert spread < 0.75 * ((X - X.mean(axis=0)) ** 2).sum()


def test_hadamard_is_scipys():
    from scipy.linalg import hadamard as matrix

    Z = np.random.default_rng(0).standard_normal((3, 16))
    np.testing.assert_allclose(hadamard(Z), Z @ matrix(16))


@pytest.mark.parametrize("name", ["Fastfood", "Fourier features"])
def test_random_features_have_the_kernel_in_the_limit(name, problem):
    X, _ = problem
    error = {}
    for number in (64, 16384):
        Z = COMPETITORS[name](gamma=GAMMA, number=number)[0].fit_transform(X[:60])
        error[number] = np.abs(Z @ Z.T - rbf_kernel(X[:60], gamma=GAMMA)).mean()
    assert error[16384] < 0.012
    assert error[16384] < error[64] / 6


def test_rows_of_fastfood_are_as_long_as_gaussian_ones():
    d = 8
    V = Fastfood(number=2 * d * 400, seed=1).fit(np.eye(d)).project(np.eye(d)).T
    lengths = np.linalg.norm(V, axis=1)
    assert abs((lengths**2).mean() - d) < 0.4  # chi-square with d degrees
    assert abs((lengths**2).var() - 2 * d) < 3
    one = np.sort(np.linalg.norm(V[:d], axis=1))
    assert one[-1] > 1.1 * one[0]  # not all equal, as they would be without S


# ------------------------------------------------------------------ kernel machines


def test_spsvm_on_all_rows_is_the_exact_machine(problem):
    X, y = problem
    X, y = X[:120], y[:120]
    model = SpSVM(C=0.7, gamma=GAMMA, basis=120).fit(X, y)
    root = np.linalg.cholesky(rbf_kernel(X, gamma=GAMMA) + 1e-10 * np.eye(120))
    reference = LinearSVC(C=0.7, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(root, y)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(root), atol=1e-3
    )


def test_spsvm_is_optimal_on_its_basis_and_better_than_a_random_one(problem):
    X, y = problem
    s, C = signs(y), 0.7

    def state(rows, b):
        K = rbf_kernel(X, X[rows], gamma=GAMMA)
        slack = np.maximum(0, 1 - s * (K @ b))
        gradient = K[rows] @ b - 2 * C * K.T @ (s * slack)
        return b @ K[rows] @ b / 2 + C * (slack**2).sum(), gradient

    greedy = SpSVM(C=C, gamma=GAMMA, basis=20).fit(X, y)
    value, gradient = state(greedy.basis_, greedy.coef_)
    assert np.abs(gradient).max() < 1e-4
    others = []
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(300)[:20]
        columns = rbf_kernel(X, X[rows], gamma=GAMMA)
        others.append(state(rows, greedy._newton(columns, rows, s, np.zeros(20)))[0])
    assert value < min(others)


def test_lasvm_ends_at_libsvms_optimum(problem):
    X, y = problem
    model = LaSVM(C=2.0, gamma=GAMMA, passes=3, tol=1e-4).fit(X, y)
    reference = SVC(C=2.0, gamma=GAMMA, tol=1e-6).fit(X, y)
    kernel = rbf_kernel(X, gamma=GAMMA)
    found, best = np.zeros(300), np.zeros(300)
    found[model.support_] = model.dual_coef_
    best[reference.support_] = reference.dual_coef_[0]
    assert abs(found.sum()) < 1e-9
    assert np.all(found * signs(y) >= 0)
    assert np.abs(found).max() <= 2.0
    assert dual_value(found, kernel) == pytest.approx(dual_value(best, kernel), rel=1e-4)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X), atol=0.02
    )


def test_one_pass_of_lasvm_comes_near(problem):
    X, y = problem
    kernel = rbf_kernel(X, gamma=GAMMA)
    model = LaSVM(C=2.0, gamma=GAMMA).fit(X, y)
    found, best = np.zeros(300), np.zeros(300)
    found[model.support_] = model.dual_coef_
    reference = SVC(C=2.0, gamma=GAMMA).fit(X, y)
    best[reference.support_] = reference.dual_coef_[0]
    share = dual_value(found, kernel) / dual_value(best, kernel)
    assert 0.95 < share <= 1 + 1e-6


def test_the_cascade_ends_at_libsvms_optimum_after_some_rounds(problem):
    X, y = problem
    kernel = rbf_kernel(X, gamma=GAMMA)

    def value(machine):
        return dual_value(
            np.ravel(machine.dual_coef_), kernel[np.ix_(machine.support_, machine.support_)]
        )

    whole = SVC(C=2.0, gamma=GAMMA).fit(X, y)
    many = CascadeSVM(C=2.0, gamma=GAMMA, parts=8, rounds=20).fit(X, y)
    once = CascadeSVM(C=2.0, gamma=GAMMA, parts=8).fit(X, y)
    np.testing.assert_allclose(many.decision_function(X), whole.decision_function(X), atol=5e-3)
    off = np.abs(once.decision_function(X) - whole.decision_function(X)).max()
    assert off > 5e-3  # one round is not enough, as DC-SVM's Figure 2 has it
    assert value(once) < 0.9999 * value(whole)
    assert value(many) == pytest.approx(value(whole), rel=1e-4)


def test_a_random_partition_solves_its_parts_and_is_worse_than_the_whole(problem):
    X, y = problem
    kernel = rbf_kernel(X, gamma=GAMMA)
    whole = KernelSVC(C=2.0, gamma=GAMMA, fit_intercept=False, tol=1e-6).fit(X, y)
    one = RandomPartition(C=2.0, gamma=GAMMA, parts=1).fit(X, y)
    four = RandomPartition(C=2.0, gamma=GAMMA, parts=4).fit(X, y)
    assert dual_value(one.dual_coef_, kernel) == pytest.approx(whole.dual_objective_, rel=2e-3)
    assert dual_value(four.dual_coef_, kernel) < 0.9 * whole.dual_objective_
    rows = np.array_split(np.random.default_rng(0).permutation(300), 4)[1]
    part = KernelSVC(C=2.0, gamma=GAMMA, fit_intercept=False).fit(X[rows], y[rows])
    own = dual_value(four.dual_coef_[rows], kernel[np.ix_(rows, rows)])
    assert own == pytest.approx(part.dual_objective_, rel=2e-3)


def test_the_committee_is_certain_where_its_rows_are(problem):
    """Two clusters far apart: near one of them only that one has a say."""
    X, y = problem
    far = np.vstack([X, X + 20.0])
    committee = COMPETITORS["BCM"](C=2.0, gamma=GAMMA, clusters=2).fit(far, np.tile(y, 2))
    alone = KernelSVC(C=2.0, gamma=GAMMA, fit_intercept=False).fit(X, y)
    agree = committee.predict(X) == alone.predict(X)
    assert agree.mean() > 0.99


# ------------------------------------------------------------------ today's


def test_boosting_without_interactions_is_additive_and_cannot_learn_a_product():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    trees = COMPETITORS["boosted trees"]().fit(X[:1000], y[:1000])
    additive = COMPETITORS["boosted additive"]().fit(X[:1000], y[:1000])
    assert trees.score(X[1000:], y[1000:]) > 0.9
    assert additive.score(X[1000:], y[1000:]) < 0.6
    a, b, c, d = additive.decision_function([[0.3, 0.4], [0.3, -0.9], [-0.6, 0.4], [-0.6, -0.9]])
    assert a - b == pytest.approx(c - d)  # f(x, y) - f(x, z) does not depend on x


@pytest.mark.parametrize(("name", "package"), [("EBM", "interpret"), ("LightGBM", "lightgbm")])
def test_other_boosters_take_their_settings(name, package):
    pytest.importorskip(package)
    model = COMPETITORS[name](learning_rate=0.05, seed=3)
    assert (model.learning_rate, model.random_state, model.n_jobs) == (0.05, 3, 1)
    if name == "EBM":
        X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
        y = (X[:, 0] * X[:, 1] > 0).astype(int)
        assert model.fit(X, y).score(X, y) < 0.7  # additive
