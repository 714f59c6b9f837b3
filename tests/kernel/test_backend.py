"""Another backend finds the same machines: the seam for a device."""

import numpy as np
import pytest

from widemargin import KernelSVC

from .helpers import points
from .plain_backend import PlainSVC

SETTINGS = {
    "two classes": {},
    "without an intercept": {"fit_intercept": False},
    "double precision": {"tol": 1e-6},
    "clusters": {"levels": 1, "branching": 3},
    "early": {"early": 1, "levels": 1, "branching": 3},
    "poly": {"kernel": "poly", "gamma": 1.0, "coef0": 1.0},
    "laplacian": {"kernel": "laplacian"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovo"), (3, "ovo"), (3, "ovr")])
def test_another_backend_finds_the_same_machine(settings, n_classes, multi_class):
    X, y = points(150, n_classes)
    how = {"gamma": 2.0, "C": 5.0, "tol": 1e-4, "multi_class": multi_class, "random_state": 0}
    how |= settings
    ours, plain = KernelSVC(**how).fit(X, y), PlainSVC(**how).fit(X, y)
    assert plain.converged_
    assert plain.dual_objective_ == pytest.approx(ours.dual_objective_, rel=3 * how["tol"])
    assert np.mean(plain.predict(X) == ours.predict(X)) >= 0.98
    assert plain.backend.n_sets >= len(np.atleast_1d(plain.n_iter_))
