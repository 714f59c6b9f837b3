"""Pictures show what the models have."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC
from widemargin.additive.explanation import importance
from widemargin.machine import feature_names
from widemargin.plots import (
    new_figure,
    plot_convergence,
    plot_importance,
    plot_search,
    plot_shapes,
)
from widemargin.selection import Candidate, Trial

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def three():
    return AdditiveSVC("chi2", random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def two():
    return AdditiveSVC("chi2", random_state=0).fit(X, Y > 0)


def drawn(figure) -> bool:
    """Whether it can be drawn and is not blank."""
    assert isinstance(figure, Figure)
    file = io.BytesIO()
    figure.savefig(file)
    with Image.open(file) as image:
        return len(set(image.convert("L").tobytes())) > 10


def visible(figure) -> list:
    return [axis for axis in figure.axes if axis.axison]


def curves(axis) -> list:
    """The lines that have a label of their own."""
    return [line for line in axis.lines if not line.get_label().startswith("_")]


# ------------------------------------------------------------------ importance


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["chi2", "intersection", "linear"])
def test_a_feature_that_informs_is_above_noise(n_classes, kernel):
    rng = np.random.default_rng(0)
    X = rng.random((600, 5))
    y = np.digitize(X[:, 2], np.linspace(0, 1, n_classes + 1)[1:-1])
    model = AdditiveSVC(kernel, random_state=0).fit(X, y)
    for size in (importance(model), importance(model, X)):
        assert size.shape == (5,)
        assert np.argmax(size) == 2
        assert size[2] > 3 * np.delete(size, 2).max()


def test_importance_with_data_is_the_mean_distance_of_contributions(three, two):
    parts = three.contributions(X)[:, :4]
    expected = np.abs(parts - parts.mean(axis=0)).mean(axis=(0, 2))
    np.testing.assert_allclose(importance(three, X), expected)
    parts = two.contributions(X)[:, :4]
    expected = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
    np.testing.assert_allclose(importance(two, X), expected)


def test_importance_without_data_is_that_of_the_training_data(three, two):
    for model in (three, two):
        np.testing.assert_allclose(importance(model), importance(model, X), atol=1e-6)


def test_a_feature_that_is_always_the_same_has_no_importance_in_data():
    constant = np.column_stack([X, np.ones(150)])
    model = AdditiveSVC("chi2", random_state=0).fit(constant, Y)
    assert importance(model, constant)[4] == pytest.approx(0, abs=1e-9)


# ------------------------------------------------------------------ shape functions


def test_shapes_of_many_classes(three):
    figure = plot_shapes(three)
    assert drawn(figure)
    axes = visible(figure)
    order = np.argsort(-importance(three))
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
    expected = [["a", "b", "c", "d"][j] for j in np.argsort(-importance(two, X))]
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
    by_data = plot_importance(model, X=X).axes[0]
    by_model = plot_importance(model).axes[0]
    widths = [[bar.get_width() for bar in axis.patches] for axis in (by_data, by_model)]
    assert widths[0] == pytest.approx(widths[1], abs=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_categories_of_a_column_are_bars_of_one_picture(n_classes):
    rng = np.random.default_rng(0)
    job = rng.integers(0, 12, 400)
    size = rng.random(400)
    table = np.column_stack([*(job == k for k in range(12)), size]).astype(float)
    names = [*(f"job=number {k}" for k in range(12)), "size"]
    y = np.minimum(job % n_classes + (size > 0.9), n_classes - 1)
    model = AdditiveSVC(random_state=0).fit(table, y)
    figure = plot_shapes(model, names=names)
    assert drawn(figure)
    first, second = visible(figure)
    assert (first.get_title(), second.get_title()) == ("job, 8 of 12", "size")
    n_scores = 1 if n_classes == 2 else 3
    assert len(first.patches) == 8 * n_scores
    shown = [text.get_text() for text in first.get_xticklabels()]
    frequent = np.argsort(-np.bincount(job), kind="stable")[:8]
    assert shown == [f"number {k}" for k in frequent]
    assert plot_shapes(model, names=names, features=["job"]).axes[0].get_title() == "job, 8 of 12"
    bars = plot_importance(model, names=names).axes[0]
    assert [text.get_text() for text in bars.get_yticklabels()] == ["size", "job"]


# ------------------------------------------------------------------ bars and lines


@pytest.mark.parametrize("data", [None, X])
def test_bars_of_importance_the_longest_on_top(three, data):
    figure = plot_importance(three, names=list("abcd"), X=data)
    assert drawn(figure)
    (axis,) = figure.axes
    size = importance(three, data)
    order = np.argsort(size)
    assert [bar.get_width() for bar in axis.patches] == pytest.approx(size[order].tolist())
    assert [text.get_text() for text in axis.get_yticklabels()] == ["abcd"[j] for j in order]
    assert axis.get_xlabel() == "importance: mean |contribution|"


def test_bars_of_some_features_only(three):
    assert len(plot_importance(three, most=2).axes[0].patches) == 2


def test_convergence_of_kernel_models_is_a_line_per_problem():
    model = KernelSVC(gamma=1).fit(X, Y)
    figure = plot_convergence(model)
    assert drawn(figure)
    (axis,) = figure.axes
    *lines, tol = axis.lines
    assert len(lines) == 3
    for line, run in zip(lines, model.history_, strict=True):
        assert line.get_xdata()[-1] <= len(run)
        assert np.all(line.get_ydata() > 0)
        assert line.get_ydata()[-1] < 0.1 * line.get_ydata()[0]
    assert list(tol.get_ydata()) == [1e-3, 1e-3]
    assert axis.get_yscale() == "log"
    assert axis.get_ylim()[0] < 1e-3 < axis.get_ylim()[1]


def test_convergence_of_additive_models(three):
    (axis,) = plot_convergence(three).axes
    line, _ = axis.lines
    assert len(line.get_xdata()) == len(three.history_[0])
    assert line.get_ydata()[-1] == pytest.approx(three.duality_gap_)


def test_a_gap_of_rounding_errors_does_not_flatten_the_others():
    class Model:
        tol, duality_gap_ = 1e-3, 1e-18
        history_ = ([{"dual": 1.0, "gap": gap} for gap in (1.0, 1e-2, 1e-18)],)

    (axis,) = plot_convergence(Model()).axes
    assert 1e-7 < axis.get_ylim()[0] < 1e-5


def test_convergence_without_a_gap_is_that_of_the_gradient(three):
    model = AdditiveSVC("chi2", approximation="chebyshev", random_state=0).fit(X, Y)
    (axis,) = plot_convergence(model).axes
    assert axis.get_ylabel() == "projected gradient"
    assert axis.lines[0].get_ydata()[-1] == pytest.approx(model.violation_)
    assert plot_convergence(three).axes[0].get_ylabel() == "relative duality gap"


def test_convergence_of_an_early_model_is_nothing_to_plot():
    with pytest.raises(ValueError, match="recorded no steps to plot"):
        plot_convergence(KernelSVC(early=1).fit(X, Y))


def test_a_search_is_a_line_per_candidate():
    rbf, chi2 = (
        Candidate({"kernel": "rbf", "gamma": 0.1}, None),
        Candidate({"kernel": "chi2"}, None),
    )
    trials = [
        Trial(chi2, 10.0, 0.99, 0.02, 1.0), Trial(rbf, 1.0, 0.9, 0.1, 1.0),
        Trial(rbf, 100.0, 0.8, 0.1, 1.0), Trial(chi2, 1.0, 0.7, 0.0, 1.0),
    ]  # fmt: skip
    figure = plot_search(trials)
    assert drawn(figure)
    (axis,) = figure.axes
    first, second = curves(axis)
    assert first.get_label() == "kernel chi2"
    assert second.get_label() == "kernel rbf, gamma 0.1"
    np.testing.assert_allclose(first.get_xydata(), [[1, 70], [10, 99]])
    np.testing.assert_allclose(second.get_xydata(), [[1, 90], [100, 80]])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "kernel chi2", "kernel rbf, gamma 0.1"]  # fmt: skip
    assert (axis.get_xscale(), axis.get_xlabel(), axis.get_ylabel()) == ("log", "C", "accuracy, %")
    band = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (70, 100)  # no accuracy is above 100 %


def test_lines_of_one_colour_differ_in_style():
    candidates = [Candidate({"gamma": float(k)}, None) for k in range(12)]
    figure = plot_search([Trial(c, 1.0, 0.5, 0.1, 1.0) for c in candidates])
    looks = {(line.get_color(), line.get_linestyle()) for line in curves(figure.axes[0])}
    assert len(looks) == 12


# ------------------------------------------------------------------ names and figures


def test_names_of_features():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model = AdditiveSVC("chi2", random_state=0).fit(frame, y)
    assert feature_names(model) == list(frame.columns)
    assert feature_names(model, names=["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
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
