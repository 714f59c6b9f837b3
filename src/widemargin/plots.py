"""Pictures of models: shape functions, importance, convergence, a search.  Thin views over data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from widemargin.additive import AdditiveSVC
from widemargin.additive.explanation import importance
from widemargin.machine import feature_names
from widemargin.multiclass import Coding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from widemargin.selection import Trial

__all__ = [
    "importance",
    "new_figure",
    "plot_convergence",
    "plot_importance",
    "plot_search",
    "plot_shapes",
]

_COLUMNS = 4
_MOST_CLASSES = 10
_GREY = "0.6"
_STYLES = ("-", "--", ":", "-.")


def plot_shapes(model: AdditiveSVC, *, features=None, names=None, X=None) -> Figure:
    """Shape functions of some features, by default the eight most important ones."""
    if features is None:
        features = np.argsort(-importance(model, X), kind="stable")[:8]
    labels = feature_names(model, names)
    classes = model.classes_[Coding.of(model).scored]
    n_rows = -(-len(features) // _COLUMNS)
    width = min(len(features), _COLUMNS)
    figure, axes = new_figure(n_rows, width, (2.9 * width, 2.3 * n_rows + 0.4))
    for axis, j in zip(axes.flat, features, strict=False):
        for label in classes[:_MOST_CLASSES]:
            grid, values = model.shape_function(int(j), label)
            marker = "o" if len(grid) == 1 else None  # one value beside 0: no line to see
            axis.plot(
                grid, values, lw=1.2, drawstyle="steps-mid", marker=marker, ms=4, label=str(label)
            )
        axis.axhline(0, color=_GREY, lw=0.6)
        axis.set_title(labels[int(j)], fontsize=9)
    for axis in list(axes.flat)[len(features) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("contribution" if len(classes) > 1 else f"contribution to {classes[0]}")
    if len(classes) > 1:
        title = "class"
        if len(classes) > _MOST_CLASSES:
            title += f", {_MOST_CLASSES} of {len(classes)}"
        handles, texts = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside right upper", title=title, fontsize=8)
    return figure


def plot_importance(model: AdditiveSVC, *, names=None, X=None, most: int = 20) -> Figure:
    """The most important features as bars."""
    size = importance(model, X)
    top = np.argsort(-size, kind="stable")[:most][::-1]
    labels = feature_names(model, names)
    figure, axes = new_figure(1, 1, (6, 0.28 * len(top) + 1))
    axes[0, 0].barh([labels[j] for j in top], size[top], color="C0")
    axes[0, 0].set_xlabel(
        "mean |contribution|" if X is not None else "spread of the shape function"
    )
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
