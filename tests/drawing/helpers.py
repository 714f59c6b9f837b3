"""Rows to draw models of, and what there is in a figure."""

import io

from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_iris

X, Y = load_iris(return_X_y=True)


def drawn(figure) -> bool:
    """Whether it can be drawn and is not blank."""
    assert isinstance(figure, Figure)
    file = io.BytesIO()
    figure.savefig(file)
    with Image.open(file) as image:
        return len(set(image.convert("L").tobytes())) > 10


def visible(figure) -> list:
    return [axis for axis in figure.axes if axis.axison]


def curves(axis) -> list:
    """The lines that have a label of their own."""
    return [line for line in axis.lines if not line.get_label().startswith("_")]
