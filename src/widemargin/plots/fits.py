"""Plot the convergence of fits, and the scores of a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from widemargin.plots.canvas import GREY, NAME, axes_or_new
from widemargin.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from widemargin.selection import Trial

_STYLES = ("-", "--", ":", "-.")


def plot_convergence(model, *, ax: Axes | None = None) -> Axes:
    """Plot the relative duality gap of every batch or binary problem by step, with the tolerance.

    For tables without a gap (see ``tol`` of `AdditiveSVC`), plot the projected gradient.

    Parameters
    ----------
    model : AdditiveSVC or KernelSVC
        A fitted machine.
    ax : Axes, default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import KernelSVC
    >>> ax = plot_convergence(KernelSVC().fit(*load_iris(return_X_y=True)))
    >>> ax.get_ylabel()
    'relative duality gap'
    """
    axis = axes_or_new(ax, (6, 3.6))
    drawn = []
    for run in model.history_:
        gaps = np.array([_relative_gap(record) for record in run])
        shown = np.isfinite(gaps) & (gaps > 0)
        if shown.any():
            axis.plot(np.flatnonzero(shown) + 1, gaps[shown], lw=1, alpha=0.8, marker=".", ms=3)
            drawn += [gaps[shown].min(), gaps[shown].max()]
    if not drawn:
        raise ValueError("This model has no recorded steps to plot; early models have none.")
    axis.axhline(model.tol, color=GREY, ls="--", lw=0.8)
    above_line = {"xytext": (0, 3), "textcoords": "offset points"}
    axis.annotate(
        "tol", (0.01, model.tol), xycoords=("axes fraction", "data"), **above_line, fontsize=8
    )
    measured = "relative duality gap" if model._by_gap() else "projected gradient"
    axis.set(yscale="log", xlabel="step", ylabel=measured)
    # A gap of mere rounding would flatten the others.
    low, high = max(min(drawn), 1e-3 * model.tol), max(drawn)
    axis.set_ylim(min(low, model.tol) / 2, max(high, model.tol) * 2)
    axis.xaxis.get_major_locator().set_params(integer=True)
    return axis


def _relative_gap(record: dict) -> float:
    """Return the gap of a record: measured or estimated by AdditiveSVC, exact by KernelSVC."""
    if "estimate" in record:
        return record.get("measured", record["estimate"])
    primal = record["dual"] + record["gap"]
    return record["gap"] / primal if primal > 0 else float("nan")


def plot_search(trials: Sequence[Trial], *, ax: Axes | None = None) -> Axes:
    """Plot cross-validated scores of `widemargin.selection.tune` against C, a line per candidate.

    Parameters
    ----------
    trials : sequence of Trial
    ax : Axes, default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> from widemargin.selection import Candidate, tune
    >>> chi2 = Candidate({"kernel": "chi2"}, AdditiveSVC("chi2", random_state=0))
    >>> ax = plot_search(tune([chi2], *load_iris(return_X_y=True), [0.1, 1, 10]))
    >>> ax.get_ylabel()
    'accuracy, %'
    """
    axis = axes_or_new(ax, (6.5, 4))
    scoring = trials[0].scoring
    percent = scoring.endswith("accuracy")
    unit = 100 if percent else 1
    lines: dict[str, list[Trial]] = {}
    for trial in trials:
        lines.setdefault(trial.candidate.name, []).append(trial)
    for k, (name, of_candidate) in enumerate(lines.items()):
        of_candidate = sorted(of_candidate, key=lambda t: t.C)
        x = [t.C for t in of_candidate]
        score, spread = (
            unit * np.array([getattr(t, name) for t in of_candidate])
            for name in ("score", "spread")
        )
        style = _STYLES[k // 10 % len(_STYLES)]  # matplotlib has ten colours
        (line,) = axis.plot(x, score, ls=style, marker="o", ms=4, lw=1.2, label=name)
        high = np.minimum(score + spread, unit)
        axis.fill_between(x, score - spread, high, alpha=0.1, color=line.get_color(), lw=0)
    axis.set(xscale="log", xlabel="C", ylabel=f"{scoring}, %" if percent else scoring)
    if ax is None:
        axis.figure.legend(loc="outside right upper", fontsize=8)
    else:
        axis.legend(fontsize=8)
    return axis


def plot_reliability(reliability: Reliability, *, ax: Axes | None = None) -> Axes:
    """Plot observed frequencies against predicted values, with 95 % intervals.

    Calibrated probabilities lie on the diagonal; frequencies of decision values should only rise.

    Parameters
    ----------
    reliability : Reliability
        From `widemargin.reliability.reliability`.
    ax : Axes, default=None

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> from widemargin.reliability import reliability
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_reliability(reliability(AdditiveSVC(random_state=0).fit(X, y), X, y))
    >>> ax.get_xlabel()
    "lead of the predicted class's decision value"
    """
    axes = axes_or_new(ax, (4.2, 3))
    if reliability.of == "probability":
        axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls="--")
    elif reliability.of == "decision value":
        axes.axvline(0, color=GREY, lw=0.6)
    whiskers = np.maximum(
        [reliability.share - reliability.low, reliability.high - reliability.share], 0
    )
    axes.errorbar(
        reliability.said, reliability.share, whiskers, marker="o", ms=4, lw=1.2, elinewidth=0.8
    )
    axes.set_ylim(-0.03, 1.03)
    what = (
        "lead of the predicted class's decision value"
        if reliability.of == "lead"
        else reliability.of
    )
    axes.set_xlabel(what)
    axes.set_ylabel(f"share of rows: {reliability.event}", **NAME)
    return axes
