"""Build an ONNX graph: every operation returns the name of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from widemargin.additive.columns import Columns
from widemargin.table_encoder import TableEncoder

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
_ML = "ai.onnx.ml"
MOST_BYTES = (1 << 31) - (1 << 20)  # protobuf's limit minus room for the nodes


class Graph:
    """Operations of the default and the machine learning domain, and their constants."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "The export to ONNX needs the package onnx: pip install widemargin[onnx]"
            ) from error
        self._onnx: Any = onnx
        self._nodes: list = []
        self._constants: list = []
        self._n_bytes = 0
        self._numbers = count()
        self._reserved: frozenset[str] = frozenset()
        self._domains = {"": OPSET}

    def __call__(self, op: str, *inputs, output: str | None = None, **attributes) -> str:
        """Append an operation on names and constants."""
        names = [i if isinstance(i, str) else self._constant(i) for i in inputs]
        output = output or self._name()
        self._nodes.append(self._onnx.helper.make_node(op, names, [output], **attributes))
        return output

    def ml(self, op: str, *inputs, **attributes) -> str:
        """Append an operation of the domain of machine learning."""
        self._domains[_ML] = ML_OPSET
        return self(op, *inputs, domain=_ML, **attributes)

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve the names of inputs, so that no result gets them."""
        self._reserved = frozenset(names)

    def cast(self, x: str, dtype) -> str:
        return self("Cast", x, to=self._type(dtype))

    def columns(self, rows: np.ndarray, column: Callable[[str], str]) -> str:
        """Compute a matrix whose column k is ``column(rows[k])``, one row at a time."""
        outer, self._nodes = self._nodes, []
        row = self._name()
        result = column(row)
        body = self._graph(
            {row: (rows.dtype, rows.shape[1:])}, {result: (rows.dtype, ["N"])}, constants=[]
        )
        self._nodes = outer
        # Stacked, then transposed: ONNX Runtime's own scan_output_axes fails for N = 0.
        return self("Transpose", self("Scan", rows, body=body, num_scan_inputs=1))

    def serialised(self, inputs: dict, outputs: dict, metadata: dict[str, str]) -> bytes:
        """Return the checked model as bytes; inputs and outputs map names to dtypes and shapes."""
        helper = self._onnx.helper
        model = helper.make_model(
            self._graph(inputs, outputs, self._constants),
            opset_imports=[helper.make_opsetid(*domain) for domain in self._domains.items()],
            ir_version=IR_VERSION,
            producer_name="widemargin",
            producer_version=version("widemargin"),
        )
        helper.set_model_props(model, metadata)
        self._onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()

    def _graph(self, inputs: dict, outputs: dict, constants: list):
        typed = [
            [
                self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape)
                for name, (dtype, shape) in given.items()
            ]
            for given in (inputs, outputs)
        ]
        return self._onnx.helper.make_graph(self._nodes, self._name(), *typed, constants)

    def _constant(self, value) -> str:
        value = value if sp.issparse(value) else np.asarray(value)
        self._n_bytes += math.prod(value.shape) * value.dtype.itemsize
        if self._n_bytes > MOST_BYTES:
            raise ValueError(
                f"The model has more than {self._n_bytes / 1e9:.1f} GB of numbers, but an ONNX "
                "file holds 2 GB at most, and no sparse vectors. Fit with fewer support vectors or "
                "features (of sparse data, for example with "
                "sklearn.feature_selection.SelectKBest)."
            )
        dense = value.toarray() if sp.issparse(value) else value
        self._constants.append(self._onnx.numpy_helper.from_array(dense, self._name()))
        return self._constants[-1].name

    def _name(self) -> str:
        names = (f"v{number}" for number in self._numbers)
        return next(name for name in names if name not in self._reserved)

    def _type(self, dtype) -> int:
        dtype = np.dtype(dtype)
        if dtype.kind == "U":
            return self._onnx.TensorProto.STRING
        return self._onnx.helper.np_dtype_to_tensor_dtype(dtype)


# ------------------------------------------------------------------ inputs


OUTPUTS = ("label", "scores")
# Texts that runtimes pass for a missing value: Python's words, or nothing.
_MISSING_TEXTS = ("", "None", "nan", "<NA>", "NaT")


class Inputs(NamedTuple):
    """The inputs of a graph, with the names of its numbers and categories.

    The category indices of a column's rows are int64 of shape (N,): "missing" follows the
    categories, and unknown categories are last.
    """

    declared: dict[str, tuple]  # names to dtypes and shapes
    numbers: str  # float32 of shape (N, n_numbers)
    codes: dict[int, str]  # category indices of every categorical column


def encoded_input(graph: Graph, encoder: TableEncoder) -> Inputs:
    """Encode columns of a table as a `TableEncoder` does."""
    columns = encoder.columns_
    inputs = model_input(graph, encoder, columns)
    parts = []
    if columns.n_numbers:
        missing = graph("IsNaN", inputs.numbers)
        filled = graph("Where", missing, encoder.fill_, graph.cast(inputs.numbers, np.float64))
        scaled = graph("Mul", graph("Sub", filled, encoder.shift_), encoder.factor_)
        parts.append(graph.cast(scaled, np.float32))
    for j in sorted({*columns.categories, *columns.missing}):
        features = columns.features(j)
        if features.number is not None:
            has = graph("Gather", missing, [features.number], axis=1)
        else:  # index n is missing, n + 1 is unknown
            known = np.arange(len(features.categories) + (features.missing is not None))
            has = graph("Equal", graph("Unsqueeze", inputs.codes[j], [1]), known)
        parts.append(graph.cast(has, np.float32))
    return Inputs(inputs.declared, graph("Concat", *parts, axis=1), {})


def model_input(graph: Graph, model, columns: Columns) -> Inputs:
    """Return the inputs of the model's first part."""
    if not columns.categories:
        return matrix_input(columns.n_columns)
    names = getattr(model, "feature_names_in_", None)
    return table_input(graph, columns, None if names is None else [*map(str, names)])


