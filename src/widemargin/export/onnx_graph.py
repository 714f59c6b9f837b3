"""Build an ONNX graph: every operation returns the name of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp

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
