"""`KernelSVC`: the scikit-learn face of kernels, partition, divide and solver."""

from __future__ import annotations

import os
import warnings

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from widemargin.kernel.divide import divide_and_conquer
from widemargin.kernel.kernels import KERNELS, make_kernel
from widemargin.kernel.model import KernelModel
from widemargin.validation import (
    check_choice,
    check_n_jobs,
    check_number,
    check_number_or_auto,
    check_X,
    check_X_y,
    sample_weights,
)

EARLY_ROWS = 8000
_FREE_SHARE = 0.25


class KernelSVC(ClassifierMixin, BaseEstimator):
    """Support vector classification with any kernel, exact or early, by divide and conquer.

    Solves min 1/2 a'Qa - e'a over 0 <= a <= C, without a bias, to a certified duality gap.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "rbf", "poly", "sigmoid", "laplacian", "chi2" (exponential), "precomputed", or a function
        K(X, Z) that returns an array of shape (len(X), len(Z)).
    C : float, default=1.0
    gamma : "scale", "auto" or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
    levels : int, default=0
        Levels of division below the whole problem: ``branching ** levels`` clusters at the
        lowest.  0 solves the problem directly.
    branching : int, default=4
    sample_size : int, default=1000
        Rows that the clustering of a level samples.
    early : bool or int, default=False
        Stop at this level and predict by routing (DC-SVM eq. 11); True is the level whose
        clusters hold about 8,000 rows.
    class_weight : dict, "balanced" or None, default=None
    tol : float, default=1e-3
        Relative duality gap.
    max_iter : int, default=100_000
        Blocks per problem.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel rows; "auto" is a quarter of the memory that is free.
    n_jobs : int or None, default=None
        Threads.  Results do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray
    support_ : ndarray
        Rows that are support vectors of any class.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
    duality_gap_ : float
        Largest relative gap of the binary problems (for an early model, of the clusters' own).
    objective_ : float
        Sum of the primal objectives; NaN for an early model.
    n_iter_ : int
    levels_ : list of list of Level
        Per binary problem, one record per level.
    """

    def __init__(
        self,
        kernel="rbf",
        *,
        C=1.0,
        gamma="scale",
        degree=3,
        coef0=0.0,
        levels=0,
        branching=4,
        sample_size=1000,
        early=False,
        class_weight=None,
        tol=1e-3,
        max_iter=100_000,
        cache_size="auto",
        n_jobs=None,
        random_state=None,
    ):
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.levels = levels
        self.branching = branching
        self.sample_size = sample_size
        self.early = early
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel in ("rbf", "poly", "sigmoid")
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_params(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_number("C", self.C, above=0)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"))
        else:
            check_number("gamma", self.gamma, above=0)
        check_number("degree", self.degree, low=0, integer=True)
        check_number("coef0", self.coef0)
        check_number("levels", self.levels, low=0, integer=True)
        check_number("branching", self.branching, low=2, integer=True)
        check_number("sample_size", self.sample_size, low=2, integer=True)
        if not isinstance(self.early, (bool, np.bool_)):
            check_number("early", self.early, low=1, integer=True)
        check_number("tol", self.tol, above=0)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number_or_auto("cache_size", self.cache_size, above=0)
        check_n_jobs(self.n_jobs)
        if self.kernel == "sigmoid":
            warnings.warn(
                "The sigmoid kernel is not positive definite: the duality gap is no certificate.",
                UserWarning,
                stacklevel=3,
            )

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or the (n_samples, n_samples) kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C; 0 means absent.

        Returns
        -------
        self : KernelSVC
        """
        self._check_params()
        X, y = check_X_y(self, X, y)
        check_classification_targets(y)
        weight = sample_weights(sample_weight, X, y, self.class_weight)
        present = np.flatnonzero(weight > 0)
        self._check_kernel_input(X)
        train = X if len(present) == X.shape[0] else X[present]
        if self.kernel == "precomputed" and len(present) < X.shape[0]:
            train = train[:, present]
        self.classes_, label = np.unique(np.asarray(y)[present], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"KernelSVC needs samples of at least 2 classes, but the data has "
                f"{len(self.classes_)} class: {self.classes_.tolist()!r}."
            )
        kernel = make_kernel(self.kernel, self._gamma(train), self.coef0, self.degree, train)
        rows = kernel.operand(train, training=True)
        early = self._early_level(len(rows))
        results = self._solve(kernel, rows, label, self.C * weight[present], early)
        self._keep(kernel, rows, label, present, results)
        return self

    def _solve(self, kernel, rows, label, upper, early) -> list:
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [
            divide_and_conquer(
                kernel,
                rows,
                np.where(label == c, 1.0, -1.0),
                upper,
                levels=self.levels if early is None else max(self.levels, early),
                branching=self.branching,
                sample_size=self.sample_size,
                early=early,
                tol=self.tol,
                max_iter=self.max_iter,
                cache_bytes=self._cache_bytes(),
                n_jobs=self.n_jobs,
                n_threads=effective_n_jobs(self.n_jobs),
                rng=np.random.default_rng(seed),
            )
            for c in positive
        ]

    def _keep(self, kernel, rows, label, present, results) -> None:
        signs = [np.where(label == c, 1.0, -1.0) for c in ([1] if len(results) == 1 else
                 range(len(results)))]  # fmt: skip
        coef = np.stack([r.alpha * s for r, s in zip(results, signs, strict=True)], axis=1)
        support = np.flatnonzero(np.any(coef != 0, axis=1))
        router = results[0].router
        self.model_ = KernelModel(
            kernel,
            rows[support],
            coef[support],
            np.zeros(coef.shape[1]),
            router,
            None if router is None else results[0].label[support],
        )
        self.support_ = present[support]
        self.dual_coef_ = coef[support].T
        self.levels_ = [r.levels for r in results]
        whole = [r.solution for r in results if r.solution is not None]
        if whole:
            self.duality_gap_ = max(s.relative_gap for s in whole)
            self.objective_ = float(sum(s.primal for s in whole))
            self.n_iter_ = max(max(s.n_iter for s in whole), 1)
        else:
            self.duality_gap_ = max(r.levels[-1].local_gap for r in results)
            self.objective_, self.n_iter_ = float("nan"), 1
        if self.duality_gap_ > self.tol:
            warnings.warn(
                f"KernelSVC stopped with a relative duality gap of {self.duality_gap_:.2g}, above "
                f"tol={self.tol:g}. Increase max_iter, decrease C, or accept a larger tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_kernel_input(self, X) -> None:
        if self.kernel == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"Precomputed matrix must be a square matrix, got shape {X.shape}."
                )
            if not np.allclose(X, X.T, rtol=1e-5, atol=1e-8 * np.abs(X).max()):
                raise ValueError("The precomputed kernel matrix is not symmetric.")
        if self.kernel in ("laplacian", "chi2") and sp.issparse(X):
            raise TypeError(f"kernel={self.kernel!r} takes dense data only; use X.toarray().")

    def _gamma(self, X) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto" or callable(self.kernel) or self.kernel == "precomputed":
            return 1.0 / X.shape[1]
        if sp.issparse(X):
            variance = X.multiply(X).mean() - X.mean() ** 2
        else:
            variance = float(np.var(X, dtype=np.float64))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    def _early_level(self, n: int) -> int | None:
        if self.early is False:
            return None
        if self.early is not True:
            return int(self.early)
        return max(1, round(np.log(max(n / EARLY_ROWS, 1)) / np.log(self.branching)))

    def _cache_bytes(self) -> float:
        if self.cache_size != "auto":
            return 1e6 * self.cache_size
        try:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError, AttributeError):
            free = 4 << 30
        return _FREE_SHARE * free

    def decision_function(self, X):
        """Decision values, one column for two classes."""
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        scores = self.model_.decision(X, effective_n_jobs(self.n_jobs))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Class labels of X."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]
