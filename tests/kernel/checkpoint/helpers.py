"""Fits with a checkpoint, and what they have kept."""

import numpy as np

from widemargin.files import CLAIM

from .. import helpers


def svc(kernel="rbf", **changes):
    return helpers.svc(kernel, **{"levels": 2, "branching": 2, **changes})


class Killed(Exception):  # noqa: N818
    """What a test raises in the place of a kill."""


def parts(folder):
    return sorted(path.name for path in folder.glob("*.part"))


def kept(folder):
    """All files but the claim, which is no content."""
    return [path for path in folder.iterdir() if path.name != CLAIM]


def snapshot(folder):
    """Names, contents and times of what a fit has kept."""
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in kept(folder)}


def assert_same_fit(a, b):
    for name in ("dual_coef_", "support_", "intercept_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("objective_", "dual_objective_", "duality_gap_", "n_iter_"):
        np.testing.assert_equal(getattr(a, name), getattr(b, name))  # both NaN are equal
    for one, other in zip(a.levels_, b.levels_, strict=True):
        assert (one.level, one.objective, one.gap) == (other.level, other.objective, other.gap)
        np.testing.assert_array_equal(one.sizes, other.sizes)
