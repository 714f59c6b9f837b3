"""scikit-learn's ColumnTransformer, whose parts are steps of pipelines too, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from widemargin.persistence.container import Arrays, Fields
from widemargin.persistence.header import feature_names
from widemargin.persistence.preparation import (
    OUTPUTS,
    refuse_parameters,
)
from widemargin.sklearn_private import (
    columns_of,
    one_hot_width,
    output_of,
    restore_columns,
    set_output_of,
)

Pack = Callable[[Any], tuple[dict, dict[str, np.ndarray]]]
Unpack = Callable[[Fields, Arrays], Any]
_WORDS = ("passthrough", "drop")
_REST = "remainder"
_MOST_JOBS = 1024
# What ColumnTransformer makes of "passthrough".
_AS_IT_IS: dict[str, Any] = {
    "accept_sparse": True,
    "check_inverse": False,
    "feature_names_out": "one-to-one",
}


def pack_columns(columns: ColumnTransformer, pack: Pack) -> tuple[dict, dict[str, np.ndarray]]:
    """The parts by name; ``pack`` is how a part goes to header and arrays."""
    refuse_parameters(columns, ("transformers", "remainder", "sparse_threshold", "n_jobs",
                                "verbose", "verbose_feature_names_out"))  # fmt: skip
    if not isinstance(columns.verbose_feature_names_out, bool):
        raise TypeError("verbose_feature_names_out must be True or False to be stored.")
    if not (columns.n_jobs is None or abs(columns.n_jobs) <= _MOST_JOBS):
        raise TypeError(f"n_jobs={columns.n_jobs!r} cannot be stored in a model file.")
    parts: list[dict] = []
    arrays: dict[str, np.ndarray] = {}
    for k, (name, part, of) in enumerate(columns.transformers_):
        chosen = _chosen(columns, name, of)
        header, own = _pack_part(part, pack)
        parts.append({"name": name, "columns": chosen, **header})
        arrays |= {f"{k}/{key}": array for key, array in own.items()}
    has_rest = bool(columns.transformers_) and columns.transformers_[-1][0] == _REST
    header = {
        "parts": parts,
        **({} if has_rest else {_REST: _word(columns.remainder)}),
        "sparse_threshold": float(columns.sparse_threshold),
        **({} if columns.n_jobs is None else {"n_jobs": columns.n_jobs}),
        "verbose": bool(columns.verbose),
        "verbose_feature_names_out": columns.verbose_feature_names_out,
        "sparse_output": bool(columns.sparse_output_),
        "output": output_of(columns),
    }
    return header, arrays


def _word(remainder) -> str:
    if not isinstance(remainder, str):
        raise TypeError("A ColumnTransformer with a remainder of no columns cannot be stored.")
    return remainder


def _pack_part(part, pack: Pack) -> tuple[dict, dict[str, np.ndarray]]:
    if isinstance(part, str):
        return {"kind": part}, {}
    if type(part) is FunctionTransformer and part.func is None:
        names = getattr(part, "feature_names_in_", None)
        known = {} if names is None else {"feature_names": [str(name) for name in names]}
        return {"kind": "passthrough", **known, "output": output_of(part)}, {}
    return pack(part)


def _chosen(columns: ColumnTransformer, name: str, of) -> list:
    """Names, or numbers for all other ways to choose columns."""
    if np.isscalar(of):
        raise TypeError(f"{name!r} takes one column as a vector; write [{of!r}] to have it stored.")
    numbers = columns_of(columns, name)
    if not numbers:
        raise TypeError(f"The part {name!r} of a ColumnTransformer has no columns; leave it out.")
    by_name = not isinstance(of, slice) and all(isinstance(column, str) for column in of)
    return [str(column) for column in of] if by_name else numbers


def unpack_columns(own: Fields, arrays: Arrays, names: list | None, d: int, unpack: Unpack):
    """``unpack`` is how a part comes from header and arrays; ``names`` are those of d columns."""
    inners = own.inners("parts")
    chosen = [inner.items("columns") for inner in inners]
    if not inners or sum(map(len, chosen)) < d:
        raise own.fault("parts", f"parts that have all of {d} columns")
    parts: list[tuple[str, Any, list]] = []
    index: dict[str, list[int]] = {}
    for k, (inner, of) in enumerate(zip(inners, chosen, strict=True)):
        name = inner.text("name")
        if name in index or _REST in index:
            raise own.fault("parts", "parts of different names, the remainder last")
        index[name] = _numbers(inner, of, names, d)
        part = _unpack_part(inner, arrays.inner(f"{k}/"), len(of), unpack)
        called = None if names is None else [names[j] for j in index[name]]
        if not isinstance(part, str) and _known_names(part) != called:
            raise inner.fault("columns", "those whose names the part knows")
        parts.append((name, part, of))
    rest = sorted(set(range(d)) - {j for name in index if name != _REST for j in index[name]})
    if index.setdefault(_REST, []) != rest:
        raise own.fault("parts", "parts that have all columns, the remainder those of no other")
    return _put_together(own, parts, index)


def _known_names(part) -> list[str] | None:
    names = getattr(part, "feature_names_in_", None)
    return None if names is None else list(names)


def _numbers(inner: Fields, of: list, names: list | None, d: int) -> list[int]:
    """Columns by number, each once."""
    if all(type(column) is int and 0 <= column < d for column in of):
        numbers = of
    elif names is not None and all(isinstance(c, str) and c in names for c in of):
        place = {name: j for j, name in enumerate(names)}
        numbers = [place[column] for column in of]
    else:
        raise inner.fault("columns", f"names, or numbers below {d}")
    if not numbers or len(set(numbers)) < len(numbers):
        raise inner.fault("columns", "columns, each once")
    return list(numbers)


def _unpack_part(inner: Fields, arrays: Arrays, n: int, unpack: Unpack):
    """A part that takes n columns."""
    if inner.content.get("kind") == "drop":
        return "drop"
    if inner.content.get("kind") == "passthrough":
        part = FunctionTransformer(**_AS_IT_IS)
        part.set_output(transform=inner.text("output", OUTPUTS))
        part.n_features_in_ = n
        if inner.has("feature_names"):
            part.feature_names_in_ = np.array(feature_names(inner, n), dtype=object)
        return part
    part = unpack(inner, arrays)
    if part.n_features_in_ != n:
        raise inner.fault("columns", f"the {part.n_features_in_} that the part takes")
    return part


def _put_together(own: Fields, parts: list, index: dict[str, list[int]]) -> ColumnTransformer:
    """As `fit` leaves it."""
    given = [(name, _unfitted(part), of) for name, part, of in parts if name != _REST]
    rest = next(((part, of) for name, part, of in parts if name == _REST), None)
    if rest is not None and _REST in own.content:
        raise own.fault(_REST, "left out where a part has the remaining columns")
    remainder = own.text(_REST, _WORDS) if rest is None else _unfitted(rest[0])
    threshold, jobs = own.number("sparse_threshold"), None
    if not 0 <= threshold <= 1:
        raise own.fault("sparse_threshold", "from 0 to 1")
    if "n_jobs" in own.content:
        jobs = own.integer("n_jobs", low=-_MOST_JOBS, high=_MOST_JOBS)
    columns = ColumnTransformer(
        given,
        remainder=remainder,
        sparse_threshold=threshold,
        n_jobs=jobs,
        verbose=own.flag("verbose"),
        verbose_feature_names_out=own.flag("verbose_feature_names_out"),
    )
    set_output_of(columns, own.text("output", OUTPUTS))
    columns.transformers_ = parts
    of_rest = (_REST, remainder, [] if rest is None else rest[1])
    restore_columns(columns, [of for *_, of in given], index, of_rest)
    columns.sparse_output_ = own.flag("sparse_output")
    columns.output_indices_ = _output_indices(parts)
    return columns


def _unfitted(part):
    if isinstance(part, str):
        return part
    return "passthrough" if isinstance(part, FunctionTransformer) else clone(part)


def _output_indices(parts: list) -> dict[str, slice]:
    """Where the output of each part stands among all."""
    found, begin = {}, 0
    for name, part, _ in parts:
        if part != "drop":
            found[name] = slice(begin, begin + width_after(part))
            begin = found[name].stop
    nothing = {name: slice(0, 0) for name in (*(name for name, *_ in parts), _REST)}
    return found | {name: empty for name, empty in nothing.items() if name not in found}


def width_after(part) -> int:
    """How many columns a fitted part makes."""
    if isinstance(part, Pipeline):
        return width_after(part[-1])
    if isinstance(part, ColumnTransformer):
        return max(place.stop for place in part.output_indices_.values())
    if isinstance(part, OneHotEncoder):
        return one_hot_width(part)
    if isinstance(part, SimpleImputer) and not (
        part.keep_empty_features or part.strategy == "constant"
    ):
        return sum(value == value for value in part.statistics_.tolist())
    return part.n_features_in_
