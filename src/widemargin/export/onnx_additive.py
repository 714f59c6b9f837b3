"""Additive models in ONNX: bins by bisection, tables by look-up, categories by text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from widemargin.additive.columns import Columns
from widemargin.additive.lookup import PolynomialLookup
from widemargin.additive.model import AdditiveModel
from widemargin.additive.problem import LANES
from widemargin.additive.tables import LOG_OFFSET
from widemargin.export.onnx_graph import Graph, Inputs


def additive_scores(graph: Graph, x: Inputs, model: AdditiveModel, columns: Columns) -> str:
    """Compute decision values of the rows x, of shape (N, n_outputs)."""
    terms: list = [model.intercept]
    if columns.n_numbers:
        numbers = _of_numbers(model, columns.n_numbers)
        terms.append(graph.cast(_sums_of_numbers(graph, x.numbers, numbers), np.float64))
    gaps = [j for j in sorted(columns.missing) if j not in columns.categories]
    if gaps:
        position = np.searchsorted(columns.numbers, gaps)
        missing = graph("IsNaN", graph("Gather", x.numbers, position, axis=1))
        values = _of_indicators(model, [columns.features(j).missing for j in gaps])
        terms.append(graph("MatMul", graph.cast(missing, np.float64), values))
    for j, codes in x.codes.items():
        features = columns.features(j)
        values = _of_indicators(model, [*features.categories, features.missing, None])
        terms.append(graph("Gather", values, codes))
    return graph("Sum", *terms)


def _of_numbers(model: AdditiveModel, n: int) -> AdditiveModel:
    """Return the model of the first n features, the numbers; the others are indicators."""
    if model.offset is None:
        return replace(model, weights=model.weights[:, :n], n_features=n)
    offset = model.offset[: n + 1]
    return replace(model, weights=model.weights[:, : offset[-1]], offset=offset, n_features=n)


def _of_indicators(model: AdditiveModel, features: Sequence[int | None]) -> np.ndarray:
    """Return contributions of indicators, (len(features), n_outputs); 0 for unknown ones."""
    known = np.array([feature is not None for feature in features])
    out = np.zeros((len(features), model.n_outputs))
    present = np.array([feature for feature in features if feature is not None], dtype=np.int64)
    out[known] = model.at_cells(present, np.full(len(present), model.encoder.n_codes - 1))
    return out


def _sums_of_numbers(graph: Graph, x: str, model: AdditiveModel) -> str:
    encoder, lookup = model.encoder, model.lookup
    t = graph("Mul", graph("Sub", graph.cast(x, np.float64), encoder.shift), encoder.factor)
    if isinstance(lookup, PolynomialLookup):
        return _weighted(graph, _log_polynomials(graph, t, lookup), lookup.rank, model)
    codes = _codes(graph, t, encoder.thresholds)
    if model.offset is not None:
        return _looked_up(graph, codes, model.offset, model)
    features = graph("Gather", lookup.table, codes)
    return _weighted(graph, features, lookup.table.shape[1], model)


def _codes(graph: Graph, t: str, thresholds: np.ndarray) -> str:
    """Compute #{k : thresholds[k] <= t}, bisecting for all values at once."""
    n_steps = len(thresholds).bit_length()
    counted_from_1 = np.full(1 << n_steps, np.inf)
    counted_from_1[1 : len(thresholds) + 1] = thresholds
    code = graph("Identity", np.int32(0))
    for step in range(n_steps)[::-1]:
        ahead = graph("Add", code, np.int32(1 << step))
        reached = graph("LessOrEqual", graph("Gather", counted_from_1, ahead), t)
        code = graph("Where", reached, ahead, code)
    return code


def _weighted(graph: Graph, features: str, rank: int, model: AdditiveModel) -> str:
    """Multiply ``features``, of shape (N, n_features, rank), with the weights."""
    weights = _by_output(model.weights[:, :, :rank], model)
    return graph("MatMul", graph("Flatten", features, axis=1), weights)


def _looked_up(graph: Graph, codes: str, offset: np.ndarray, model: AdditiveModel) -> str:
    """Sum the unary method's cells, a few outputs at a time to save memory."""
    first, last = offset[:-1].astype(np.int32), offset[1:].astype(np.int32) - 1
    cells = graph("Min", graph("Add", codes, first), last)
    parts = np.split(_by_output(model.weights, model), range(LANES, model.n_outputs, LANES), axis=1)
    sums = [graph("ReduceSum", graph("Gather", part, cells), [1], keepdims=0) for part in parts]
    return graph("Concat", *sums, axis=1)


def _by_output(weights: np.ndarray, model: AdditiveModel) -> np.ndarray:
    """Reshape blocks of weights, (n_blocks, ..., lanes), to one column per output."""
    columns = np.moveaxis(weights, 0, -2).reshape(-1, len(weights) * model.lanes)
    return columns[:, : model.n_outputs]


def _log_polynomials(graph: Graph, t: str, lookup: PolynomialLookup) -> str:
    """Compute PmSVM's table: Chebyshev polynomials of ln(t + 0.05), 0 for absent values."""
    low, high = np.log(LOG_OFFSET), np.log(1 + LOG_OFFSET)
    present = graph("Not", graph("IsNaN", t))
    if lookup.encoder.zero_is_absent:
        present = graph("And", present, graph("Greater", t, 0.0))
    clipped = graph(
        "Clip", graph("Where", present, t, 0.0), 0.0, lookup.encoder.representatives[-1]
    )
    log = graph("Log", graph("Add", clipped, LOG_OFFSET))
    u = graph("Div", graph("Sub", log, (low + high) / 2), (high - low) / 2)
    polynomials: list = [1.0, u]
    while len(polynomials) < lookup.rank:  # T_k+1 = 2 u T_k - T_k-1
        twice = graph("Mul", graph("Mul", u, polynomials[-1]), 2.0)
        polynomials.append(graph("Sub", twice, polynomials[-2]))
    columns = [graph("Where", present, p, 0.0) for p in polynomials[: lookup.rank]]
    stacked = graph("Concat", *[graph("Unsqueeze", c, [2]) for c in columns], axis=2)
    return graph.cast(stacked, lookup.table.dtype)
