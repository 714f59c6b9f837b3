"""What all pictures have in common: axes, names, figures."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from widemargin import AdditiveSVC, explain, missed_pairs
from widemargin.plots import (
    new_figure,
    plot_convergence,
    plot_importance,
    plot_pair,
    plot_reliability,
    plot_search,
    plot_shape,
    plot_shapes,
)
from widemargin.reliability import reliability
from widemargin.selection import Candidate, Trial

from .helpers import X, Y, drawn


def test_everything_is_drawn_on_the_axes_given(three, two):
    figure, axes = new_figure(2, 3, (12, 6))
    trials = [Trial(Candidate({"kernel": "chi2"}, None), 1.0, 0.9, 0.1, 1.0)]
    pair = missed_pairs(two, X, Y > 0)[0]
    draws = [
        lambda ax: plot_shape(three, 0, ax=ax),
        lambda ax: plot_importance(three, ax=ax),
        lambda ax: plot_convergence(three, ax=ax),
        lambda ax: plot_search(trials, ax=ax),
        lambda ax: plot_pair(pair, two.classes_, ax=ax),
        lambda ax: plot_reliability(reliability(two, X, Y > 0), ax=ax),
    ]
    for draw, ax in zip(draws, axes.flat, strict=True):
        assert not ax.has_data()
        assert draw(ax) is ax
        assert ax.has_data()
    assert figure.legends == []
    assert drawn(figure)


def test_names_with_dollars_are_no_formulas():
    names = ["a$b$", "$\\frac$ $", "<b>&", "$"]
    model = AdditiveSVC(random_state=0).fit(X, np.array(["$x$", "y"])[(Y > 0) * 1])
    assert drawn(plot_shapes(model, names=names, class_label="$x$"))
    assert drawn(plot_importance(model, names=names).figure)
    three = AdditiveSVC(random_state=0).fit(X, np.array(["$x$", "y", "$\\bad$"])[Y])
    assert drawn(plot_shape(three, 0, names=names).figure)
    pair = missed_pairs(model, X, np.array(["$x$", "y"])[(Y > 0) * 1], names=names)[0]
    assert drawn(plot_pair(pair, model.classes_).figure)


def test_names_of_features():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model = AdditiveSVC("chi2", random_state=0).fit(frame, y)
    assert explain(model).feature_names == list(frame.columns)
    assert explain(model, names=["a", "b", "c", "d"]).feature_names == ["a", "b", "c", "d"]
    assert plot_shapes(model, features=[0]).axes[0].get_title() == "sepal length (cm)"


def test_figures_need_no_window_and_leave_no_trace():
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    figure, axes = new_figure(2, 3, (4, 3))
    assert axes.shape == (2, 3)
    assert tuple(figure.get_size_inches()) == (4, 3)
    assert pyplot.get_fignums() == before


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install widemargin\[plot\]"):
        new_figure(1, 1, (1, 1))
