"""What scikit-learn has and does not promise to keep: the one file that its next release can break.

Functions that begin with an underscore there, by names without one; and attributes that `fit`
leaves and that a model file has to bring back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _get_feature_names as get_feature_names

__all__ = [
    "calibrated_classifier",
    "check_feature_names_in",
    "check_sample_weight",
    "columns_of",
    "get_feature_names",
    "has_callbacks",
    "imputer_dtypes",
    "one_hot_width",
    "output_of",
    "restore_columns",
    "restore_imputer",
    "restore_isotonic",
    "restore_one_hot",
    "safe_indexing",
    "set_output_of",
    "sigmoid_curve",
]


def has_callbacks(estimator) -> bool:
    """Whether `set_callbacks` has set any."""
    return bool(getattr(estimator, "_skl_callbacks", None))


def output_of(part) -> str:
    """What `set_output` has set."""
    return getattr(part, "_sklearn_output_config", {}).get("transform", "default")


def set_output_of(part, output: str) -> None:
    """As `set_output`, but of this part alone, not of those within."""
    if output != "default":
        part._sklearn_output_config = {"transform": output}


# ------------------------------------------------------------------ calibration
# sklearn.calibration is imported where it is needed: it takes longer than the rest of a fit.


def sigmoid_curve():
    """From decision values to probabilities, not fitted."""
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration()


def calibrated_classifier(fitted, curves: list, method: str):
    """A fitted model with its curves, as `CalibratedClassifierCV` keeps it."""
    from sklearn.calibration import _CalibratedClassifier

    return _CalibratedClassifier(fitted, curves, classes=fitted.classes_, method=method)


def restore_isotonic(curve, x: np.ndarray, y: np.ndarray) -> None:
    """An IsotonicRegression as `fit` leaves it."""
    curve.X_min_, curve.X_max_, curve.increasing_ = x[0], x[-1], True
    curve.X_thresholds_, curve.y_thresholds_ = x, y
    curve._build_f(x, y)


# ------------------------------------------------------------------ parts before a machine


def restore_one_hot(encoder) -> None:
    """A OneHotEncoder with ``categories_`` as `fit` leaves it."""
    encoder._infrequent_enabled = False
    encoder._set_drop_idx()
    encoder._n_features_outs = encoder._compute_n_features_outs()


def one_hot_width(encoder) -> int:
    """How many columns it makes."""
    return sum(encoder._n_features_outs)


def imputer_dtypes(imputer) -> tuple[np.dtype, np.dtype]:
    """Of the data that it was fitted to, and of what it fills in."""
    return imputer._fit_dtype, imputer._fill_dtype


def restore_imputer(imputer, fitted_to: np.dtype, filled_in: np.dtype) -> None:
    """A SimpleImputer with ``statistics_`` as `fit` leaves it."""
    imputer._fit_dtype, imputer._fill_dtype = fitted_to, filled_in
    imputer.indicator_ = None


def columns_of(columns, part: str) -> list[int]:
    """The numbers of the columns that a part of a ColumnTransformer takes."""
    return [int(j) for j in columns._transformer_to_input_indices[part]]


def restore_columns(
    columns, chosen: Sequence, index: dict[str, list[int]], remainder: tuple[str, Any, Any]
) -> None:
    """A ColumnTransformer with ``transformers_`` as `fit` leaves it.

    ``chosen`` are the columns of each part as they were given, ``index`` their numbers.
    """
    columns._columns = chosen
    columns._transformer_to_input_indices = index
    columns._remainder = remainder
