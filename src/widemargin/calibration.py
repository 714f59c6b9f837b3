"""Calibrate probabilities on out-of-fold decision values, as scikit-learn does.

A calibrated model is scikit-learn's ``CalibratedClassifierCV(estimator, ensemble=False)``: one
model of all rows, and for every class a curve from decision values to probabilities, fitted by
cross-validation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import label_binarize

from widemargin.sklearn_private import calibrated_classifier, sigmoid_curve

METHODS = ("sigmoid", "isotonic")
FOLDS = 5


def out_of_fold(
    unfitted, X, y, random_state: int | None = 0, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Return every row's decision value from a model fitted without it."""
    _, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        raise ValueError(
            "Probabilities need two rows or more of every class: one has a single row, which "
            "cross-validation cannot leave out."
        )
    folds = StratifiedKFold(min(FOLDS, int(counts.min())), shuffle=True, random_state=random_state)
    step = f"{unfitted.steps[-1][0]}__" if isinstance(unfitted, Pipeline) else ""
    params = {} if sample_weight is None else {f"{step}sample_weight": sample_weight}
    with config_context(enable_metadata_routing=False):  # the weights are for the machine only
        options = {"cv": folds, "method": "decision_function", "params": params}
        return cross_val_predict(unfitted, X, y, **options)


def calibrated(
    fitted, decisions: np.ndarray, y, method: str = "sigmoid", sample_weight=None
) -> CalibratedClassifierCV:
    """Calibrate a fitted model on given decisions, as CalibratedClassifierCV(ensemble=False) does.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> decisions = out_of_fold(AdditiveSVC(random_state=0), X, y)
    >>> model = calibrated(AdditiveSVC(random_state=0).fit(X, y), decisions, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """
    classes = fitted.classes_
    columns = decisions.reshape(len(decisions), -1)
    targets = label_binarize(y, classes=classes)  # one column for two classes, like decisions
    fit = {
        "sigmoid": sigmoid_curve,
        "isotonic": lambda: IsotonicRegression(out_of_bounds="clip"),
    }[method]
    curves = [fit().fit(d, t, sample_weight) for d, t in zip(columns.T, targets.T, strict=True)]
    return assembled(fitted, curves, method)


def with_probabilities(fitted, X, y, random_state: int | None = 0) -> CalibratedClassifierCV:
    """Calibrate a fitted model with sigmoids cross-validated on its training data."""
    unfitted = clone(fitted)
    machine = unfitted[-1] if isinstance(unfitted, Pipeline) else unfitted
    if "checkpoint" in machine.get_params():
        machine.set_params(checkpoint=None)  # the checkpoint belongs to the fit on all rows
    return calibrated(fitted, out_of_fold(unfitted, X, y, random_state), y)


def assembled(fitted, curves: list, method: str) -> CalibratedClassifierCV:
    """Return a fitted `CalibratedClassifierCV` of a model and its curves."""
    model = CalibratedClassifierCV(fitted, method=method, ensemble=False)
    model.classes_ = fitted.classes_
    model.calibrated_classifiers_ = [calibrated_classifier(fitted, curves, method)]
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(model, name, getattr(fitted, name))
    return model


def parts_of(model: CalibratedClassifierCV) -> tuple[Any, list]:
    """Return the model inside a calibrated one, and its curves."""
    if len(model.calibrated_classifiers_) != 1 or model.method not in METHODS:
        raise TypeError(
            "Of CalibratedClassifierCV only ensemble=False with method='sigmoid' or 'isotonic' "
            "can be used here: one model, and a curve for every class."
        )
    (own,) = model.calibrated_classifiers_
    return own.estimator, own.calibrators


def uncalibrated(model):
    """Return the model inside a calibrated one, or the model itself."""
    return parts_of(model)[0] if isinstance(model, CalibratedClassifierCV) else model
