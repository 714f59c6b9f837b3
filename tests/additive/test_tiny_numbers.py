"""At the small end of double precision, and two layouts of the same data."""

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import AdditiveSVC

X = np.random.default_rng(0).random((60, 4))
Y = np.arange(60) % 3


@pytest.mark.parametrize("C", [5e-324, 1e-310, 1e-308])
def test_a_c_without_a_reciprocal_is_refused_by_name(C):
    """Its gap was NaN, and its intercept minus infinity."""
    with pytest.raises(ValueError, match=f"C={C!r} is too small for these sample weights"):
        AdditiveSVC(C=C).fit(X, Y)


def test_weights_without_a_reciprocal_are_refused():
    with pytest.raises(ValueError, match=r"C=1\.0 is too small for these sample weights"):
        AdditiveSVC().fit(X, Y, sample_weight=np.full(60, 1e-310))


def test_the_smallest_c_is_solved():
    model = AdditiveSVC(C=1e-300, random_state=0).fit(X, Y)
    assert 0 <= model.duality_gap_ <= 1e-2
    assert np.all(np.isfinite(model.intercept_))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [5e-324, 1e-310])
def test_values_that_cannot_be_divided_by_are_refused_by_column(scale, layout):
    """They predicted at chance."""
    with pytest.raises(
        ValueError, match=r"Column 0 ranges from .* less than float64 can divide by"
    ):
        AdditiveSVC().fit(layout(X * scale), Y)


def test_one_column_of_such_values_is_refused_among_others():
    with pytest.raises(ValueError, match=r"Column 2 ranges from .* multiply it first"):
        AdditiveSVC(scaling="minmax").fit(X * [1, 1, 1e-310, 1], Y)


def test_small_values_are_as_good_as_large_ones():
    plain = AdditiveSVC(random_state=0, tol=1e-6).fit(X, Y)
    small = AdditiveSVC(random_state=0, tol=1e-6).fit(X * 2.0**-1000, Y)
    np.testing.assert_array_equal(
        small.decision_function(X * 2.0**-1000), plain.decision_function(X)
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", ["intersection", "chi2", "linear"])
def test_dense_and_sparse_data_differ_by_what_their_gaps_allow(kernel, loss):
    """Both add up the same problem in another order, so they stop at other points near its optimum.

    The objective is strongly convex, so |w - w*|^2 / 2 is at most the gap, and a decision value is
    off by at most sqrt(2 gap k(x, x)), with the intercept as a feature of x.
    """
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = (rng.random((80, 12)) * (rng.random((80, 12)) < 0.5)).round(2)
        y = rng.integers(2, size=80)
        how = {
            "max_iter": 10_000,
            "loss": loss,
            "C": 1.0,
            "tol": 1e-8,
            "random_state": 0,
            "C_unit": "raw",
        }
        models = [AdditiveSVC(kernel, **how).fit(Z, y) for Z in (rows, sp.csr_array(rows))]
        scores = [model.decision_function(rows) for model in models]
        gaps = [model.duality_gap_ * model.objective_ for model in models]
        diagonal = rows.max(axis=0).clip(1).sum() + 1.0  # of scaled values, and the intercept
        allowed = sum(np.sqrt(2 * gap * diagonal) for gap in gaps)
        assert np.abs(scores[0] - scores[1]).max() <= allowed + 1e-12
