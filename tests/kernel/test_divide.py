"""Divide and conquer against Lemma 1 and Theorem 1 of the DC-SVM paper."""

import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest
import reference
from sklearn.datasets import make_moons

from widemargin import KernelSVC
from widemargin.engine import Threads
from widemargin.kernel import divide, tasks
from widemargin.kernel.backend import Host
from widemargin.kernel.divide import (
    Division,
    FitState,
    Plan,
    Services,
    TrainingRows,
    across_mass,
    divide_and_conquer,
    with_levels,
)
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.problems import Variables, binary_problems
from widemargin.kernel.solver import SolverSettings, solve
from widemargin.multiclass import Coding

from .helpers import kernel_matrix, points

ONE = Host(1)
C = 10.0
TOL = 1e-9
PLAN = Plan(
    levels=1,
    branching=4,
    sample_size=60,
    early=None,
    seed=0,
    settings=SolverSettings(TOL, max_iter=10_000, cache_bytes=1e8),
)
PARAMETERS = {
    "rbf": {"gamma": 3.0, "coef0": 0.0, "degree": 3},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
}

multi_class = pytest.mark.parametrize(
    ("n_classes", "scheme", "n_problems"),
    [(2, "ovr", 1), (4, "ovr", 4), (4, "ovo", 6), (4, "group", 1)],
)
each_kernel = pytest.mark.parametrize("name", PARAMETERS)


@dataclass(frozen=True)
class Task:
    """Rows, their binary problems, and the matrix by scikit-learn's kernels."""

    kernel: object
    rows: object
    problems: list
    X: np.ndarray
    K: np.ndarray

    def run(self, *, alphas=None, tol=TOL, n_jobs=1, **changes) -> FitState:
        state = FitState(alphas or [np.zeros(len(p)) for p in self.problems])
        plan = replace(PLAN, settings=replace(PLAN.settings, tol=tol), **changes)
        own = KernelRows.of_data(self.kernel, self.rows, self.X, np.arange(len(self.X)))
        data = TrainingRows(own, own)
        services = Services(Host(n_jobs), Threads(n_jobs))
        divide_and_conquer(state, Division(data, self.problems, plan, services))
        return state

    def cut(self, label):
        """The kernel with zeros between clusters."""
        return self.K * (label[:, None] == label)

    def distance(self, label):
        """Theorem 1's D(pi)."""
        return np.abs(self.K)[label[:, None] != label].sum()

    def own_gap(self, level):
        """Primal minus dual of the clusters' own problems, of the first binary one."""
        p, cut = self.problems[0], self.cut(level.label)
        gradient = matrix_of(p, cut) @ level.alpha - 1
        return level.alpha @ gradient + p.upper @ np.maximum(-gradient, 0)


def matrix_of(p, K):
    """Of a group: nothing between one of its problems and another."""
    Q = p.sign[:, None] * K[np.ix_(p.row, p.row)] * p.sign
    Q[p.output_of[:, None] != p.output_of] = 0
    return (Q + Q.T) / 2


def residual(p, alpha, K):
    """How far a projected gradient step moves; 0 at the optimum only."""
    gradient = matrix_of(p, K) @ alpha - 1
    return np.abs(np.clip(alpha - gradient, 0, p.upper) - alpha).max()


def value(p, alpha, K):
    return alpha.sum() - 0.5 * alpha @ matrix_of(p, K) @ alpha


def optimum(p, K):
    return value(p, reference.box_qp(matrix_of(p, K), p.upper), K)


