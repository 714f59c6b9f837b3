"""Problems on few rows: solved by the core alone, in double precision, to the same optimum."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widemargin import KernelSVC
from widemargin.kernel import backend, few_rows
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.few_rows import FewRows, KeptRows
from widemargin.kernel.problems import Variables
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.tiles import Memory

from .helpers import each_kernel, kernel_matrix, points, problem, rbf2, svc

pytestmark = pytest.mark.parametrize("most_rows", [2048], indirect=True)


def variables(p, row=None):
    row = np.arange(len(p.y)) if row is None else row
    return Variables(row, p.y, np.full(len(p.y), -1.0), p.upper)


def solved(p, *, alpha=None, on_step=lambda gap: False, **limits):
    few = FewRows(KernelRows(p.kernel, p.rows), Memory())
    alpha = np.zeros(len(p.y)) if alpha is None else alpha
    return few.solve(variables(p), alpha, SolverSettings(**limits), on_step)


@pytest.fixture(params=[10, 1000], ids=["rows when asked for", "all rows at once"])
def at_once(monkeypatch, request):
    monkeypatch.setattr(few_rows, "AT_ONCE", request.param)
    monkeypatch.setattr(few_rows, "WORKING_SET", 8)


# ------------------------------------------------------------------ the optimum


@each_kernel
@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_the_optimum_is_that_of_an_independent_solver(name, C, at_once):
    if name == "sigmoid":
        pytest.skip("is not positive definite")
    p = problem(name, C=C)
    found = solved(p, tol=1e-9)
    assert found.relative_gap <= 1e-9
    assert found.dual == pytest.approx(p.optimum(), rel=1e-7)
    assert p.dual(found.alpha) == pytest.approx(found.dual, rel=1e-9)
    claimed = found.primal - found.dual  # with what rounding may hide
    assert claimed == pytest.approx(p.gap(found.alpha), rel=1e-2, abs=1e-10 * found.primal)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10_000), C=st.floats(-3, 4).map(lambda e: 10**e), n=st.integers(2, 90))
def test_the_claimed_gap_is_the_true_one(most_rows, seed, C, n):
    p = problem(n=n, C=C, seed=seed)
    found = solved(p, tol=1e-5)
    assert np.all((found.alpha >= 0) & (found.alpha <= p.upper))
    assert p.gap(found.alpha) <= 1e-5 * found.primal * (1 + 1e-6) + 1e-12


def test_it_goes_on_from_variables_that_are_given(at_once):
    p = problem(C=100.0)
    first = solved(p, tol=1e-8)
    again = solved(p, alpha=first.alpha, tol=1e-7)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.alpha, first.alpha)
    clipped = solved(p, alpha=1e6 * np.ones(len(p.y)), tol=1e-8)
    assert clipped.dual == pytest.approx(first.dual, rel=1e-7)


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize("name", ["rbf", "laplacian"], ids=["by the core", "by Python"])
def test_rows_are_computed_when_they_are_asked_for_and_once(name, monkeypatch):
    monkeypatch.setattr(few_rows, "AT_ONCE", 10)
    monkeypatch.setattr(few_rows, "WORKING_SET", 8)
    seen = []
    compute = KeptRows.compute
    monkeypatch.setattr(KeptRows, "compute", lambda *args: seen.extend(args[-1]) or compute(*args))
    p = problem(name, n=200, C=1.0)
    found = solved(p, tol=1e-3)
    rows = found.history[-1]["rows"]
    assert np.count_nonzero(found.alpha) <= rows < 200
    assert sorted(set(seen)) == sorted(seen)
    if name == "laplacian":
        assert len(seen) == rows
        assert set(np.flatnonzero(found.alpha)) <= set(seen)
    else:
        assert not seen


SOME = {
    "thirds": [np.flatnonzero(np.arange(60) % 3 != left_out) for left_out in range(3)],
    "two rows change places": [np.array([1]), np.arange(60), np.array([0, 1])],
    "all": [np.arange(60), np.arange(60)],
}


@pytest.mark.parametrize("some", SOME.values(), ids=SOME)
def test_problems_on_some_rows_take_their_parts_of_the_matrix(some):
    X, y = points(60)
    sign, one = np.where(y > 0, 1.0, -1.0), np.ones(60)
    sharing = [Variables(row, sign[row], -one[row], 5 * one[row]) for row in some]
    whole = FewRows(KernelRows(*_rbf(X)), Memory(), sharing)
    limits = SolverSettings(tol=1e-9)
    for part in sharing:
        start = np.zeros(len(part))
        found = whole.solve(part, start, limits, lambda gap: False)
        own = FewRows(KernelRows(*_rbf(X[part.row])), Memory())
        alone = replace(part, row=np.arange(len(part)))
        expected = own.solve(alone, start, limits, lambda gap: False)
        assert found.alpha == pytest.approx(expected.alpha, abs=1e-6)
        assert found.dual == pytest.approx(expected.dual, rel=1e-8)


def _rbf(X):
    from widemargin.kernel.kernels import make_kernel

    kernel = make_kernel("rbf", 2.0, 0.0, 3, X, np.float64)
    return kernel, kernel.prepare(X)


# ------------------------------------------------------------------ limits, and whole fits


def test_steps_are_limited_and_a_callback_is_heard():
    p = problem(C=1e4)
    found = solved(p, tol=1e-12, max_iter=1)
    assert found.stopped
    assert found.n_iter == 1
    assert p.gap(found.alpha) == pytest.approx(found.primal - found.dual, rel=1e-6)
    assert solved(p, on_step=lambda gap: True, tol=1e-9).n_iter == 0


def test_steps_of_the_start_count_too(monkeypatch):
    monkeypatch.setattr(few_rows, "AT_ONCE", 20)
    p, heard = problem(n=200, C=1e4), []
    found = solved(p, on_step=lambda gap: heard.append(0), tol=1e-12, max_iter=3)
    assert found.n_iter == 3
    assert len(heard) >= 2  # of the start, and of the rest


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", ["rbf", rbf2, "precomputed"])
def test_a_fit_has_the_objective_of_the_solver_for_many_rows(multi_class, kernel, monkeypatch):
    X, y = points(150, 4)
    given_rows = kernel_matrix("rbf", X, gamma=2.0) if kernel == "precomputed" else X
    changes = {"multi_class": multi_class, "tol": 1e-7, "fit_intercept": True}
    few = svc(kernel, **changes).fit(given_rows, y)
    monkeypatch.setattr(backend, "MOST_ROWS", 0)
    many = svc(kernel, **changes).fit(given_rows, y)
    assert few.objective_ == pytest.approx(many.objective_, rel=2e-7)
    np.testing.assert_array_equal(few.predict(given_rows), many.predict(given_rows))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("most_few", [30, 100, 2048])
def test_threads_change_no_bit(multi_class, most_few, monkeypatch):
    """Few rows in all problems, in some of them, and in the fit as a whole."""
    monkeypatch.setattr(backend, "MOST_ROWS", most_few)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 3))
    y = rng.choice(5, 250, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    one, three = (
        svc(multi_class=multi_class, n_jobs=n_jobs, random_state=0).fit(X, y) for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.dual_coef_, three.dual_coef_)
    assert one.duality_gap_ == three.duality_gap_


def test_predictions_are_in_single_precision_where_that_is_enough():
    X, y = points(100)
    assert KernelSVC(C=1.0).fit(X, y).model_.kernel.dtype == np.float32
    assert KernelSVC(C=1e6, gamma=30.0).fit(X, y).model_.kernel.dtype == np.float64


def test_a_steep_sigmoid_predicts_in_double_precision():
    """Found by stress: a row alone was decided otherwise than among others, by 0.0015."""
    X = np.random.default_rng(0).normal(scale=0.1, size=(2, 20))
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model = KernelSVC("sigmoid", gamma=1e6, multi_class="ovr", max_iter=100).fit(X, [0, 1])
    assert model.model_.kernel.dtype == np.float64
    alone = np.concatenate([model.decision_function(X[[i]]) for i in range(2)])
    np.testing.assert_allclose(alone, model.decision_function(X), atol=1e-6)
