"""Pictures of models: terms, importance, pairs, calibration, convergence, a search.

Each function draws on ``ax=`` or on a new figure (``ax.figure``) and returns the axes; functions
with a plural name draw several axes and return the figure.  They do not use pyplot, so no window
opens and no figure stays in memory.
"""

from widemargin.plots.canvas import new_figure
from widemargin.plots.fits import plot_convergence, plot_reliability, plot_search
from widemargin.plots.interactions import plot_pair, plot_pairs
from widemargin.plots.shapes import plot_importance, plot_shape, plot_shapes

__all__ = [
    "new_figure",
    "plot_convergence",
    "plot_importance",
    "plot_pair",
    "plot_pairs",
    "plot_reliability",
    "plot_search",
    "plot_shape",
    "plot_shapes",
]
