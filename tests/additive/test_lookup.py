"""Values that training never saw: bins, and PmSVM's polynomials."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.polynomial import Chebyshev, Polynomial
from sklearn.datasets import load_iris

from widemargin import AdditiveSVC, papers

from .helpers import svc


@pytest.mark.parametrize("approximation", ["spectral", "unary", "pmsvm"])
def test_values_outside_the_training_range_are_clipped_to_it(two, approximation):
    X, y = two
    model = svc(approximation=approximation, scaling="global").fit(X, y)
    far = 3.0 * X - 5.0
    inside = np.clip(far, 0.0, X.max())
    np.testing.assert_array_equal(model.decision_function(far), model.decision_function(inside))


def test_values_outside_a_columns_own_range_are_clipped_to_it():
    X, y = load_iris(return_X_y=True)
    model = svc(scaling="minmax").fit(X, y)
    far = 4.0 * X - 12.0
    inside = np.clip(far, X.min(axis=0), X.max(axis=0))
    np.testing.assert_allclose(model.decision_function(far), model.decision_function(inside))


def test_intersection_beyond_a_columns_largest_value_is_flat(two):
    X, y = two
    model = svc("intersection", approximation="unary", scaling=None).fit(X, y)
    inside = np.minimum(16.0, X.max(axis=0)) * np.ones_like(X)
    decision = model.decision_function(np.full_like(X, 16.0))
    np.testing.assert_allclose(decision, model.decision_function(inside), rtol=1e-6)


def test_pmsvm_decides_by_a_polynomial_in_the_logarithm_of_the_value_itself(two):
    """g_j(x) = sum_k a_jk ln(x + .05)^k (PmSVM, eq. 5), at values that training never saw."""
    X, y = two
    model = papers.pmsvm(random_state=0).fit(X, y)
    domain = np.log([0.05, 1 + 0.05])  # the core keeps a_jk in Chebyshev's basis
    new = np.random.default_rng(0).uniform(0.01, 1.0, (20, X.shape[1]))
    decision = np.zeros(len(new))
    for j, weights in enumerate(model.model_.weights[0, :, :3, 0].astype(float)):
        powers = Chebyshev(weights, domain=domain).convert(kind=Polynomial).coef
        decision += sum(a * np.log(new[:, j] + 0.05) ** k for k, a in enumerate(powers))
    np.testing.assert_allclose(model.decision_function(new * X.max()), decision, atol=1e-5)


def test_pmsvm_decides_alike_on_sparse_and_dense_data_with_shifted_columns():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 5)) * (rng.random((60, 5)) < 0.5)
    y = (X.sum(axis=1) > 0).astype(int)
    model = svc(approximation="pmsvm", scaling="minmax").fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(sp.csr_array(X[:5])), model.decision_function(X[:5]), atol=1e-6
    )


def test_values_are_rounded_to_the_nearest_distinct_one_zero_included():
    X = np.array([[0.0], [1.0]] * 20)
    model = AdditiveSVC("chi2", random_state=0).fit(X, X[:, 0] > 0)
    scores = model.decision_function([[0.0], [0.4], [0.6], [1.0]])
    assert scores[0] == scores[1] < scores[2] == scores[3]


def test_a_pmsvm_model_is_not_its_training_data():
    X = np.random.default_rng(0).random((2000, 20))
    model = papers.pmsvm(random_state=0).fit(X, X[:, 0] > 0.5)
    assert model.model_.encoder.n_codes <= 1001
    assert len(pickle.dumps(model)) < X.nbytes
