"""scikit-learn's `LinearSVC`, fitted on the weights by our solver."""

from __future__ import annotations

import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from widemargin.errors import warn_user
from widemargin.kernel.linear import LinearProblem, LinearRows, LinearSolution, solve_linear
from widemargin.kernel.problems import Variables
from widemargin.multiclass import Coding
from widemargin.resources import one_blas_thread
from widemargin.sklearn.libsvm import LEAST_GAP, warn_of
from widemargin.sklearn_private import check_sample_weight

DEFAULT_ITERATIONS = 1000
MOST_SWEEPS = 1_000_000


class LinearSVC(svm.LinearSVC):
    """`sklearn.svm.LinearSVC` with its parameters, attributes and optimum, fitted by our solver.

    ``tol`` is the accuracy of decision values: a fit ends at a relative duality gap of its square,
    whatever ``dual`` says; ``random_state`` changes nothing.  scikit-learn's own solver fits what
    only LIBLINEAR supports, with a warning that says why: the L1 penalty, Crammer and Singer's
    machine, and a limit of fewer iterations than the default.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.sklearn import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(LinearSVC().fit(X, y).score(X, y) > 0.95)
    True
    """

    def fit(self, X, y, sample_weight=None):
        """Fit the model; as `sklearn.svm.LinearSVC.fit`."""
        self._validate_params()
        reason = self._why_not_ours()
        if reason is not None:
            fitted = super().fit(X, y, sample_weight)  # which refuses what LIBLINEAR does not know
            warn_of(reason)
            return fitted
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", accept_large_sparse=False
        )
        check_classification_targets(y)
        self.classes_, label = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        by_class, weight = self._weights(X, y, sample_weight)
        with one_blas_thread():
            solutions = list(self._solutions(X, label, by_class, weight))
        weights = np.stack([s.weights for s in solutions])
        self.coef_ = weights[:, :-1].copy()
        self.intercept_ = self.intercept_scaling * weights[:, -1] if self.fit_intercept else 0.0
        self.n_iter_ = max(max(s.n_iter for s in solutions), 1)
        gap = max(s.relative_gap for s in solutions)
        if gap > self.tol:
            warn_user(
                f"The relative duality gap is {gap:.2g}, above the tolerance of {self.tol:g}. "
                "Scale the features, or decrease C.",
                ConvergenceWarning,
            )
        return self

    def _why_not_ours(self) -> str | None:
        if self.penalty == "l1":
            return "penalty='l1' has no dual with bounds"
        if self.multi_class == "crammer_singer":
            return "multi_class='crammer_singer' trains all classes together"
        if self.loss == "hinge" and self.dual is False:
            return "loss='hinge' with dual=False"
        if self.max_iter < DEFAULT_ITERATIONS:
            return f"max_iter={self.max_iter} counts LIBLINEAR's iterations"
        return None

    def _weights(self, X, y, sample_weight) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of classes and of samples."""
        by_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=sample_weight
        )
        return by_class, check_sample_weight(sample_weight, X, dtype=np.float64)

    def _solutions(self, X, label: np.ndarray, by_class: np.ndarray, weight: np.ndarray):
        """Yield a solution for every class against the others, without samples of weight 0.

        As in LIBLINEAR, the weight of one of several classes applies only in its own problem.
        """
        rows = LinearRows.of(X, float(self.intercept_scaling) if self.fit_intercept else 0.0)
        tol = max(min(self.tol, 1e-3) ** 2, LEAST_GAP)
        for target in Coding("ovr", len(self.classes_)).targets.T:
            factor = by_class if len(by_class) == 2 else np.where(target > 0, by_class, 1.0)
            C = self.C * weight * factor[label]
            present = np.flatnonzero(C > 0)
            C, n = C[present], len(present)
            is_hinge = self.loss == "hinge"
            upper, ridge = (C, np.zeros(n)) if is_hinge else (np.full(n, np.inf), 0.5 / C)
            sign = target[label[present]]
            variables = Variables(present, sign, np.full(n, -1.0), upper)
            yield self._solved(LinearProblem(rows, variables, ridge), np.zeros(n), tol)

    def _solved(self, problem: LinearProblem, start: np.ndarray, tol: float) -> LinearSolution:
        gaps: list[float] = []

        def stuck(gap: float) -> bool:
            """Whether rounding keeps the gap from falling."""
            gaps.append(gap)
            return len(gaps) > 5 and gap <= self.tol and min(gaps[-5:]) >= 0.5 * gaps[-6]

        return solve_linear(problem, start, tol, MOST_SWEEPS, stuck)
