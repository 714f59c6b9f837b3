"""Plot observed frequencies against predicted probabilities or decision values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from widemargin.drawing.canvas import GREY, NAME, axes_or_new
from widemargin.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_reliability(found: Reliability, *, ax: Axes | None = None) -> Axes:
    """Plot observed frequencies against predicted values, with 95 % intervals.

    Calibrated probabilities lie on the diagonal; frequencies of decision values should only rise.

    Parameters
    ----------
    found : Reliability
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
    if found.of == "probability":
        axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls="--")
    elif found.of == "decision value":
        axes.axvline(0, color=GREY, lw=0.6)
    whiskers = np.maximum([found.share - found.low, found.high - found.share], 0)
    axes.errorbar(found.said, found.share, whiskers, marker="o", ms=4, lw=1.2, elinewidth=0.8)
    axes.set_ylim(-0.03, 1.03)
    what = "lead of the predicted class's decision value" if found.of == "lead" else found.of
    axes.set_xlabel(what)
    axes.set_ylabel(f"share of rows: {found.event}", **NAME)
    return axes
