"""Hundreds of classes: pairs by the ten thousand, of which each support vector has few."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC
from sklearn.utils.multiclass import _ovr_decision_function

from widemargin import KernelSVC, _core
from widemargin.kernel import backend, problems
from widemargin.kernel import model as kernel_model
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.problems import binary_problems
from widemargin.multiclass import Coding, pairs_of

from .helpers import Elsewhere, Recorder

N_CLASSES = 40
pytestmark = pytest.mark.parametrize("most_rows", [2048], indirect=True)  # as elsewhere


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(400) % N_CLASSES)
    X = rng.normal(size=(N_CLASSES, 8))[y] + 0.3 * rng.normal(size=(400, 8))
    return KernelSVC(tol=1e-5).fit(X, y), X


def direct(model, X):
    """Decision values of classes by one product with all coefficients."""
    squares = ((X[:, None] - X[model.support_]) ** 2).sum(axis=2)
    pairs = np.exp(-model.gamma_ * squares) @ model.model_.coef.dense() + model.model_.intercept
    return _ovr_decision_function(pairs > 0, pairs, N_CLASSES)


def test_products_with_the_coefficients_of_a_class_are_those_with_all(fitted):
    model, X = fitted
    assert model.dual_coef_.shape == (N_CLASSES - 1, len(model.support_))
    assert_allclose(model.decision_function(X), direct(model, X), rtol=1e-9)


def test_some_rows_at_a_time_give_the_same(fitted, monkeypatch):
    model, X = fitted
    expected = model.decision_function(X)
    monkeypatch.setattr(kernel_model, "_AT_ONCE", 7 * model.model_.coef.n_outputs)
    assert_allclose(model.decision_function(X), expected, rtol=1e-9)


def test_errors_count_rows_from_the_first(monkeypatch):
    X = np.random.default_rng(1).normal(size=(60, 3))
    model = KernelSVC("poly", degree=3).fit(X, np.arange(60) % 6)
    monkeypatch.setattr(kernel_model, "_AT_ONCE", 7 * model.model_.coef.n_outputs)
    X[20] = 1e120  # whose cube is too much for double precision
    with pytest.raises(ValueError, match="Row 20 is too large"):
        model.predict(X)


# ------------------------------------------------------------------ coefficients of pairs


@given(n_classes=st.integers(3, 12))
def test_a_class_has_the_pairs_in_which_its_target_is_not_zero(n_classes):
    targets = Coding("ovo", n_classes).targets
    for number, target in enumerate(targets):
        assert_array_equal(pairs_of(number, n_classes), np.flatnonzero(target))
    assert_array_equal((targets < 0).sum(axis=0), 1)
    assert_array_equal(targets.argmin(axis=0), np.triu_indices(n_classes, 1)[0])
    assert_array_equal(targets.argmax(axis=0), np.triu_indices(n_classes, 1)[1])


@given(sizes=st.lists(st.integers(0, 4), min_size=3, max_size=7))
def test_coefficients_of_pairs_are_a_matrix_with_zeros_for_other_classes(sizes):
    owner = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(len(owner))
    coef = Coefficients(rng.normal(size=(len(owner), len(sizes) - 1)), owner)
    every = np.zeros((len(owner), coef.n_outputs))
    for number, (own, values) in enumerate(zip(owner, coef.values, strict=True)):
        every[number, pairs_of(own, len(sizes))] = values
    assert_array_equal(coef.dense(), every)
    K = rng.normal(size=(5, len(owner)))
    assert_allclose(coef.applied(K), K @ every, rtol=1e-12, atol=1e-12)
    some = np.flatnonzero(rng.random(len(owner)) < 0.5)
    assert_array_equal(coef[some].dense(), every[some])


def test_coefficients_are_kept_as_svc_keeps_them():
    """In its order of vectors and of other classes, with its signs."""
    X, y = few_per_class(6, 8)
    ours = KernelSVC(gamma=0.3, tol=1e-8).fit(X, y)
    theirs = SVC(gamma=0.3, tol=1e-8).fit(X, y)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert_array_equal(ours.support_, theirs.support_)
    assert_array_equal(ours.n_support_, theirs.n_support_)
    assert np.all(ours.dual_coef_ * theirs.dual_coef_ >= 0)


# ------------------------------------------------------------------ pairs that are solved in groups


def few_per_class(n_classes, n_rows, d=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), n_rows))
    return rng.normal(size=(n_classes, d))[y] + 0.7 * rng.normal(size=(len(y), d)), y


@given(sizes=st.lists(st.integers(1, 9), min_size=3, max_size=9), most=st.integers(1, 20))
def test_groups_have_every_pair_of_small_classes_once(sizes, most):
    """And the others are alone; variables are those of the pair."""
    label = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    upper, coding = np.linspace(1, 2, len(label)), Coding("ovo", len(sizes))
    alone = binary_problems(label, coding, upper, grouped=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "SMALL_CLASS", 6)
        patch.setattr(problems, "GROUP_ROWS", most)
        found = binary_problems(label, coding, upper)
    assert sorted(k for p in found for k in p.output) == list(range(coding.n_outputs))
    for p in found:
        ends = np.array([0, len(p)]) if p.group is None else p.group.start
        for output, begin, end in zip(p.output, ends[:-1], ends[1:], strict=True):
            own, pair = p[np.arange(begin, end)], alone[output]
            assert_array_equal(own.row, pair.row)
            assert_array_equal(own.sign, pair.sign)
            assert_array_equal(own.upper, pair.upper)
        if p.group is not None:
            assert max(sizes[c] for c in label[p.row]) <= 6
            assert p.group.n_rows == len(np.unique(p.row)) <= 2 * max(most, 6)


POLY = {"kernel": "poly", "coef0": 1.0, "degree": 2}  # whose diagonal is not constant


@pytest.mark.parametrize("settings", [{}, {"early": 1}, {"kernel": "laplacian"}, POLY])
@pytest.mark.parametrize(("most", "few"), [(20, 2048), (512, 2048), (20, 50)])
@pytest.mark.parametrize("n_rows", [9, 40])  # of 320 rows and more, kernel rows are in order
def test_groups_find_what_pairs_find_alone(settings, most, few, n_rows, monkeypatch):
    X, y = few_per_class(12, n_rows)
    monkeypatch.setattr(problems, "GROUP_ROWS", most)
    monkeypatch.setattr(backend, "MOST_ROWS", few)
    tol = 1e-9 if few == 50 else 1e-10  # the many-row solver is at its limit for poly at 3.5e-10
    how = {"gamma": 0.3, "C": 3.0, "tol": tol, "random_state": 0, **settings}
    grouped = KernelSVC(**how).fit(X, y)
    monkeypatch.setattr(problems, "SMALL_CLASS", 0)
    alone = KernelSVC(**how).fit(X, y)
    assert len(alone.levels_) == len(grouped.levels_)
    if not settings.get("early"):
        assert len(grouped.history_) <= len(alone.history_) == 66
    assert grouped.dual_objective_ == pytest.approx(alone.dual_objective_, rel=2 * tol)
    assert_allclose(grouped.decision_function(X), alone.decision_function(X), atol=1e-4)
    assert grouped.duality_gap_ <= tol


def test_a_group_is_at_the_optimum_of_each_of_its_pairs():
    X, y = few_per_class(5, 8)
    model = KernelSVC(gamma=0.3, C=2.0, tol=1e-12, fit_intercept=False).fit(X, y)
    coef = np.zeros((len(X), 10))
    coef[model.support_] = model.model_.coef.dense()
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    for k, (i, j) in enumerate(zip(*np.triu_indices(5, 1), strict=True)):
        rows = np.flatnonzero((y == i) | (y == j))
        sign = np.where(y[rows] == j, 1.0, -1.0)
        Q = sign[:, None] * K[np.ix_(rows, rows)] * sign
        best = reference.box_qp(Q, np.full(len(rows), 2.0))
        found = coef[rows, k] * sign
        assert found.sum() - found @ Q @ found / 2 == pytest.approx(
            best.sum() - best @ Q @ best / 2, rel=1e-8
        )


def test_the_gap_of_groups_is_that_of_the_worst_pair():
    X, y = few_per_class(12, 9)
    grouped = KernelSVC(gamma=0.3, C=3.0, tol=1e-3, fit_intercept=False).fit(X, y)
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    coef = np.zeros((len(X), 66))
    coef[grouped.support_] = grouped.model_.coef.dense()
    gaps = []
    for k, (i, j) in enumerate(zip(*np.triu_indices(12, 1), strict=True)):
        rows = np.flatnonzero((y == i) | (y == j))
        sign = np.where(y[rows] == j, 1.0, -1.0)[:, None]
        part, own, c = K[np.ix_(rows, rows)], coef[rows, k][:, None], np.full(len(rows), 3.0)
        primal = reference.primal(part, own, sign, c, False).item()
        gaps.append(1 - reference.dual(part, own, c, False).item() / primal)
    assert grouped.duality_gap_ == pytest.approx(max(gaps), abs=1e-6)  # rounding is in it
    assert grouped.duality_gap_ <= 1e-3


@pytest.mark.parametrize("settings", [{}, {"early": 1, "levels": 2}])
def test_groups_have_the_same_bits_in_threads_and_from_checkpoints(settings, tmp_path):
    X, y = few_per_class(12, 40)
    how = {"gamma": 0.3, "random_state": 0, **settings}
    one = KernelSVC(**how).fit(X, y)
    three = KernelSVC(**how, n_jobs=3).fit(X, y)
    assert_array_equal(one.dual_coef_, three.dual_coef_)
    kept = KernelSVC(**how, checkpoint=tmp_path / "parts").fit(X, y)
    again = KernelSVC(**how, checkpoint=tmp_path / "parts").fit(X, y)
    assert_array_equal(one.dual_coef_, kept.dual_coef_)
    assert_array_equal(one.dual_coef_, again.dual_coef_)
    assert again.duality_gap_ == one.duality_gap_


def test_a_step_limit_is_one_of_each_pair():
    X, y = few_per_class(12, 40)
    with pytest.warns(match="relative duality gap"):
        model = KernelSVC(gamma=0.3, C=100.0, max_iter=1, tol=1e-6).fit(X, y)
    assert np.all(model.n_iter_ == 1)
    assert model.duality_gap_ > 1e-6


def test_large_and_small_classes_together(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), [150, 3, 140, 5, 1, 9])
    X = rng.normal(size=(6, 4))[y] + rng.normal(size=(len(y), 4))
    how = {"gamma": 0.3, "tol": 1e-9}
    grouped = KernelSVC(**how).fit(X, y)
    assert len(grouped.history_) == 10  # nine pairs with a large class, and one group of six
    monkeypatch.setattr(problems, "SMALL_CLASS", 0)
    alone = KernelSVC(**how).fit(X, y)
    assert_allclose(grouped.decision_function(X), alone.decision_function(X), atol=1e-3)


def test_groups_have_the_same_bits_in_other_processes(monkeypatch):
    X, y = few_per_class(12, 9)
    monkeypatch.setattr(backend, "MOST_ROWS", 50)  # or they would share a matrix here
    monkeypatch.setattr(problems, "GROUP_ROWS", 30)
    here, there = KernelSVC(gamma=0.3).fit(X, y), Elsewhere(gamma=0.3)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as there.pool:
        there.fit(X, y)
    assert len(here.history_) == 10
    assert_array_equal(here.dual_coef_, there.dual_coef_)


def test_a_callback_stops_groups_before_they_begin():
    """As it stops every other problem: what is there is the model, and its gap is known."""
    X, y = few_per_class(12, 9)
    model = KernelSVC(gamma=0.3).set_callbacks(Recorder(stop_at="level 0"))
    with pytest.warns(match="told to stop"):
        model.fit(X, y)
    assert model.duality_gap_ == pytest.approx(1.0)
    assert np.all(model.n_iter_ == 1)
    assert len(model.support_) == 0


def test_a_warm_start_is_not_taken_from_other_groups():
    X, y = few_per_class(4, 15)
    model = KernelSVC(gamma=0.3, tol=1e-8, warm_start=True).fit(X, y)
    again = model.set_params(record_levels=True, C=2.0).fit(X, y)
    cold = KernelSVC(gamma=0.3, tol=1e-8, C=2.0).fit(X, y)
    assert_allclose(again.decision_function(X), cold.decision_function(X), atol=1e-4)


def test_a_path_goes_on_from_groups():
    X, y = few_per_class(12, 9)
    models = KernelSVC(gamma=0.3, tol=1e-8).fit_path(X, y, [0.1, 1.0])
    cold = KernelSVC(gamma=0.3, tol=1e-8, C=1.0).fit(X, y)
    assert_allclose(models[-1].decision_function(X), cold.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"row": np.array([0, 1, 9])}, "a row is out of range"),
        ({"row": np.array([0, -1, 1])}, "a row is out of range"),
        ({"start": np.array([0, 2])}, "start must span the variables"),
        ({"start": np.array([0, 3, 2, 3])}, "start must ascend"),
        ({"start": np.empty(0, dtype=np.int64)}, "start must not be empty"),
        ({"upper": np.ones(2)}, "upper must be float64"),
        ({"diagonal": np.ones(3)}, "diagonal must be float64"),
    ],
)
def test_the_core_checks_groups(change, said):
    kept = _core.KeptRows(np.eye(4), None)
    kept.add(np.arange(4))
    each = dict.fromkeys(("alpha", "sign", "linear", "upper"), np.ones(3))
    each["alpha"] = np.zeros(3)
    given = {
        "row": np.arange(3),
        "start": np.array([0, 2, 3]),
        "diagonal": np.ones(4),
        **each,
    }
    with pytest.raises(ValueError, match=said):
        _core.SmallProblems(kept, **(given | change))
    group, how = _core.SmallProblems(kept, **given), (1e-3, 0.1, 10, 4, 1.0, False)
    with pytest.raises(ValueError, match="found: four numbers"):
        group.solve(0, *how, np.empty((1, 4)))
    with pytest.raises(ValueError, match="first is out of range"):
        group.solve(3, *how, np.empty((2, 4)))
    with pytest.raises(ValueError, match="all kernel rows must be there"):
        _core.SmallProblems(_core.KeptRows(np.eye(4), None), **given)


def test_time_that_is_up_leaves_problems_for_the_next_call():
    kept = _core.KeptRows(np.eye(4), None)
    kept.add(np.arange(4))
    alpha, found = np.zeros(4), np.full((2, 4), np.nan)
    row, one = np.arange(4), np.ones(4)
    start, sign = np.array([0, 2, 4]), np.array([1.0, -1.0, 1.0, -1.0])
    group = _core.SmallProblems(kept, row, start, alpha, sign, -one, 5 * one, one)
    assert group.solve(1, 1e-9, 0.1, 10, 4, 1.0, False, found) == 2
    assert_array_equal(alpha, [0, 0, 1, 1])
    assert_array_equal(found[0], np.nan)
    assert_allclose(found[1], [1, 0, 1, 0], atol=1e-12)
    alpha[:] = 0
    found[:] = np.nan
    while group.solve(0, 1e-9, 0.1, 10, 4, -1.0, False, found) == 0:
        pass
    assert_array_equal(alpha, [1, 1, 0, 0])  # one in a call, at least and at most
    assert_array_equal(found[1], np.nan)


def test_a_hard_problem_is_left_in_its_middle_and_gone_on_with():
    """To the same bits, whenever the time was up."""
    rng = np.random.default_rng(0)
    K = (rng.normal(size=(120, 3)) @ rng.normal(size=(3, 120)) + 1) ** 2
    K = K @ K.T
    each = np.where(rng.random(120) < 0.5, 1.0, -1.0), -np.ones(120), np.full(120, 1e6)

    def solved(seconds):
        kept = _core.KeptRows(K, None)
        kept.add(np.arange(120))
        alpha, found, start = np.zeros(120), np.zeros((1, 4)), np.array([0, 120])
        group = _core.SmallProblems(kept, np.arange(120), start, alpha, *each, np.diag(K).copy())
        calls = 1
        while group.solve(0, 1e-9, 0.1, 200, 16, seconds, False, found) == 0:
            calls += 1
        return calls, alpha, found

    once, alpha, found = solved(60.0)
    often, same, equal = solved(-1.0)
    assert once == 1 < often
    assert_array_equal(alpha, same)
    assert_array_equal(found, equal)
