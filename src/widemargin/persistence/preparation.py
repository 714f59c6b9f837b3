"""scikit-learn's OneHotEncoder and SimpleImputer to header fields, and back."""

from __future__ import annotations

import inspect
import math
from itertools import pairwise

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from widemargin.persistence.container import Fields, pack_number, unpack_number
from widemargin.persistence.parameters import WHOLE_DTYPES
from widemargin.sklearn_private import (
    imputer_dtypes,
    output_of,
    restore_imputer,
    restore_one_hot,
    set_output_of,
)

_NUMBERS = ("bool", "float32", "float64", *WHOLE_DTYPES)
_DTYPES = (*_NUMBERS, "str", "object")
OUTPUTS = ("default", "pandas", "polars")
_STRATEGIES = ("mean", "median", "most_frequent", "constant")
_UNKNOWN = ("error", "ignore", "warn")
_MOST_CHARACTERS = 1 << 26  # of texts that each take as much as the longest


def refuse_parameters(part, stored: tuple[str, ...]) -> None:
    """Raise TypeError where a parameter that a file cannot hold is not at its default."""
    given, signature = part.get_params(deep=False), inspect.signature(type(part)).parameters
    for name in sorted(set(given) - set(stored)):
        if given[name] is not signature[name].default and given[name] != signature[name].default:
            raise TypeError(
                f"A {type(part).__name__} with {name}={given[name]!r} cannot be stored in a model "
                "file."
            )


# ------------------------------------------------------------------ categories


def pack_encoder(encoder: OneHotEncoder) -> dict:
    refuse_parameters(encoder, ("sparse_output", "handle_unknown", "drop"))
    if encoder.handle_unknown not in _UNKNOWN or encoder.drop not in (None, "first", "if_binary"):
        raise TypeError(
            f"A OneHotEncoder with handle_unknown={encoder.handle_unknown!r} and "
            f"drop={encoder.drop!r} cannot be stored in a model file."
        )
    for found in encoder.categories_:
        if found.dtype == object and not all(type(v) is str for v in _known(found)):
            raise TypeError("Categories of mixed types cannot be stored; use numbers or text.")
    return {
        "sparse_output": bool(encoder.sparse_output),
        "handle_unknown": encoder.handle_unknown,
        **({} if encoder.drop is None else {"drop": encoder.drop}),
        "categories": [_pack_values(found) for found in encoder.categories_],
        "output": output_of(encoder),
    }


def unpack_encoder(fields: Fields, d: int) -> OneHotEncoder:
    encoder = OneHotEncoder(
        sparse_output=fields.flag("sparse_output"),
        handle_unknown=fields.text("handle_unknown", _UNKNOWN),
        drop=fields.text("drop", ("first", "if_binary")) if "drop" in fields.content else None,
    )
    set_output_of(encoder, fields.text("output", OUTPUTS))
    columns = fields.inners("categories")
    if len(columns) != d:
        raise fields.fault("categories", f"those of {d} columns")
    encoder.categories_ = [_ascending(column) for column in columns]
    restore_one_hot(encoder)
    return encoder


def _ascending(column: Fields) -> np.ndarray:
    """Categories as `fit` finds them: each once, in order, missing ones last.  What is not would
    send values to columns that are not there."""
    values = _unpack_values(column)
    known = _known(values)
    if values.dtype == object and not all(isinstance(v, str) for v in known):
        raise column.fault("values", "texts")
    missing = [v for v in values.tolist() if v is None or v != v]
    in_order = all(a < b for a, b in pairwise(known))
    ends = [repr(v) for v in values.tolist()[len(known) :]]
    usual = ends in ([], ["None"], ["nan"], ["None", "nan"]) and len(ends) == len(missing)
    if not len(values) or not in_order or not usual:
        raise column.fault("values", "categories in ascending order, missing ones last")
    return values


def _known(values: np.ndarray) -> list:
    """Those that are not missing."""
    return [v for v in values.tolist() if v is not None and v == v]


# ------------------------------------------------------------------ missing values


