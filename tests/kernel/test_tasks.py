"""Clusters as tasks: data that travels, solved anywhere with the same bits."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelSVC
from widemargin.engine import Control
from widemargin.kernel.backend import Host
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.problems import binary_problems
from widemargin.kernel.solver import SolverSettings
from widemargin.kernel.tasks import ClusterTasks, solve_task
from widemargin.multiclass import Coding

from .helpers import Elsewhere, mostly_zero, points

LABEL = np.arange(120) % 3
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("most_rows", [2048], indirect=True)]


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


def tasks(kernel="rbf", X=None, n_classes=3, scheme="ovo"):
    rows, label = points(120, n_classes)
    X = rows if X is None else X
    kernel = make_kernel(kernel, 2.0, 0.0, 3, X)
    data = KernelRows.of_data(kernel, kernel.prepare(X), X, np.arange(len(X)))
    problems = binary_problems(label, Coding(scheme, n_classes), np.full(120, 5.0))
    alphas = [np.zeros(len(variables)) for variables in problems]
    return ClusterTasks(1, LABEL, data, SolverSettings(1e-4), problems, alphas)


@pytest.mark.parametrize(
    ("kernel", "X"),
    [("rbf", None), ("rbf", mostly_zero(120)), ("laplacian", None), (rbf_kernel, None)],
    ids=["dense", "compressed", "laplacian", "function"],
)
def test_a_task_that_has_travelled_has_the_same_solution_to_the_bit(kernel, X):
    for task in tasks(kernel, X):
        copy = pickle.loads(pickle.dumps(task))
        backend = pickle.loads(pickle.dumps(Host(1)))
        here, there = (solve_task(t, Control(), backend) for t in (task, copy))
        for a, b in zip(here, there, strict=True):
            np.testing.assert_array_equal(a.alpha, b.alpha)
            assert (a.primal, a.dual, a.n_iter) == (b.primal, b.dual, b.n_iter)


def test_every_variable_is_in_one_task_with_the_row_that_is_its():
    _, label = points(120, 3)
    made = tasks()
    problems = binary_problems(label, Coding("ovo", 3), np.full(120, 5.0))
    for k, variables in enumerate(problems):
        seen = np.concatenate([made.places(task.number)[k][1] for task in made])
        np.testing.assert_array_equal(np.sort(seen), np.arange(len(variables)))
        for task in made:
            part, (problem, numbers) = task.parts[k], made.places(task.number)[k]
            assert part.problem == problem == k
            rows = np.flatnonzero(task.number == LABEL)[part.variables.row]
            np.testing.assert_array_equal(rows, variables.row[numbers])
            np.testing.assert_array_equal(part.variables.sign, variables.sign[numbers])


def test_the_largest_cluster_is_the_first_task():
    label = np.repeat([0, 1, 2], [10, 80, 30])
    kernel = make_kernel("rbf", 1.0, 0.0, 3, points(120)[0])
    data = KernelRows(kernel, kernel.prepare(points(120)[0]))
    made = ClusterTasks(1, label, data, SolverSettings(), [], [])
    assert [len(task.data) for task in made] == [80, 30, 10]
    made.order.remove(1)
    assert [task.name for task in made] == ["level1-cluster2", "level1-cluster0"]


@pytest.mark.parametrize(("n_classes", "early"), [(2, 1), (2, False), (3, 1)])
def test_a_fit_whose_clusters_are_solved_elsewhere_has_the_same_bits(
    n_classes, early, processes, tmp_path
):
    X, y = points(300, n_classes)
    settings = {"gamma": 2.0, "C": 5.0, "levels": 1, "early": early, "random_state": 0}
    here = KernelSVC(**settings).fit(X, y)
    there = Elsewhere(**settings, checkpoint=tmp_path / "parts")
    there.pool = processes
    there.fit(X, y)
    np.testing.assert_array_equal(here.dual_coef_, there.dual_coef_)
    np.testing.assert_array_equal(here.decision_function(X), there.decision_function(X))
    n_clusters = there.levels_[0].n_clusters
    assert len(list((tmp_path / "parts").glob("level1-*.part"))) == n_clusters


def test_a_cluster_in_another_process_needs_nothing_but_its_task(processes):
    task = tasks()[0]
    there = processes.submit(partial(solve_task, backend=Host(2)), task, Control()).result()
    here = solve_task(task, Control(), Host(1))
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a.alpha, b.alpha)
