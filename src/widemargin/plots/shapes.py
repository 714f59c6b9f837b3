"""Plot shape functions and importances of an additive model's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from widemargin.errors import ParameterError
from widemargin.plots.canvas import GREY, NAME, axes_or_new, literal, new_figure, short
from widemargin.terms import Explanation, Shape, Term, explain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from widemargin.bands import Bands

_COLUMNS = 4
_MOST_CLASSES = 10
_MOST_CATEGORIES = 8
MOST_BANDS = 3  # most classes with distinguishable bands
_SHORT_ENOUGH = 24  # characters that fit below a picture
_STRIP = 0.16  # share of the height for the frequency of values
_STRIP_BARS = 40


def plot_shape(
    model,
    feature,
    *,
    ax: Axes | None = None,
    class_label=None,
    names=None,
    bands: Bands | None = None,
) -> Axes:
    """Plot one term's contribution over its column, and the frequency of values below it.

    Numbers are a curve in the data's units, from the first to the last value in the training data;
    categories are bars, the most frequent of them.

    Parameters
    ----------
    model : AdditiveSVC, AdditiveSVR, Pipeline or Explanation
        Anything that `explain` takes, or its result.
    feature : int or str
        A term's name, or the number or name of a feature.
    ax : Axes, default=None
        Where to draw; a new figure by default.
    class_label : object, default=None
        Only this class; by default all, or the second of two.  Of a regressor, the number of a
        target.
    names : sequence of str, default=None
        Names of the features.
    bands : Bands, default=None
        Variation of the term with the training rows, from `widemargin.bands.shape_bands`.  Drawn
        for up to three classes.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = AdditiveSVC(random_state=0).fit(X, y)
    >>> ax = plot_shape(model, "petal width (cm)", class_label=2)
    >>> ax.get_title(), ax.get_ylabel()
    ('petal width (cm)', 'contribution to 2')
    """
    explained = _explained(model, names)
    axes = axes_or_new(ax, (4.2, 2.8))
    classes, _ = _chosen(explained, class_label)
    _draw(axes, explained, explained.term(feature), class_label, bands)
    axes.set_ylabel(_label(explained, classes), **NAME)
    if len(classes) > 1:
        beside = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
        # Only a layout engine makes room for a legend beside the axes.
        where: Any = beside if axes.figure.get_layout_engine() else {}
        style = {"fontsize": 7, "title": _legend_title(explained), "title_fontsize": 7}
        literal(axes.legend(**style, **where))
    return axes


def plot_shapes(
    model, *, features=None, names=None, X=None, class_label=None, bands: Bands | None = None
) -> Figure:
    """Draw `plot_shape` of several terms, by default the eight most important.

    Parameters
    ----------
    features : sequence of int or str, default=None
    X : array-like or sparse matrix, default=None
        Data to measure importance on, instead of the training data.
    model, names, class_label, bands
        As in `plot_shape`.
    """
    explained = _explained(model, names)
    if features is None:
        terms = _by_importance(explained, X)[0][:8]
    else:
        terms = [explained.term(wanted) for wanted in features]
    n_rows = -(-len(terms) // _COLUMNS)
    width = min(len(terms), _COLUMNS)
    figure, axes = new_figure(n_rows, width, (2.9 * width, 2.5 * n_rows + 0.4))
    for ax, term in zip(axes.flat, terms, strict=False):
        _draw(ax, explained, term, class_label, bands)
    for ax in list(axes.flat)[len(terms) :]:
        ax.set_axis_off()
    classes, _ = _chosen(explained, class_label)
    for ax in axes[:, 0]:
        ax.set_ylabel(_label(explained, classes), **NAME)
    if len(classes) > 1:
        handles, texts = axes[0, 0].get_legend_handles_labels()
        where: Any = {"loc": "outside right upper", "fontsize": 8}
        literal(figure.legend(handles, texts, title=_legend_title(explained), **where))
    return figure


def _explained(model, names) -> Explanation:
    return model if isinstance(model, Explanation) else explain(model, names)


def _by_importance(explained: Explanation, X) -> tuple[list[Term], np.ndarray]:
    """Return the terms and their importances, the largest first."""
    size = explained.importances(X)
    order = np.argsort(-size, kind="stable")
    return [explained.terms[k] for k in order], size[order]


def _chosen(explained: Explanation, class_label) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes to draw, and the map (n_scores, n_drawn) from scores to theirs."""
    every, known = explained.labels, explained.classes
    if class_label is None:
        drawn = known[:_MOST_CLASSES]
        return drawn, np.eye(len(known))[:, : len(drawn)]
    if class_label not in every.tolist():
        raise ParameterError("class_label", class_label, f"is not in {every.tolist()}.")
    chosen = (every == class_label).astype(np.float64)
    several = len(known) == len(every)  # else the second of two classes
    readout = chosen[:, None] if several else np.array([[chosen[1] - chosen[0]]])
    return every[chosen > 0], readout


def _label(explained: Explanation, classes: np.ndarray) -> str:
    name = classes[0]
    if explained.is_of_numbers and len(explained.classes) == 1:
        name = getattr(explained.machine, "label_name_", "the prediction")
    return "contribution" if len(classes) > 1 else f"contribution to {name}"


def _legend_title(explained: Explanation) -> str:
    n, noun = len(explained.classes), "target" if explained.is_of_numbers else "class"
    return f"{noun}, {_MOST_CLASSES} of {n}" if n > _MOST_CLASSES else noun


