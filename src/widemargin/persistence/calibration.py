"""Pack and unpack what turns decision values into probabilities."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from widemargin.calibration import EXPONENTS, CalibratedSVC
from widemargin.persistence.container import Arrays, Fields


def pack_calibration(model: CalibratedSVC) -> tuple[dict, dict[str, np.ndarray]]:
    arrays = {"calibration/slope": model.slope_, "calibration/intercept": model.offset_}
    return {"exponent": model.exponent_}, arrays


def unpack_calibration(fitted, fields: Fields, arrays: Arrays) -> CalibratedSVC:
    """Unpack the calibration of a fitted model; return the calibrated model."""
    if not hasattr(fitted, "classes_"):
        raise ValueError(f"{fields.path!r}: {fields.where} is for classifiers.")
    n_pairs = len(fitted.classes_) * (len(fitted.classes_) - 1) // 2
    model = CalibratedSVC(clone(fitted))
    model.estimator_, model.exponent_ = fitted, fields.number("exponent")
    if not EXPONENTS[0] <= model.exponent_ <= EXPONENTS[1]:
        raise fields.fault("exponent", f"must be from {EXPONENTS[0]} to {EXPONENTS[1]}")
    model.slope_, model.offset_ = (
        arrays.take(name, np.float64, (n_pairs,)) for name in ("slope", "intercept")
    )
    return model
