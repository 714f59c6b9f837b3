"""The solver: shrinking, hard data, divergence."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import reference
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from widemargin import AdditiveSVC, _core
from widemargin.additive import solver
from widemargin.additive.solver import Stopping, minimise
from widemargin.engine import Control
from widemargin.losses import GAP, LOSS, PG_MAX, PG_MIN, QUADRATIC

from .problems import LOSSES, MULTI_CLASS, histograms, svc


class PlainProblem:
    """min 1/2 a'(Q + R)a - e'a, a >= 0 (the squared hinge's dual), in NumPy: a few rows a slice."""

    n_problems, symmetric = 1, True

    def __init__(self, Q, c, alpha=None):
        self.Q, self.c = Q, c
        self.alpha = np.zeros(len(Q)) if alpha is None else alpha.copy()
        self.started = alpha is not None
        self.visited = []

    @property
    def n_rows(self):
        return len(self.Q)

    @property
    def cuts(self):
        return np.array([0, len(self.Q)])

    at_once = 1

    def duals(self, groups):
        return (self for _ in groups)

    def sweep(self, order, begin, bounds, status, account):
        end = min(begin + 7, len(order))
        for i in order[begin:end]:
            gradient = self.account(i, account)
            self.visited.append(i)
            if self.alpha[i] == 0 and gradient > bounds[0, 0]:
                status[i] = _core.RESTS
            else:
                step = gradient / (self.Q[i, i] + 0.5 / self.c)
                before, self.alpha[i] = self.alpha[i], max(self.alpha[i] - step, 0.0)
                if self.alpha[i] != before:
                    status[i] = _core.MOVED
        return end

    def certify(self, begin, account):
        self.account(begin, account)
        return begin + 1

    def account(self, i, account):
        margin, a = self.Q[i] @ self.alpha, self.alpha[i]
        slack = max(1 - margin, 0)
        loss, ridge = self.c * slack**2, a**2 / (2 * self.c)
        account[LOSS, 0] += loss
        account[QUADRATIC, 0] += a * margin
        account[GAP, 0] += loss + ridge / 2 - a * (1 - margin)
        gradient = margin - 1 + a / (2 * self.c)
        projected = min(gradient, 0) if a == 0 else gradient
        account[PG_MAX, 0] = max(account[PG_MAX, 0], projected)
        account[PG_MIN, 0] = min(account[PG_MIN, 0], projected)
        return gradient


def plain(n=40, alpha=None):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 5)), np.sign(rng.normal(size=n))
    return PlainProblem(np.outer(y, y) * (X @ X.T + 1), 0.5, alpha)


class BlockedProblem(PlainProblem):
    """The same in blocks of rows, two at a time, whose rows are numbered from 0."""

    cuts, at_once = np.array([0, 5, 6, 25, 40]), 2

    def duals(self, groups):
        for group in groups:
            self.asked.append(tuple(group))
            yield Blocks(self, np.concatenate([np.arange(*self.cuts[k : k + 2]) for k in group]))


class Blocks:
    def __init__(self, problem, rows):
        self.problem, self.rows, self.n_rows = problem, rows, len(rows)

    def sweep(self, order, begin, bounds, status, account):
        everywhere = np.zeros(self.problem.n_rows, dtype=np.uint8)
        end = self.problem.sweep(self.rows[order], begin, bounds, everywhere, account)
        status |= everywhere[self.rows]
        return end

    def certify(self, begin, account):
        self.problem.certify(self.rows[begin], account)
        return begin + 1


def blocked():
    whole = plain()
    problem = BlockedProblem(whole.Q, whole.c)
    problem.asked = []
    return problem


def run(problem, tol=1e-9, max_iter=2000, control=None, judge=None):
    stopping, rng = Stopping(tol, max_iter), np.random.default_rng(0)
    return minimise(problem, stopping, rng, control or Control(), judge)


def test_any_problem_that_answers_its_questions_is_minimised():
    problem = plain()
    outcome = run(problem)
    best = reference.box_qp(problem.Q + np.eye(40), np.full(40, np.inf))
    np.testing.assert_allclose(problem.alpha, best, atol=1e-4)
    assert outcome.converged
    assert outcome.certificate.relative_gap[0] <= 1e-9
    assert min(record["active"] for record in outcome.history) < 40  # some were shrunk
    assert set(problem.visited) == set(range(40))


