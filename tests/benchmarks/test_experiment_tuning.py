"""What a method tunes: grids, and the rows that choose."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import data
from benchmarks.experiments.cell import load
from benchmarks.report import EXTENSIONS, best_C
from pretended_fits import DIGITS, Pretended, experiment, near, ran


def test_the_best_value_within_a_grid_is_taken(tmp_path):
    fit = Pretended(near(1.0))
    rows = ran(tmp_path, fit)
    assert [cell.stage for cell in fit.cells] == ["tune"] * 3 + ["test"]
    assert rows[0]["parameters"] == {"C": 1.0}
    assert rows[0]["details"] == {"gap": 0.25}


@pytest.mark.parametrize("best", [1e-3, 1e4])
def test_a_grid_goes_on_until_its_best_value_is_not_its_last(tmp_path, best):
    fit = Pretended(near(best))
    rows = ran(tmp_path, fit)
    assert rows[0]["parameters"]["C"] == pytest.approx(best)
    tried = [cell.parameters["C"] for cell in fit.cells if cell.stage == "tune"]
    assert min(tried) < 0.9 * best < 1.1 * best < max(tried)
    assert len(tried) == len(set(tried))  # none twice
    assert "at_end_of_grid" not in rows[0]["details"]


def test_a_grid_does_not_go_on_for_ever_and_says_so(tmp_path):
    fit = Pretended(lambda parameters: 1 - 1 / parameters["C"])
    rows = ran(tmp_path, fit)
    assert rows[0]["details"]["at_end_of_grid"] == ["C"]
    assert len(fit.cells) == 3 + EXTENSIONS + 1


@pytest.mark.parametrize(("best", "found"), [(1.0, 1.0), (64.0, 64.0), (1 / 64, 1 / 64)])
def test_scripts_choose_C_by_grids_that_go_on_too(best, found):
    tried = []

    class Machine:
        def __init__(self, C):
            tried.append(C)
            self.C = C

        def fit(self, X, y):
            return self

        def score(self, X, y):
            return -abs(np.log(self.C / best))

    assert best_C(Machine, [0.25, 1.0, 4.0], None, None, None, None) == found
    assert min(tried) < best < max(tried)
    assert len(tried) == len(set(tried))


def test_scripts_grids_end_too():
    class Machine:
        def __init__(self, C):
            self.C = C

        fit = score = lambda self, X, y: self if X is None else self.C

    assert best_C(Machine, [1.0, 2.0], None, None, 0, 0) == 2.0 ** (1 + EXTENSIONS)


def test_quick_runs_do_not_extend(tmp_path):
    fit = Pretended(near(1e4))
    rows = ran(tmp_path, fit, extend=False)
    assert rows[0]["parameters"] == {"C": 10.0}
    assert rows[0]["details"]["at_end_of_grid"] == ["C"]


def test_of_equals_the_smaller_is_taken_and_failures_are_never_best(tmp_path):
    flat = replace(experiment().methods[0], tune={"C": [10.0, 0.1, 1.0]})
    rows = ran(tmp_path, Pretended(), experiment(methods=[flat]), extend=False)
    assert rows[0]["parameters"] == {"C": 0.1}

    class Partly(Pretended):
        def __call__(self, cell, limit):
            if cell.parameters["C"] != 1.0:
                return {"status": "timeout", "message": ""}
            return super().__call__(cell, limit)

    (tmp_path / "b").mkdir()
    rows = ran(tmp_path / "b", Partly(lambda parameters: 0.01))
    assert rows[0]["parameters"] == {"C": 1.0}


def test_rows_that_tune_are_training_rows():
    wanted = replace(DIGITS, stage="tune", rows=None, test_rows=None)
    X, _, held, _ = load(wanted)
    train, _, test, _ = data.digits()
    known = {row.tobytes() for row in train}
    assert len(X) + len(held) == len(train)
    assert all(row.tobytes() in known for row in held)
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in held}
    assert len(load(replace(wanted, stage="test"))[2]) == len(test)


def test_scaling_is_that_of_the_training_rows():
    X, _, X_test, _ = load(replace(DIGITS, scale=[0, 1]))
    assert (X.min(), X.max()) == (0, 1)
    assert X_test.min() >= 0
    assert X_test.max() <= 1
