"""Pack and unpack what stands beside a machine: encoder, scalers, curves of probabilities."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from widemargin.calibration import METHODS, assembled, parts_of
from widemargin.persistence.container import Arrays, Fields
from widemargin.persistence.header import feature_names, pack_columns, unpack_columns
from widemargin.persistence.parameters import pack_parameters, unpack_parameters
from widemargin.sklearn_private import output_of, restore_isotonic, sigmoid_curve
from widemargin.table_encoder import Ranges, TableEncoder

# Attributes that `transform`, `inverse_transform` and `partial_fit` use, and their parameters.
SCALERS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    MinMaxScaler: (("min_", "scale_", "data_min_", "data_max_", "data_range_"), ("copy", "clip")),
    MaxAbsScaler: (("scale_", "max_abs_"), ("copy", "clip")),
    StandardScaler: (("mean_", "var_", "scale_"), ("copy", "with_mean", "with_std")),
}
OUTPUTS = ("default", "pandas", "polars")
_DTYPES = ("float32", "float64")
PARTS = (TableEncoder, *SCALERS)
PART_NAMES = tuple(cls.__name__ for cls in PARTS)
_MOST_FEATURES = 2**31 - 1


def pack_part(part: Any) -> tuple[dict, dict[str, np.ndarray]]:
    """Pack a fitted part of a pipeline."""
    check_is_fitted(part)
    fields, arrays = (pack_encoder if type(part) is TableEncoder else pack_scaler)(part)
    check_finite(type(part).__name__, arrays)
    return {"kind": type(part).__name__, **pack_features(part), "own": fields}, arrays


def pack_steps(steps, pack) -> tuple[dict, dict[str, np.ndarray]]:
    """Pack the steps of a pipeline with ``pack``."""
    headers: list[dict] = []
    arrays: dict[str, np.ndarray] = {}
    for k, (name, step) in enumerate(steps):
        header, step_arrays = pack(step)
        headers.append({"name": name, **header})
        arrays |= {f"{k}/{key}": array for key, array in step_arrays.items()}
    return {"kind": "Pipeline", "steps": headers}, arrays


def pack_features(model: Any) -> dict:
    header: dict = {"n_features": int(model.n_features_in_)}
    if hasattr(model, "feature_names_in_"):
        header["feature_names"] = [str(name) for name in model.feature_names_in_]
    return header


def check_finite(what: str, arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name != "thresholds" and not np.all(np.isfinite(array)):
            raise ValueError(f"The {what} diverged (its {name} is not finite); it is not saved.")


def unpack_part(fields: Fields, arrays: Arrays) -> Any:
    """Unpack a part whose kind has been checked."""
    kind, d = fields.text("kind"), unpack_width(fields, arrays)
    inner = fields.inner("own")
    names = feature_names(fields, d) if fields.has("feature_names") else None
    if kind == TableEncoder.__name__:
        part = unpack_encoder(inner, arrays, d)
    else:
        part = unpack_scaler(kind, inner, arrays, d)
    part.n_features_in_ = d
    if names is not None:
        part.feature_names_in_ = np.array(names, dtype=object)
    return part


def unpack_width(fields: Fields, arrays: Arrays) -> int:
    d = fields.integer("n_features", low=1, high=_MOST_FEATURES)
    arrays.budget.check(8 * d, f"a row of its {d} features takes")
    return d


def put_in_line(steps: list[tuple[str, Any]], fields: Fields) -> Pipeline:
    """Return a pipeline of steps; check that their numbers of columns match."""
    fit = all(
        _width_after(before) == after.n_features_in_ for (_, before), (_, after) in pairwise(steps)
    )
    if not steps or not fit or len({name for name, _ in steps}) != len(steps):
        raise fields.fault(
            "steps", "steps of different names that take the same number of features as come"
        )
    try:
        pipeline = Pipeline(steps)
        pipeline._validate_steps()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{fields.path!r}: {error}") from None
    return pipeline


def _width_after(part: Any) -> int:
    """Return the number of columns that a part returns."""
    return part.columns_.n_features if type(part) is TableEncoder else part.n_features_in_


def pack_encoder(encoder: TableEncoder) -> tuple[dict, dict[str, np.ndarray]]:
    header = {
        "parameters": pack_parameters(encoder),
        "columns": pack_columns(encoder.columns_),
        "is_date": [int(j) in encoder.dates_ for j in encoder.columns_.numbers],
        "dtype": encoder.dtype_.name,
        "sparse": encoder.sparse_input_,
        "output": output_of(encoder),
    }
    return header, encoder.ranges_._asdict()


def unpack_encoder(fields: Fields, arrays: Arrays, d: int) -> TableEncoder:
    encoder: TableEncoder = unpack_parameters(TableEncoder, fields.inner("parameters"), None)
    if (output := fields.text("output", OUTPUTS)) != "default":
        encoder.set_output(transform=output)
    columns = unpack_columns(fields, d)
    is_date = fields.items("is_date")
    if len(is_date) != columns.n_numbers or not all(type(flag) is bool for flag in is_date):
        raise fields.fault("is_date", f"true or false for each of {columns.n_numbers} columns")
    encoder.dates_ = tuple(columns.numbers[np.array(is_date, dtype=bool)].tolist())
    size = (columns.n_numbers,)
    ranges = {name: arrays.take(name, (np.float64,), size) for name in ("low", "high", "total")}
    n = arrays.take("n", (np.int64,), size)
    if np.any(ranges["low"] > ranges["high"]) or np.any(n < 0):
        raise arrays.fault("low", "is above high, or n below 0")
    arrays.budget.check(8 * columns.n_features, f"a row of its {columns.n_features} features takes")
    dtype = np.dtype(fields.text("dtype", _DTYPES))
    encoder._settle(columns, Ranges(**ranges, n=n), dtype, fields.flag("sparse"))
    return encoder


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


# ------------------------------------------------------------------ curves of probabilities


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
