"""Kernel models in ONNX: kernel values, clusters of rows, votes of pairs."""

from __future__ import annotations

import numpy as np

from widemargin.errors import ParameterError
from widemargin.export.onnx_graph import Graph
from widemargin.kernel.kernels import DotKernel, FunctionKernel, Kernel
from widemargin.kernel.linear import LinearModel
from widemargin.kernel.model import KernelModel
from widemargin.kernel.partition import KernelRouter, PointRouter
from widemargin.kernel.precision import predicts_in_single
from widemargin.multiclass import Coding

ROUNDING = 3e-5  # of the margin; larger errors need kernel values in double precision


def kernel_scores(graph: Graph, x: str, model: KernelModel | LinearModel) -> str:
    """Compute decision values of the rows x, of shape (N, n_outputs)."""
    if isinstance(model, LinearModel):
        values = graph("MatMul", graph.cast(x, np.float64), np.ascontiguousarray(model.weights.T))
        return graph("Add", values, model.intercept)
    _check(model)
    kernel, vectors = model.kernel, model.vectors
    single = kernel.dtype == np.float32
    if single and not predicts_in_single(kernel, vectors, model.coef, ROUNDING):
        kernel, vectors = kernel.in_double(), vectors.in_double()
    centre = kernel.centre if isinstance(kernel, DotKernel | FunctionKernel) else None
    # ONNX Runtime removes a subtraction of zeros, and then fails on it.
    if centre is not None and centre.any():
        x = graph("Sub", graph.cast(x, np.float64), centre)
    rows = graph.cast(x, kernel.dtype)
    values = _kernel_values(graph, rows, kernel, vectors)
    if model.router is not None and model.combination == "routed":
        same_cluster = graph("Equal", _cluster(graph, rows, model.router), model.cluster)
        values = graph("Where", same_cluster, values, kernel.dtype(0))
    return graph("Add", _sums(graph, values, model.coef.dense()), model.intercept)


def votes(graph: Graph, scores: str, coding: Coding) -> str:
    """Turn scores of pairs into scores of classes (`Coding.scores`)."""
    sign = coding.targets.T
    won = graph.cast(graph("Greater", scores, 0.0), np.float64)
    n_votes = graph("Add", graph("MatMul", won, sign), np.sum(sign < 0, axis=0, dtype=float))
    sums = graph("MatMul", scores, sign)
    size = graph("Mul", graph("Add", graph("Abs", sums), 1.0), 3.0)
    return graph("Add", n_votes, graph("Div", sums, size))


def _check(model: KernelModel) -> None:
    kernel = model.kernel
    if not kernel.traits.ours:
        raise ParameterError(
            "kernel",
            kernel.name,
            "cannot be written to an ONNX file, which has no access to your functions or to the "
            "training rows. Fit with 'rbf', 'poly', 'sigmoid', 'laplacian' or 'chi2'.",
        )
    if model.router is not None and model.combination == "bcm":
        raise ValueError(
            "early_prediction='bcm' cannot be written to an ONNX file: it solves linear systems. "
            "Use early_prediction='routed' or 'sum'."
        )


def _sums(graph: Graph, values: str, coef: np.ndarray) -> str:
    return graph("MatMul", graph.cast(values, np.float64), coef)


def _kernel_values(graph: Graph, rows: str, kernel: Kernel, vectors) -> str:
    """Compute k(rows, vectors), of shape (N, n_vectors)."""
    if not isinstance(kernel, DotKernel) or kernel.is_far(vectors):
        return _kernel_of_sums(graph, rows, kernel, vectors.matrix)
    gamma, coef0, degree = (kernel.dtype(v) for v in (kernel.gamma, kernel.coef0, kernel.degree))
    inner = graph("MatMul", rows, vectors.matrix.T)
    if kernel.name == "rbf":
        norms = graph("Add", graph("ReduceSumSquare", rows, axes=[1]), vectors.norms)
        distance = graph("Sub", norms, graph("Mul", inner, kernel.dtype(2)))
        return graph("Exp", graph("Mul", graph("Max", distance, kernel.dtype(0)), -gamma))
    shifted = graph("Add", graph("Mul", inner, gamma), coef0)
    return graph("Pow", shifted, degree) if kernel.name == "poly" else graph("Tanh", shifted)


def _kernel_of_sums(graph: Graph, rows: str, kernel: Kernel, vectors: np.ndarray) -> str:
    """Compute exp(-gamma sum_j d(x_j, z_j)), one vector z at a time to save memory.

    For laplacian and chi2, and for rbf if squared norms would cancel.
    """

    def distance(vector: str) -> str:
        terms = graph("Abs", graph("Sub", rows, vector))
        if kernel.name == "rbf":
            terms = graph("Mul", terms, terms)
        elif kernel.name == "chi2":
            total = graph("Max", graph("Add", rows, vector), np.finfo(kernel.dtype).tiny)
            terms = graph("Div", graph("Mul", terms, terms), total)
        return graph("ReduceSum", terms, [1], keepdims=0)

    assert isinstance(kernel, DotKernel | FunctionKernel)
    gamma = kernel.dtype(kernel.gamma)
    return graph("Exp", graph("Mul", graph.columns(vectors, distance), -gamma))


def _cluster(graph: Graph, rows: str, router) -> str:
    """Compute each row's cluster, of shape (N, 1), in double precision."""
    rows, router = graph.cast(rows, np.float64), router.in_double()
    if isinstance(router, PointRouter):
        half_norms = np.einsum("kd,kd->k", router.centres, router.centres) / 2
        distance = graph("Sub", half_norms, graph("MatMul", rows, router.centres.T))
    else:
        assert isinstance(router, KernelRouter)
        values = _kernel_values(graph, rows, router.kernel, router.sample)
        inner = _sums(graph, values, router.members)
        distance = graph("Sub", router.constants, graph("Mul", inner, 2.0))
    return graph("ArgMin", distance, axis=1)
