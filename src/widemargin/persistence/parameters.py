"""Pack and unpack constructor parameters and class labels as JSON values."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from widemargin.additive.kernels import PowerMean
from widemargin.persistence.container import Fields, pack_number, unpack_number

_MOST_JOBS = 1024
_MOST_CHARACTERS = 1 << 26  # of text labels; NumPy stores each as long as the longest
_MOST_COLUMNS = 2**31
WHOLE_DTYPES = tuple(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))
_LABEL_DTYPES = ("bool", "float32", "float64", "str", "object", *WHOLE_DTYPES)
_LABEL_TYPES: dict[str, tuple[type, ...]] = {  # JSON types by dtype, without its number of bits
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "object": (str,),
    "str": (str,),
    "uint": (int,),
}


class MissingKernelError(ValueError):
    """A model needs its kernel function, and `load` did not get it."""


class NotStored:
    """Placeholder for a function that a model file names but cannot contain.

    A model with learned tables predicts without it; fitting again needs the function.
    """

    def __init__(self, name: str):
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<function {self.__name__}, not stored in the model file>"

    def __call__(self, *arguments):
        raise TypeError(
            f"The kernel function {self.__name__!r} is not in the model file (code is never stored "
            "or run). Pass it: load(path, kernel=function)."
        )


def pack_parameters(estimator) -> dict:
    """Return the constructor's parameters that are data."""
    given = estimator.get_params(deep=False)
    return {k: _pack(k, v) for k, v in given.items()}


def _pack(name: str, value):
    if isinstance(value, np.generic):
        value = value.item()
    if name == "checkpoint":
        return None  # a folder on this machine
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and _moderate(name, value):
        return value
    if isinstance(value, float):
        return pack_number(value)
    if isinstance(value, PowerMean):
        return {"power_mean": pack_number(value.p)}
    if callable(value):
        return {"function": getattr(value, "__name__", "function")}
    if name == "class_weight" and isinstance(value, dict):
        return {"weights": [[_pack("label", k), _pack("weight", v)] for k, v in value.items()]}
    if name in ("categorical_features", "date_features"):
        return {"columns": [_pack("column", item) for item in np.asarray(value).tolist()]}
    if name == "random_state":
        return None  # a generator has state
    raise TypeError(f"{name}={value!r} cannot be stored in a model file.")


def _moderate(name: str, value: int) -> bool:
    """Limit the number of threads in a file, and refuse integers that overflow."""
    return abs(value) <= (_MOST_JOBS if name == "n_jobs" else 2**63)


def unpack_parameters(cls: type, fields: Fields, kernel: Callable | None):
    """Build an estimator with these parameters; refuse unknown names, check ranges."""
    known = cls._get_param_names()  # type: ignore[attr-defined]
    unknown = sorted(set(fields.content) - set(known))
    if unknown:
        raise ValueError(f"{fields.path!r}: {cls.__name__} has no parameter {unknown[0]!r}.")
    estimator = cls(**{name: _unpack(fields, name) for name in fields.content})
    if kernel is not None:
        if not isinstance(estimator.kernel, NotStored):
            raise ValueError(
                f"{fields.path!r}: the kernel of this model is {estimator.kernel!r}; kernel= is "
                "for models trained with a function."
            )
        estimator.kernel = kernel
    try:
        with warnings.catch_warnings():  # the fit has already warned
            warnings.simplefilter("ignore")
            estimator._check_params()
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{fields.path!r}: {error}") from None
    return estimator


def _unpack(fields: Fields, name: str):
    value = fields.content[name]
    if name == "checkpoint" and value is not None:
        raise fields.fault(name, "null, because a file cannot choose where to write")
    if type(value) is int and not _moderate(name, value):
        raise fields.fault(name, "of moderate size")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        number = unpack_number(value)
        return value if number is None else number
    inner = fields.inner(name)
    kind = (name, *inner.content)
    if kind == ("kernel", "power_mean"):
        p = inner.number("power_mean", finite=False)
        if not p <= 0:
            raise inner.fault("power_mean", "at most 0")
        return PowerMean(p)
    if kind == ("kernel", "function"):
        return NotStored(inner.text("function")[:200])
    if kind == ("class_weight", "weights"):
        return dict(_pair(inner, item) for item in inner.items("weights"))
    if kind in (("categorical_features", "columns"), ("date_features", "columns")):
        return _columns(inner)
    raise fields.fault(name, "a valid value of a parameter")


def _columns(fields: Fields) -> list:
    """Parse columns given by name, position or mask."""
    items = fields.items("columns")
    if not all(type(item) is not int or abs(item) < _MOST_COLUMNS for item in items):
        raise fields.fault("columns", f"positions below {_MOST_COLUMNS}")
    return items


def _pair(fields: Fields, item) -> tuple:
    if not (isinstance(item, list) and len(item) == 2):
        raise fields.fault("weights", "pairs of a label and a weight")
    label, weight = item[0], unpack_number(item[1])
    if not isinstance(label, (bool, int, float, str)) or weight is None:
        raise fields.fault("weights", "pairs of a label and a weight")
    return label, weight


def pack_labels(classes: np.ndarray) -> dict:
    dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = classes.tolist()
    plain = all(isinstance(v, (bool, int, float, str)) for v in values)
    if dtype not in _LABEL_DTYPES or not plain:
        raise TypeError(f"Labels of type {classes.dtype} cannot be stored; use numbers or strings.")
    if dtype == "str" and _characters(values) > _MOST_CHARACTERS:
        raise ValueError("The class labels are too long to be stored.")
    return {"dtype": dtype, "values": values}


def _characters(values: list[str]) -> int:
    """Return the characters that NumPy stores: every text takes as much as the longest."""
    return len(values) * max(map(len, values), default=0)


def unpack_labels(fields: Fields) -> np.ndarray:
    """Parse two or more labels in ascending order."""
    dtype, values = fields.text("dtype", _LABEL_DTYPES), fields.items("values")
    kinds = _LABEL_TYPES[dtype.rstrip("0123456789")]
    if not all(type(v) in kinds for v in values):
        raise fields.fault("values", f"labels of type {dtype}")
    if dtype == "str" and _characters(values) > _MOST_CHARACTERS:
        raise fields.fault("values", "shorter labels, or fewer")
    try:
        with np.errstate(over="raise"):
            labels = np.array(values, dtype=dtype)
        ascending = len(labels) >= 2 and bool(np.all(labels[1:] > labels[:-1]))
    except (ValueError, TypeError, OverflowError, FloatingPointError):
        ascending = False
    if not ascending:
        raise fields.fault("values", "two or more different labels in ascending order")
    return labels
