"""What is in a folder, and what is not taken for a finished fit."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin.kernel.checkpoint import Checkpoint
from widemargin.kernel.clusters import ClusterSolution
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables

from ..helpers import Recorder
from .helpers import svc


def test_parts_and_solutions_come_back_to_the_bit(folder):
    rng = np.random.default_rng(0)
    problem = Variables(np.arange(5), np.ones(5), np.zeros(5), np.ones(5))
    solved = [
        ClusterSolution(rng.permutation(5), rng.random(5), 0.1, 1e-17, 3, True),
        ClusterSolution(np.arange(0), np.empty(0), 0.0, 0.0, 0, False),
    ]
    solution = Solution(rng.random(4), 1 / 3, 0.3, 12, np.array([-2 / 3]), double=True)
    with Checkpoint(folder, {"data": "d"}, 7) as stored:
        stored.save("cluster", solved)
        stored.save_solution("whole", solution)
    with Checkpoint(folder, {"data": "d"}, 8) as again:
        assert again.seed == 7
        for one, other in zip(again.load("cluster", [problem, problem]), solved, strict=True):
            np.testing.assert_array_equal(one.variables, other.variables)
            np.testing.assert_array_equal(one.alpha, other.alpha)
            assert one[2:] == other[2:]
        loaded = again.load_solution("whole", problem[:4])
        np.testing.assert_array_equal(loaded.alpha, solution.alpha)
        np.testing.assert_array_equal(loaded.offset, solution.offset)
        assert (loaded.primal, loaded.dual, loaded.n_iter, loaded.double) == (1 / 3, 0.3, 12, True)
        assert again.load("absent", []) is again.load_solution("absent", problem) is None


def test_a_fit_that_a_callback_stopped_is_not_taken_for_a_finished_one(data, folder):
    X, y = data
    stopped = svc(checkpoint=folder, levels=0, tol=1e-6).set_callbacks(Recorder(stop_at="epoch"))
    with pytest.warns(ConvergenceWarning, match="told to stop"):
        stopped.fit(X, y)
    again = svc(checkpoint=folder, levels=0, tol=1e-6).fit(X, y)
    assert again.duality_gap_ <= 1e-6


def test_a_path_has_a_checkpoint_per_value_of_c(data, folder):
    first = svc(checkpoint=folder).fit_path(*data, [1.0, 2.0])
    again = svc(checkpoint=folder).fit_path(*data, [1.0, 2.0])
    assert sorted(path.name for path in folder.iterdir()) == ["C=1.0", "C=2.0"]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)


def test_values_of_c_that_print_alike_have_folders_of_their_own(data, folder):
    Cs = [1.0, 1.0000001, np.float32(2.0), 3]
    first = svc(checkpoint=folder).fit_path(*data, Cs)
    again = svc(checkpoint=folder).fit_path(*data, Cs)
    names = ["C=1.0", "C=1.0000001", "C=2.0", "C=3.0"]
    assert sorted(path.name for path in folder.iterdir()) == names
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)


def test_a_temporary_file_of_a_killed_process_does_not_make_a_folder_foreign(data, folder):
    folder.mkdir()
    (folder / ".fit.json.1-2.tmp").write_bytes(b"{")
    assert svc(checkpoint=folder).fit(*data).duality_gap_ <= 1e-3
