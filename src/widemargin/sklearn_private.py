"""All uses of scikit-learn's private interfaces: the one file that its next release can break.

Private functions, under names without an underscore, and fitted attributes that a model file has
to restore.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _get_feature_names as get_feature_names
from sklearn.utils.validation import _num_samples as count_samples

__all__ = [
    "calibrated_classifier",
    "check_feature_names_in",
    "check_sample_weight",
    "count_samples",
    "get_feature_names",
    "has_callbacks",
    "output_of",
    "restore_isotonic",
    "safe_indexing",
    "sigmoid_curve",
]


def has_callbacks(estimator) -> bool:
    """Whether the estimator has callbacks."""
    return bool(getattr(estimator, "_skl_callbacks", None))


def output_of(part) -> str:
    """Return the output that `set_output` configured."""
    return getattr(part, "_sklearn_output_config", {}).get("transform", "default")


# ------------------------------------------------------------------ calibration
# sklearn.calibration is imported lazily: that takes longer than a small fit.


def sigmoid_curve():
    """Return an unfitted curve from decision values to probabilities."""
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration()


def calibrated_classifier(fitted, curves: list, method: str):
    """Wrap a fitted model and its curves as `CalibratedClassifierCV` does."""
    from sklearn.calibration import _CalibratedClassifier

    return _CalibratedClassifier(fitted, curves, classes=fitted.classes_, method=method)


def restore_isotonic(curve, x: np.ndarray, y: np.ndarray) -> None:
    """Restore a fitted IsotonicRegression."""
    curve.X_min_, curve.X_max_, curve.increasing_ = x[0], x[-1], True
    curve.X_thresholds_, curve.y_thresholds_ = x, y
    curve._build_f(x, y)
