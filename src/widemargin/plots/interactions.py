"""Plot pairs of columns whose interaction a model misses, as maps of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from widemargin.errors import ParameterError
from widemargin.pairs import Pair
from widemargin.plots.canvas import NAME, axes_or_new, new_figure, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 2
_LEAST = 10.0  # least percentage at the ends of the scale, so that small effects stay pale
_DARK = 0.6  # share of the scale above which numbers are white


def plot_pair(pair: Pair, classes, *, ax: Axes | None = None, class_label=None) -> Axes:
    """Plot by how many per cent of rows a class differs from an additive model's prediction.

    Parameters
    ----------
    pair : Pair
        From `missed_pairs`.
    classes : sequence
        ``model.classes_``.
    ax : Axes, default=None
    class_label : object, default=None
        Which class; by default the one with the largest differences, or the second of two.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import AdditiveSVC, missed_pairs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> model = AdditiveSVC(random_state=0).fit(X, y)
    >>> ax = plot_pair(missed_pairs(model, X, y)[0], model.classes_)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('feature 0', 'feature 2')
    """
    label, effect = _effect_of(pair, classes, class_label)
    axes = axes_or_new(ax, (4.6, 3.8))
    percent = 100 * effect.T
    scale = max(np.abs(percent).max(), _LEAST)
    axes.pcolormesh(percent, cmap="RdBu_r", vmin=-scale, vmax=scale, edgecolors="white", lw=0.5)
    for (row, column), value in np.ndenumerate(percent):
        colour = "white" if abs(value) > _DARK * scale else "black"
        style = {"ha": "center", "va": "center", "fontsize": 7, "color": colour}
        axes.text(column + 0.5, row + 0.5, f"{round(value):+d}" if round(value) else "0", **style)
    turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    for axis, labels, more in ((axes.xaxis, pair.bins[0], turned), (axes.yaxis, pair.bins[1], {})):
        names = [short(text, 18) for text in labels]
        axis.set_ticks(np.arange(len(names)) + 0.5, names, fontsize=7, **more, **NAME)
    axes.set_xlabel(pair.first.name, **NAME)
    axes.set_ylabel(pair.second.name, **NAME)
    axes.set_title(f"% more rows of {label} than the model says", fontsize=9, **NAME)
    return axes


def _effect_of(pair: Pair, classes, class_label) -> tuple[object, np.ndarray]:
    """Return a class and its effect in every cell."""
    labels = list(np.asarray(classes).tolist())
    if class_label is None:
        furthest = int(np.abs(pair.effect).max(axis=(0, 1)).argmax())
        class_label = labels[1] if len(labels) == 2 else labels[furthest]
    if class_label not in labels:
        raise ParameterError("class_label", class_label, f"is not in {labels}.")
    number = labels.index(class_label)
    if len(labels) == 2:
        return class_label, pair.effect[..., 0] * (1 if number else -1)
    return class_label, pair.effect[..., number]


def plot_pairs(pairs: Sequence[Pair], classes, *, class_label=None) -> Figure:
    """Draw `plot_pair` of several pairs, titled with strength and significance."""
    if not pairs:
        raise ValueError("There are no pairs to plot.")
    width = min(len(pairs), _COLUMNS)
    n_rows = -(-len(pairs) // width)
    figure, axes = new_figure(n_rows, width, (4.6 * width, 3.8 * n_rows))
    for ax, pair in zip(axes.flat, pairs, strict=False):
        plot_pair(pair, classes, ax=ax, class_label=class_label)
        explained = f"explains {100 * pair.strength:.1f} % of the residual"
        doubt = "" if pair.stands_out else ", within noise"
        ax.set_title(f"{ax.get_title()}\n{explained}{doubt}", fontsize=9, **NAME)
    for ax in list(axes.flat)[len(pairs) :]:
        ax.set_axis_off()
    return figure
