"""The exported model decides as the model does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

from stress import truth
from stress.checks.bits import rounding
from widemargin.export import export_onnx


def onnx(model, X, y, w=None) -> None:
    """At the training rows as single precision holds them, which is what a session takes."""
    rows = truth.dense(X).astype(np.float32)
    if not np.all(np.isfinite(rows)):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(model, path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    scores = session.run(["scores"], {"X": rows})[0]
    expected = model.decision_function(rows)
    if np.abs(expected).max() > np.finfo(np.float32).max:
        return  # beyond what the scores of a session can be
    off, room = np.abs(scores - expected).max(), rounding(model, X, y, w)
    assert off <= room, f"ONNX decides otherwise: by {off:g}, where rounding explains {room:g}"