def pack_imputer(imputer: SimpleImputer) -> dict:
    refuse_parameters(
        imputer, ("missing_values", "strategy", "fill_value", "copy", "keep_empty_features")
    )
    if not isinstance(imputer.strategy, str):
        raise TypeError("A SimpleImputer whose strategy is a function cannot be stored.")
    fitted_to, filled_in = imputer_dtypes(imputer)
    return {
        "strategy": imputer.strategy,
        "missing_values": _pack_value(imputer.missing_values),
        "copy": bool(imputer.copy),
        "keep_empty_features": bool(imputer.keep_empty_features),
        "statistics": _pack_values(imputer.statistics_),
        "fit_dtype": fitted_to.name,
        "fill_dtype": filled_in.name,
        "output": output_of(imputer),
        **({} if imputer.fill_value is None else {"fill_value": _pack_value(imputer.fill_value)}),
    }


def unpack_imputer(fields: Fields, d: int) -> SimpleImputer:
    imputer = SimpleImputer(
        missing_values=_unpack_value(fields, "missing_values"),
        strategy=fields.text("strategy", _STRATEGIES),
        fill_value=_unpack_value(fields, "fill_value") if "fill_value" in fields.content else None,
        copy=fields.flag("copy"),
        keep_empty_features=fields.flag("keep_empty_features"),
    )
    set_output_of(imputer, fields.text("output", OUTPUTS))
    imputer.statistics_ = _unpack_values(fields.inner("statistics"))
    if len(imputer.statistics_) != d:
        raise fields.fault("statistics", f"those of {d} columns")
    names = (fields.text(name, (*_NUMBERS, "object")) for name in ("fit_dtype", "fill_dtype"))
    fitted_to, filled_in = map(np.dtype, names)
    texts = any(isinstance(value, str) for value in imputer.statistics_.tolist())
    if texts and fitted_to.kind != "O":
        raise fields.fault("statistics", "numbers, as the data had")
    restore_imputer(imputer, fitted_to, filled_in)
    return imputer


# ------------------------------------------------------------------ values


def _pack_values(values: np.ndarray) -> dict:
    """An array of numbers or texts, of which some may be missing."""
    dtype = "str" if values.dtype.kind == "U" else values.dtype.name
    if dtype not in _DTYPES:
        raise TypeError(f"Values of type {values.dtype} cannot be stored in a model file.")
    return {"dtype": dtype, "values": [_pack_value(v) for v in values.tolist()]}


def _pack_value(value):
    """Texts, numbers and None as they are; what JSON has no number for, in a list."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return [pack_number(value)]
    if value is None or type(value) in (str, bool, int, float):
        return value
    raise TypeError(f"{value!r} cannot be stored in a model file; use numbers or text.")


def _unpack_value(fields: Fields, name: str):
    if name not in fields.content:
        raise fields.fault(name, "there")
    return _unpacked(fields, name, fields.content.get(name))


def _unpacked(fields: Fields, name: str, value):
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        number = unpack_number(value[0])
        if number is not None:
            return number
    if value is None or type(value) in (str, bool, float):
        return value
    if type(value) is int and abs(value) <= 2**63:
        return value
    raise fields.fault(name, "text, numbers or null")


def _unpack_values(fields: Fields) -> np.ndarray:
    dtype = fields.text("dtype", _DTYPES)
    values = [_unpacked(fields, "values", v) for v in fields.items("values")]
    kinds: tuple[type, ...] = (int, float, bool)
    if dtype not in _NUMBERS:
        kinds = (str,) if dtype == "str" else (str, *kinds)
    missing = dtype in ("object", "float32", "float64")
    for value in values:
        if not (type(value) in kinds or (missing and (value is None or value != value))):
            raise fields.fault("values", f"values of type {dtype}")
    if dtype == "str" and len(values) * max(map(len, values), default=0) > _MOST_CHARACTERS:
        raise fields.fault("values", "shorter texts, or fewer")
    try:
        with np.errstate(over="raise"):
            return np.array(values, dtype=dtype)
    except (ValueError, TypeError, OverflowError, FloatingPointError):
        raise fields.fault("values", f"values of type {dtype}") from None
