"""Hundreds of classes: pairs by the ten thousand, of which each support vector has few."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.multiclass import _ovr_decision_function

from widemargin import KernelSVC
from widemargin.kernel import backend
from widemargin.kernel import model as kernel_model

N_CLASSES = 40


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(400) % N_CLASSES)
    X = rng.normal(size=(N_CLASSES, 8))[y] + 0.3 * rng.normal(size=(400, 8))
    return KernelSVC(tol=1e-5).fit(X, y), X


def direct(model, X):
    """Decision values of classes by one product with all coefficients."""
    squares = ((X[:, None] - X[model.support_]) ** 2).sum(axis=2)
    pairs = np.exp(-model.gamma_ * squares) @ model.dual_coef_.T + model.intercept_
    return _ovr_decision_function(pairs > 0, pairs, N_CLASSES)


def test_products_leave_out_pairs_that_a_vector_has_no_part_in(fitted):
    model, X = fitted
    n_values = sum(own.size for _, _, own in backend._runs(model.model_.coef, np.float64))
    assert n_values < model.model_.coef.size / 4
    assert_allclose(model.decision_function(X), direct(model, X), rtol=1e-9)


def test_some_rows_at_a_time_give_the_same(fitted, monkeypatch):
    model, X = fitted
    expected = model.decision_function(X)
    monkeypatch.setattr(kernel_model, "_AT_ONCE", 7 * model.dual_coef_.shape[0])
    assert_allclose(model.decision_function(X), expected, rtol=1e-9)


def test_errors_count_rows_from_the_first(monkeypatch):
    X = np.random.default_rng(1).normal(size=(60, 3))
    model = KernelSVC("poly", degree=3).fit(X, np.arange(60) % 6)
    monkeypatch.setattr(kernel_model, "_AT_ONCE", 7 * model.dual_coef_.shape[0])
    X[20] = 1e16  # the cube of its square is too much for single precision
    with pytest.raises(ValueError, match="Row 20 is too large"):
        model.predict(X)
