"""How much each column matters."""

import numpy as np
import pytest

from widemargin import AdditiveSVC, explain

from .helpers import X, Y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["chi2", "intersection", "linear"])
def test_a_feature_that_informs_is_above_noise(n_classes, kernel):
    rng = np.random.default_rng(0)
    X = rng.random((600, 5))
    y = np.digitize(X[:, 2], np.linspace(0, 1, n_classes + 1)[1:-1])
    model = AdditiveSVC(kernel, random_state=0).fit(X, y)
    for size in (explain(model).importances(), explain(model).importances(X)):
        assert size.shape == (5,)
        assert np.argmax(size) == 2
        assert size[2] > 3 * np.delete(size, 2).max()


def test_importance_with_data_is_the_mean_distance_of_contributions(three, two):
    parts = three.contributions(X)[:, :4]
    expected = np.abs(parts - parts.mean(axis=0)).mean(axis=(0, 2))
    np.testing.assert_allclose(explain(three).importances(X), expected)
    parts = two.contributions(X)[:, :4]
    expected = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
    np.testing.assert_allclose(explain(two).importances(X), expected)


def test_importance_without_data_is_that_of_the_training_data(three, two):
    for model in (three, two):
        explained = explain(model)
        np.testing.assert_allclose(explained.importances(), explained.importances(X), atol=1e-6)


def test_a_feature_that_is_always_the_same_has_no_importance_in_data():
    constant = np.column_stack([X, np.ones(150)])
    model = AdditiveSVC("chi2", random_state=0).fit(constant, Y)
    assert explain(model).importances(constant)[4] == pytest.approx(0, abs=1e-9)
