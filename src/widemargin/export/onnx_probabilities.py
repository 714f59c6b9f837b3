"""Probabilities of classes in ONNX, as `CalibratedSVC` computes them."""

from __future__ import annotations

import numpy as np

from widemargin.calibration import LEAST, CalibratedSVC
from widemargin.export.onnx_graph import Graph
from widemargin.multiclass import every_pair


def probabilities(graph: Graph, values: str, model: CalibratedSVC, *, votes: bool) -> str:
    """Compute them, of shape (N, n_classes), from the outputs of pairs or the scores of classes."""
    n_classes = len(model.classes_)
    first, second = (np.eye(n_classes)[numbers] for numbers in every_pair(n_classes))
    if votes:
        pairs = graph("Neg", values)  # of which the later class is positive
    elif n_classes == 2:
        pairs = graph("Neg", graph("Unsqueeze", values, [1]))
    else:
        pairs = graph("MatMul", values, np.ascontiguousarray((first - second).T))
    exponent = graph("Add", graph("Mul", pairs, model.slope_), model.offset_)
    earlier = graph("Clip", graph("Sigmoid", graph("Neg", exponent)), LEAST, 1 - LEAST)
    later = graph("Sub", 1.0, earlier)
    sums = (
        graph("MatMul", graph("Reciprocal", p), m) for p, m in ((earlier, first), (later, second))
    )
    total = graph("Add", graph("Add", *sums), 2.0 - n_classes)
    powers = graph("Pow", total, -float(model.exponent_))
    return graph("Div", powers, graph("ReduceSum", powers, [1]))
