"""Pack and unpack the parts around a machine: encoder, scalers, probabilities."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from widemargin.calibration import EXPONENTS, CalibratedSVC
from widemargin.persistence.container import Arrays, Fields
from widemargin.persistence.header import feature_names, pack_columns, unpack_columns
from widemargin.persistence.parameters import pack_parameters, unpack_parameters
from widemargin.preparation import N_QUANTILES, GradientScaler, NormalScaler
from widemargin.sklearn_private import output_of
from widemargin.table_encoder import Ranges, TableEncoder

# Attributes that `transform`, `inverse_transform` and `partial_fit` use, and their parameters.
SCALERS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    MinMaxScaler: (("min_", "scale_", "data_min_", "data_max_", "data_range_"), ("copy", "clip")),
    MaxAbsScaler: (("scale_", "max_abs_"), ("copy", "clip")),
    StandardScaler: (("mean_", "var_", "scale_"), ("copy", "with_mean", "with_std")),
    GradientScaler: (("scale_",), ("of_numbers",)),
    NormalScaler: (("quantiles_",), ()),
}
OUTPUTS = ("default", "pandas", "polars")
_DTYPES = ("float32", "float64")
PARTS = (TableEncoder, *SCALERS)
OF_IMAGES = ("BagOfVisualWords", "Centrist")  # of widemargin.vision, imported on first use
PART_NAMES = (*(cls.__name__ for cls in PARTS), *OF_IMAGES)
_MOST_FEATURES = 2**31 - 1


def is_part(step: Any) -> bool:
    """Whether this is a part that can be saved."""
    return type(step) in PARTS or _is_of_images(step)


def _is_of_images(step: Any) -> bool:
    kind = type(step)
    return kind.__name__ in OF_IMAGES and kind.__module__.startswith("widemargin.vision.")


def pack_part(part: Any) -> tuple[dict, dict[str, np.ndarray]]:
    """Pack a fitted part of a pipeline."""
    check_is_fitted(part)
    if _is_of_images(part):
        from widemargin.vision.stored import pack_images

        fields, arrays = pack_images(part)
        check_finite(type(part).__name__, arrays)
        kind = {"kind": type(part).__name__, "n_features": _width_after(part)}
        return kind | {"own": fields}, arrays
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
    if kind in OF_IMAGES:
        from widemargin.vision.stored import unpack_images

        return unpack_images(kind, inner, arrays, d)
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
    """Return a pipeline of steps; check that their numbers of columns match.

    Features of images have no number of columns that they take, and come first.
    """
    fit = all(
        _width_after(before) == getattr(after, "n_features_in_", None)
        for (_, before), (_, after) in pairwise(steps)
    )
    if not steps or not fit or len({name for name, _ in steps}) != len(steps):
        raise fields.fault(
            "steps",
            "steps with distinct names, each for as many features as the step before returns",
        )
    try:
        pipeline = Pipeline(steps)
        pipeline._validate_steps()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{fields.path!r}: {error}") from None
    return pipeline


def _width_after(part: Any) -> int:
    """Return the number of columns that a part returns."""
    if _is_of_images(part):
        return part.pyramid_.n_windows * part.n_words_
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
        shape = (N_QUANTILES, d) if name == "quantiles_" else (d,)
        array = arrays.take(name, (np.float32, np.float64), shape) if held else None
        if array is not None and name == "scale_" and np.any(array == 0):
            raise arrays.fault(name, "holds zeros")
        if array is not None and name == "quantiles_" and np.any(np.diff(array, axis=0) < 0):
            raise arrays.fault(name, "does not ascend")
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


# ------------------------------------------------------------------ probabilities


def pack_calibration(model: CalibratedSVC) -> tuple[dict, dict[str, np.ndarray]]:
    arrays = {"calibration/slope": model.slope_, "calibration/intercept": model.offset_}
    return {"exponent": model.exponent_}, arrays


def unpack_calibration(fitted, fields: Fields, arrays: Arrays) -> CalibratedSVC:
    """Unpack the calibration of a fitted model; return the calibrated model."""
    if not hasattr(fitted, "classes_"):
        raise ValueError(f"{fields.path!r}: {fields.where} is for classifiers.")
    n_pairs = len(fitted.classes_) * (len(fitted.classes_) - 1) // 2
    model = CalibratedSVC(clone(fitted))
    model.estimator_, model.exponent_ = fitted, fields.number("exponent")
    if not EXPONENTS[0] <= model.exponent_ <= EXPONENTS[1]:
        raise fields.fault("exponent", f"must be from {EXPONENTS[0]} to {EXPONENTS[1]}")
    model.slope_, model.offset_ = (
        arrays.take(name, np.float64, (n_pairs,)) for name in ("slope", "intercept")
    )
    return model
