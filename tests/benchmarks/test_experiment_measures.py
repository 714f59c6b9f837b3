"""What is measured of a fitted model beyond accuracy, times and memory."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import data
from benchmarks.experiments.cell import run
from benchmarks.experiments.measures import MEASURES
from benchmarks.experiments.plan import Cell
from benchmarks.methods import make
from pretended_fits import DIGITS
from sklearn.metrics.pairwise import rbf_kernel


def test_measures_of_kernel_machines():
    parameters = {"C": 4.0, "gamma": 0.001, "levels": 1, "branching": 4, "random_state": 0}
    cell = Cell("here", "digits", "KernelSVC", "KernelSVC", parameters, "test", rows=300,
                test_rows=50, measure=["levels", "support", "dual"])  # fmt: skip
    details = run(cell, limit=60.0)["details"]
    assert details["levels"][0]["n_clusters"] >= 2
    assert details["support_vectors"] > 10
    assert details["dual_objective"] > 0


def test_the_dual_objective_of_a_peer_is_ours():
    from benchmarks.experiments.measures import _dual
    from sklearn.datasets import make_classification

    X, y = make_classification(200, random_state=0)
    cell = replace(DIGITS, parameters={"C": 2.0, "gamma": 0.05})
    one = make("random partition", {"C": 2.0, "gamma": 0.05, "parts": 1}, 0, 1).fit(X, y)
    ours = make("DC-SVM", {"C": 2.0, "gamma": 0.05, "levels": 0}, 0, 1).fit(X, y)
    found = [_dual(model, X, y, cell)["dual_objective"] for model in (one, ours)]
    assert found[0] == pytest.approx(found[1], rel=2e-3)


def test_the_dual_objective_of_an_early_model_is_that_of_the_whole():
    X, y, *_ = data.digits()
    X, y = X[:300] / 16, y[:300] < 5
    cell = replace(DIGITS, parameters={"C": 2.0, "gamma": 0.1})
    early = make("DC-SVM (early)", cell.parameters | {"levels": 1, "early": 1}, 0, 1).fit(X, y)
    exact = make("DC-SVM", cell.parameters | {"levels": 0, "tol": 1e-6}, 0, 1).fit(X, y)
    found = [MEASURES["dual"](model, X, y, cell)["dual_objective"] for model in (early, exact)]
    assert found[0] < found[1]
    whole = np.zeros(300)
    whole[early.support_] = early.dual_coef_[0]
    value = np.abs(whole).sum() - whole @ rbf_kernel(X, gamma=0.1) @ whole / 2
    assert found[0] == pytest.approx(value)
    assert found[0] != pytest.approx(early.dual_objective_)


def test_support_vectors_that_were_found_and_those_that_were_not():
    X, y, *_ = data.digits()
    X, y = X[:300] / 16, y[:300] < 5
    cell = replace(DIGITS, use="DC-SVM", parameters={"C": 2.0, "gamma": 0.1})
    exact = make("DC-SVM", cell.parameters | {"levels": 0, "tol": 1e-6}, 0, 1).fit(X, y)
    assert MEASURES["found"](exact, X, y, cell) == {"precision": 1.0, "recall": 1.0}
    exact.support_ = np.append(exact.support_[::2], np.setdiff1d(range(300), exact.support_)[:5])
    some = MEASURES["found"](exact, X, y, cell)
    assert some["recall"] == pytest.approx(0.5, abs=0.01)
    assert 0.9 < some["precision"] < 1
    cascade = make("CascadeSVM", cell.parameters | {"parts": 4}, 0, 1).fit(X, y)
    layers = MEASURES["layers"](cascade, X, y, cell)["layers"]
    assert len(layers) == 3  # of 4, 2 and 1 parts
    assert layers[0]["support_vectors"] > layers[-1]["support_vectors"]
    assert layers[0]["precision"] < layers[-1]["precision"]


def test_the_dual_objective_of_libsvms_polynomial_is_ours():
    X, y, *_ = data.digits()
    X, y = X[:200] / 16, y[:200] < 5
    cell = replace(DIGITS, parameters={"C": 0.01, "gamma": 0.5})
    theirs = make("LIBSVM polynomial", cell.parameters, 0, 1).fit(X, y)
    coef, support = theirs.dual_coef_[0], X[theirs.support_]
    kernel = (0.5 * support @ support.T) ** 3
    value = np.abs(coef).sum() - coef @ kernel @ coef / 2
    assert MEASURES["dual"](theirs, X, y, cell)["dual_objective"] == pytest.approx(value)


def test_errors_of_shapes_are_of_the_features_counted_from_one():
    from benchmarks.experiments.measures import _shape_errors

    X, y, *_ = data.digits()
    model = make("PmSVM-LUT", {"warm_start": True}, 0, 1).fit(X, y == 0)
    found = _shape_errors(model, X, y, replace(DIGITS, features=[20, 30]))["errors"]
    expected = model.approximation_error(X, [19, 29])
    assert found["20"]["relative_max"] == expected[0].relative_max
    assert found["30"]["mean"] == expected[1].mean
