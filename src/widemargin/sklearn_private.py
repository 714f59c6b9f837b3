"""What scikit-learn has and does not promise to keep: the one file that its next release can break.

Functions that begin with an underscore there, by names without one; and attributes that `fit`
leaves and that a model file has to bring back.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _get_feature_names as get_feature_names

__all__ = [
    "calibrated_classifier",
    "check_feature_names_in",
    "check_sample_weight",
    "get_feature_names",
    "has_callbacks",
    "output_of",
    "restore_isotonic",
    "safe_indexing",
    "sigmoid_curve",
]


def has_callbacks(estimator) -> bool:
    """Whether `set_callbacks` has set any."""
    return bool(getattr(estimator, "_skl_callbacks", None))


def output_of(part) -> str:
    """What `set_output` has set."""
    return getattr(part, "_sklearn_output_config", {}).get("transform", "default")


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
