"""Check parameters and data; messages say what is wrong, where, and what to do."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight, get_tags
from sklearn.utils.validation import validate_data

from widemargin.categories import is_missing
from widemargin.errors import (
    Feature,
    Message,
    ParameterError,
    UnscaledWarning,
    not_finite,
    quoted,
    warn_user,
)
from widemargin.sklearn_private import check_sample_weight

UNSCALED_RATIO = 100
_ROWS_AT_A_TIME = 4096
_MOST_FEATURES = (1 << 32) - 1


def check_choice(name: str, value, choices, more: str = "") -> None:
    """Raise unless ``value`` is one of ``choices``; ``more`` ends the message."""
    known = value in choices if isinstance(value, str) else any(value is c for c in choices)
    if not known:
        listed = ", ".join(repr(c) for c in choices)
        one_of = "one of " * (len(choices) > 1)
        raise ParameterError(name, value, f"is not known. Use {one_of}{listed}.{more}")


# Kernels by machine, for the messages of the other machine.
KERNELS_ELSEWHERE = {
    "AdditiveSVC": ("intersection", "chi2", "hellinger", "jensen_shannon", "linear"),
    "KernelSVC": ("linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "precomputed"),
}


def machine_of_kernel(kernel) -> str:
    """Return a sentence on the machine with a kernel of this name, after a space; or ""."""
    for machine, kernels in KERNELS_ELSEWHERE.items():
        if isinstance(kernel, str) and kernel in kernels:
            return f" {machine}({kernel!r}) has it."
    return ""


def check_number(
    name, value, *, low=None, high=None, above=None, integer=False, finite=False
) -> None:
    """Raise unless ``value`` is a number with low <= value <= high and value > above."""
    plain = type(value) is int or (type(value) is float and not integer)
    # `isinstance` of these classes is slow, so it is only for other types.
    kind = numbers.Integral if integer else numbers.Real
    if not plain and (not isinstance(value, kind) or isinstance(value, (bool, np.bool_))):
        wanted = "an integer" if integer else "a number"
        raise TypeError(f"{name} must be {wanted}, got {value!r}.")
    bad = (
        value != value
        or (finite and not math.isfinite(value))
        or (low is not None and value < low)
        or (high is not None and value > high)
        or (above is not None and value <= above)
    )
    if bad:
        bounds = ["finite"] if finite or value != value else []
        bounds += [f"at least {low}"] if low is not None else []
        bounds += [f"at most {high}"] if high is not None else []
        bounds += [f"greater than {above}"] if above is not None else []
        reason = f"is out of range: it must be {' and '.join(bounds)}."
        raise ParameterError(name, value, reason)


def check_bool(name: str, value) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def check_n_jobs(value) -> None:
    if value is not None:
        check_number("n_jobs", value, integer=True)
        if value == 0:
            raise ValueError("n_jobs=0 is out of range: use None, a positive number, or -1.")


def check_max_seconds(value) -> None:
    if value is not None:
        check_number("max_seconds", value, above=0)


def check_number_or_auto(name, value, **bounds) -> None:
    """Raise unless ``value`` is a number within bounds or the string "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    else:
        check_number(name, value, **bounds)


def _options(estimator) -> dict:
    sparse = "csr" if get_tags(estimator).input_tags.sparse else False
    return {"accept_sparse": sparse, "dtype": "numeric", "ensure_all_finite": False, "order": None}


def check_X(estimator, X, *, reset: bool):
    """Check X like scikit-learn, without a float64 copy; locate non-finite values."""
    if not _is_plain(estimator, X, None if reset else estimator.n_features_in_):
        check_sparse(X)
        with naming_columns(X):
            X = validate_data(estimator, X, reset=reset, **_options(estimator))
            _check_numbers(X)
    elif reset:
        estimator.n_features_in_ = X.shape[1]
    check_finite(estimator, X)
    return canonical(X)


def check_X_y(estimator, X, y):
    """Check training data like `check_X`; y of a regressor is one column of numbers or several."""
    given, options, kinds = y, _options(estimator), "biuU"  # that can only be classes
    if hasattr(estimator, "_check_numbers") and y is not None:
        y, kinds = estimator._check_numbers(y), "f"
        options["multi_output"] = True
    if _is_plain(estimator, X) and _is_plain_y(y, X, kinds):
        estimator.n_features_in_ = X.shape[1]
    else:
        check_sparse(X)
        with naming_columns(X):
            X, y = validate_data(estimator, X, y, **options)
            _check_numbers(X)
    check_finite(estimator, X)
    _remember_label(estimator, given)
    return canonical(X), y


def _is_plain(estimator, X, n_features: int | None = None) -> bool:
    """Whether X is an array that scikit-learn's checks would not change.

    Those checks look for data frames of every kind, which takes longer than a small fit.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype.kind in "biuf"
        and n_features in (None, X.shape[1])
        and not hasattr(estimator, "feature_names_in_")  # missing names cause a warning
    )


def _is_plain_y(y, X: np.ndarray, kinds: str) -> bool:
    """Whether y is an array of targets of these kinds."""
    return type(y) is np.ndarray and y.shape == X.shape[:1] and y.dtype.kind in kinds


def _remember_label(estimator, y) -> None:
    """Store the name of the labels' column, as scikit-learn stores those of X."""
    name = getattr(y, "name", None)
    if isinstance(name, str) and name:
        estimator.label_name_ = name
    elif hasattr(estimator, "label_name_"):
        del estimator.label_name_


