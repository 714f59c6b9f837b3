"""Fixtures that several of these tests share."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from widemargin import _core, engine


@pytest.fixture
def many_cores(monkeypatch):
    """Teams may be larger than this machine has cores for."""
    monkeypatch.setattr(engine, "cpu_count", lambda: 8)


@pytest.fixture
def use_instruction_set():
    default = _core.instruction_set()
    yield _core.use_instruction_set
    _core.use_instruction_set(default)


@pytest.fixture(scope="module")
def digits():
    """600 digits with ten classes, pixel counts from 0 to 16."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:600]  # they come sorted by writer
    return X[rows], y[rows]


@pytest.fixture(scope="module")
def three(digits):
    X, y = digits
    return X[y < 3], y[y < 3]


@pytest.fixture(scope="module")
def two(digits):
    """Two classes that overlap a little: 3 and 8."""
    X, y = digits
    rows = (y == 3) | (y == 8)
    return X[rows], y[rows]
