"""`plot_heat`: an explanation, drawn over the photograph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from widemargin.plots.canvas import NAME, axes_or_new
from widemargin.vision.explanation import ImageExplanation
from widemargin.vision.pixels import as_grey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRONGEST = 0.75  # opacity of the largest value
_QUANTILE = 0.99  # of |heat|, where colours end


def plot_heat(
    explanation: ImageExplanation, photograph: np.ndarray | None = None, ax: Axes | None = None
) -> Axes:
    """Draw heat over the photograph: red speaks for the label, blue against it.

    Parameters
    ----------
    explanation : ImageExplanation
    photograph : ndarray, default=None
        The image in its own size; by default the pixels that the features saw.
    ax : matplotlib axes, default=None
        By default those of a new figure, ``ax.figure``.

    Returns
    -------
    ax : matplotlib axes
    """
    height, width = explanation.heat.shape
    ax = axes_or_new(ax, (5.5, 0.6 + 5 * height / width))
    grey = explanation.image if photograph is None else as_grey(photograph)
    place = (0, width, height, 0)
    ax.imshow(grey, cmap="gray", vmin=0, vmax=255, extent=place, alpha=0.9)
    most = float(np.quantile(np.abs(explanation.heat), _QUANTILE)) or 1.0
    strength = np.clip(np.abs(explanation.heat) / most, 0, 1)
    colour: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    shown = ax.imshow(explanation.heat, extent=place, alpha=_STRONGEST * strength, **colour)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(f"{explanation.label}: {explanation.score:.3g}", fontsize=10, **NAME)
    colours = ax.figure.colorbar(_opaque(shown), ax=ax, shrink=0.8)
    colours.set_label("contribution of a pixel")
    return ax


def _opaque(shown):
    """Return the colours of a picture without its transparency, for their legend."""
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(shown.norm, shown.cmap)
