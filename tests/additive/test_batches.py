"""Batches: data in, arrays out, in threads or in other processes."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from reference import timeless

from widemargin import AdditiveSVC
from widemargin.additive import batches, problem
from widemargin.additive.batches import solve_batch, solve_batches
from widemargin.engine import Control, Threads
from widemargin.progress import Progress

from .problems import LOSSES, each_machine, histograms, noisy, svc


@pytest.fixture
def tasks_of(monkeypatch):
    """A function that fits a model and returns it with the tasks it was made of."""
    made = []
    make = batches.solve_batches
    monkeypatch.setattr(
        "widemargin.additive.machine.solve_batches",
        lambda tasks, *rest: made.append(tasks) or make(tasks, *rest),
    )

    def fit(model, X, y):
        model.fit(X, y)
        return model, made[-1]

    return fit


MODELS = [
    {},
    {"approximation": "unary"},
    {"approximation": "chebyshev", "C": 0.1, "tol": 0.01},
    {"loss": "hinge", "tol": 1e-3},
    {"kernel": lambda x, y: np.minimum(x, y)},  # which does not pickle, and need not
]


@each_machine
@pytest.mark.parametrize("changes", MODELS, ids=lambda changes: "-".join(changes) or "default")
def test_a_task_that_has_travelled_has_the_same_solution_to_the_bit(
    tasks_of, n_classes, multi_class, changes
):
    X, y = histograms(n_classes)
    model, tasks = tasks_of(svc(**{"tol": 1e-4, **changes, "multi_class": multi_class}), X, y)
    for task in tasks:
        there = solve_batch(pickle.loads(pickle.dumps(task)), Control())
        back = pickle.loads(pickle.dumps(there))
        np.testing.assert_array_equal(back.weights, model.model_.weights[task.blocks])
        assert timeless(back.outcome.history) == timeless(model.history_[task.number])
    coef = np.hstack([solve_batch(task, Control()).coef for task in tasks])
    np.testing.assert_array_equal(coef, model._dual.coef)


def test_a_fit_in_other_processes_is_the_same_to_the_bit(monkeypatch):
    X, y = noisy(40)
    here = AdditiveSVC("chi2", random_state=0).fit(X, y)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        monkeypatch.setattr(AdditiveSVC, "_executor", lambda self: pool)
        there = AdditiveSVC("chi2", random_state=0).fit(X, y)
        path = AdditiveSVC("chi2", random_state=0).fit_path(X, y, [0.1, 1.0])
    monkeypatch.undo()
    assert timeless(there.history_) == timeless(here.history_)
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))
    for ours, theirs in zip(
        AdditiveSVC("chi2", random_state=0).fit_path(X, y, [0.1, 1.0]), path, strict=True
    ):
        np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


def test_threads_write_into_the_models_weights(tasks_of):
    X, y = noisy(40)
    _, tasks = tasks_of(AdditiveSVC("chi2", random_state=0), X, y)
    weights = tasks[0].shared.tables.weights(40)
    for solution in solve_batches(tasks, weights, Threads(2), lambda task: Progress()):
        assert np.shares_memory(solution.weights, weights)
        assert solution.weights.any()


@each_machine
def test_batches_cover_every_output_once(tasks_of, n_classes, multi_class):
    model, tasks = tasks_of(svc(multi_class=multi_class, tol=0.1), *histograms(n_classes))
    assert sum(task.targets.shape[1] for task in tasks) == model.model_.n_outputs
    blocks = [k for task in tasks for k in range(len(model.model_.weights))[task.blocks]]
    assert blocks == list(range(len(model.model_.weights)))
    assert all(task.number == k for k, task in enumerate(tasks))


class Interrupted(Control):
    """Raises at the n-th question."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def check(self):
        self.n -= 1
        if self.n < 0:
            raise InterruptedError


@each_machine
@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_is_made_in_the_task_and_can_be_interrupted(
    monkeypatch, tasks_of, loss, n_classes, multi_class
):
    X, y = histograms(n_classes)
    model, _ = tasks_of(svc(multi_class=multi_class, loss=loss, tol=1e-3), X, y)
    model, tasks = tasks_of(model, X, y)  # from the last fit's variables
    assert all(task.start is not None for task in tasks)
    monkeypatch.setattr(problem, "_ROWS_PER_SLICE", 7)
    whole = solve_batch(tasks[0], Control())
    np.testing.assert_array_equal(whole.weights, model.model_.weights[tasks[0].blocks])
    slices = -(-len(X) // 7)
    with pytest.raises(InterruptedError):
        solve_batch(tasks[0], Interrupted(slices - 1))


@each_machine
def test_a_certificate_does_not_depend_on_how_many_rows_are_judged_at_a_time(
    monkeypatch, n_classes, multi_class
):
    X, y = histograms(n_classes)
    model = svc(multi_class=multi_class, tol=1e-2)
    together = model.fit(X, y).fit_record_, model.model_.weights.copy()
    monkeypatch.setattr(problem, "_ROWS_PER_SLICE", 7)
    apart = model.fit(X, y).fit_record_, model.model_.weights
    np.testing.assert_array_equal(apart[1], together[1])
    assert apart[0].gap == pytest.approx(together[0].gap, rel=1e-9)
    assert apart[0].objective == pytest.approx(together[0].objective, rel=1e-12)


def test_bounds_in_single_precision_are_not_above_the_true_ones():
    c = np.random.default_rng(0).lognormal(sigma=9, size=1000)
    rounded = problem._rounded_down(c, np.float32)
    assert rounded.dtype == np.float32
    assert np.all(rounded <= c)
    assert np.all(np.nextafter(rounded, np.float32(np.inf)) > c)
    np.testing.assert_array_equal(problem._rounded_down(c, np.float64), c)
