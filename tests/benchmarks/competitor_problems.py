"""Small problems that every competitor can learn."""

import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import MinMaxScaler


@pytest.fixture(scope="module")
def problem():
    """Two classes that overlap, features in [0, 1]."""
    X, y = make_classification(
        300, 6, n_informative=4, n_redundant=0, flip_y=0.1, class_sep=0.7, random_state=0
    )
    return MinMaxScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:300] / 16, y[:300], X[300:] / 16, y[300:]
