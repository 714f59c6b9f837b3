"""Kernels that no descent gets along with end at a stated effort, and say what to do."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import KernelSVC
from widemargin.kernel.problem import STALLED, Patience

from .helpers import each_size

pytestmark = each_size

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = RNG.integers(0, 2, 60)
FAR = {
    "off centre": (KernelSVC("poly"), 100 + X),
    "three classes": (KernelSVC("poly"), 100 + X),
    "large": (KernelSVC("precomputed"), 1e10 * (X @ X.T + 1)),
}


@pytest.mark.parametrize("name", FAR)
def test_a_fit_without_progress_ends_and_says_what_to_do(name):
    model, rows = FAR[name]
    y = np.arange(60) % 3 if name == "three classes" else Y
    with pytest.warns(ConvergenceWarning, match=r"Rounding may hide|Centre and scale"):
        model.fit(rows, y)
    assert not model.converged_
    assert max(model.n_iter_) <= 20 * STALLED


def test_scaled_features_need_no_such_end():
    assert KernelSVC("poly").fit(X, Y).converged_


def test_progress_is_a_gap_that_halves_or_a_dual_objective_that_gains_of_it():
    patience = Patience()
    assert not patience.is_over(0, 0.0, 100.0)
    assert not patience.is_over(STALLED - 1, 1.0, 60.0)
    assert patience.is_over(STALLED, 1.0, 60.0)
    assert not patience.is_over(STALLED + 1, 1.0, 49.0)
    assert not patience.is_over(2 * STALLED, 3.5, 49.0)
    assert not patience.is_over(3 * STALLED - 1, 3.5, 49.0)
    assert patience.is_over(3 * STALLED, 3.5, 49.0)
