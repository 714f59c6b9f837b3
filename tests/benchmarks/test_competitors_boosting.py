"""Boosted trees, with and without interactions, and their settings."""

import numpy as np
import pytest
from benchmarks.competitors import COMPETITORS
from sklearn.base import clone

pytestmark = pytest.mark.slow


def test_boosting_without_interactions_is_additive_and_cannot_learn_a_product():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    trees = COMPETITORS["boosted trees"]().fit(X[:1000], y[:1000])
    additive = COMPETITORS["boosted additive"]().fit(X[:1000], y[:1000])
    assert trees.score(X[1000:], y[1000:]) > 0.9
    assert additive.score(X[1000:], y[1000:]) < 0.6
    a, b, c, d = additive.decision_function([[0.3, 0.4], [0.3, -0.9], [-0.6, 0.4], [-0.6, -0.9]])
    assert a - b == pytest.approx(c - d)  # f(x, y) - f(x, z) does not depend on x


@pytest.mark.parametrize(("name", "package"), [("EBM", "interpret"), ("LightGBM", "lightgbm")])
def test_other_boosters_take_their_settings(name, package):
    pytest.importorskip(package)
    model = COMPETITORS[name](learning_rate=0.05, seed=3)
    assert (model.learning_rate, model.random_state, model.n_jobs) == (0.05, 3, 1)
    if name == "EBM":
        X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
        y = (X[:, 0] * X[:, 1] > 0).astype(int)
        assert model.fit(X, y).score(X, y) < 0.7  # additive


@pytest.mark.parametrize("labels", [[-1.0, 1.0], [2, 5], ["no", "yes"]])
def test_explainable_boosting_keeps_labels_as_they_are(labels):
    pytest.importorskip("interpret")
    X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    model = clone(COMPETITORS["EBM"]()).set_params(outer_bags=2, max_rounds=50).fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.95