def test_blocks_of_samples_end_at_the_optimum_of_the_whole():
    problem, whole = blocked(), plain()
    outcome, expected = run(problem), run(whole)
    np.testing.assert_allclose(problem.alpha, whole.alpha, atol=1e-4)
    assert outcome.certificate.relative_gap[0] <= 1e-9
    assert outcome.certificate.primal[0] == pytest.approx(expected.certificate.primal[0], rel=1e-8)


def test_a_sweep_mixes_the_samples_of_some_blocks_at_a_time_and_other_ones_in_the_next():
    problem, rng = blocked(), np.random.default_rng(0)
    sweeps = []
    for _ in range(6):
        solver.ActiveSamples(problem).sweep(rng, Control())
        sweeps.append((tuple(problem.asked), tuple(problem.visited)))
        problem.asked, problem.visited = [], []
    assert len({frozenset(map(frozenset, asked)) for asked, _ in sweeps}) > 1
    for asked, visited in sweeps:
        assert sorted(visited) == list(range(40))
        assert [len(group) for group in asked] == [2, 2]
        block = np.searchsorted(problem.cuts, visited, side="right") - 1
        n = sum(problem.cuts[k + 1] - problem.cuts[k] for k in asked[0])
        assert set(block[:n]) == set(asked[0])
        assert set(block[n:]) == set(asked[1])
    changes = [np.count_nonzero(np.diff(np.searchsorted(problem.cuts, v))) for _, v in sweeps]
    assert max(changes) > 5  # they alternate


def test_blocks_whose_samples_are_all_shrunk_are_not_asked_for():
    problem = blocked()
    samples = solver.ActiveSamples(problem)
    samples._status[:25] = _core.RESTS
    samples.shrink(np.zeros((5, 16)))
    samples.sweep(np.random.default_rng(0), Control())
    assert problem.asked == [(3,)]
    assert sorted(problem.visited) == list(range(25, 40))


def test_samples_that_move_are_visited_again_and_fewer_are_visited_in_all():
    class Far(PlainProblem):
        """Nine in ten samples stay where they are."""

        def sweep(self, order, begin, bounds, status, account):
            end = super().sweep(order, begin, bounds, status, account)
            status[np.arange(self.n_rows) % 10 > 0] = 0
            return end

    whole = plain()
    problem = Far(whole.Q, whole.c)
    samples = solver.ActiveSamples(problem)
    rng = np.random.default_rng(0)
    samples.sweep(rng, Control())
    problem.visited.clear()
    n = samples.visit_again(2, rng, Control())
    assert n == len(problem.visited) > 0
    assert set(problem.visited) <= set(range(0, 40, 10))


def test_of_blocks_on_disk_nothing_is_visited_again():
    problem = blocked()
    assert all(record.get("again", 0) == 0 for record in run(problem).history)


def test_what_a_certificate_was_made_of_is_not_touched_after_it():
    problem = plain()
    outcome = run(problem, max_iter=3)
    again = solver.measure(problem, Control())
    assert again.gap[0] == outcome.certificate.gap[0]


def test_an_estimate_of_nothing_left_does_not_end_a_fit_that_the_judge_does_not_believe():
    """The sums of a sweep may say that nothing is left to gain, however often they are wrong."""

    class Blind(PlainProblem):
        def sweep(self, order, begin, bounds, status, account):
            return super().sweep(order, begin, bounds, status, np.zeros_like(account))

    whole = plain()
    outcome = run(Blind(whole.Q, whole.c), max_iter=4)
    assert [record["estimate"] for record in outcome.history] == [0.0] * 4
    assert (outcome.n_iter, outcome.converged) == (4, False)


@pytest.mark.parametrize("started", [False, True])
def test_a_problem_that_is_solved_by_its_own_sums_alone_needs_double_precision(started):
    problem = plain()
    if started:
        run(problem)
        problem = plain(alpha=problem.alpha)

    def doubt():
        own = solver.measure(problem, Control())
        return replace(own, gap=own.gap + 1e-3 * own.primal)

    outcome = run(problem, tol=1e-8, judge=doubt)
    assert outcome.needs_double
    assert not outcome.converged
    assert (outcome.n_iter == 0) == started
    believed = run(plain(), tol=1e-2, judge=doubt)
    assert believed.converged
    assert not believed.needs_double


def test_a_start_at_the_optimum_needs_no_sweep():
    problem = plain()
    run(problem)
    again = plain(alpha=problem.alpha)
    assert run(again, tol=1e-8).n_iter == 0
    assert again.visited == []


