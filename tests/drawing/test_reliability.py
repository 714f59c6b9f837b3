"""Whether decision values mean what they say, counted and drawn."""

import numpy as np
import pytest

from widemargin.plots import (
    plot_reliability,
)
from widemargin.reliability import reliability

from .helpers import X, Y


def test_reliability_counts_what_it_says(two, three):
    found = reliability(two, X, Y > 0, n_bins=5)
    scores = two.decision_function(X)
    lowest = np.argsort(scores, kind="stable")[:30]
    assert (found.of, found.event) == ("decision value", "class True")
    assert found.said[0] == pytest.approx(scores[lowest].mean())
    assert found.share[0] == (Y > 0)[lowest].mean()
    assert np.all((found.low <= found.share + 1e-12) & (found.share <= found.high + 1e-12))
    assert np.isnan(found.error)
    several = reliability(three, X, Y)
    assert several.of == "lead"
    assert several.rows.sum() == 150
    assert several.rows @ several.share / 150 == pytest.approx(three.score(X, Y))


def test_reliability_of_probabilities_has_a_diagonal_and_an_error():
    class Sure:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.column_stack([1 - X[:, 0], X[:, 0]])

    p = np.repeat([0.25, 0.75], 40)[:, None]
    y = np.r_[np.arange(40) < 10, np.arange(40) < 20]  # a quarter, as said; half, not as said
    found = reliability(Sure(), p, y.astype(int), n_bins=2)
    assert found.of == "probability"
    np.testing.assert_allclose([found.said, found.share], [[0.25, 0.75], [0.25, 0.5]])
    assert found.error == pytest.approx(0.125)
    # Wilson's interval of 10 in 40, by hand
    assert (found.low[0], found.high[0]) == pytest.approx((0.1419, 0.4019), abs=1e-4)
    axis = plot_reliability(found)
    assert axis.lines[0].get_xydata().tolist() == [[0, 0], [1, 1]]
    assert axis.get_xlabel() == "probability"
