"""All uses of scikit-learn's private interfaces: the one file that its next release can break.

Private functions, under names without an underscore, and fitted attributes that a model file has
to restore.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _get_feature_names as get_feature_names
from sklearn.utils.validation import _num_samples as count_samples

__all__ = [
    "callbacks_of",
    "check_feature_names_in",
    "check_sample_weight",
    "count_samples",
    "get_feature_names",
    "output_of",
    "safe_indexing",
    "safe_split",
    "sigmoid_of",
]


def callbacks_of(estimator) -> list:
    """Return the estimator's callbacks."""
    return list(getattr(estimator, "_skl_callbacks", None) or [])


def output_of(part) -> str:
    """Return the output that `set_output` configured."""
    return getattr(part, "_sklearn_output_config", {}).get("transform", "default")


def sigmoid_of(values: np.ndarray, truth: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Fit Platt's slope and offset to decision values.

    sklearn.calibration is imported here: that takes longer than a small fit.
    """
    from sklearn.calibration import _sigmoid_calibration

    return _sigmoid_calibration(values, truth, weight)
