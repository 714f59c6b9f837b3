"""Shape functions and importance, as curves and bars."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, explain
from widemargin.plots import (
    plot_importance,
    plot_shape,
    plot_shapes,
)

from .helpers import X, Y, curves, drawn, visible


def test_shapes_of_many_classes(three):
    figure = plot_shapes(three)
    assert drawn(figure)
    axes = visible(figure)
    order = np.argsort(-explain(three).importances())
    assert [axis.get_title() for axis in axes] == [f"feature {j}" for j in order]
    for axis, j in zip(axes, order, strict=True):
        assert [line.get_label() for line in curves(axis)] == ["0", "1", "2"]
        for line, label in zip(curves(axis), (0, 1, 2), strict=True):
            grid, values = three.shape_function(int(j), label)
            seen = (grid >= X[:, j].min() - 1e-9) & (grid <= X[:, j].max() + 1e-9)
            points = np.column_stack([grid, values])[seen]
            np.testing.assert_array_equal(line.get_xydata(), points)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    assert axes[0].get_ylabel() == "contribution"


def test_shapes_of_two_classes_are_one_curve(two):
    figure = plot_shapes(two, names=["a", "b", "c", "d"], X=X)
    assert all(len(curves(axis)) == 1 for axis in visible(figure))
    assert figure.legends == []
    assert figure.axes[0].get_ylabel() == "contribution to True"
    expected = [["a", "b", "c", "d"][j] for j in np.argsort(-explain(two).importances(X))]
    assert [axis.get_title() for axis in visible(figure)] == expected


def test_shapes_of_chosen_features(three):
    figure = plot_shapes(three, features=[3, 0])
    assert [axis.get_title() for axis in visible(figure)] == ["feature 3", "feature 0"]


def test_shapes_fill_rows_of_four(three):
    figure = plot_shapes(three, features=[0, 1, 2, 3, 0])
    assert len(figure.axes) == 8
    assert len(visible(figure)) == 5
    assert [axis.get_ylabel() != "" for axis in figure.axes] == [True, *[False] * 3] * 2
    assert drawn(figure)


def test_shapes_are_those_of_eight_features_and_ten_classes_at_most():
    rng = np.random.default_rng(0)
    X, y = rng.random((240, 12)), np.arange(240) % 12
    figure = plot_shapes(AdditiveSVC("chi2", random_state=0, tol=0.1).fit(X, y))
    assert len(visible(figure)) == 8
    assert all(len(curves(axis)) == 10 for axis in visible(figure))
    assert figure.legends[0].get_title().get_text() == "class, 10 of 12"


def test_zeros_are_values_and_a_single_value_is_a_dot():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (100, 3)).astype(float)
    y = X[:, 0]
    X[:, 2] = 1
    figure = plot_shapes(AdditiveSVC("chi2", random_state=0).fit(X, y), features=[0, 1, 2])
    lines = [curves(axis)[0] for axis in visible(figure)]
    assert [line.get_xdata().tolist() for line in lines] == [[0, 1], [0, 1], [1]]
    assert [line.get_marker() for line in lines] == ["None", "None", "o"]


@pytest.mark.parametrize("scaler", [MinMaxScaler(), StandardScaler(), MaxAbsScaler()])
def test_shapes_of_a_scaled_model_are_in_the_data_s_units(scaler):
    model = make_pipeline(scaler, AdditiveSVC(random_state=0)).fit(X, Y)
    figure = plot_shapes(model, features=[0, 1, 2, 3])
    for column, axis in zip(X.T, visible(figure), strict=True):
        grid = curves(axis)[0].get_xdata()
        assert (grid[0], grid[-1]) == pytest.approx((column.min(), column.max()), rel=0.02)
    by_data = plot_importance(model, X=X)
    by_model = plot_importance(model)
    widths = [[bar.get_width() for bar in axis.patches] for axis in (by_data, by_model)]
    assert widths[0] == pytest.approx(widths[1], abs=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_categories_of_a_column_are_bars_of_one_picture(n_classes):
    rng = np.random.default_rng(0)
    job = rng.integers(0, 12, 400)
    size = rng.random(400)
    table = pd.DataFrame({"job": [f"number {k}" for k in job], "size": size})
    y = np.minimum(job % n_classes + (size > 0.9), n_classes - 1)
    model = AdditiveSVC(random_state=0).fit(table, y)
    figure = plot_shapes(model)
    assert drawn(figure)
    first, second = visible(figure)
    assert (first.get_title(), second.get_title()) == ("job, 8 of 12", "size")
    n_scores = 1 if n_classes == 2 else 3
    assert len(first.patches) == 8 * n_scores
    shown = [text.get_text() for text in first.get_xticklabels()]
    frequent = np.argsort(-np.bincount(job), kind="stable")[:8]
    assert shown == [f"number {k}" for k in frequent]
    assert plot_shapes(model, features=["job"]).axes[0].get_title() == "job, 8 of 12"
    bars = plot_importance(model)
    assert [text.get_text() for text in bars.get_yticklabels()] == ["size", "job"]


@pytest.mark.parametrize("data", [None, X])
def test_bars_of_importance_the_longest_on_top(three, data):
    axis = plot_importance(three, names=list("abcd"), X=data)
    assert drawn(axis.figure)
    size = explain(three).importances(data)
    order = np.argsort(size)
    assert [bar.get_width() for bar in axis.patches] == pytest.approx(size[order].tolist())
    assert [text.get_text() for text in axis.get_yticklabels()] == ["abcd"[j] for j in order]
    assert axis.get_xlabel() == "importance: mean |contribution|"


def test_bars_of_some_features_only(three):
    assert len(plot_importance(three, most=2).patches) == 2


def strip(axis) -> np.ndarray:
    """Corners of the bars below that say how often values occur: (n_bars, left, right, height)."""
    (bars,) = (c for c in axis.collections if type(c).__name__ == "PolyCollection")
    corners = np.array([path.vertices[:4] for path in bars.get_paths()])
    return np.column_stack([corners[:, 0, 0], corners[:, 2, 0], corners[:, 1, 1]])


def test_a_shape_has_the_density_of_the_training_data_below_it():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(0, 1, 900), rng.uniform(1, 10, 100)])
    model = AdditiveSVC(random_state=0).fit(values[:, None], values > 0.5)
    axis = plot_shape(model, 0)
    assert drawn(axis.figure)
    bars = strip(axis)
    dense = bars[bars[:, 1] <= 1.01][:, 2].sum()
    assert 0.85 < dense / bars[:, 2].sum() < 0.95
    low, high = axis.get_ylim()
    line = curves(axis)[0].get_ydata()
    assert (line.min() - low) / (high - low) > bars[:, 2].max()  # no curve runs through it


def test_the_density_of_categories_is_in_their_order():
    job = np.repeat([0, 1, 2], [100, 300, 200])
    table = pd.DataFrame({"job": np.array(["a", "b", "c"])[job]})
    axis = plot_shape(AdditiveSVC(random_state=0).fit(table, job > 0), "job")
    assert [text.get_text() for text in axis.get_xticklabels()] == ["b", "c", "a"]
    heights = strip(axis)[:, 2]
    np.testing.assert_allclose(heights / heights[0], [1, 2 / 3, 1 / 3], rtol=1e-5)


def test_one_class_of_several_and_either_of_two(three, two):
    axis = plot_shape(three, 2, class_label=1)
    (line,) = curves(axis)
    assert (line.get_label(), axis.get_ylabel()) == ("1", "contribution to 1")
    grid, values = three.shape_function(2, 1)
    np.testing.assert_array_equal(np.interp(line.get_xdata(), grid, values), line.get_ydata())
    first, second = (
        curves(plot_shape(two, 0, class_label=label))[0].get_ydata() for label in (False, True)
    )
    np.testing.assert_array_equal(first, -second)
    with pytest.raises(ValueError, match=r"class_label=7 is not in \[0, 1, 2\]"):
        plot_shape(three, 2, class_label=7)
    assert plot_shapes(three, class_label=2).legends == []


def test_all_classes_of_one_term_have_a_legend(three):
    axes = plot_shape(three, 0)
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    axes.figure.draw_without_rendering()  # beside the curves
    assert legend.get_window_extent().x0 >= axes.get_window_extent().x1


def test_a_legend_stays_within_the_axes_of_a_figure_without_a_layout(three):
    axes = Figure().subplots()
    legend = plot_shape(three, 0, ax=axes).get_legend()
    axes.figure.draw_without_rendering()
    assert legend.get_window_extent().x1 <= axes.get_window_extent().x1


def test_missing_values_are_a_dotted_line_and_categories_bars():
    X = pd.DataFrame(
        {"age": [31.0, np.nan, 60.0, 44.0] * 9, "job": ["smith", "clerk", None, "smith"] * 9}
    )
    model = AdditiveSVC(missing="learn", random_state=0).fit(X, [0, 1, 1, 0] * 9)
    age, job = plot_shapes(model, features=["age", "job"]).axes
    assert age.get_title() == "age, missing dotted"
    (dotted,) = [line for line in age.lines if line.get_linestyle() == ":"]
    np.testing.assert_allclose(dotted.get_ydata()[0], model.contributions(X)[1, 0], atol=1e-6)
    assert sorted(text.get_text() for text in job.get_xticklabels()) == [
        "(missing)", "clerk", "smith",
    ]  # fmt: skip
