"""Few rows of many features are solved on their kernel matrix, with the same optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.callback import ScoringMonitor

from widemargin import AdditiveSVC, papers
from widemargin.additive import gram

CASES = {
    "unary": {"approximation": "unary", "kernel": "intersection"},
    "two numbers per bin": {"kernel": "chi2", "rank": 2},
    "hinge": {"loss": "hinge", "approximation": "unary"},
    "no intercept": {"fit_intercept": False, "approximation": "unary"},
    "raw C": {"C_unit": "raw", "C": 0.01, "approximation": "unary"},
    "Crammer and Singer": {"multi_class": "crammer_singer", "approximation": "unary"},
    "double": {"tol": 1e-6, "approximation": "unary"},
}


def wide(n_classes: int, n: int = 48, d: int = 1500, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.7)
    X[np.arange(n), y] += 1
    return X, y


@pytest.fixture
def matrices(monkeypatch):
    """The sizes of the matrices that are made."""
    made = []

    def recorded(codes, *rest, plain=gram.kernel_matrix):
        made.append(codes.n_rows)
        return plain(codes, *rest)

    monkeypatch.setattr(gram, "kernel_matrix", recorded)
    return made


@pytest.mark.parametrize("n_classes", [2, 3, 20])
@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_sweeps_on_the_weights(name, n_classes, matrices, monkeypatch):
    X, y = wide(n_classes)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    machine = AdditiveSVC(**{"tol": 1e-5, "max_iter": 5000, "random_state": 0, **CASES[name]})
    own = machine.fit(X, y, weight)
    scores, objective, gap = own.decision_function(X), own.objective_, own.duality_gap_
    assert matrices == [len(y)]
    monkeypatch.setattr(gram, "MOST_ROWS", 0)
    reference = machine.fit(X, y, weight)
    assert matrices == [len(y)]
    assert max(gap, reference.duality_gap_) <= machine.tol
    assert objective == pytest.approx(reference.objective_, rel=2 * machine.tol)
    difference = np.abs(scores - reference.decision_function(X)).max()
    assert difference <= 0.05 * np.abs(scores).max()


def test_sparse_rows_have_the_matrix_of_dense_ones(matrices):
    X, y = wide(3)
    machine = AdditiveSVC("intersection", approximation="unary", tol=1e-6, random_state=0)
    dense = machine.fit(X, y).decision_function(X)
    sparse = machine.fit(sp.csr_array(X), y).decision_function(X)
    assert len(matrices) == 2
    np.testing.assert_allclose(sparse, dense, atol=1e-4 * np.abs(dense).max())


def test_the_matrix_is_the_kernel_of_the_rows():
    X = np.random.default_rng(0).integers(0, 9, (37, 50))
    trained = papers.icd(scaling=None)._prepare(X, np.arange(37) % 2, None).learned
    found = gram.kernel_matrix(trained.codes, trained.tables, np.float64, gram.Threads(2))
    np.testing.assert_array_equal(found, np.minimum(X[:, None], X[None]).sum(axis=2))


def test_threads_do_not_change_the_bits(matrices):
    X, y = wide(20)
    fits = [papers.icd(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)]
    assert len(matrices) == 2
    np.testing.assert_array_equal(*[fit.decision_function(X) for fit in fits])


def test_a_path_and_a_warm_start_go_on_from_the_last_variables(matrices):
    X, y = wide(3)
    machine = papers.icd(tol=1e-4, warm_start=True)
    path = machine.fit_path(X, y, [1e-3, 1e-2])
    alone = papers.icd(tol=1e-4, C=1e-2).fit(X, y)
    assert path[1].objective_ == pytest.approx(alone.objective_, rel=2e-4)
    again = machine.fit(X, y).fit(X, y)
    assert again.n_iter_ == 0
    assert matrices


def test_a_callback_can_score_the_model_of_an_unfinished_fit(matrices):
    X, y = wide(3)
    monitor = ScoringMonitor(scoring="accuracy")
    machine = papers.icd(tol=0.01).set_callbacks(monitor).fit(X, y)
    assert matrices
    log = monitor.get_logs().data_as_pandas
    assert (log["task_name"] == "epoch").sum() == machine.n_iter_
    assert log.loc[log["task_name"] == "fit", "accuracy"].item() == machine.score(X, y)


@pytest.mark.parametrize("shape", [(3000, 4), (60, 4)])
def test_narrow_rows_have_no_matrix(shape, matrices):
    X = np.random.default_rng(0).random(shape)
    AdditiveSVC("intersection", random_state=0).fit(X, np.arange(len(X)) % 2)
    assert not matrices
