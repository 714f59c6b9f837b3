"""Pack and unpack scikit-learn's scalers."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin.persistence.container import Arrays, Fields
from widemargin.sklearn_private import output_of

# Attributes that `transform`, `inverse_transform` and `partial_fit` use, and their parameters.
SCALERS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    MinMaxScaler: (("min_", "scale_", "data_min_", "data_max_", "data_range_"), ("copy", "clip")),
    MaxAbsScaler: (("scale_", "max_abs_"), ("copy", "clip")),
    StandardScaler: (("mean_", "var_", "scale_"), ("copy", "with_mean", "with_std")),
}
OUTPUTS = ("default", "pandas", "polars")


def pack_scaler(scaler) -> tuple[dict, dict[str, np.ndarray]]:
    names, parameters = SCALERS[type(scaler)]
    header: dict = {p: bool(getattr(scaler, p)) for p in parameters}
    header["output"] = output_of(scaler)
    if isinstance(scaler, MinMaxScaler):
        header["feature_range"] = [float(v) for v in scaler.feature_range]
    held = {name: getattr(scaler, name) for name in names}
    arrays = {k: np.asarray(v) for k, v in held.items() if v is not None}
    return header, arrays | {"n_samples_seen_": np.atleast_1d(scaler.n_samples_seen_)}


def unpack_scaler(kind: str, fields: Fields, arrays: Arrays, d: int):
    cls = next(c for c in SCALERS if c.__name__ == kind)
    names, parameters = SCALERS[cls]
    scaler = cls(**{p: fields.flag(p) for p in parameters})
    output = fields.text("output", OUTPUTS)
    if output != "default":
        scaler.set_output(transform=output)
    for name in names:
        held = arrays.has(name) or _needs(scaler, name)
        array = arrays.take(name, (np.float32, np.float64), (d,)) if held else None
        if array is not None and name == "scale_" and np.any(array == 0):
            raise arrays.fault(name, "holds zeros")
        setattr(scaler, name, array)
    seen = arrays.take("n_samples_seen_", (np.int64, np.float32, np.float64), (None,))
    if len(seen) not in (1, d) or np.any(seen < 0):
        raise arrays.fault("n_samples_seen_", "must be one count, or one per feature")
    scaler.n_samples_seen_ = seen if len(seen) > 1 else seen[0]
    if cls is MinMaxScaler:
        bounds = fields.items("feature_range")
        finite = len(bounds) == 2 and all(type(b) is float and np.isfinite(b) for b in bounds)
        if not finite or not bounds[0] < bounds[1]:
            raise fields.fault("feature_range", "two ascending numbers")
        scaler.feature_range = (bounds[0], bounds[1])
    return scaler


def _needs(scaler, name: str) -> bool:
    if not isinstance(scaler, StandardScaler):
        return True
    return scaler.with_mean if name == "mean_" else scaler.with_std
