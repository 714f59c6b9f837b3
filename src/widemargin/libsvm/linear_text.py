"""Parse LIBLINEAR's model files, checking every byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.budget import Budget
from widemargin.libsvm.head import Head, finite

_LOGISTIC = ("L2R_LR", "L2R_LR_DUAL", "L1R_LR")
_MARGINS = ("L2R_L2LOSS_SVC", "L2R_L2LOSS_SVC_DUAL", "L2R_L1LOSS_SVC_DUAL", "L1R_L2LOSS_SVC")
_TOGETHER = "MCSVM_CS"  # has weights for both of two classes
_REGRESSION = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
_NAMES = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")
_AROUND = 24  # memory for parsing / size of the text: a number has two characters or more


@dataclass(frozen=True)
class LinearText:
    """The contents of a model file; with two classes a positive value means the first."""

    solver: str
    labels: np.ndarray
    weights: np.ndarray  # (n_features, n_values)
    intercept: np.ndarray  # (n_values,)

    @property
    def is_logistic(self) -> bool:
        return self.solver in _LOGISTIC


def parse_linear(text: bytes, path: str, budget: Budget) -> LinearText:
    """Parse a model file; refuse models that are not classifiers."""
    budget.hold(_AROUND * len(text), "its text takes")
    head = Head(text, "w", _NAMES, path)
    solver = head.word("solver_type")
    if solver in (*_REGRESSION, "ONECLASS_SVM"):
        raise ValueError(f"{path!r}: a model of {solver}; only classifiers are supported.")
    if solver not in (*_LOGISTIC, *_MARGINS, _TOGETHER):
        raise head.fault("solver_type", "one of LIBLINEAR's classifiers")
    labels, n_features = head.labels(), head.integer("nr_feature", 1)
    bias = head.number("bias")
    n_values = 1 if len(labels) == 2 and solver != _TOGETHER else len(labels)
    found = finite(text[head.length :].split())
    n_rows = n_features + (bias >= 0)
    if found is None or len(found) != n_rows * n_values:
        raise ValueError(
            f"{path!r}: after w there must be {n_rows} x {n_values} finite numbers. It may be "
            "truncated."
        )
    weights = found.reshape(n_rows, n_values)
    intercept = bias * weights[-1] if bias >= 0 else np.zeros(n_values)
    return LinearText(solver, labels, weights[:n_features], intercept)
