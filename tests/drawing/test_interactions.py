"""Maps of pairs."""

import numpy as np
import pytest

from widemargin import AdditiveSVC, missed_pairs
from widemargin.plots import (
    plot_pair,
    plot_pairs,
)

from .helpers import drawn, visible


def test_a_map_of_a_pair_has_a_number_in_every_cell():
    X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    y = np.where(X[:, 0] * X[:, 2] > 0, "in", "out")
    model = AdditiveSVC(random_state=0).fit(X, y)
    pairs = missed_pairs(model, X, y, names=["a", "b", "c"])
    axis = plot_pair(pairs[0], model.classes_)
    assert drawn(axis.figure)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("a", "c")
    n = pairs[0].effect[..., 0].size
    assert len(axis.texts) == n
    assert axis.texts[0].get_text() == f"{100 * pairs[0].effect[0, 0, 0]:+.0f}"
    assert "rows of out" in axis.get_title()
    other = plot_pair(pairs[0], model.classes_, class_label="in")
    assert other.texts[0].get_text() == f"{-100 * pairs[0].effect[0, 0, 0]:+.0f}"
    with pytest.raises(ValueError, match="class_label='x' is not in"):
        plot_pair(pairs[0], model.classes_, class_label="x")
    figure = plot_pairs(pairs, model.classes_)
    assert len(visible(figure)) == 3
    assert ["within noise" in axis.get_title() for axis in visible(figure)] == [False, True, True]
    with pytest.raises(ValueError, match="no pairs to plot"):
        plot_pairs([], model.classes_)
