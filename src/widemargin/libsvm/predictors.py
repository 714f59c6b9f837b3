"""Estimators that predict with models trained by LIBSVM and LIBLINEAR, as those programs do."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if

from widemargin.kernel.backend import Host
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import DENSE_FROM, DotKernel
from widemargin.kernel.model import KernelModel
from widemargin.kernel.moments import mean_row, share_of_nonzeros
from widemargin.libsvm.text import LinearText, SvmText
from widemargin.multiclass import Coding

_KERNELS = {"polynomial": "poly", "linear": "poly", "rbf": "rbf", "sigmoid": "sigmoid"}
_KERNELS |= {"precomputed": "poly"}  # its vectors select values of a row
_LINEAR = {"degree": 1, "gamma": 1.0, "coef0": 0.0}  # a polynomial of degree 1


class ForeignModel(BaseEstimator):
    """Base class: a model that was trained elsewhere, for rows of any width.

    Attributes
    ----------
    n_features_in_ : int
        The number of features of the model.  Rows may have fewer (the others are zero) or more.
    """

    n_features_in_: int

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def fit(self, X, y=None):
        """Raise: this estimator comes from a file and cannot be fitted."""
        raise NotImplementedError(
            f"{type(self).__name__} predicts with a model that was trained elsewhere. Fit a "
            "machine of ours, such as KernelSVC, KernelSVR or OneClassSVM."
        )

    def _rows(self, X) -> tuple[Any, Any]:
        """Split the rows into the model's features and the others."""
        X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_features=0)
        d = self.n_features_in_
        known, others = X[:, :d], X[:, d:]
        if known.shape[1] < d:  # sparse, because d may be huge
            known = sp.csr_array(known)
            known = sp.csr_array(
                (known.data, known.indices, known.indptr), shape=(known.shape[0], d)
            )
        return known, others


class ForeignClassifier(ClassifierMixin, ForeignModel):
    """Base class: labels in the file's order.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order, as the columns of decision values and probabilities.
    labels_ : ndarray of shape (n_classes,)
        In the order of the file: the first label wins among equal votes or values.
    """

    labels_: np.ndarray
    classes_: np.ndarray

    def _keep_labels(self, labels: np.ndarray) -> None:
        self.labels_, self.classes_ = labels, np.sort(labels)

    def _in_order(self, columns: np.ndarray) -> np.ndarray:
        """Reorder columns of labels as columns of classes."""
        return columns[:, np.argsort(self.labels_)]


class LibsvmModel(ForeignModel):
    """Base class: values by support vectors.

    Models of a precomputed kernel take rows as LIBSVM's files have them: a serial number, which may
    be anything, and the kernel's values with the 1st, 2nd, ... row of the training data.

    Parameters
    ----------
    n_jobs : int, default=None
        Threads for prediction.
    """

    def __init__(self, n_jobs: int | None = None):
        self.n_jobs = n_jobs

    def _keep(self, text: SvmText) -> Self:
        self.kernel_, self.svm_type_, self.sigmoids_ = text.kernel, text.svm_type, text.sigmoids
        self.n_support_, self.zero_based_ = text.n_support, text.zero_based
        self.n_features_in_ = text.vectors.shape[1]
        kernel = _kernel(text)
        self.gamma_ = kernel.gamma
        vectors, owner = kernel.prepare(text.vectors), None
        if len(text.labels):
            owner = np.repeat(np.arange(len(text.labels)), text.n_support)
        coef = Coefficients(text.coef, owner)
        self.model_ = KernelModel(kernel, vectors, coef, np.zeros(coef.n_outputs))
        self.rho_ = text.rho
        return self

    def pair_values(self, X) -> np.ndarray:
        """Return LIBSVM's decision values: of pairs of labels, positive for the first, or one."""
        known, others = self._rows(X)
        values = self.model_.decision(known, Host(effective_n_jobs(self.n_jobs)))
        if self.kernel_ == "rbf" and others.shape[1]:  # unknown features only add to distances
            squares = others.multiply(others) if sp.issparse(others) else np.square(others)
            far = np.asarray(squares.sum(axis=1)).ravel()
            values *= np.exp(-self.gamma_ * far)[:, None]
        return values - self.rho_


