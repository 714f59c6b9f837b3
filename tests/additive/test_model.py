"""`AdditiveModel`: what a fit leaves behind, without the training data."""

import numpy as np
import pytest

from widemargin import papers

from .helpers import svc

MODELS = [{}, {"approximation": "unary"}, {"approximation": "pmsvm"}, {"kernel": "intersection"}]
each_model = pytest.mark.parametrize("changes", MODELS, ids=str)


@each_model
def test_a_model_knows_its_tables_and_how_often_each_bin_occurs(three, changes):
    X, y = three
    model = svc(**changes).fit(X, y).model_
    assert len(model.frequency) == len(model.tables.representatives) == model.encoder.n_codes
    np.testing.assert_array_equal(model.tables.representatives, model.encoder.representatives)
    assert model.frequency.sum() == np.count_nonzero(X)  # integers are their own bins


@each_model
@pytest.mark.parametrize("data", ["two", "three"])
def test_decisions_are_sums_of_feature_functions(request, data, changes):
    X, y = request.getfixturevalue(data)
    fitted = svc(**changes).fit(X, y)
    model = fitted.model_
    codes = np.searchsorted(model.encoder.representatives, X / X.max() * (1 - 1e-12))
    sums = sum(model.feature_function(j)[codes[:, j]] for j in range(model.n_features))
    expected = fitted.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(sums + model.intercept, expected, atol=1e-4)


def test_a_model_of_values_themselves_keeps_a_grid_of_them():
    X = np.random.default_rng(0).random((3000, 2))
    model = papers.pmsvm(random_state=0).fit(X, X[:, 0] > 0.5).model_
    assert model.encoder.n_codes == len(model.frequency) == len(model.lookup.table) == 1001
    assert model.encoder.representatives[-1] == 1.0