def task(name="rbf", n_classes=2, scheme="ovr", n=150, dtype=np.float64) -> Task:
    X, label = points(n, n_classes)
    kernel = make_kernel(name, **PARAMETERS[name], X=X, dtype=dtype)
    upper = C * np.random.default_rng(1).uniform(0.3, 1.0, n)
    grouped, coding = scheme == "group", Coding("ovr" if scheme == "ovr" else "ovo", n_classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.kernel.problems.SMALL_CLASS", n)
        problems = binary_problems(label, coding, upper, grouped=grouped)
    K = kernel_matrix(name, X, **PARAMETERS[name])
    return Task(kernel, kernel.training_rows(X, np.arange(len(X))), problems, X, K)


# ------------------------------------------------------------------ the paper's statements


@multi_class
@each_kernel
@pytest.mark.parametrize("levels", [1, 2])
def test_an_early_model_is_exact_for_the_kernel_cut_between_clusters(
    levels, name, n_classes, scheme, n_problems
):
    """DC-SVM, Lemma 1, for every binary problem, at the lowest level and above another."""
    t = task(name, n_classes, scheme)
    early = t.run(levels=levels, early=1)
    assert len(t.problems) == len(early.alphas) == n_problems
    assert early.solutions == []
    assert [level.level for level in early.levels] == list(range(levels, 0, -1))
    assert early.label.max() > 0
    cut = t.cut(early.label)
    for p, alpha in zip(t.problems, early.alphas, strict=True):
        assert residual(p, alpha, cut) <= 1e-5
        assert value(p, alpha, cut) == pytest.approx(optimum(p, cut), rel=1e-8)
        assert residual(p, alpha, t.K) > 1e-2  # it is another problem than the whole one


@multi_class
@each_kernel
def test_the_distance_of_an_early_model_is_bounded_by_the_mass_between_clusters(
    name, n_classes, scheme, n_problems
):
    """DC-SVM, Theorem 1: 0 <= f(early) - f(best) <= C^2 D / 2."""
    t = task(name, n_classes, scheme)
    early = t.run(early=1)
    bound = 0.5 * C**2 * t.distance(early.label)
    for p, alpha in zip(t.problems, early.alphas, strict=True):
        distance = optimum(p, t.K) - value(p, alpha, t.K)
        assert 0 < distance <= bound


@multi_class
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_levels_do_not_change_the_optimum(levels, n_classes, scheme, n_problems):
    t = task("rbf", n_classes, scheme)
    result = t.run(levels=levels)
    assert [level.level for level in result.levels] == list(range(levels, -1, -1))
    assert len(result.solutions) == n_problems
    for p, alpha, solution in zip(t.problems, result.alphas, result.solutions, strict=True):
        assert solution.relative_gap <= TOL
        assert residual(p, alpha, t.K) <= 1e-5
        assert solution.dual == pytest.approx(optimum(p, t.K), rel=1e-7)


def test_the_whole_problem_has_an_intercept_and_its_levels_have_none():
    t = task()
    (p,) = t.problems
    free = replace(t, problems=[replace(p, has_offset=True)]).run(levels=1, record=True)
    without = t.run(levels=1, record=True)
    np.testing.assert_array_equal(free.levels[0].alpha, without.levels[0].alpha)
    assert abs(p.sign @ without.alphas[0]) > 1e-2
    assert abs(p.sign @ free.alphas[0]) <= 1e-6
    assert free.solutions[0].dual < without.solutions[0].dual


# ------------------------------------------------------------------ what a level starts from


@pytest.fixture
def starts(monkeypatch):
    """The starts that `solve` got, in its order."""
    found = []

    def spy(problem, backend, settings, alpha, on_step, *more):
        found.append(alpha.copy())
        return solve(problem, backend, settings, alpha, on_step)

    monkeypatch.setattr(tasks, "solve", spy)
    return found


def by_size(label):
    sizes = np.bincount(label)
    return [np.flatnonzero(label == c) for c in np.lexsort([np.arange(len(sizes)), -sizes])]


def test_every_level_starts_from_the_variables_of_the_one_before(starts):
    t = task()
    result = t.run(levels=2, record=True)
    lower, upper, _ = result.levels
    assert len(starts) == lower.n_clusters + upper.n_clusters + 1
    for start in starts[: lower.n_clusters]:
        assert not start.any()
    for rows, start in zip(by_size(upper.label), starts[lower.n_clusters : -1], strict=True):
        np.testing.assert_array_equal(start, lower.alpha[rows])
    np.testing.assert_array_equal(starts[-1], upper.alpha)
    assert np.any(upper.alpha != lower.alpha)


def test_the_lowest_level_starts_from_the_variables_given(starts):
    t = task()
    given = C * 0.3 * np.random.default_rng(1).random(150)
    result = t.run(alphas=[given.copy()], levels=1, record=True)
    for rows, start in zip(by_size(result.levels[0].label), starts[:-1], strict=True):
        np.testing.assert_array_equal(start, given[rows])


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_every_problem_starts_from_its_own_variables(scheme, starts):
    t = task("rbf", 4, scheme)
    early = t.run(levels=1, early=1)
    starts.clear()
    t.run(levels=1)
    whole = starts[-len(t.problems) :]
    # pairs are solved by size, problems on all rows in their order
    order = np.argsort([-len(p) for p in t.problems], kind="stable")
    for k, start in zip(order, whole, strict=True):
        alpha = early.alphas[k]
        assert len(start) == len(t.problems[k])
        assert start.any()
        # the same clusters, solved to the looser tolerance of a level that is not kept
        assert np.corrcoef(start, alpha)[0, 1] > 0.9


def test_centres_above_the_lowest_level_come_from_support_vectors(monkeypatch):
    candidates = []
    partition = divide.partition

    def spy(kernel, rows, k, chosen, *args):
        candidates.append(chosen)
        return partition(kernel, rows, k, chosen, *args)

    monkeypatch.setattr(divide, "partition", spy)
    result = task().run(levels=2, record=True)
    np.testing.assert_array_equal(candidates[0], np.arange(150))
    np.testing.assert_array_equal(candidates[1], np.flatnonzero(result.levels[0].alpha))
    assert len(candidates[1]) < 150


# ------------------------------------------------------------------ records


@multi_class
def test_the_record_of_a_level_is_that_of_its_clusters(n_classes, scheme, n_problems):
    t = task("rbf", n_classes, scheme)
    early = t.run(levels=1, early=1)
    (level,) = early.levels
    cut = t.cut(early.label)
    pairs = list(zip(t.problems, early.alphas, strict=True))
    assert level.sizes.sum() == 150
    np.testing.assert_array_equal(level.sizes, np.bincount(early.label))
    assert level.n_clusters == len(level.sizes) == early.router.n_clusters
    assert level.objective == pytest.approx(sum(value(p, a, cut) for p, a in pairs), rel=1e-9)
    assert 0 <= level.gap <= TOL
    support = np.unique(np.concatenate([p.row[a > 0] for p, a in pairs]))
    assert level.n_support == len(support)
    assert np.isnan([level.bound, level.precision, level.recall, level.whole_objective]).all()
    assert level.alpha is None


def test_levels_that_are_not_kept_are_solved_to_their_own_tolerance():
    t = task()
    result = t.run(levels=2, record=True)
    assert result.levels[-1].gap <= TOL
    for level in result.levels[:-1]:
        (p,) = t.problems
        cut = t.cut(level.label)
        best = optimum(p, cut)
        assert TOL < level.gap <= PLAN.level_tol
        assert best * (1 - PLAN.level_tol) <= level.objective <= best


def test_recorded_levels_are_measured_against_the_final_variables():
    t = task()
    result = t.run(levels=2, record=True)
    (p,), (final,) = t.problems, result.alphas
    best = optimum(p, t.K)
    for level in result.levels[:-1]:
        found, wanted = set(np.flatnonzero(level.alpha)), set(np.flatnonzero(final))
        assert level.precision == pytest.approx(len(found & wanted) / len(found))
        assert level.recall == pytest.approx(len(found & wanted) / len(wanted))
        assert 0 < level.precision < 1
        assert level.whole_objective == pytest.approx(value(p, level.alpha, t.K), rel=1e-9)
        exact = 0.5 * p.upper.max() ** 2 * t.distance(level.label)
        assert level.bound == pytest.approx(exact + t.own_gap(level), rel=1e-9)
        assert 0 < best - level.whole_objective <= level.bound


def test_the_mass_across_clusters_is_exact_when_the_sample_is_everything():
    t = task("poly")
    label = np.arange(150) % 3
    found = across_mass(t.kernel, t.rows, label, np.random.default_rng(0), ONE)
    assert found == pytest.approx(t.distance(label), rel=1e-10)
    assert across_mass(t.kernel, t.rows, 0 * label, np.random.default_rng(0), ONE) == 0


def test_the_mass_across_clusters_is_estimated_from_a_sample():
    t = task("poly")
    label = np.arange(150) % 3
    found = [
        across_mass(t.kernel, t.rows, label, np.random.default_rng(s), ONE, size=75)
        for s in range(20)
    ]
    assert np.std(found) > 0
    assert np.mean(found) == pytest.approx(t.distance(label), rel=0.05)


# ------------------------------------------------------------------ how deep to divide


CORNERS = 12.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def corners(gamma=1.0, cost=1.0):
    """Four groups of 50 rows that have nothing to do with each other, for gamma = 1."""
    rng = np.random.default_rng(0)
    X = np.repeat(CORNERS, 50, axis=0) + rng.normal(size=(200, 2))
    kernel = make_kernel("rbf", gamma, 0.0, 3, X, np.float64)
    return replace(kernel, cost=cost), kernel.prepare(X)


def depth(kernel, rows, monkeypatch, rows_per_cluster):
    monkeypatch.setattr(divide, "AUTO_ROWS", rows_per_cluster)
    one = Variables(np.arange(len(rows)), *np.ones((3, len(rows))))
    return with_levels(PLAN, kernel, rows, [one], ONE).levels


def test_small_data_is_not_divided(monkeypatch):
    assert depth(*corners(cost=0.0), monkeypatch, divide.AUTO_ROWS) == 0


@pytest.mark.parametrize(("size", "levels"), [(200, 0), (50, 1), (12, 2), (3, 3)])
def test_data_of_a_cheap_kernel_is_divided_by_its_number_of_rows(size, levels, monkeypatch):
    assert depth(*corners(gamma=1e-4, cost=0.0), monkeypatch, size) == levels


def test_data_is_not_divided_where_the_kernel_is_dear_and_couples_everything(monkeypatch):
    assert depth(*corners(gamma=1e-4, cost=1e3), monkeypatch, 12) == 0


def test_data_of_a_dear_kernel_is_divided_into_groups_without_coupling(monkeypatch):
    assert depth(*corners(gamma=1.0, cost=1e3), monkeypatch, 50) == 1


def test_data_of_a_dear_kernel_is_divided_no_deeper_than_its_groups(monkeypatch):
    assert depth(*corners(gamma=0.1, cost=1e3), monkeypatch, 12) == 1


# ------------------------------------------------------------------ threads


@multi_class
@pytest.mark.parametrize("early", [None, 1])
def test_results_do_not_depend_on_jobs(early, n_classes, scheme, n_problems):
    t = task("rbf", n_classes, scheme, dtype=np.float32)
    settings = {"early": early, "levels": 2, "tol": 1e-4}
    one, two, four = (t.run(n_jobs=n, **settings) for n in (1, 2, 4))
    for other in (two, four):
        np.testing.assert_array_equal(one.label, other.label)
        for a, b in zip(one.alphas, other.alphas, strict=True):
            np.testing.assert_array_equal(a, b)
        assert [r.objective for r in one.levels] == [r.objective for r in other.levels]
        assert [s.dual for s in one.solutions] == [s.dual for s in other.solutions]


def test_a_cluster_that_fails_stops_the_others_and_its_error_is_raised(monkeypatch):
    lock, n_calls = threading.Lock(), 0
    waiting, ended = threading.Event(), threading.Event()

    def fake(problem, backend, settings, alpha, on_step, *more):
        nonlocal n_calls
        with lock:
            n_calls += 1
            first = n_calls == 1
        if not first:
            assert waiting.wait(5)
            raise ZeroDivisionError("this cluster fails")
        try:
            for _ in range(500):
                on_step()
                waiting.set()
                ended.wait(0.01)
        except InterruptedError:
            ended.set()
            raise

    monkeypatch.setattr(tasks, "solve", fake)
    with pytest.raises(ZeroDivisionError, match="this cluster fails"):
        task().run(n_jobs=2)
    assert ended.wait(5)


def test_levels_chosen_by_rule_give_the_same_model_as_levels_by_number(monkeypatch):
    monkeypatch.setattr(divide, "AUTO_ROWS", 100)
    X, y = make_moons(400, noise=0.3, random_state=0)
    chosen = KernelSVC(random_state=0).fit(X, y)
    given = KernelSVC(levels=1, random_state=0).fit(X, y)
    assert [level.level for level in chosen.levels_] == [1, 0]
    np.testing.assert_array_equal(chosen.dual_coef_, given.dual_coef_)