def column_name(estimator, column: int) -> str | Feature:
    """Name a column in a message by the data frame's name or its number."""
    names = getattr(estimator, "feature_names_in_", None)
    return Feature(column) if names is None else repr(str(names[column]))


@contextmanager
def naming_columns(X) -> Iterator[None]:
    """Refuse columns without numbers by name: times at once, text if it cannot be parsed."""
    kinds = _kinds_of_columns(X)
    times = [column for column, is_time in kinds.items() if is_time]
    if times:
        raise ValueError(
            f"X holds dates or times in {_columns(times)}. Turn them into numbers, for example "
            "with the parameter date_features of widemargin.TableEncoder, or leave them out."
        )
    try:
        yield
    except (ValueError, TypeError):
        bad = [column for column in kinds if _is_no_number(X, column)]
        unclear = [column for column in kinds if _has_na_object(X, column)]
        if not bad and unclear:
            where = "" if unclear == [None] else f" in {_columns(unclear)}"
            raise ValueError(
                f"X holds pandas' NA among objects{where}. Turn them into "
                "numbers that may be missing, for example with astype('Float64') in a data frame, "
                "or put numpy.nan in its place."
            ) from None
        if not bad:
            raise
        raise ValueError(
            f"X holds text or other objects in {_columns(bad)}. Turn them into numbers first, "
            "for example with widemargin.TableEncoder, or leave them out."
        ) from None


def _check_numbers(X) -> None:
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, not {X.dtype}.")


def _kinds_of_columns(X) -> dict:
    """Map each column of a frame to whether it holds times; an array has the key None."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return dict(zip(X.columns, map(_is_time, X.dtypes), strict=True))
    if hasattr(X, "schema") and hasattr(X, "column_names"):  # of pyarrow
        from pyarrow import types

        return {field.name: types.is_temporal(field.type) for field in X.schema}
    return {None: _is_time(X.dtype)} if isinstance(X, np.ndarray) else {}


def _is_time(dtype) -> bool:
    if hasattr(dtype, "is_temporal"):  # of polars
        return dtype.is_temporal()
    return getattr(dtype, "kind", "") in ("M", "m")


def _is_no_number(X, column) -> bool:
    if column is None:
        return False  # the error names the type of a single array
    values = np.asarray(X[column])
    if values.dtype.kind not in "OSUT" or values.ndim != 1:
        return False
    present = values[[not is_missing(value) for value in values.tolist()]]
    try:
        present.astype(np.float64)
    except (ValueError, TypeError):
        return True
    return False


def _has_na_object(X, column) -> bool:
    """Whether objects include pandas' NA, which NumPy cannot convert."""
    values = X if column is None else np.asarray(X[column])
    return values.dtype == object and any(type(v).__name__ == "NAType" for v in values.flat)


def _columns(columns: list, most: int = 10) -> str:
    if columns == [None]:
        return "all of its columns"
    noun = "column" if len(columns) == 1 else "columns"
    return f"{noun} {quoted(columns, most)}"


def canonical(X):
    """Return X if its sparse rows are sorted without duplicates, else a copy that is.

    SciPy would sort in place (to count, or to find the largest value), in the caller's arrays,
    which may be read-only.
    """
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def sample_weights(sample_weight, X, y=None, class_weight=None) -> np.ndarray:
    """Return the weight of each sample times that of its class; 0 means absent."""
    weight = np.ones(X.shape[0])
    if sample_weight is not None:
        weight = check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True, ensure_same_device=False
        )
    if class_weight is None:
        return weight
    present = weight > 0  # classes without weight do not count for "balanced"
    y = np.asarray(y)[present]
    classes, label = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str):
        more = " Or give weights in a dict, by class."
        check_choice("class_weight", class_weight, ("balanced",), more)
        by_class = compute_class_weight(
            class_weight, classes=classes, y=y, sample_weight=weight[present]
        )
    else:  # scikit-learn would match the text "1" with a number
        by_class = _weights_by_name(class_weight, classes)
    for c, w in zip(classes.tolist(), by_class, strict=True):
        if not (np.isfinite(w) and w >= 0):
            raise ValueError(f"class_weight of class {c!r} must be finite and not negative: {w:g}.")
    weight = weight.copy()  # may be the caller's array
    weight[present] *= by_class[label]
    return weight


def _weights_by_name(class_weight: dict, classes: np.ndarray) -> np.ndarray:
    """Return weights by class, 1 by default; refuse unknown keys if a class has no weight."""
    if not isinstance(class_weight, dict):
        raise ParameterError("class_weight", class_weight, 'must be a dict, "balanced" or None.')
    labels = classes.tolist()
    missing = [c for c in labels if c not in class_weight]
    unknown = [c for c in class_weight if c not in labels]
    if missing and unknown:
        raise ValueError(
            f"class_weight has key {unknown[0]!r}, which is not a class in y; class "
            f"{missing[0]!r} has no weight."
        )
    return np.array([class_weight.get(c, 1.0) for c in labels], dtype=np.float64)