class LibsvmSVR(RegressorMixin, LibsvmModel):
    """A regression trained by LIBSVM; `widemargin.load` reads its file."""

    def predict(self, X) -> np.ndarray:
        """Return the numbers that svm-predict writes."""
        return self.pair_values(X)[:, 0]


class LibsvmOneClass(OutlierMixin, LibsvmModel):
    """A machine of one class trained by LIBSVM; `widemargin.load` reads its file."""

    def decision_function(self, X) -> np.ndarray:
        """Return LIBSVM's decision values, positive for rows like the training rows."""
        return self.pair_values(X)[:, 0]

    def predict(self, X) -> np.ndarray:
        """Return the 1 and -1 that svm-predict writes."""
        return np.where(self.decision_function(X) > 0, 1, -1)


class LibsvmSVC(ForeignClassifier, LibsvmModel):
    """A classifier trained by LIBSVM; `widemargin.load` reads its file.

    Pairs of classes vote.  Among equal votes the label listed first in the file wins, as in LIBSVM.

    Parameters
    ----------
    n_jobs : int, default=None
        Threads for prediction.
    """

    def _keep(self, text: SvmText) -> Self:
        self._keep_labels(text.labels)
        return super()._keep(text)

    def decision_function(self, X) -> np.ndarray:
        """Return a value per row for two classes, positive for ``classes_[1]``; votes for several.

        Votes are whole numbers plus a fraction that breaks ties by the sum of decision values;
        `predict` uses the whole votes, as LIBSVM does.
        """
        values = self.pair_values(X)
        scores = Coding("ovo", len(self.labels_)).scores(-values)
        if scores.ndim == 1:
            return scores if self.labels_[1] == self.classes_[1] else -scores
        return self._in_order(scores)

    def predict(self, X) -> np.ndarray:
        """Return the labels that svm-predict writes."""
        values, n = self.pair_values(X), len(self.labels_)
        votes = np.zeros((len(values), n), dtype=int)
        for k, (i, j) in enumerate(combinations(range(n), 2)):
            votes[:, i] += values[:, k] > 0
            votes[:, j] += values[:, k] <= 0
        return self.labels_[votes.argmax(axis=1)]

    @available_if(lambda model: model.sigmoids_ is not None)
    def predict_proba(self, X) -> np.ndarray:
        """Return the probabilities of ``classes_`` that svm-predict -b 1 writes."""
        assert self.sigmoids_ is not None
        slope, offset = self.sigmoids_
        pairs = expit(-(slope * self.pair_values(X) + offset))
        return self._in_order(coupled(pairs, len(self.labels_)))


class LiblinearClassifier(ForeignClassifier):
    """A classifier trained by LIBLINEAR; `widemargin.load` reads its file."""

    def _keep(self, text: LinearText) -> LiblinearClassifier:
        self._keep_labels(text.labels)
        self.solver_type_, self.is_logistic_ = text.solver, text.is_logistic
        self.weights_, self.intercept_ = text.weights, text.intercept
        self.n_features_in_ = len(text.weights)
        return self

    def values(self, X) -> np.ndarray:
        """Return LIBLINEAR's decision values, in the order of ``labels_``; one column for two."""
        known, _ = self._rows(X)  # other features have no weight
        return np.asarray(known @ self.weights_) + self.intercept_

    def _of_labels(self, X) -> np.ndarray:
        """Return a column per label."""
        values = self.values(X)
        return values if values.shape[1] > 1 else np.hstack([values, -values])

    def decision_function(self, X) -> np.ndarray:
        """Return decision values; one per row for two classes, positive for ``classes_[1]``."""
        values = self.values(X)
        if values.shape[1] == 1:
            return values[:, 0] if self.labels_[0] == self.classes_[1] else -values[:, 0]
        scores = self._in_order(values)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict(self, X) -> np.ndarray:
        """Return the labels that LIBLINEAR's predict writes."""
        values = self.values(X)
        if values.shape[1] == 1:
            return self.labels_[np.where(values[:, 0] > 0, 0, 1)]
        return self.labels_[values.argmax(axis=1)]

    @available_if(lambda model: model.is_logistic_)
    def predict_proba(self, X) -> np.ndarray:
        """Return the probabilities of ``classes_`` that LIBLINEAR's predict -b 1 writes."""
        odds = expit(self._of_labels(X))
        return self._in_order(odds / odds.sum(axis=1, keepdims=True))


