"""Export fitted models: LIBSVM's text format, ONNX, and shape functions as JSON."""

from widemargin.export.libsvm import export_libsvm
from widemargin.export.onnx import export_onnx
from widemargin.export.shapes import export_shapes, shape_functions

__all__ = ["export_libsvm", "export_onnx", "export_shapes", "shape_functions"]
