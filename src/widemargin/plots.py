"""Pictures of models: terms, importance, pairs, calibration, convergence, a search.

Thin views over data.  Each function takes the axes to draw on, ``ax=``, or makes a figure of its
own (``ax.figure``), and returns the axes; those in the plural draw several and return the figure.
pyplot is not involved, so no window opens and no figure stays behind.
"""

from widemargin.drawing.calibration import plot_reliability
from widemargin.drawing.canvas import new_figure
from widemargin.drawing.fits import plot_convergence, plot_search
from widemargin.drawing.interactions import plot_pair, plot_pairs
from widemargin.drawing.shapes import plot_importance, plot_shape, plot_shapes

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
