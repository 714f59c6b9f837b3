"""Prepare columns for kernel machines: normal scores, and weights learned from gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin.sklearn_private import safe_indexing

ROWS = 1500  # from which weights are learned
ASKED = 400  # rows at which gradients are taken
MIXED = 5  # most target columns; more classes are combined with random signs
ROUNDS = 2
RIDGE = 1e-2
N_QUANTILES = 256
LEAST = 1e-3  # weight of a column, in units of the largest


class GradientScaler(TransformerMixin, BaseEstimator):
    """Multiply each column by a weight: how much the target changes along it.

    A kernel ridge regression with an RBF kernel is fitted to 1,500 rows at most.  The weight of a
    column is the root of the mean square of the regression's derivative along it; with these
    weights the same is done again.  The sum of the columns' variances stays as it was, and so does
    the meaning of ``gamma``.

    Parameters
    ----------
    of_numbers : bool, default=False
        Whether the targets are numbers, not classes.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features,)
    n_features_in_ : int
    n_samples_seen_ : int

    References
    ----------
    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models", Science 2024 (the average
    gradient outer product, of which this is the diagonal).

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.preparation import GradientScaler
    >>> X = np.random.default_rng(0).random((300, 3))
    >>> weight = GradientScaler().fit(X, X[:, 0] > 0.5).scale_
    >>> bool(weight[0] > 5 * weight[1])
    True
    """

    def __init__(self, *, of_numbers=False):
        self.of_numbers = of_numbers

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X, y):
        """Learn the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : GradientScaler
        """
        X, y = validate_data(self, X, y, accept_sparse="csr")
        self.n_samples_seen_, rng = X.shape[0], np.random.default_rng(0)
        rows = np.sort(rng.permutation(X.shape[0])[:ROWS])
        some, targets = safe_indexing(X, rows), _targets(y[rows], self.of_numbers)
        some = np.asarray(some.toarray() if sp.issparse(some) else some, dtype=np.float64)
        asked = rng.permutation(len(rows))[:ASKED]
        variance = some.var(axis=0)
        weight = np.ones(X.shape[1])
        for _ in range(ROUNDS if variance.any() else 0):
            gradient = _mean_gradient(some * weight, targets, asked)
            if not gradient.any():
                break
            weight = weight * gradient
            weight = np.maximum(weight / weight.max(), LEAST)
            weight *= np.sqrt(variance.sum() / (variance @ weight**2))
        self.scale_ = weight
        return self

    def transform(self, X):
        """Multiply the columns of X by their weights."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        if sp.issparse(X):
            return X.multiply(self.scale_.astype(X.dtype)).tocsr()
        return X * self.scale_.astype(X.dtype if X.dtype.kind == "f" else np.float64)


def _targets(y: np.ndarray, of_numbers: bool) -> np.ndarray:
    """Return centred columns: one per class, one of two classes, or the numbers."""
    if of_numbers:
        columns = np.asarray(y, dtype=np.float64)[:, None]
    else:
        classes, label = np.unique(y, return_inverse=True)
        columns = np.eye(len(classes))[label][:, : len(classes) if len(classes) > 2 else 1]
    if columns.shape[1] > MIXED:  # squares of their derivatives are on average those of all classes
        columns = columns @ np.random.default_rng(0).choice([-1.0, 1.0], (len(classes), MIXED))
    return columns - columns.mean(axis=0)


def _mean_gradient(X: np.ndarray, targets: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return the root mean square of the derivatives of a kernel ridge regression at some rows."""
    norms = np.square(X).sum(axis=1)
    distances = np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0)
    kernel = np.exp(-distances / X.var(axis=0).sum())
    ridge = RIDGE * np.eye(len(X))
    coefficients = solve(kernel + ridge, targets, assume_a="pos")
    total: Any = 0.0
    for own in coefficients.T:
        part = kernel[asked] * own
        total = total + np.square(part.sum(axis=1)[:, None] * X[asked] - part @ X).mean(axis=0)
    return np.sqrt(total)


class NormalScaler(TransformerMixin, BaseEstimator):
    """Replace the values of each column by normal scores of their ranks.

    Equal values share the middle of their ranks, so that many zeros, or two values, do not go to
    the ends.  Between the 256 quantiles that are kept scores are interpolated, and beyond the
    training values they stay.

    Attributes
    ----------
    quantiles_ : ndarray of shape (256, n_features)
    n_features_in_ : int
    n_samples_seen_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.preparation import NormalScaler
    >>> NormalScaler().fit_transform(np.array([[0.0], [0.0], [1.0], [900.0]])).round(1).ravel()
    array([-0.7, -0.7,  0.3,  1.2])
    """

    def fit(self, X, y=None):
        """Learn the quantiles of each column."""
        X = validate_data(self, X)
        self.n_samples_seen_ = X.shape[0]
        at = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
        self.quantiles_ = np.quantile(X, at, axis=0, method="inverted_cdf").astype(np.float64)
        return self

    def transform(self, X):
        """Replace values by normal scores."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        found = np.empty(X.shape, dtype=X.dtype if X.dtype.kind == "f" else np.float64)
        for column, values, quantiles in zip(found.T, X.T, self.quantiles_.T, strict=True):
            distinct, first, n = np.unique(quantiles, return_index=True, return_counts=True)
            scores = ndtri((first + n / 2) / N_QUANTILES)
            column[:] = np.interp(values, distinct, scores)
        return found
