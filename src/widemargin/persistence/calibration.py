"""Pack and unpack curves from decision values to probabilities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression

from widemargin.calibration import METHODS, assembled, parts_of
from widemargin.persistence.container import Arrays, Fields
from widemargin.sklearn_private import restore_isotonic, sigmoid_curve


def pack_curves(model: CalibratedClassifierCV) -> tuple[dict, dict[str, np.ndarray]]:
    _, curves = parts_of(model)
    if model.method == "sigmoid":
        arrays = {"slope": [c.a_ for c in curves], "offset": [c.b_ for c in curves]}
        return {"method": "sigmoid"}, {k: np.array(v, dtype=float) for k, v in arrays.items()}
    bends = [(c.X_thresholds_, c.y_thresholds_) for c in curves]
    sizes = np.cumsum([0, *(len(x) for x, _ in bends)])
    return {"method": "isotonic"}, {
        "start": sizes.astype(np.int64),
        "decision": np.concatenate([x for x, _ in bends]).astype(np.float64),
        "probability": np.concatenate([p for _, p in bends]).astype(np.float64),
    }


def unpack_curves(fitted, fields: Fields, arrays: Arrays) -> CalibratedClassifierCV:
    """Unpack the curves of a fitted model; return the calibrated model."""
    if not hasattr(fitted, "classes_"):
        raise ValueError(f"{fields.path!r}: {fields.where} is for classifiers.")
    method = fields.text("method", METHODS)
    n = 1 if len(fitted.classes_) == 2 else len(fitted.classes_)
    curves = _sigmoids(arrays, n) if method == "sigmoid" else _bends(arrays, n)
    return assembled(fitted, curves, method)


def _sigmoids(arrays: Arrays, n: int) -> list:
    slope, offset = (arrays.take(name, np.float64, (n,)) for name in ("slope", "offset"))
    curves = [sigmoid_curve() for _ in range(n)]
    for curve, a, b in zip(curves, slope, offset, strict=True):
        curve.a_, curve.b_ = a, b
    return curves


def _bends(arrays: Arrays, n: int) -> list:
    decision = arrays.take("decision", np.float64, (None,))
    start = arrays.pointers("start", n, len(decision))
    probability = arrays.take("probability", np.float64, decision.shape)
    if np.any((probability < 0) | (probability > 1)):
        raise arrays.fault("probability", "must be from 0 to 1")
    return [_isotonic(arrays, decision[a:b], probability[a:b]) for a, b in pairwise(start)]


def _isotonic(arrays: Arrays, x: np.ndarray, p: np.ndarray) -> IsotonicRegression:
    if len(x) == 0 or np.any(np.diff(x) <= 0) or np.any(np.diff(p) < 0):
        raise arrays.fault("decision", "must ascend for every class, and probability not descend")
    curve = IsotonicRegression(out_of_bounds="clip")
    restore_isotonic(curve, x, p)
    return curve
