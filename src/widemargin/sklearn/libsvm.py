"""What our versions of scikit-learn's SVMs share: LIBSVM's fit and prediction, by our machines."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from widemargin.errors import warn_user
from widemargin.kernel.backend import Host
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.model import KernelModel
from widemargin.kernel.rows import MatrixRows

if TYPE_CHECKING:
    from sklearn.svm import SVC as LibSVM  # noqa: N811  (or another class of LIBSVM's)
else:
    LibSVM = object

LEAST_GAP = 1e-12  # that double precision can certify
EPSILON = float(np.finfo(np.float64).eps)
DEFAULT_CACHE = 200  # megabytes


class NotOursError(Exception):
    """Why a fit is left to scikit-learn."""


class FittedByUs(LibSVM):
    """Puts our machine in the place of LIBSVM in a class of `sklearn.svm`.

    A subclass makes the machine (``_machine``) and checks what is its own (``_check_own``).
    """

    @property
    def _sign(self) -> float:
        """The sign of LIBSVM's decision values, where ours are positive."""
        return 1.0

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
        weight = np.maximum(np.ones(len(y)) if len(sample_weight) == 0 else sample_weight, 0)
        if not weight.any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        found = self._solved(X, y, self._checked_weights(y, weight))
        self.support_ = found.support_.astype(np.int32)
        self._n_support = found.n_support_.astype(np.int32)
        self.intercept_ = self._sign * found.intercept_
        self._probA = self._probB = np.empty(0)
        self._num_iter = found.n_iter_.astype(np.int32)
        self.fit_status_ = int(found.duality_gap_ > self.tol)
        self.support_vectors_ = np.empty((0, 0)) if self._is_matrix else X[self.support_]
        self.dual_coef_ = self._sign * found.dual_coef_
        if self._sparse:
            self.dual_coef_ = _with_zeros(self.dual_coef_.toarray(), type(X))
        if self.fit_status_:
            warn_user(
                f"The relative duality gap is {found.duality_gap_:.2g}, above the tolerance of "
                f"{self.tol:g}. Scale the features, or decrease C.",
                ConvergenceWarning,
            )

    def _checked_weights(self, y, weight: np.ndarray) -> np.ndarray:
        return weight

    @property
    def _is_matrix(self) -> bool:
        return callable(self.kernel) or self.kernel == "precomputed"

    def _check_ours(self) -> None:
        if self.max_iter != -1:
            raise NotOursError(f"max_iter={self.max_iter} counts LIBSVM's iterations")
        if self.kernel == "sigmoid":
            raise NotOursError("kernel='sigmoid' is not positive semi-definite")
        if not self._is_matrix and self._gamma == 0:
            raise NotOursError("gamma=0 makes all rows alike")

    def _solved(self, X, y, weight) -> Any:
        machine = self._machine(
            kernel=self._our_kernel,
            tol=max(
                min(self.tol, 1e-3) ** 2 / 2, LEAST_GAP, EPSILON * self._our_C * float(weight.sum())
            ),
            cache_size="auto" if self.cache_size == DEFAULT_CACHE else self.cache_size,
            random_state=0,
            **self._our_kernel_parameters,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SVC is silent, and asks for nothing that we warn of
            try:
                machine.fit(X, y, sample_weight=weight)
            except ValueError as error:
                raise NotOursError(str(error)) from error
        if np.isnan(machine.duality_gap_):
            raise NotOursError("the kernel is not positive semi-definite on these data")
        return machine

    @property
    def _our_C(self) -> float:
        return float(self.C)

    @property
    def _our_kernel(self) -> str:
        return "precomputed" if self._is_matrix else self.kernel

    @property
    def _our_kernel_parameters(self) -> dict:
        if self._is_matrix:
            return {}
        return {"gamma": float(self._gamma), "degree": self.degree, "coef0": float(self.coef0)}

    # ------------------------------------------------------------------ prediction

    def _values(self, X, owner: np.ndarray | None = None) -> np.ndarray:
        """LIBSVM's decision values, from the attributes as they are now."""
        parameters = (float(self._gamma), float(self.coef0), int(self.degree))
        kernel = make_kernel(self._our_kernel, *parameters, self.support_vectors_, np.float64)
        if self._is_matrix:
            vectors: Any = MatrixRows.of_columns(self.support_)
        else:
            vectors = kernel.prepare(self.support_vectors_)
        dual = self._dual_coef_.toarray() if sp.issparse(self._dual_coef_) else self._dual_coef_
        coef = Coefficients(np.ascontiguousarray(dual.T), owner)
        model = KernelModel(kernel, vectors, coef, self._intercept_)
        return model.decision(X, Host(effective_n_jobs(None)))

    def _dense_decision_function(self, X):
        return self._values(check_array(X, dtype=np.float64, order="C"))

    def _sparse_decision_function(self, X):
        return self._values(X)

    def _dense_predict(self, X):
        X = check_array(self._compute_kernel(X), dtype=np.float64, order="C")
        if callable(self.kernel) and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, "
                "the number of samples at training time"
            )
        return self._predicted(self._values(X))

    def _sparse_predict(self, X):
        return self._predicted(self._values(X))

    def _predicted(self, values: np.ndarray) -> np.ndarray:
        """What ``predict`` makes of decision values."""
        return values[:, 0]


def _with_zeros(values: np.ndarray, kind: type):
    """A compressed matrix that stores every value, as LIBSVM's coefficients are."""
    n_rows, n = values.shape
    start = n * np.arange(n_rows + 1, dtype=np.int32)
    index = np.tile(np.arange(n, dtype=np.int32), n_rows)
    return kind((values.ravel(), index, start), shape=values.shape)


def warn_of(reason: Exception | str) -> None:
    """Say why a fit was left to scikit-learn."""
    warn_user(f"This fit is scikit-learn's own: {reason}.".replace("..", "."))
