"""`AdditiveMap`: the left table as a transformer, for any linear model."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.additive.codes import encode
from widemargin.additive.learn import Settings, learn
from widemargin.additive.source import Values
from widemargin.sklearn_private import check_feature_names_in
from widemargin.validation import check_choice, check_X, sample_weights


class AdditiveMap(TransformerMixin, BaseEstimator):
    """Explicit feature map of an additive kernel, z(x)'z(y) ~= sum_j k(x_j, y_j).

    Each feature becomes ``rank_`` columns, next to each other.  Sparse input gives sparse output.

    Parameters
    ----------
    kernel, rank, n_bins, binning, scaling
        As in `AdditiveSVC`.
    approximation : {"spectral", "fourier"}, default="spectral"
        The published polynomial tables are asymmetric, so they define no feature map.

    Attributes
    ----------
    rank_ : int
        Columns per feature.
    encoder_ : Encoder
    table_ : ndarray of shape (n_codes, rank)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import AdditiveMap
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(AdditiveMap("chi2", rank=3), LogisticRegression(max_iter=500))
    >>> bool(model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9)
    True
    """

    def __init__(
        self,
        kernel="intersection",
        *,
        approximation="spectral",
        rank="auto",
        n_bins="auto",
        binning="auto",
        scaling="auto",
    ):
        self.kernel = kernel
        self.approximation = approximation
        self.rank = rank
        self.n_bins = n_bins
        self.binning = binning
        self.scaling = scaling

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.scaling in ("global", None)
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X, y=None, sample_weight=None):
        """Learn scale, bins and table.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : AdditiveMap
        """
        settings = Settings(
            self.kernel, self.approximation, self.rank, self.n_bins, self.binning, self.scaling
        )
        settings.check()
        check_choice("approximation", self.approximation, ("spectral", "fourier"))
        X = check_X(self, X, reset=True)
        weight = sample_weights(sample_weight, X)
        if np.any(weight == 0):
            X, weight = X[weight > 0], weight[weight > 0]
        learned = learn(Values.of(X), weight, settings)
        self.encoder_, tables = learned.encoder, learned.tables
        assert tables.left is not None
        self.table_ = tables.left.astype(np.float32)
        self.kernel_ = learned.kernel
        self.rank_ = tables.rank
        return self

    def transform(self, X):
        """Map X to (n_samples, n_features * rank), float32, sparse if X is."""
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        codes = encode(Values.of(X), self.encoder_)
        r, shape = self.rank_, (codes.n_rows, codes.n_features * self.rank_)
        if not sp.issparse(X):
            return self.table_[codes.toarray()].reshape(shape)
        if codes.index is None or codes.start is None:
            return sp.csr_array(self.table_[codes.data].reshape(shape))
        index = codes.index.astype(np.int64)[:, None] * r + np.arange(r)
        # LIBLINEAR takes 32-bit indices only.
        small = max(shape[1], codes.start[-1] * r) <= np.iinfo(np.int32).max
        dtype = np.int32 if small else np.int64
        parts = (
            self.table_[codes.data].ravel(),
            index.ravel().astype(dtype),
            (codes.start * r).astype(dtype),
        )
        return sp.csr_array(parts, shape=shape)

    def get_feature_names_out(self, input_features=None):
        """Names ``<feature>_<k>``, k from 0 to ``rank_ - 1``."""
        check_is_fitted(self)
        names = check_feature_names_in(self, input_features)
        return np.array([f"{n}_{k}" for n in names for k in range(self.rank_)], dtype=object)
