"""Export fitted models and pipelines to ONNX."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from widemargin.additive import AdditiveSVC, AdditiveSVR
from widemargin.additive.columns import Columns
from widemargin.calibration import LEAST, CalibratedSVC, uncalibrated
from widemargin.export.onnx_additive import additive_scores
from widemargin.export.onnx_graph import Graph, Inputs, encoded_input, model_input
from widemargin.export.onnx_kernel import kernel_scores, votes
from widemargin.files import replacing
from widemargin.kernel import KernelSVC
from widemargin.multiclass import Coding, every_pair, plain_labels
from widemargin.preparation import GradientScaler
from widemargin.table_encoder import TableEncoder


def export_onnx(model: Any, path: str | os.PathLike) -> None:
    """Write a fitted model as an ONNX file of standard operators (opset 17).

    The input is "X", float32 of shape (N, n_features); NaN is missing if the model supports that.
    The names of its columns, if any, are a JSON list, "columns" in the file's metadata.  The
    outputs are "label", int64 or text of shape (N,), and "scores", float32: the values of
    ``decision_function``, of shape (N,) for two classes, else (N, n_classes).  A `CalibratedSVC`
    has "probabilities" too, float32 of shape (N, n_classes).  A regressor has one output,
    "prediction", float32, with the shape of ``predict``.

    A model with categorical columns has an input per column instead, of shape (N, 1) and with its
    name ("x0", "x1", ... without names): float32, or text, where missing is "" or what Python
    writes for None, NaN and pandas' NA.  The LabelEncoder of ai.onnx.ml (opset 3) looks up
    categories.

    Parameters
    ----------
    model : AdditiveSVC, AdditiveSVR, KernelSVC, Pipeline or a CalibratedSVC of a classifier
        A pipeline may begin with a `TableEncoder`, continue with MinMaxScaler, MaxAbsScaler,
        StandardScaler or GradientScaler, and ends in a machine.  A routed early model computes the
        kernel values of all clusters, and uses those of one.
    path : path
        Written whole or not at all.

    Raises
    ------
    ValueError
        If ONNX cannot express the model: a kernel that is a function or a matrix,
        ``early_prediction="bcm"``, other steps of pipelines; or more than 2 GB of numbers.
    ImportError
        Without the package onnx.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> from widemargin.export import export_onnx
    >>> model = AdditiveSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> with TemporaryDirectory() as folder:
    ...     export_onnx(model, Path(folder) / "iris.onnx")
    ...     [file.name for file in Path(folder).iterdir()]
    ['iris.onnx']
    """
    check_is_fitted(model)
    graph = Graph()
    plain = uncalibrated(model)
    steps = [step for _, step in plain.steps] if isinstance(plain, Pipeline) else [plain]
    machine, inputs = steps[-1], _inputs(graph, steps)
    if isinstance(machine, AdditiveSVR):
        declared = _predicted(graph, inputs, machine)
    else:
        declared = _classified(graph, inputs, machine, model)
    content = graph.serialised(inputs.declared, declared, _metadata(model, inputs))
    with replacing(path) as file:
        file.write(content)


def _classified(graph: Graph, inputs: Inputs, machine, model) -> dict[str, tuple]:
    """Compute labels, scores and probabilities, if the model has any; return types and shapes."""
    outputs = _outputs(graph, inputs, machine)
    scores = _class_scores(graph, outputs, machine.coding_)
    labels = plain_labels(machine.classes_)
    graph("Gather", labels, _best(graph, scores, len(labels)), output="label")
    graph("Identity", graph.cast(scores, np.float32), output="scores")
    wide = ["N", len(labels)]
    declared = {"label": (labels.dtype, wide[:1]), "scores": (np.float32, wide)}
    if len(labels) == 2:
        declared["scores"] = (np.float32, wide[:1])
    if isinstance(model, CalibratedSVC):
        values = outputs if machine.coding_.votes else scores
        chances = _probabilities(graph, values, model, votes=machine.coding_.votes)
        graph("Identity", graph.cast(chances, np.float32), output="probabilities")
        declared["probabilities"] = (np.float32, wide)
    return declared


def _probabilities(graph: Graph, values: str, model: CalibratedSVC, *, votes: bool) -> str:
    """Compute probabilities, (N, n_classes), from the values of pairs or of classes."""
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


def _predicted(graph: Graph, inputs: Inputs, machine: AdditiveSVR) -> dict[str, tuple]:
    """Compute numbers; return their type and shape."""
    shape: list = ["N", machine.model_.n_outputs]
    values = additive_scores(graph, inputs, machine.model_, machine.columns_)
    if not machine.coding_.several:
        values, shape = graph("MatMul", values, np.ones(1)), ["N"]
    graph("Identity", graph.cast(values, np.float32), output="prediction")
    return {"prediction": (np.float32, shape)}


def _inputs(graph: Graph, steps: list) -> Inputs:
    """Return the model's inputs, with numbers transformed by the steps before the machine."""
    *before, classifier = steps
    columns = getattr(classifier, "columns_", None) or Columns(classifier.n_features_in_)
    if before and columns.categories:
        raise ValueError(
            f"A pipeline with {type(before[0]).__name__} before columns of categories cannot "
            "be exported. Fit the last step alone: it scales its numbers itself."
        )
    if before and isinstance(before[0], TableEncoder):
        inputs = encoded_input(graph, before.pop(0))
    else:
        inputs = model_input(graph, classifier, columns)
    x = inputs.numbers
    for scaler in before:
        x = _scaled(graph, x, scaler)
    return inputs._replace(numbers=x)


