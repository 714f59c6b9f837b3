"""scikit-learn's `SVC`, fitted and evaluated by our machine."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from widemargin.errors import warn_user
from widemargin.kernel.backend import Host
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.estimator import KernelSVC
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.model import KernelModel
from widemargin.kernel.rows import MatrixRows

LEAST_GAP = 1e-12  # that double precision can certify
EPSILON = float(np.finfo(np.float64).eps)
DEFAULT_CACHE = 200  # megabytes


class ByKernelValues(KernelSVC):
    """`KernelSVC` with a free intercept for a linear kernel too, which is not solved on weights."""

    def _is_linear(self) -> bool:
        return False


class NotOursError(Exception):
    """The reason for leaving a fit to scikit-learn."""


class SVC(svm.SVC):
    """`sklearn.svm.SVC` with its parameters, attributes and optimum, fitted by our solver.

    ``tol`` is the accuracy of decision values: a fit ends at a relative duality gap of its square.
    ``shrinking`` changes nothing.  LIBSVM itself fits what only it supports, with a warning that
    says why: ``probability=True``, a limit of iterations, ``C=inf``, ``gamma=0``, and kernels
    that are not positive semi-definite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.sklearn import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(SVC(kernel="linear").fit(X, y).score(X, y) > 0.98)
    True
    """

    def _dense_fit(self, X, y, sample_weight, solver_type, kernel, random_seed):
        given = X
        try:
            if callable(self.kernel):
                X = self._kernel_of_training(X)
            self._fit_ours(X, y, sample_weight)
        except NotOursError as reason:
            warn_of(reason)
            super()._dense_fit(given, y, sample_weight, solver_type, kernel, random_seed)

    def _sparse_fit(self, X, y, sample_weight, solver_type, kernel, random_seed):
        try:
            self._fit_ours(X, y, sample_weight)
        except NotOursError as reason:
            warn_of(reason)
            super()._sparse_fit(X, y, sample_weight, solver_type, kernel, random_seed)

    def _kernel_of_training(self, X) -> np.ndarray:
        self._BaseLibSVM__Xfit = X  # which `_compute_kernel` compares new rows with
        K = self._compute_kernel(X)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError("X.shape[0] should be equal to X.shape[1]")
        return K

    def _fit_ours(self, X, y, sample_weight) -> None:
        """Set what LIBSVM's `fit` returns."""
        self._check_ours()
        weight = np.ones(len(y)) if len(sample_weight) == 0 else sample_weight
        weight = np.maximum(weight, 0) * self.class_weight_[y.astype(np.intp)]
        self._check_weights(y, weight)
        machine = self._solved(X, y, weight)
        sign = -1.0 if len(self.classes_) == 2 else 1.0  # of LIBSVM: the first class is positive
        self.support_ = machine.support_.astype(np.int32)
        self._n_support = machine.n_support_.astype(np.int32)
        self.intercept_ = sign * machine.intercept_
        self._probA = self._probB = np.empty(0)
        self._num_iter = machine.n_iter_.astype(np.int32)
        self.fit_status_ = int(machine.duality_gap_ > self.tol)
        self.support_vectors_ = np.empty((0, 0)) if self._is_matrix else X[self.support_]
        self.dual_coef_ = sign * machine.dual_coef_
        if self._sparse:
            self.dual_coef_ = _with_zeros(self.dual_coef_.toarray(), type(X))
        if self.fit_status_:
            warn_user(
                f"The relative duality gap is {machine.duality_gap_:.2g}, above the tolerance of "
                f"{self.tol:g}. Scale the features, or decrease C.",
                ConvergenceWarning,
            )

    @property
    def _is_matrix(self) -> bool:
        return callable(self.kernel) or self.kernel == "precomputed"

    def _check_ours(self) -> None:
        if self._effective_probability:
            raise NotOursError("probability=True needs LIBSVM's cross-validation")
        if self.max_iter != -1:
            raise NotOursError(f"max_iter={self.max_iter} counts LIBSVM's iterations")
        if np.isinf(self.C):
            raise NotOursError("C=inf has no dual with bounds")
        if self.kernel == "sigmoid":
            raise NotOursError("kernel='sigmoid' is not positive semi-definite")
        if not self._is_matrix and self._gamma == 0:
            raise NotOursError("gamma=0 makes all rows alike")

    def _check_weights(self, y, weight) -> None:
        present = np.unique(y[weight > 0])
        if len(present) == 0:
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        if len(present) == 1:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class"
            )
        if len(present) < len(self.classes_):
            raise NotOursError("a class has no samples of positive weight")

    def _solved(self, X, y, weight) -> KernelSVC:
        machine = ByKernelValues(
            self._our_kernel,
            C=float(self.C),
            fit_intercept=True,
            tol=max(
                min(self.tol, 1e-3) ** 2 / 2, LEAST_GAP, EPSILON * self.C * float(weight.sum())
            ),
            cache_size="auto" if self.cache_size == DEFAULT_CACHE else self.cache_size,
            random_state=0,
            **self._our_kernel_parameters,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's SVC does not warn
            try:
                machine.fit(X, y.astype(np.int64), sample_weight=weight)
            except ValueError as error:
                raise NotOursError(str(error)) from error
        if np.isnan(machine.duality_gap_):
            raise NotOursError("the kernel is not positive semi-definite on these data")
        return machine

    @property
    def _our_kernel(self) -> str:
        return "precomputed" if self._is_matrix else self.kernel

    @property
    def _our_kernel_parameters(self) -> dict:
        if self._is_matrix:
            return {}
        return {"gamma": float(self._gamma), "degree": self.degree, "coef0": float(self.coef0)}

    # ------------------------------------------------------------------ prediction

    def _pair_values(self, X) -> np.ndarray:
        """Return LIBSVM's decision values, computed from the current attributes."""
        parameters = (float(self._gamma), float(self.coef0), int(self.degree))
        kernel = make_kernel(self._our_kernel, *parameters, self.support_vectors_, np.float64)
        if self._is_matrix:
            vectors = MatrixRows.of_columns(self.support_)
        else:
            vectors = kernel.prepare(self.support_vectors_)
        dual = self._dual_coef_.toarray() if sp.issparse(self._dual_coef_) else self._dual_coef_
        several = len(self.classes_) > 2
        owner = np.repeat(np.arange(len(self.classes_)), self.n_support_) if several else None
        coef = Coefficients(np.ascontiguousarray(dual.T), owner)
        model = KernelModel(kernel, vectors, coef, self._intercept_)
        return model.decision(X, Host(effective_n_jobs(None)))

    def _dense_decision_function(self, X):
        return self._pair_values(check_array(X, dtype=np.float64, order="C"))

    def _sparse_decision_function(self, X):
        return self._pair_values(X)

    def _dense_predict(self, X):
        X = check_array(self._compute_kernel(X), dtype=np.float64, order="C")
        if callable(self.kernel) and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, "
                "the number of samples at training time"
            )
        return self._voted(self._pair_values(X))

    def _sparse_predict(self, X):
        return self._voted(self._pair_values(X))

    def _voted(self, values: np.ndarray) -> np.ndarray:
        """Return the index of the class with the most votes, the first one of a tie."""
        first, second = np.triu_indices(len(self.classes_), 1)
        votes = np.zeros((len(values), len(self.classes_)), dtype=np.int64)
        for pair, won in enumerate(values.T > 0):
            votes[:, first[pair]] += won
            votes[:, second[pair]] += ~won
        return votes.argmax(axis=1)


def _with_zeros(values: np.ndarray, kind: type):
    """Return a compressed matrix that stores zeros too, like LIBSVM's coefficients."""
    n_rows, n = values.shape
    start = np.arange(0, n_rows * n + 1, n, dtype=np.int32)
    index = np.tile(np.arange(n, dtype=np.int32), n_rows)
    return kind((values.ravel(), index, start), shape=values.shape)


def warn_of(reason: Exception | str) -> None:
    """Warn that scikit-learn did the fit, and why."""
    warn_user(f"This fit is scikit-learn's own: {reason}.".replace("..", "."))
