"""Settings shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import MinMaxScaler

pytest.register_assert_rewrite("kernel.helpers")  # its asserts say what they saw, like tests'

settings.register_profile(
    "widemargin", deadline=None, derandomize=True, database=None, max_examples=50
)
settings.load_profile("widemargin")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data, from the environment; tests that need it are skipped without."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        pytest.skip("WIDEMARGIN_DATA does not name a folder with the real data")
    return Path(folder)


# Small problems that every competitor can learn: a conftest.py of theirs would hide this one, since
# tests/benchmarks is no package (its name is that of benchmarks).


@pytest.fixture(scope="module")
def problem():
    """Two classes that overlap, features in [0, 1]."""
    X, y = make_classification(
        300, 6, n_informative=4, n_redundant=0, flip_y=0.1, class_sep=0.7, random_state=0
    )
    return MinMaxScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def digits():
    """Four classes of images: rows to learn from, their labels, and the rest."""
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:300] / 16, y[:300], X[300:] / 16, y[300:]
