"""Pack and unpack the parts of a saved pipeline before its machine."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin.persistence.container import Arrays, Fields
from widemargin.persistence.header import feature_names
from widemargin.persistence.pipeline import SCALERS, pack_scaler, unpack_scaler
from widemargin.persistence.table_encoder import pack_encoder, unpack_encoder
from widemargin.table_encoder import TableEncoder

PARTS = (TableEncoder, *SCALERS)
PART_NAMES = tuple(cls.__name__ for cls in PARTS)
_MOST_FEATURES = 2**31 - 1


def pack_part(part: Any) -> tuple[dict, dict[str, np.ndarray]]:
    """Pack a fitted part of a pipeline."""
    check_is_fitted(part)
    own, arrays = (pack_encoder if type(part) is TableEncoder else pack_scaler)(part)
    check_finite(type(part).__name__, arrays)
    return {"kind": type(part).__name__, **pack_features(part), "own": own}, arrays


def pack_steps(steps, pack) -> tuple[dict, dict[str, np.ndarray]]:
    """Pack the steps of a pipeline with ``pack``."""
    headers: list[dict] = []
    arrays: dict[str, np.ndarray] = {}
    for k, (name, step) in enumerate(steps):
        header, own = pack(step)
        headers.append({"name": name, **header})
        arrays |= {f"{k}/{key}": array for key, array in own.items()}
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
    own = fields.inner("own")
    names = feature_names(fields, d) if fields.has("feature_names") else None
    if kind == TableEncoder.__name__:
        part = unpack_encoder(own, arrays, d)
    else:
        part = unpack_scaler(kind, own, arrays, d)
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
