"""The kernel machine's parts: kernel values, the exact solver, clusters and levels."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from widemargin import _core
from widemargin.kernel.divide import divide_and_conquer
from widemargin.kernel.estimator import KernelSVC
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.partition import DISTANCE_KERNELS, partition
from widemargin.kernel.rows import Threads, kernel_product
from widemargin.kernel.solver import gap_terms, solve

PARAMETERS = {"rbf": (0.7, 0.0, 3), "poly": (0.5, 1.0, 2), "sigmoid": (0.1, 0.3, 3),
              "laplacian": (0.4, 0.0, 3), "chi2": (0.6, 0.0, 3)}  # fmt: skip


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.random((150, 4))
    y = np.where(np.sin(6 * X[:, 0]) + X[:, 1] > 0.8 + 0.4 * rng.normal(size=150), 1.0, -1.0)
    return X, y


def operands(name, X):
    kernel = make_kernel(name, *PARAMETERS[name], X)
    return kernel, kernel.operand(X, training=True)


def product(kernel, a, b):
    return kernel_product(kernel, a, b, np.eye(len(b)), Threads(1))


def exact(name, X, Z):
    gamma, coef0, degree = PARAMETERS[name]
    extra = {"rbf": {}, "laplacian": {}, "chi2": {}, "sigmoid": {"coef0": coef0},
             "poly": {"coef0": coef0, "degree": degree}}[name]  # fmt: skip
    return pairwise_kernels(X, Z, metric=name, gamma=gamma, **extra)


def test_the_vector_exponential_is_right_to_three_units_in_the_last_place():
    x = np.linspace(0, 79, 1_000_001, dtype=np.float32)
    values = np.zeros((1, len(x)), dtype=np.float32)
    _core.finish_block(values, np.zeros(1, np.float32), x, "rbf", 1.0, 0.0, 3)
    np.testing.assert_allclose(values[0], np.exp(-x.astype(np.float64)), rtol=3e-7)


def test_the_exponential_of_large_distances_is_tiny_and_normal():
    values = np.zeros((1, 3), dtype=np.float32)
    far = np.array([90.0, 1e4, 1e30], dtype=np.float32)
    _core.finish_block(values, np.zeros(1, np.float32), far, "rbf", 1.0, 0.0, 3)
    assert np.all((values > np.finfo(np.float32).tiny) & (values < 1e-34))


@pytest.mark.parametrize("name", PARAMETERS)
def test_kernel_values_are_those_of_scikit_learn(name, data):
    X, _ = data
    kernel, rows = operands(name, X)
    np.testing.assert_allclose(product(kernel, rows[:50], rows), exact(name, X[:50], X), rtol=2e-5)
    np.testing.assert_allclose(kernel.diagonal(rows), np.diag(exact(name, X, X)), rtol=2e-5)


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid"])
def test_sparse_rows_have_the_kernel_values_of_dense_ones(name, data):
    X = np.where(data[0] > 0.5, data[0], 0)
    kernel = make_kernel(name, *PARAMETERS[name], sp.csr_array(X))
    np.testing.assert_allclose(
        product(kernel, kernel.operand(sp.csr_array(X)), kernel.operand(sp.csr_array(X))),
        exact(name, X, X),
        rtol=2e-5,
    )


def test_centring_keeps_distances_far_from_the_origin(data):
    X = data[0] + 1000.0
    kernel, rows = operands("rbf", X)
    np.testing.assert_allclose(product(kernel, rows, rows), exact("rbf", X, X), rtol=1e-3)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian"])
def test_the_solution_is_that_of_the_quadratic_programme(name, C, data):
    X, y = data
    kernel, rows = operands(name, X)
    upper = np.full(len(y), C)
    solution = solve(kernel, rows, y, upper, tol=1e-7)
    Q = y[:, None] * product(kernel, rows, rows) * y
    best = reference.box_qp((Q + Q.T) / 2, upper)
    optimum = best.sum() - 0.5 * best @ Q @ best
    assert solution.converged
    assert solution.dual == pytest.approx(optimum, rel=1e-6)
    assert solution.primal >= optimum * (1 - 1e-9)


def test_the_gap_is_never_below_the_true_error(data):
    X, y = data
    kernel, rows = operands("rbf", X)
    upper = np.full(len(y), 10.0)
    optimum = solve(kernel, rows, y, upper, tol=1e-9).dual
    for record in solve(kernel, rows, y, upper, tol=1e-6).history:
        assert record["gap"] >= optimum - record["dual"] - 1e-7 * optimum


def test_the_dual_never_decreases(data):
    X, y = data
    kernel, rows = operands("rbf", X)
    history = solve(kernel, rows, y, np.full(len(y), 10.0), tol=1e-6).history
    assert len(history) > 1
    assert np.all(np.diff([r["dual"] for r in history]) >= 0)


def test_a_small_cache_computes_rows_again_and_finds_the_same_optimum(data, monkeypatch):
    monkeypatch.setattr("widemargin.kernel.rows.LEAST_SLOTS", 16)
    X, y = data
    kernel, rows = operands("rbf", X)
    upper = np.full(len(y), 10.0)
    large = solve(kernel, rows, y, upper, tol=1e-5)
    small = solve(kernel, rows, y, upper, tol=1e-5, cache_bytes=1.0)
    assert small.n_rows_computed > large.n_rows_computed
    assert small.dual == pytest.approx(large.dual, rel=1e-5)


def test_a_warm_start_needs_fewer_blocks(data):
    X, y = data
    kernel, rows = operands("rbf", X)
    upper = np.full(len(y), 10.0)
    cold = solve(kernel, rows, y, upper, tol=1e-5)
    assert solve(kernel, rows, y, upper, tol=1e-5, alpha=cold.alpha).n_iter == 0


def test_upper_bounds_hold_and_gap_terms_are_not_negative(data):
    X, y = data
    kernel, rows = operands("rbf", X)
    upper = np.random.default_rng(1).random(len(y))
    s = solve(kernel, rows, y, upper, tol=1e-5)
    assert np.all((s.alpha >= 0) & (s.alpha <= upper))
    assert np.all(gap_terms(s.alpha, s.gradient, upper) >= 0)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_a_partition_covers_all_rows_has_no_empty_cluster_and_routes_training_rows(name, data):
    X, _ = data
    kernel, rows = operands(name, X)
    assert (name in DISTANCE_KERNELS) == (name == "rbf")
    rng = np.random.default_rng(0)
    router, label = partition(kernel, rows, 6, np.arange(len(X)), 60, rng, Threads(1))
    assert np.bincount(label).min() > 0
    assert router.n_clusters == label.max() + 1
    np.testing.assert_array_equal(router.assign(rows, Threads(1)), label)


def test_identical_rows_are_one_cluster():
    X = np.ones((40, 3))
    kernel, rows = operands("poly", X)
    rng = np.random.default_rng(0)
    router, label = partition(kernel, rows, 4, np.arange(40), 20, rng, Threads(1))
    assert router.n_clusters == 1
    assert not label.any()


def divided(name, X, y, **changes):
    kernel, rows = operands(name, X)
    settings = {"levels": 1, "branching": 4, "sample_size": 60, "early": None, "tol": 1e-6,
                "max_iter": 10_000, "cache_bytes": 1e8, "n_jobs": None, "n_threads": 1,
                "rng": np.random.default_rng(0), **changes}  # fmt: skip
    upper = np.full(len(y), 10.0)
    return kernel, rows, upper, divide_and_conquer(kernel, rows, y, upper, **settings)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_an_early_model_is_exact_for_the_kernel_cut_between_clusters(name, data):
    """DC-SVM, Lemma 1."""
    X, y = data
    kernel, rows, upper, early = divided(name, X, y, early=1)
    K = product(kernel, rows, rows) * (early.label[:, None] == early.label)
    Q = y[:, None] * (K + K.T) / 2 * y
    best = reference.box_qp(Q, upper)
    value = [a.sum() - 0.5 * a @ Q @ a for a in (early.alpha, best)]
    assert value[0] == pytest.approx(value[1], rel=1e-5)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_the_distance_of_an_early_model_is_bounded_by_the_mass_between_clusters(name, data):
    """DC-SVM, Theorem 1: f(early) - f(best) <= C^2 D / 2."""
    X, y = data
    kernel, rows, upper, early = divided(name, X, y, early=1)
    K = product(kernel, rows, rows)
    Q = y[:, None] * K * y
    mass = np.abs(K)[early.label[:, None] != early.label].sum()
    best = solve(kernel, rows, y, upper, tol=1e-8).dual
    value = early.alpha.sum() - 0.5 * early.alpha @ Q @ early.alpha
    assert best - value >= -1e-6 * best
    assert best - value <= 0.5 * upper[0] ** 2 * mass


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_levels_do_not_change_the_optimum(levels, data):
    X, y = data
    kernel, rows, upper, result = divided("rbf", X, y, levels=levels)
    assert len(result.levels) == levels
    assert result.solution.dual == pytest.approx(
        solve(kernel, rows, y, upper, tol=1e-8).dual, rel=1e-5
    )


@pytest.mark.parametrize("early", [False, 1])
def test_results_do_not_depend_on_threads(early, data):
    X, y = data
    models = [KernelSVC(C=5.0, levels=1, early=early, n_jobs=n, random_state=0).fit(X, y)
              for n in (1, 2)]  # fmt: skip
    np.testing.assert_array_equal(*(m.decision_function(X) for m in models))


def test_the_objective_is_libsvms_where_both_solve_the_same_problem(data):
    """Symmetric data makes the best bias zero, so that SVC's problem has no bias either."""
    X, y = data
    X, y = np.vstack([X - 0.5, 0.5 - X]), np.concatenate([y, -y])
    ours = KernelSVC("poly", C=1.0, gamma=1.0, degree=3, tol=1e-6).fit(X, y)
    theirs = SVC(kernel="poly", C=1.0, gamma=1.0, degree=3, tol=1e-8).fit(X, y)
    assert abs(theirs.intercept_[0]) < 1e-4
    coef = theirs.dual_coef_[0]
    K = pairwise_kernels(theirs.support_vectors_, metric="poly", gamma=1.0, degree=3, coef0=0.0)
    dual = np.abs(coef).sum() - 0.5 * coef @ K @ coef
    assert ours.objective_ == pytest.approx(dual, rel=1e-4)