def _kernel(text: SvmText) -> DotKernel:
    parameters = {**_LINEAR, **text.parameters}
    compressed = share_of_nonzeros(text.vectors) < DENSE_FROM
    centred = text.kernel == "rbf" and not compressed
    return DotKernel(
        name=_KERNELS[text.kernel],
        gamma=float(parameters["gamma"]),
        coef0=float(parameters["coef0"]),
        degree=int(parameters["degree"]),
        dtype=np.float64,
        compressed=compressed,
        centre=mean_row(text.vectors) if centred else None,
    )


# ------------------------------------------------------------------ probabilities of pairs


_LEAST = 1e-7  # least probability of a pair
_MOST_SWEEPS = 100
_CLOSE = 0.005  # stopping tolerance times the number of classes
_AT_ONCE = 1 << 20  # numbers in a block's matrices


def coupled(pairs: np.ndarray, n_classes: int) -> np.ndarray:
    """Couple probabilities of pairs' first classes: (n_rows, n_classes).

    The second method of Wu, Lin and Weng (2004).  LIBSVM stops it early, so equal numbers need the
    same iteration.

    Examples
    --------
    >>> coupled(np.array([[0.75]]), 2)
    array([[0.75, 0.25]])
    >>> coupled(np.array([[0.5, 0.5, 0.5]]), 3).round(3)
    array([[0.333, 0.333, 0.333]])
    """
    p = np.empty((len(pairs), n_classes))
    rows = max(1, _AT_ONCE // n_classes**2)
    for begin in range(0, len(pairs), rows):
        block = np.clip(pairs[begin : begin + rows], _LEAST, 1 - _LEAST)
        p[begin : begin + rows] = _coupled_block(block, n_classes)
    return p


def _coupled_block(pairs: np.ndarray, n_classes: int) -> np.ndarray:
    """Couple a block of rows, with a matrix of classes by classes for each."""
    if n_classes == 2:
        return np.hstack([pairs, 1 - pairs])
    r = np.zeros((len(pairs), n_classes, n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        r[:, i, j], r[:, j, i] = pairs[:, k], 1 - pairs[:, k]
    Q = -r * r.transpose(0, 2, 1)
    Q[:, range(n_classes), range(n_classes)] = np.square(r).sum(axis=1)
    p = np.full((len(pairs), n_classes), 1 / n_classes)
    going = np.arange(len(pairs))
    for _ in range(max(_MOST_SWEEPS, n_classes)):
        Qp = np.einsum("nij,nj->ni", Q[going], p[going])
        pQp = np.einsum("ni,ni->n", p[going], Qp)
        far = np.abs(Qp - pQp[:, None]).max(axis=1) >= _CLOSE / n_classes
        going, Qp, pQp = going[far], Qp[far], pQp[far]
        if len(going) == 0:
            break
        p[going] = _sweep(Q[going], p[going], Qp, pQp)
    return p


def _sweep(Q: np.ndarray, p: np.ndarray, Qp: np.ndarray, pQp: np.ndarray) -> np.ndarray:
    """Update every class once and normalise after each."""
    for t in range(p.shape[1]):
        diagonal = Q[:, t, t]
        step = (pQp - Qp[:, t]) / diagonal
        p[:, t] += step
        pQp = (pQp + step * (step * diagonal + 2 * Qp[:, t])) / np.square(1 + step)
        Qp = (Qp + step[:, None] * Q[:, t]) / (1 + step)[:, None]
        p /= (1 + step)[:, None]
    return p
