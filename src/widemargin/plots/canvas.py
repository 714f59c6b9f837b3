"""Make figures and axes, and texts without formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "0.6"
NAME: dict[str, Any] = {"parse_math": False}
"""Keywords for text from the data: dollar signs do not start formulas."""


def new_figure(n_rows: int, n_columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Make a figure without pyplot, so without windows and global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Plots need matplotlib: pip install widemargin[plot]") from None
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Any:
    """Return the given axes, or those of a new figure."""
    return new_figure(1, 1, size)[1][0, 0] if ax is None else ax


def literal(legend) -> None:
    """Show a legend's labels literally."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def short(text: object, most: int = 16) -> str:
    text = str(text)
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