def matrix_input(d: int) -> Inputs:
    """Return one input with rows of numbers."""
    return Inputs({"X": (np.float32, ["N", d])}, "X", {})


def table_input(graph: Graph, columns: Columns, names: list[str] | None) -> Inputs:
    """Return inputs for rows with categories: a matrix if all categories are numbers."""
    numbers = {j: _as_numbers(texts) for j, texts in columns.categories.items()}
    known = {j: texts for j, texts in numbers.items() if texts is not None}
    if names is None and len(known) == len(numbers):
        codes = {j: _codes_of_numbers(graph, j, texts) for j, texts in known.items()}
        return Inputs(
            {"X": (np.float32, ["N", columns.n_columns])},
            graph("Gather", "X", columns.numbers, axis=1),
            codes,
        )
    return _column_inputs(graph, columns, names or [f"x{j}" for j in range(columns.n_columns)])


def _column_inputs(graph: Graph, columns: Columns, names: list[str]) -> Inputs:
    """Return an input of numbers or text for each name, of shape (N, 1)."""
    clash = next((name for name in OUTPUTS if name in names), None)
    if clash is not None:
        raise ValueError(
            f"A column is called {clash!r}, and so is an output of the ONNX file. Rename the "
            "column, and fit again."
        )
    graph.reserve(names)
    declared = {
        name: (np.str_ if j in columns.categories else np.float32, ["N", 1])
        for j, name in enumerate(names)
    }
    numeric = [names[j] for j in columns.numbers]
    numbers = graph("Concat", *numeric, axis=1) if numeric else ""
    codes = {j: _codes_of_texts(graph, names[j], c) for j, c in columns.categories.items()}
    return Inputs(declared, numbers, codes)


def _codes_of_texts(graph: Graph, x: str, categories: tuple[str, ...]) -> str:
    n, known = len(categories), [*categories]
    missing = [text for text in _MISSING_TEXTS if text not in known]
    codes = graph.ml(
        "LabelEncoder",
        x,
        keys_strings=[*known, *missing],
        values_int64s=[*range(n), *(n for _ in missing)],
        default_int64=n + 1,
    )
    return graph("Squeeze", codes, [1])


def _codes_of_numbers(graph: Graph, column: int, categories: np.ndarray) -> str:
    n, x = len(categories), graph("Gather", "X", column, axis=1)
    codes = graph.ml(
        "LabelEncoder",
        x,
        keys_floats=categories.tolist(),
        values_int64s=[*range(n)],
        default_int64=n + 1,
    )
    return graph("Where", graph("IsNaN", x), np.int64(n), codes)


def _as_numbers(categories: tuple[str, ...]) -> np.ndarray | None:
    """Parse categories as distinct float32 numbers; return None if that is impossible."""
    try:
        numbers = np.array([float(text) for text in categories]).astype(np.float32)
    except ValueError:
        return None
    distinct = len(np.unique(numbers)) == len(numbers)
    return numbers if distinct and np.all(np.isfinite(numbers)) else None
