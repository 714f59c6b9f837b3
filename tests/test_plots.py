"""Pictures show what the models have."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC
from widemargin.additive.explanation import importance
from widemargin.bands import shape_bands
from widemargin.machine import feature_names
from widemargin.pairs import missed_pairs
from widemargin.plots import (
    new_figure,
    plot_convergence,
    plot_importance,
    plot_pair,
    plot_pairs,
    plot_reliability,
    plot_search,
    plot_shape,
    plot_shapes,
)
from widemargin.reliability import reliability
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
    by_data = plot_importance(model, X=X)
    by_model = plot_importance(model)
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
    bars = plot_importance(model, names=names)
    assert [text.get_text() for text in bars.get_yticklabels()] == ["size", "job"]


# ------------------------------------------------------------------ bars and lines


@pytest.mark.parametrize("data", [None, X])
def test_bars_of_importance_the_longest_on_top(three, data):
    axis = plot_importance(three, names=list("abcd"), X=data)
    assert drawn(axis.figure)
    size = importance(three, data)
    order = np.argsort(size)
    assert [bar.get_width() for bar in axis.patches] == pytest.approx(size[order].tolist())
    assert [text.get_text() for text in axis.get_yticklabels()] == ["abcd"[j] for j in order]
    assert axis.get_xlabel() == "importance: mean |contribution|"


def test_bars_of_some_features_only(three):
    assert len(plot_importance(three, most=2).patches) == 2


def test_convergence_of_kernel_models_is_a_line_per_problem():
    model = KernelSVC(gamma=1).fit(X, Y)
    axis = plot_convergence(model)
    assert drawn(axis.figure)
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
    axis = plot_convergence(three)
    line, _ = axis.lines
    assert len(line.get_xdata()) == len(three.history_[0])
    assert line.get_ydata()[-1] == pytest.approx(three.duality_gap_)


def test_a_gap_of_rounding_errors_does_not_flatten_the_others():
    class Model:
        tol, duality_gap_ = 1e-3, 1e-18
        history_ = ([{"dual": 1.0, "gap": gap} for gap in (1.0, 1e-2, 1e-18)],)

    axis = plot_convergence(Model())
    assert 1e-7 < axis.get_ylim()[0] < 1e-5


def test_convergence_without_a_gap_is_that_of_the_gradient(three):
    model = AdditiveSVC("chi2", approximation="chebyshev", random_state=0).fit(X, Y)
    axis = plot_convergence(model)
    assert axis.get_ylabel() == "projected gradient"
    assert axis.lines[0].get_ydata()[-1] == pytest.approx(model.violation_)
    assert plot_convergence(three).get_ylabel() == "relative duality gap"


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
    axis = plot_search(trials)
    figure = axis.figure
    assert drawn(figure)
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
    axis = plot_search([Trial(c, 1.0, 0.5, 0.1, 1.0) for c in candidates])
    looks = {(line.get_color(), line.get_linestyle()) for line in curves(axis)}
    assert len(looks) == 12


# ------------------------------------------------------------------ one term


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
    table = np.column_stack([job == k for k in range(3)]).astype(float)
    names = ["job=a", "job=b", "job=c"]
    axis = plot_shape(AdditiveSVC(random_state=0).fit(table, job > 0), "job", names=names)
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
    legend = plot_shape(three, 0).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]


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


# ------------------------------------------------------------------ bands


@pytest.fixture(scope="module")
def banded():
    """One column that decides, one that is noise, and a category; in odd units."""
    rng = np.random.default_rng(0)
    job = rng.integers(0, 2, 400)
    X = np.column_stack([1000 * rng.random(400), 5 + rng.random(400), job == 0, job == 1])
    y = X[:, 0] + 300 * job + rng.normal(0, 50, 400) > 600
    names = ["size", "noise", "job=a", "job=b"]
    model = make_pipeline(StandardScaler(), AdditiveSVC(random_state=0)).fit(X, y)
    return model, names, shape_bands(model, X, y, n_fits=12, names=names), X, y


def test_bands_hold_the_shape_and_are_narrower_than_what_matters(banded):
    from widemargin import explain

    model, names, bands, X, y = banded
    explained = explain(model, names)
    for name in ("size", "noise", "job"):
        shape = explained.shape(explained.term(name))
        low, high = bands.low[name], bands.high[name]
        assert low.shape == high.shape == shape.scores.shape
        assert np.all(low <= high)
        inside = (low <= shape.scores) & (shape.scores <= high)
        assert np.average(inside[:, 0], weights=shape.share) > 0.8
    reach = np.ptp(explained.shape(explained.term("size")).scores)
    assert np.mean(bands.high["size"] - bands.low["size"]) < 0.5 * reach
    assert bands.n_fits == 12
    again = shape_bands(model, X, y, n_fits=12, names=names)
    np.testing.assert_array_equal(again.low["size"], bands.low["size"])


def test_bands_are_drawn_around_curves_and_on_bars(banded):
    model, names, bands, *_ = banded
    bare, axis = (
        plot_shape(model, "size", names=names),
        plot_shape(model, "size", names=names, bands=bands),
    )
    assert len(axis.collections) == len(bare.collections) + 1
    reach = axis.collections[0].get_paths()[0].get_extents()
    line = curves(axis)[0].get_ydata()
    assert reach.y0 < line.min() + 0.2
    assert reach.y1 > line.max() - 0.2
    bars = plot_shape(model, "job", names=names, bands=bands)
    assert sum(type(c).__name__ == "LineCollection" for c in bars.collections) == 1
    flipped = plot_shape(model, "size", names=names, bands=bands, class_label=False)
    back = flipped.collections[0].get_paths()[0].get_extents()
    assert (back.y0, back.y1) == pytest.approx((-reach.y1, -reach.y0))
    assert drawn(plot_shapes(model, names=names, bands=bands))


def test_a_category_that_a_copy_has_not_seen_leaves_a_band():
    job = np.r_[np.zeros(100), np.ones(100), 2]
    table = np.column_stack([job == k for k in range(3)]).astype(float)
    model = AdditiveSVC(random_state=0).fit(table, job > 0)
    bands = shape_bands(model, table, job > 0, n_fits=5, names=["job=a", "job=b", "job=c"])
    assert np.all(np.isfinite(bands.low["job"]))


# ------------------------------------------------------------------ pairs and calibration


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
