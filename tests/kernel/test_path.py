"""Paths over C, and warm starts."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from widemargin import KernelSVC
from widemargin.kernel import backend, tasks
from widemargin.kernel.cache import CachingKernel
from widemargin.kernel.kernels import FAR

from .helpers import assert_same_function, counting, each_size, points, svc

# ------------------------------------------------------------------ paths


@each_size
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


@each_size
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
    svc(kernel, tol=1e-6).fit_path(numbered, y, [1.0, 10.0, 100.0])
    assert len(computed) == len(set(computed))
    once = len(computed)
    computed.clear()
    for C in (1.0, 10.0, 100.0):
        svc(kernel, tol=1e-6, C=C).fit(numbered, y)
    assert len(computed) > 1.5 * once


def test_pairs_of_classes_along_a_path_keep_kernel_rows_each_for_itself(monkeypatch):
    """They are solved side by side, and threads once wrote to each other's kernel rows."""
    monkeypatch.setattr(backend, "MOST_ROWS", 100)
    seen, original = [], tasks.solve

    def spy(problem, *more):
        seen.append(problem.kernel)
        return original(problem, *more)

    monkeypatch.setattr(tasks, "solve", spy)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 120)).astype(np.float32), np.arange(600) % 3
    found = []
    for n_jobs in (1, 2):
        path = svc(gamma="scale", multi_class="ovo", n_jobs=n_jobs).fit_path(X, y, [0.5, 2.0])
        found.append([model.decision_function(X) for model in path])
    np.testing.assert_array_equal(*found)
    assert all(isinstance(kernel, CachingKernel) for kernel in seen)
    assert len({id(kernel) for kernel in seen}) == 6  # three pairs, with either number of threads
    assert len(seen) == 12


def test_a_path_takes_fewer_blocks_than_separate_fits(two):
    Cs = [8.0, 9.0, 10.0]
    path = svc(tol=1e-8).fit_path(*two, Cs)
    alone = [svc(tol=1e-8, C=C).fit(*two) for C in Cs]
    assert path[0].n_iter_ == alone[0].n_iter_
    assert sum(m.n_iter_ for m in path[1:]) < sum(m.n_iter_ for m in alone[1:])


def test_a_path_checks_every_c(two):
    with pytest.raises(ValueError, match=r"C=-1\.0"):
        svc().fit_path(*two, [1.0, -1.0])


@pytest.mark.parametrize("Cs", [[1.0, 1e12], [1e12, 1.0]])
def test_the_largest_c_of_a_path_decides_what_its_arithmetic_must_hold(Cs, two):
    """It was the first one: a path from 1 to 1e12 hid gaps behind rounding that fits do not."""
    prepared = []

    class Spied(KernelSVC):
        def _solve(self, training, start):
            prepared.append(training.data.levels.kernel)
            return super()._solve(training, start)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        Spied(gamma=1.0).fit_path(*two, Cs)
        alone = KernelSVC(gamma=1.0, C=1e12)._prepare(*two, None).data.levels.kernel
    assert len(prepared) == 2
    for kernel in prepared:
        assert (kernel.dtype, kernel.far) == (alone.dtype, alone.far)
    assert alone.far < FAR


def test_sums_that_overflow_are_refused_before_a_path_begins(two):
    with pytest.raises(ValueError, match=r"C=1e\+308 is too large"):
        svc().fit_path(*two, [1.0, 1e308])


def test_a_path_of_no_values_has_no_models(two):
    assert svc().fit_path(*two, []) == []


def test_a_start_of_a_far_smaller_c_is_none(two):
    _, far = svc().fit_path(*two, [1e-9, 1.0])
    alone = svc(C=1.0).fit(*two)
    assert far.n_iter_ == alone.n_iter_
    np.testing.assert_array_equal(far.dual_coef_, alone.dual_coef_)


def test_progress_bar_runs_along_a_path(two, capsys):
    models = svc().set_callbacks(ProgressBar()).fit_path(*two, [0.1, 1.0])
    assert [m.C for m in models] == [0.1, 1.0]
    assert "KernelSVC" in capsys.readouterr().out


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_every_model_of_a_path_keeps_feature_names(frame, two):
    X, y = two
    path = svc().fit_path(frame(dict(zip("abc", X.T, strict=True))), y, [1.0, 2.0])
    assert [m.feature_names_in_.tolist() for m in path] == [["a", "b", "c"]] * 2


# ------------------------------------------------------------------ warm starts


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
    assert [level.level for level in model.levels_] == [1, 0]
    assert [level.level for level in model.fit(*two).levels_] == [0]


@each_size
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
    assert np.array_equal(model.n_iter_, cold.n_iter_)
    assert np.all(cold.n_iter_ > 1)
    np.testing.assert_array_equal(model.dual_coef_, cold.dual_coef_)


def test_a_warm_start_remembers_the_latest_fits_only(two, monkeypatch):
    monkeypatch.setattr("widemargin.kernel.warm_start.MOST_DUALS", 2)
    X, y = two
    model = svc(warm_start=True)
    blocks = {}
    for gamma in (1.0, 2.0, 3.0):
        blocks[gamma] = model.set_params(gamma=gamma).fit(X, y).n_iter_
    assert len(model._duals) == 2
    assert model.set_params(gamma=3.0).fit(X, y).n_iter_ < blocks[3.0]
    assert model.set_params(gamma=1.0).fit(X, y).n_iter_ == blocks[1.0]


@each_size
def test_a_grid_over_c_runs_along_a_path_with_warm_starts(two):
    grid = {"C": [1.0, 1.1, 1.2, 1.3]}
    blocks = {}
    for warm in (False, True):
        search = GridSearchCV(
            svc(tol=1e-8, warm_start=warm),
            grid,
            cv=2,
            scoring=lambda m, X, y: float(m.n_iter_.sum()),
        )
        blocks[warm] = search.fit(*two).cv_results_["mean_test_score"]
    assert blocks[True][0] == blocks[False][0]
    assert np.all(blocks[True][1:] < blocks[False][1:])