def _draw(ax, explained: Explanation, term: Term, class_label, bands: Bands | None) -> None:
    """Draw a term with its name and a zero line."""
    classes, readout = _chosen(explained, class_label)
    shape = explained.shape(term)
    spread = None
    if bands is not None and term.name in bands.low and len(classes) <= MOST_BANDS:
        ends = bands.low[term.name] @ readout, bands.high[term.name] @ readout
        spread = np.minimum(*ends), np.maximum(*ends)
    missing = None if shape.missing is None else shape.missing @ readout
    shape = Shape(shape.values, shape.scores @ readout, shape.share, missing)
    ax.axhline(0, color=GREY, lw=0.6)
    draw = _draw_categories if shape.values.dtype == object else _draw_curves
    ax.set_title(f"{term.name}{draw(ax, shape, classes, spread)}", fontsize=9, **NAME)


def _draw_curves(ax, shape: Shape, classes: np.ndarray, spread) -> str:
    """Draw a line per class over the values that occur, and a dotted one for missing."""
    seen = shape.seen
    if spread is not None:
        begin = int(np.searchsorted(shape.values, seen.values[0]))
        part = slice(begin, begin + len(seen.values))
        for k in range(len(classes)):
            ends = (spread[0][part, k], spread[1][part, k])
            ax.fill_between(seen.values, *ends, step="mid", alpha=0.25, lw=0, color=f"C{k}")
    marker = "o" if len(seen.values) == 1 else None  # a single value makes no line
    for k, label in enumerate(classes):
        style = {"lw": 1.2, "drawstyle": "steps-mid", "marker": marker, "ms": 4}
        (line,) = ax.plot(seen.values, seen.scores[:, k], **style, label=short(label))
        if seen.missing is not None:
            ax.axhline(seen.missing[k], color=line.get_color(), lw=1, ls=":")
    if len(seen.values) > 1:
        count, edges = np.histogram(seen.values, _STRIP_BARS, weights=seen.share)
        _draw_strip(ax, edges[:-1], np.diff(edges), count)
    return "" if seen.missing is None else ", missing dotted"


def _draw_categories(ax, shape: Shape, classes: np.ndarray, spread) -> str:
    """Draw a group of bars per category; return a note if not all are shown."""
    n = len(shape.values)
    shown = np.argsort(-shape.share, kind="stable")[:_MOST_CATEGORIES]
    width = 0.8 / len(classes)
    for k, label in enumerate(classes):
        positions = np.arange(len(shown)) + (k - (len(classes) - 1) / 2) * width
        ax.bar(positions, shape.scores[shown, k], width, label=short(label))
        if spread is not None:
            ax.vlines(
                positions,
                spread[0][shown, k],
                spread[1][shown, k],
                color=ax.spines["left"].get_edgecolor(),
                lw=1.2,
            )
    _draw_strip(ax, np.arange(len(shown)) - 0.4, np.full(len(shown), 0.8), shape.share[shown])
    names = [short(shape.values[k]) for k in shown]
    turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    if sum(map(len, names)) <= _SHORT_ENOUGH:
        turned = {}
    ax.set_xticks(np.arange(len(shown)), names, fontsize=7, **turned, **NAME)
    return f", {len(shown)} of {n}" if len(shown) < n else ""


def _draw_strip(ax, left: np.ndarray, width: np.ndarray, share: np.ndarray) -> None:
    """Draw the frequency of values as grey bars at the lower edge, below the curves."""
    from matplotlib.collections import PolyCollection

    low, high = ax.get_ylim()
    ax.set_ylim(low - (high - low) * _STRIP / (1 - _STRIP), high)
    tall = 0.9 * _STRIP * share / max(share.max(), np.finfo(float).tiny)
    corners = [
        [(x, 0), (x, h), (x + w, h), (x + w, 0)]
        for x, w, h in zip(left, width, tall, strict=True)
        if h > 0
    ]
    bars = PolyCollection(corners, facecolors=GREY, transform=ax.get_xaxis_transform(), zorder=0.5)
    ax.add_collection(bars, autolim=False)


def plot_importance(model, *, ax: Axes | None = None, names=None, X=None, most: int = 20) -> Axes:
    """Plot the mean absolute contribution of the most important terms as bars.

    Parameters
    ----------
    model : AdditiveSVC, Pipeline or Explanation
    ax : Axes, default=None
    names : sequence of str, default=None
        Names of the features.
    X : array-like or sparse matrix, default=None
        Data to measure importance on, instead of the training data.
    most : int, default=20
        Number of terms.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> model = AdditiveSVC(random_state=0).fit(*load_iris(return_X_y=True, as_frame=True))
    >>> [text.get_text() for text in plot_importance(model, most=2).get_yticklabels()]
    ['petal length (cm)', 'petal width (cm)']
    """
    terms, size = _by_importance(_explained(model, names), X)
    terms, size = terms[:most][::-1], size[:most][::-1]
    axes = axes_or_new(ax, (6, 0.28 * len(terms) + 1))
    axes.barh(np.arange(len(terms)), size, color="C0")
    axes.set_yticks(np.arange(len(terms)), [term.name for term in terms], **NAME)
    axes.set_xlabel("importance: mean |contribution|")
    return axes
