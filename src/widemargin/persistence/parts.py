"""What may stand before a machine in a saved pipeline: each part to header and arrays, and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from widemargin.persistence.column_transformer import pack_columns, unpack_columns, width_after
from widemargin.persistence.container import Arrays, Fields
from widemargin.persistence.header import feature_names
from widemargin.persistence.pipeline import SCALERS, pack_scaler, unpack_scaler
from widemargin.persistence.preparation import (
    pack_encoder,
    pack_imputer,
    unpack_encoder,
    unpack_imputer,
)

SCALER_NAMES = tuple(cls.__name__ for cls in SCALERS)
_SIMPLE = (*SCALERS, OneHotEncoder, SimpleImputer)
_SIMPLE_NAMES = tuple(cls.__name__ for cls in _SIMPLE)
PARTS = (*_SIMPLE, ColumnTransformer)
PART_NAMES = tuple(cls.__name__ for cls in PARTS)
_MOST_FEATURES = 2**31 - 1


def pack_part(part: Any) -> tuple[dict, dict[str, np.ndarray]]:
    """A fitted part of a pipeline."""
    check_is_fitted(part)
    arrays: dict[str, np.ndarray] = {}
    if type(part) is ColumnTransformer:
        own, arrays = pack_columns(part, _pack_inner)
    elif type(part) is OneHotEncoder:
        own = pack_encoder(part)
    elif type(part) is SimpleImputer:
        own = pack_imputer(part)
    else:
        own, arrays = pack_scaler(part)
    check_finite(type(part).__name__, arrays)
    return {"kind": type(part).__name__, **pack_features(part), "own": own}, arrays


def _pack_inner(part: Any) -> tuple[dict, dict[str, np.ndarray]]:
    """A part of a ColumnTransformer: one of the simple ones, or a Pipeline of them."""
    steps = part.steps if type(part) is Pipeline else [("", part)]
    for _, step in steps:
        if type(step) not in _SIMPLE:
            raise TypeError(
                f"A saved ColumnTransformer is made of {', '.join(_SIMPLE_NAMES)}, Pipelines of "
                f"them, 'passthrough' and 'drop', not of {type(step).__name__}."
            )
    return pack_steps(steps, pack_part) if type(part) is Pipeline else pack_part(part)


def pack_steps(steps, pack) -> tuple[dict, dict[str, np.ndarray]]:
    """Steps of a pipeline, each of which ``pack`` packs."""
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
    """A part whose kind has been checked."""
    kind, d = fields.text("kind"), unpack_width(fields, arrays)
    own = fields.inner("own")
    names = feature_names(fields, d) if fields.has("feature_names") else None
    if kind == ColumnTransformer.__name__:
        part = unpack_columns(own, arrays, names, d, _unpack_inner)
    elif kind == OneHotEncoder.__name__:
        part = unpack_encoder(own, d)
    elif kind == SimpleImputer.__name__:
        part = unpack_imputer(own, d)
    else:
        part = unpack_scaler(kind, own, arrays, d)
    part.n_features_in_ = d
    if names is not None:
        part.feature_names_in_ = np.array(names, dtype=object)
    return part


def _unpack_inner(fields: Fields, arrays: Arrays) -> Any:
    if fields.text("kind", ("Pipeline", *_SIMPLE_NAMES)) != "Pipeline":
        return unpack_part(fields, arrays)
    steps = []
    for k, inner in enumerate(fields.inners("steps")):
        inner.text("kind", _SIMPLE_NAMES)
        steps.append((inner.text("name"), unpack_part(inner, arrays.inner(f"{k}/"))))
    return put_in_line(steps, fields)


def unpack_width(fields: Fields, arrays: Arrays) -> int:
    d = fields.integer("n_features", low=1, high=_MOST_FEATURES)
    arrays.budget.check(8 * d, f"a row of its {d} features takes")
    return d


def put_in_line(steps: list[tuple[str, Any]], fields: Fields) -> Pipeline:
    """A pipeline of steps each of which takes as many columns as the one before it makes."""
    fit = all(
        width_after(before) == after.n_features_in_ for (_, before), (_, after) in pairwise(steps)
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
