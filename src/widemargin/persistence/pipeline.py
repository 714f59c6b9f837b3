"""scikit-learn's scalers, which often come before a model, to header and arrays, and back."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin.persistence.container import Arrays, Fields

# What `transform` and `inverse_transform` use, and the parameters that change them.
SCALERS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    MinMaxScaler: (("min_", "scale_", "data_min_", "data_max_", "data_range_"), ("clip",)),
    MaxAbsScaler: (("scale_", "max_abs_"), ()),
    StandardScaler: (("mean_", "var_", "scale_"), ("with_mean", "with_std")),
}


def pack_scaler(scaler) -> tuple[dict, dict[str, np.ndarray]]:
    names, parameters = SCALERS[type(scaler)]
    header: dict = {p: bool(getattr(scaler, p)) for p in parameters}
    if isinstance(scaler, MinMaxScaler):
        header["feature_range"] = [float(v) for v in scaler.feature_range]
    held = {name: getattr(scaler, name) for name in names}
    arrays = {k: np.asarray(v, dtype=np.float64) for k, v in held.items() if v is not None}
    return header, arrays


def unpack_scaler(kind: str, fields: Fields, arrays: Arrays, d: int) -> BaseEstimator:
    cls = next(c for c in SCALERS if c.__name__ == kind)
    names, parameters = SCALERS[cls]
    scaler = cls(**{p: fields.flag(p) for p in parameters})
    for name in names:
        array = arrays.take(name, np.float64, (d,)) if arrays.has(name) else None
        if array is not None and name == "scale_" and np.any(array == 0):
            raise arrays.fault(name, "holds zeros")
        setattr(scaler, name, array)
    if cls is MinMaxScaler:
        bounds = fields.items("feature_range")
        if len(bounds) != 2 or not all(isinstance(b, float) for b in bounds):
            raise fields.fault("feature_range", "two numbers")
        scaler.feature_range = (bounds[0], bounds[1])
    needed = {"with_mean": "mean_", "with_std": "scale_"}
    for parameter, name in needed.items():
        if parameter in parameters and getattr(scaler, parameter) and getattr(scaler, name) is None:
            raise arrays.fault(name, "is missing")
    if cls is not StandardScaler and scaler.scale_ is None:
        raise arrays.fault("scale_", "is missing")
    return scaler
