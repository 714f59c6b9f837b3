"""Fixtures of the tests of checkpoints."""

import numpy as np
import pytest

from widemargin.kernel import tasks

from ..helpers import points
from .helpers import Killed


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def data(request):
    return points(160, request.param)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "fit"


@pytest.fixture
def solves(monkeypatch):
    """Counts the problems that are solved; ``after`` raises `Killed` at a later one."""

    class Counter:
        n, after = 0, np.inf

    real = tasks.RowsSolver.solve

    def solve(*arguments, **settings):
        if Counter.n >= Counter.after:
            raise Killed
        Counter.n += 1
        return real(*arguments, **settings)

    monkeypatch.setattr(tasks.RowsSolver, "solve", solve)
    return Counter
