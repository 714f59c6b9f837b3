"""Fixtures that several of these tests share."""

import pytest

from widemargin import _core

from .helpers import points


@pytest.fixture
def two():
    """Rows of two classes."""
    return points()


@pytest.fixture
def three():
    """Rows of three classes."""
    return points(n_classes=3)


@pytest.fixture
def use_instruction_set():
    """A function that chooses the core's instructions until the test ends."""
    default = _core.instruction_set()
    yield _core.use_instruction_set
    _core.use_instruction_set(default)


@pytest.fixture(autouse=True)
def most_rows(monkeypatch, request):
    """Every problem counts as large, so that little data tests what large data goes through.

    `each_size` in helpers.py has the tests of a module run both ways.
    """
    most = getattr(request, "param", 0)
    monkeypatch.setattr("widemargin.kernel.backend.MOST_ROWS", most)
    if most == 0:
        monkeypatch.setattr("widemargin.kernel.problems.SMALL_CLASS", 0)
    return most