def _metadata(model, inputs: Inputs) -> dict[str, str]:
    """Return metadata: the names of a matrix's columns."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or "X" not in inputs.declared:
        return {}
    return {"columns": json.dumps([*map(str, names)], ensure_ascii=False)}


def _scaled(graph: Graph, x: str, scaler) -> str:
    """Scale float32 rows in double precision and round the results."""
    limits = None
    if isinstance(scaler, MinMaxScaler):
        operations = [("Mul", scaler.scale_), ("Add", scaler.min_)]
        limits = scaler.feature_range if scaler.clip else None
    elif isinstance(scaler, MaxAbsScaler):
        operations = [("Div", scaler.scale_)]
        limits = (-1, 1) if scaler.clip else None
    elif isinstance(scaler, GradientScaler):
        operations = [("Mul", scaler.scale_.astype(np.float32))]
    elif isinstance(scaler, StandardScaler):  # rounds its factors first
        operations = [("Sub", scaler.mean_.astype(np.float32))] if scaler.with_mean else []
        operations += [("Div", scaler.scale_.astype(np.float32))] if scaler.with_std else []
    else:
        raise ValueError(
            f"A pipeline with {type(scaler).__name__} cannot be exported: before its last step it "
            "may have a TableEncoder, which comes first, and MinMaxScaler, MaxAbsScaler, "
            "StandardScaler and GradientScaler. Export the last step alone, and transform the data "
            "before."
        )
    for operation, numbers in operations:
        exact = graph(operation, graph.cast(x, np.float64), numbers.astype(np.float64))
        x = graph.cast(exact, np.float32)
    return x if limits is None else graph("Clip", x, *map(np.float32, limits))


def _outputs(graph: Graph, x: Inputs, model) -> str:
    """Compute the decision values of all outputs in double precision."""
    if not isinstance(model, AdditiveSVC | KernelSVC):
        raise ValueError(
            f"{type(model).__name__} cannot be exported: give an AdditiveSVC, an AdditiveSVR, a "
            "KernelSVC, or a Pipeline that ends in one."
        )
    if isinstance(model, AdditiveSVC):
        return additive_scores(graph, x, model.model_, model.columns_)
    return kernel_scores(graph, x.numbers, model.model_)


def _class_scores(graph: Graph, outputs: str, coding: Coding) -> str:
    """Compute the values of ``decision_function``."""
    if coding.votes:
        return votes(graph, outputs, coding)
    return outputs if coding.n_classes > 2 else graph("MatMul", outputs, coding.readout[:, 0])


def _best(graph: Graph, scores: str, n_classes: int) -> str:
    if n_classes == 2:
        return graph.cast(graph("Greater", scores, 0.0), np.int64)
    return graph("ArgMax", scores, axis=1, keepdims=0)
