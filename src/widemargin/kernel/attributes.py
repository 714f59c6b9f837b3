"""What scikit-learn's `SVC` calls the parts of a fitted model, in its order and with its signs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.divide import FitState
from widemargin.kernel.linear import LinearModel
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.multiclass import Coding, Targets, every_pair

# Parameters of others that our machines do not have, and what to write instead.
INSTEAD = {
    "loss": "Its loss is the epsilon-insensitive one; AdditiveSVR has the squared one too.",
    "probability": "For probabilities fit widemargin.CalibratedSVC(KernelSVC(...)).",
    "shrinking": "Leave it out: a fit always shrinks, and its result does not depend on that.",
}


def refusing_others(init: Callable) -> Callable:
    """A constructor that refuses parameters of others, with what to write instead."""

    @wraps(init)
    def checked(self, *given, **named) -> None:
        for name in INSTEAD.keys() & named.keys():
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}. {INSTEAD[name]}")
        init(self, *given, **named)

    return checked


def iterations(problems: list[Variables], state: FitState, coding: Coding) -> np.ndarray:
    """Blocks of each output; of an early model, those of the slowest."""
    n_iter = np.full(coding.n_outputs, max(state.n_iter, 1))
    for variables, solution in zip(problems, state.solutions, strict=False):
        n_iter[variables.output] = max(solution.n_iter, 1)
    return n_iter


def coefficients(
    targets: Targets, problems: list[Variables], alphas: list[np.ndarray], support: np.ndarray
) -> Coefficients:
    """Of the support vectors, which are sorted by class where pairs of classes vote."""
    coding, label, votes = targets.coding, targets.label, targets.coding.votes
    place = np.zeros(len(label), dtype=np.int64)
    place[support] = np.arange(len(support))
    values = np.zeros((len(support), coding.n_classes - 1 if votes else coding.n_outputs))
    first, second = every_pair(coding.n_classes if votes else 0)
    for variables, alpha in zip(problems, alphas, strict=True):
        used = alpha.nonzero()[0]
        row, column = variables.row[used], variables.output_of[used]
        if votes:  # a column for each of the other classes
            other = first[column] + second[column] - label[row]
            column = other - (other > label[row])
        values[place[row], column] = alpha[used] * variables.sign[used]
    return Coefficients(values, label[support].astype(np.int64) if votes else None)


def intercepts(problems: list[Variables], solutions: list[Solution], n_outputs: int) -> np.ndarray:
    """Of every output; zeros for a level, which is solved without."""
    found = np.zeros(n_outputs)
    for variables, solution in zip(problems, solutions, strict=False):
        found[variables.output] = solution.offset
    return found


class SvcAttributes:
    """The parts of ``model_`` by SVC's names.

    Of several classes in pairs, SVC has the earlier class positive, and the model the later one.
    """

    model_: Any  # KernelModel or LinearModel
    classes_: np.ndarray
    coding_: Any  # Coding or Numbers
    multi_class: str
    converged_: bool
    kernel: Any
    _sparse: bool

    def _keep_support(self, training: Any, support: np.ndarray) -> None:
        """Which rows are support vectors, and what they are of."""
        targets, n_classes = training.targets, training.targets.coding.n_classes
        self.support_ = targets.present[support]
        self.n_support_ = np.bincount(targets.label[support], minlength=n_classes)
        self.shape_fit_ = training.X.shape
        self._sparse = sp.issparse(training.X) or getattr(training.X, "sparse", False)

    @property
    def dual_coef_(self):
        """Label times dual variable; a CSR array where the training data was sparse."""
        values = self._signed(self.model_.coef.values.T)
        return sp.csr_array(values) if self._sparse else values

    @property
    def intercept_(self) -> np.ndarray:
        return self._signed(self.model_.intercept)

    def _signed(self, values: np.ndarray) -> np.ndarray:
        """Values of outputs with the sign that SVC gives them."""
        return 0.0 - values if self.coding_.votes else values

    @property
    def support_vectors_(self):
        """Rows of the training data, in the precision of the model."""
        if isinstance(self.model_, LinearModel):
            raise AttributeError("kernel='linear' keeps weights only: take X[model.support_].")
        kernel, vectors = self.model_.kernel, self.model_.vectors
        if kernel.traits.pairwise:
            return np.empty((0, 0))
        rows, centre = vectors.matrix, getattr(kernel, "centre", None)
        if sp.issparse(rows) and not self._sparse:
            return rows.toarray()
        if centre is not None:
            rows = rows + centre
        return sp.csr_array(rows) if self._sparse and not sp.issparse(rows) else rows

    @property
    def coef_(self):
        """The weights of a linear kernel, which cannot be written; sparse where the data was."""
        if not isinstance(self.model_, LinearModel):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = self._signed(self.model_.weights).view()
        weights.flags.writeable = False
        return sp.csr_array(weights) if self._sparse else weights

    @property
    def fit_status_(self) -> int:
        """0 for a fit that came within ``tol``, 1 for another."""
        return 0 if self.converged_ else 1
