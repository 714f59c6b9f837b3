"""Pictures of models: terms, importance, convergence, a search.  Thin views over data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from widemargin.terms import Explanation, Shape, Term, explain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from widemargin.selection import Trial

__all__ = [
    "new_figure",
    "plot_convergence",
    "plot_importance",
    "plot_search",
    "plot_shapes",
]

_COLUMNS = 4
_MOST_CLASSES = 10
_MOST_CATEGORIES = 8
_SHORT_ENOUGH = 24  # characters that fit below a picture
_GREY = "0.6"
_STYLES = ("-", "--", ":", "-.")


def plot_shapes(model, *, features=None, names=None, X=None) -> Figure:
    """What some terms add over the range of their columns, by default the eight most important.

    Parameters
    ----------
    model : AdditiveSVC or Pipeline
        As `explain` takes it: columns are in the data's units, and categories of one column are
        bars of one picture, the most frequent of them.
    features : sequence of int or str, default=None
        Terms by their names, or by the number or name of a feature.
    names : sequence of str, default=None
        Of the features.
    X : array-like or sparse matrix, default=None
        Data to measure importance on, instead of the training data.
    """
    explained = explain(model, names)
    if features is None:
        terms = _by_importance(explained, X)[0][:8]
    else:
        terms = [explained.term(wanted) for wanted in features]
    n_rows = -(-len(terms) // _COLUMNS)
    width = min(len(terms), _COLUMNS)
    figure, axes = new_figure(n_rows, width, (2.9 * width, 2.3 * n_rows + 0.4))
    for axis, term in zip(axes.flat, terms, strict=False):
        axis.axhline(0, color=_GREY, lw=0.6)
        draw = _draw_categories if term.categories else _draw_curves
        more = draw(axis, explained.shape(term), explained.classes[:_MOST_CLASSES])
        axis.set_title(f"{term.name}{more}", fontsize=9)
    for axis in list(axes.flat)[len(terms) :]:
        axis.set_axis_off()
    classes = explained.classes
    for axis in axes[:, 0]:
        axis.set_ylabel("contribution" if len(classes) > 1 else f"contribution to {classes[0]}")
    if len(classes) > 1:
        title = "class"
        if len(classes) > _MOST_CLASSES:
            title += f", {_MOST_CLASSES} of {len(classes)}"
        handles, texts = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside right upper", title=title, fontsize=8)
    return figure


def _by_importance(explained: Explanation, X) -> tuple[list[Term], np.ndarray]:
    """The terms and their importances, the largest first."""
    size = explained.importances(X)
    order = np.argsort(-size, kind="stable")
    return [explained.terms[k] for k in order], size[order]


def _draw_curves(axis, shape: Shape, classes: np.ndarray) -> str:
    """A line per class over the values that occur."""
    shape = shape.seen
    marker = "o" if len(shape.values) == 1 else None  # no line to see
    for label, scores in zip(classes, shape.scores.T, strict=False):
        style = {"lw": 1.2, "drawstyle": "steps-mid", "marker": marker, "ms": 4}
        axis.plot(shape.values, scores, **style, label=str(label))
    return ""


def _draw_categories(axis, shape: Shape, classes: np.ndarray) -> str:
    """A group of bars per category, and how many of them are shown if not all are."""
    n = len(shape.values)
    shown = np.arange(min(n, _MOST_CATEGORIES))
    if shape.share is not None:
        shown = np.argsort(-shape.share, kind="stable")[:_MOST_CATEGORIES]
    width = 0.8 / len(classes)
    for k, label in enumerate(classes):
        place = np.arange(len(shown)) + (k - (len(classes) - 1) / 2) * width
        axis.bar(place, shape.scores[shown, k], width, label=str(label))
    names = [_short(shape.values[k]) for k in shown]
    turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    if sum(map(len, names)) <= _SHORT_ENOUGH:
        turned = {}
    axis.set_xticks(np.arange(len(shown)), names, fontsize=7, **turned)
    return f", {len(shown)} of {n}" if len(shown) < n else ""


def _short(text: object, most: int = 16) -> str:
    text = str(text)
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def plot_importance(model, *, names=None, X=None, most: int = 20) -> Figure:
    """The most important terms as bars; parameters as in `plot_shapes`."""
    terms, size = _by_importance(explain(model, names), X)
    terms, size = terms[:most][::-1], size[:most][::-1]
    figure, axes = new_figure(1, 1, (6, 0.28 * len(terms) + 1))
    axes[0, 0].barh([term.name for term in terms], size, color="C0")
    axes[0, 0].set_xlabel("importance: mean |contribution|")
    return figure


def plot_convergence(model) -> Figure:
    """Relative duality gap of every batch or binary problem by step, with the tolerance.

    Of tables that have no gap (`AdditiveSVC`, ``tol``), the projected gradient.
    """
    figure, axes = new_figure(1, 1, (6, 3.6))
    axis = axes[0, 0]
    drawn = []
    for run in model.history_:
        gaps = np.array([_relative_gap(record) for record in run])
        shown = np.isfinite(gaps) & (gaps > 0)
        if shown.any():
            axis.plot(np.flatnonzero(shown) + 1, gaps[shown], lw=1, alpha=0.8, marker=".", ms=3)
            drawn += [gaps[shown].min(), gaps[shown].max()]
    if not drawn:
        raise ValueError("This model has recorded no steps to plot; an early model has none.")
    axis.axhline(model.tol, color=_GREY, ls="--", lw=0.8)
    above_line = {"xytext": (0, 3), "textcoords": "offset points"}
    axis.annotate(
        "tol", (0.01, model.tol), xycoords=("axes fraction", "data"), **above_line, fontsize=8
    )
    measured = "projected gradient" if np.isnan(model.duality_gap_) else "relative duality gap"
    axis.set(yscale="log", xlabel="step", ylabel=measured)
    # A gap of rounding errors would flatten all others.
    low, high = max(min(drawn), 1e-3 * model.tol), max(drawn)
    axis.set_ylim(min(low, model.tol) / 2, max(high, model.tol) * 2)
    axis.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _relative_gap(record: dict) -> float:
    """AdditiveSVC measures or estimates it after a sweep, KernelSVC knows it after a block."""
    if "estimate" in record:
        return record.get("measured", record["estimate"])
    primal = record["dual"] + record["gap"]
    return record["gap"] / primal if primal > 0 else float("nan")


def plot_search(trials: Sequence[Trial]) -> Figure:
    """Cross-validated score against C, a line per candidate."""
    figure, axes = new_figure(1, 1, (6.5, 4))
    axis = axes[0, 0]
    scoring = trials[0].scoring
    percent = scoring.endswith("accuracy")
    unit = 100 if percent else 1
    lines: dict[str, list[Trial]] = {}
    for trial in trials:
        lines.setdefault(trial.candidate.name, []).append(trial)
    for k, (name, own) in enumerate(lines.items()):
        own = sorted(own, key=lambda t: t.C)
        x, score = [t.C for t in own], unit * np.array([t.score for t in own])
        spread = unit * np.array([t.spread for t in own])
        style = _STYLES[k // 10 % len(_STYLES)]  # there are ten colours
        (line,) = axis.plot(x, score, ls=style, marker="o", ms=4, lw=1.2, label=name)
        high = np.minimum(score + spread, unit)
        axis.fill_between(x, score - spread, high, alpha=0.1, color=line.get_color(), lw=0)
    axis.set(xscale="log", xlabel="C", ylabel=f"{scoring}, %" if percent else scoring)
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def new_figure(n_rows: int, n_columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """A figure without pyplot, so that no window and no global state is involved."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Plots need matplotlib: pip install widemargin[plot]") from None
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)