def check_unscaled(estimator, X, way_out: Callable[[Any], str]) -> None:
    """Warn if one feature's range dominates distances; ``way_out(X)`` says how to scale."""
    if X.shape[1] < 2:
        return
    low, high = column_ranges(X)
    with np.errstate(over="ignore"):
        spread = high - low
    if spread.max() <= UNSCALED_RATIO * spread.min():
        return
    typical = median(spread[spread > 0])
    widest = int(np.argmax(spread))
    if spread[widest] <= UNSCALED_RATIO * typical:
        return
    message = Message(
        "Feature {name} ranges from {low:g} to {high:g}, {ratio} times as wide as the median "
        "feature or more, and will outweigh the others. Scale the features first, {way_out}.",
        name=column_name(estimator, widest),
        low=low[widest],
        high=high[widest],
        ratio=UNSCALED_RATIO,
        way_out=way_out(X),
    )
    warn_user(message, UnscaledWarning)


def check_sums(C: float, weight: np.ndarray, largest: float, unit: float = 1.0) -> None:
    """Refuse problems outside double precision: a'Qa with all variables at their bounds, and the
    reciprocals of the bounds.

    ``largest`` is the largest kernel value, ``unit`` that of C.
    """
    if C / unit * weight.min(where=weight > 0, initial=1.0) < np.finfo(np.float64).tiny:
        reason = "is too small for these sample weights and kernel values. Increase either of them."
        raise ParameterError("C", C, reason)
    with np.errstate(over="ignore"):
        total = float(C) / float(unit) * float(weight.sum())
    if not math.isfinite(total * total * max(1.0, float(largest)) * 1e8):
        raise ParameterError(
            "C",
            C,
            "is too large for these sample weights and kernel values: the objective overflows. "
            "Decrease it, the weights, or the scale of the kernel.",
        )


def median(values: np.ndarray) -> float:
    """Return the median, 0 for no values; much faster than NumPy's for few values."""
    n = len(values)
    if n == 0:
        return 0.0
    ordered = np.partition(values, ((n - 1) // 2, n // 2))
    return float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2)


def weighted_quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """Return a value with at most this share of the weight below it; the middle of two."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    at = np.searchsorted(total, share * total[-1] * np.array([1 - 1e-12, 1 + 1e-12]))
    return float(values[order[np.minimum(at, len(order) - 1)]].mean())


def column_ranges(X) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest value of each column, absent zeros included."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return low.astype(np.float64), high.astype(np.float64)


def check_sparse(X) -> None:
    """Check indices and row pointers of a sparse matrix, which compiled code trusts."""
    if not sp.issparse(X):
        return
    if max(X.shape) > _MOST_FEATURES:
        raise ValueError(f"X has shape {X.shape}: more than 2^32 - 1 rows or features.")
    if X.format == "coo":
        for at, n, name in zip((X.row, X.col), X.shape, ("row", "column"), strict=True):
            if len(at) and (at.min() < 0 or at.max() >= n):
                bad = at[(at < 0) | (at >= n)][0]
                raise ValueError(f"Sparse input: {name} index {bad} is out of range for {X.shape}.")
    if X.format not in ("csr", "csc"):
        return
    n_major, n_minor = X.shape if X.format == "csr" else X.shape[::-1]
    major, minor = ("row", "column") if X.format == "csr" else ("column", "row")
    pointers = X.indptr
    ascending = len(pointers) == n_major + 1 and pointers[0] == 0 and np.all(np.diff(pointers) >= 0)
    if not ascending or pointers[-1] > min(len(X.indices), len(X.data)):
        raise ValueError(
            f"Sparse input: indptr must ascend from 0 to the number of {major} entries."
        )
    used = X.indices[: pointers[-1]]
    if len(used) and (used.min() < 0 or used.max() >= n_minor):
        at = int(np.flatnonzero((used < 0) | (used >= n_minor))[0])
        where = int(np.searchsorted(pointers, at, side="right") - 1)
        raise ValueError(
            f"Sparse input: {major} {where} has {minor} index {used[at]}, out of range for shape "
            f"{X.shape}."
        )


def check_finite(estimator, X) -> None:
    """Raise ValueError with the place of the first infinity, or of NaN unless allowed."""
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return
    for begin in range(0, len(values), _ROWS_AT_A_TIME):
        part = values[begin : begin + _ROWS_AT_A_TIME]
        finite = np.isfinite(part)
        if not finite.all() and get_tags(estimator).input_tags.allow_nan:
            finite |= np.isnan(part)
        if finite.all():
            continue
        at = np.argwhere(~finite)[0]
        if sp.issparse(X):
            k = begin + int(at[0])
            row, column = int(np.searchsorted(X.indptr, k, side="right") - 1), int(X.indices[k])
        else:
            row, column = begin + int(at[0]), int(at[1])
        raise ValueError(not_finite(part[tuple(at)], row, column_name(estimator, column)))