def test_the_last_sweep_is_measured_though_it_was_not_enough():
    outcome = run(plain(), max_iter=3)
    assert (outcome.n_iter, outcome.converged) == (3, False)
    assert outcome.history[-1]["measured"] > 1e-9


def test_sweeps_and_measurements_can_be_interrupted():
    class Interrupted(Control):
        def check(self):
            raise InterruptedError

    for problem in (plain(), plain(alpha=np.ones(40))):
        with pytest.raises(InterruptedError):
            run(problem, control=Interrupted())
        assert problem.visited == []


@pytest.mark.parametrize("multi_class", MULTI_CLASS)
@pytest.mark.parametrize("loss", LOSSES)
def test_shrinking_does_not_change_the_optimum(monkeypatch, loss, multi_class):
    X, y = histograms(3, n_rows=150)
    model = svc(loss=loss, multi_class=multi_class, C=3.0, tol=1e-9)
    shrunk = model.fit(X, y).objective_, model.decision_function(X)
    assert min(sweep["active"] for sweep in model.history_[0]) < len(X)

    samples = solver.ActiveSamples
    monkeypatch.setattr(samples, "shrink", lambda self, account: samples.reopen(self))
    del model._dual
    full = model.fit(X, y).objective_, model.decision_function(X)
    assert min(sweep["active"] for sweep in model.history_[0]) == len(X)
    assert shrunk[0] == pytest.approx(full[0], rel=1e-8)
    np.testing.assert_allclose(shrunk[1], full[1], atol=1e-3)


def test_a_diverging_fit_says_so():
    X, y = load_digits(return_X_y=True)
    model = AdditiveSVC(
        lambda x, y: -np.abs(x - y), approximation="chebyshev", scaling="global", random_state=0
    )
    with (
        pytest.warns(UserWarning, match="not positive semi-definite"),
        pytest.warns(ConvergenceWarning, match="diverged"),
    ):
        model.fit(X[:300], y[:300])
    with pytest.raises(ValueError, match="the fit of this model diverged"):
        model.predict(X[:300])


@pytest.mark.parametrize("C", [1e-50, 1e-30, 1e30])
def test_extreme_values_of_c_are_solved_in_double_precision(C):
    X, y = histograms(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = AdditiveSVC("chi2", C=C, max_iter=50, random_state=0).fit(X, y)
    assert np.isfinite(model.duality_gap_)
    assert np.all(np.isfinite(model.decision_function(X)))


def test_shrunk_samples_come_back():
    """A large C, where the first guess of who rests at a bound is often wrong."""
    X, y = load_digits(return_X_y=True)
    model = AdditiveSVC("chi2", C=1e5, tol=1e-3, max_iter=3000, random_state=0)
    model.fit(X[:600], y[:600])
    assert model.duality_gap_ <= 1e-3


def with_empty_rows(n_classes):
    X, y = histograms(n_classes)
    X[::4] = 0
    return X, y


def contradictory(n_classes):
    X, y = histograms(n_classes)
    return np.vstack([X, X]), np.concatenate([y, (y + 1) % n_classes])


def nothing_but_zeros(n_classes):
    X, y = histograms(n_classes)
    return 0 * X, y


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "crammer_singer")]
)
@pytest.mark.parametrize("data", [with_empty_rows, contradictory, nothing_but_zeros])
def test_hard_data_ends_with_a_gap_or_a_warning(
    data, n_classes, multi_class, loss, fit_intercept, C
):
    X, y = data(n_classes)
    model = AdditiveSVC("chi2", C=C, loss=loss, multi_class=multi_class, random_state=0)
    model.set_params(fit_intercept=fit_intercept, max_iter=200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert bool(caught) == (model.duality_gap_ > model.tol)
    assert np.isfinite([model.duality_gap_, model.objective_, model.violation_]).all()
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_an_empty_row_gets_the_intercept_alone(loss):
    X, y = with_empty_rows(2)
    model = svc(loss=loss).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X[:1]), model.intercept_, rtol=1e-14)


def test_copies_with_opposite_labels_cancel():
    X, y = histograms(2)
    model = svc(loss="squared_hinge").fit(np.vstack([X, X]), np.concatenate([y, 1 - y]))
    np.testing.assert_allclose(model.decision_function(X), 0, atol=1e-5)