def test_a_precomputed_matrix_gives_the_model_of_its_kernel(data):
    X, y = data
    K = exact("rbf", X, X)
    ours = KernelSVC("rbf", gamma=PARAMETERS["rbf"][0], tol=1e-6).fit(X[:100], y[:100])
    given = KernelSVC("precomputed", tol=1e-6).fit(K[:100, :100], y[:100])
    np.testing.assert_allclose(
        given.decision_function(K[100:, :100]), ours.decision_function(X[100:]), atol=1e-3
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "cubic"}, "kernel='cubic'"),
        ({"gamma": 0.0}, "gamma=0.0"),
        ({"C": -1}, "C=-1"),
        ({"early": 0}, "early=0"),
        ({"kernel": lambda X, Z: np.ones(3)}, "returned shape"),
        ({"kernel": lambda X, Z: np.full((len(X), len(Z)), np.nan)}, "returned nan"),
    ],
)
def test_bad_parameters_are_named(change, message, data):
    with pytest.raises(ValueError, match=message):
        KernelSVC(**change).fit(*data)


def test_a_precomputed_matrix_must_be_square_and_symmetric(data):
    _, y = data
    with pytest.raises(ValueError, match="square"):
        KernelSVC("precomputed").fit(np.ones((150, 3)), y)
    with pytest.raises(ValueError, match="not symmetric"):
        KernelSVC("precomputed").fit(np.triu(np.ones((150, 150))), y)
