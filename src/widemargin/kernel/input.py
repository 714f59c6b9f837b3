"""What a kernel machine is given: arrays or a store, checked, and the gamma that suits them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_consistent_length, column_or_1d

from widemargin.errors import Parameter, ParameterError, scaling_advice
from widemargin.kernel.kernels import traits_of
from widemargin.kernel.moments import first_negative, is_constant, weighted_variance
from widemargin.multiclass import Targets
from widemargin.stored import Store, StoredMatrix, check_store_input
from widemargin.validation import (
    check_unscaled,
    check_X_y,
    column_name,
    column_ranges,
    sample_weights,
)


def read_data(machine, X, y, sample_weight) -> tuple[Any, Any, Targets, np.ndarray]:
    """Checked data, with its targets, and weights in which classes have no part."""
    if not isinstance(X, Store):
        rows = rows_of_objects(machine.kernel, X)
        X, y = check_X_y(machine, X, y) if rows is None else _check_objects(machine, rows, y)
        _check_kernel_input(machine, X)
        targets = machine._targets(X, y, sample_weight)
        given = sample_weights(sample_weight, X)[targets.present]
        return X, y, _with_class_weights(targets, given), given
    if traits_of(machine.kernel).pairwise:
        raise ParameterError("kernel", machine.kernel, "takes a kernel matrix, not a store.")
    check_store_input(machine, X, y, sample_weight)
    matrix, weight, targets = X.matrix(), X.weights(), machine._stored_targets(X)
    _check_kernel_input(machine, matrix)
    every = np.arange(len(matrix))
    targets = _with_class_weights(replace(targets, X=matrix, present=every), weight)
    return matrix, None, targets, weight


def rows_of_objects(kernel, X) -> np.ndarray | None:
    """Rows for a function of any objects (texts, series, graphs); None for a matrix or a frame."""
    is_matrix = sp.issparse(X) or hasattr(X, "columns") or isinstance(X, (Store, StoredMatrix))
    if not callable(kernel) or is_matrix or not hasattr(X, "__len__") or isinstance(X, str):
        return None
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "biuf":
        return array if array.ndim > 2 else None
    rows = np.empty(len(X), dtype=object)
    for number, row in enumerate(X):
        rows[number] = row
    return rows


def _check_objects(machine, rows: np.ndarray, y) -> tuple[np.ndarray, Any]:
    """Rows that only the user's function can check, and labels for them."""
    for name in ("n_features_in_", "feature_names_in_"):  # of another fit
        if hasattr(machine, name):
            delattr(machine, name)
    check = getattr(machine, "_check_numbers", partial(column_or_1d, warn=True))
    y = check(y)
    check_consistent_length(rows, y)
    return rows, y


def _with_class_weights(targets: Targets, given: np.ndarray) -> Targets:
    """With ``class_weight_``, which multiplies the weights that were given."""
    if targets.value is not None:  # there are no classes
        return targets
    by_class = np.empty(targets.coding.n_classes)
    by_class[targets.label[::-1]] = (targets.weight / given)[::-1]  # that of its first row stays
    return replace(targets, fitted=targets.fitted | {"class_weight_": by_class})


def _check_kernel_input(machine, X) -> None:
    traits = traits_of(machine.kernel)
    if traits.pairwise:
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix, got shape {X.shape}.")
        if not np.allclose(X, X.T, rtol=1e-5, atol=1e-8 * np.abs(X).max()):
            i, j = np.argwhere(~np.isclose(X, X.T, rtol=1e-5, atol=1e-8 * np.abs(X).max()))[0]
            raise ValueError(
                f"The precomputed kernel matrix is not symmetric: {X[i, j]:g} at ({i}, {j}), "
                f"{X[j, i]:g} at ({j}, {i})."
            )
        return
    negative = first_negative(X) if traits.non_negative else None
    if negative is not None:
        row, column = negative
        raise ParameterError(
            "kernel",
            machine.kernel,
            "needs non-negative data, but X is negative at row {row}, column {column}.",
            row=row,
            column=column_name(machine, column),
        )
    if traits.ours and not traits.non_negative:
        check_unscaled(machine, X, _scaling)


def _scaling(X) -> str:
    """How to scale the features of a fit."""
    if isinstance(X, StoredMatrix):
        return "before the store is built"
    return scaling_advice(sparse=sp.issparse(X))


def choose_gamma(machine, X, weight: np.ndarray) -> float:
    """The number that ``gamma`` stands for on this data."""
    if not isinstance(machine.gamma, str):
        return float(machine.gamma)
    if "gamma" not in traits_of(machine.kernel).parameters:
        return 1.0
    if machine.gamma == "auto":
        return 1.0 / X.shape[1]
    variance = weighted_variance(X, weight / weight.sum())
    gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if not (math.isfinite(gamma) and gamma > 0) or (variance == 0 and not is_constant(X)):
        low, high = column_ranges(X)
        size = np.maximum(-low, high)
        widest = int(np.argmax(size))
        raise ParameterError(
            "gamma",
            "scale",
            "divides by the variance of X, which double precision cannot tell from 0 or infinity: "
            "column {column} reaches {size:g}. Scale the features first, {advice}, or set {gamma} "
            "to a number.",
            column=column_name(machine, widest),
            size=size[widest],
            advice=_scaling(X),
            gamma=Parameter("gamma"),
        )
    return gamma
