"""`TableEncoder`: columns of a table as the numbers that kernels take.

What is a category, a number or missing is decided as `AdditiveSVC` decides it, which needs no
encoding: by `additive.frames` and `additive.columns`.
"""

from __future__ import annotations

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.additive.columns import Columns, n_missing
from widemargin.additive.frames import (
    check_chosen,
    dates_chosen,
    read_new,
    read_training,
    with_days,
    with_parsed,
)
from widemargin.additive.source import Values
from widemargin.sklearn_private import check_feature_names_in
from widemargin.validation import check_bool, check_choice
from widemargin.wording import quoted

_SPARSE_BELOW = 1 / 3  # share of values that are not zero
MISSING = "(missing)"


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as a matrix of numbers.

    Numbers are scaled to [0, 1].  A category becomes a column of its own, which is 1 where a row
    has it.  Missing values have such a column too: of a number they count as its mean besides.

    Parameters
    ----------
    categorical_features : {"from_dtype"}, list of str or int, mask or None, default="from_dtype"
        Which columns are categories.  By default those of a data frame that are text or of a
        categorical type; text that is not likely to be categories (nearly all of it numbers, or
        another value in nearly every row) is refused.
    date_features : {"from_dtype"}, list of str or int, mask or None, default=None
        Which columns are dates, which count as days since 1970.  They are refused otherwise.
    scaling : {"minmax", None}, default="minmax"
        "minmax" scales numbers and dates to [0, 1].  Sparse rows, in which zeros stay zeros, are
        divided by the largest magnitude of each column.  None leaves numbers as they are.
    sparse_output : bool or "auto", default="auto"
        Whether `transform` returns a CSR array.  "auto": where there are categories and less than
        a third of the training values are not zero; and for sparse X.

    Attributes
    ----------
    columns_ : Columns
        What the columns of X are: categories of each, and which had missing values.
    fill_, shift_, factor_ : ndarray of shape (n_numbers,)
        A number x becomes ``(x - shift_) * factor_``; a missing one is taken for ``fill_``.
    sparse_output_ : bool
        Whether `transform` returns a CSR array.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X had names of columns.

    See Also
    --------
    AdditiveSVC : Learns from categories and missing values as they are.

    Notes
    -----
    New data may have its columns in any order, and more than these.  A category that the training
    data did not have is 0 in all columns of its own.  Numbers that come as text are parsed, and
    numbers in a column of categories are known by their text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from widemargin import TableEncoder
    >>> table = pa.table({"age": [31.0, None, 25.0], "job": ["smith", "clerk", None]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age=(missing)', 'job=clerk', 'job=smith', 'job=(missing)']
    >>> encoder.transform(pa.table({"job": ["smith"], "age": [28]}))
    array([[0.5, 0. , 0. , 1. , 0. ]])
    """

    def __init__(
        self,
        categorical_features="from_dtype",
        *,
        date_features=None,
        scaling="minmax",
        sparse_output="auto",
    ):
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.scaling = scaling
        self.sparse_output = sparse_output

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X, y=None):
        """Learn categories, and mean and range of numbers.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix of shape (n_samples, n_features)
            A frame of pandas, polars, pyarrow or what else narwhals knows; a missing value is
            None or NaN.
        y : ignored

        Returns
        -------
        self : TableEncoder
        """
        self._check_params()
        self.dates_ = tuple(dates_chosen(self.date_features, X))
        X, _, categories = read_training(self, with_days(X, self.dates_), labelled=False)
        self.columns_ = Columns.of(X, categories)
        self.dtype_ = np.dtype(np.float32 if X.dtype in (np.float16, np.float32) else np.float64)
        low, high, self.fill_ = _low_high_mean(self.columns_.parts(X).values)
        self.shift_, self.factor_ = np.zeros(len(low)), np.ones(len(low))
        if self.scaling == "minmax":
            sparse = sp.issparse(X)
            self.shift_ = np.zeros(len(low)) if sparse else low
            spread = np.maximum(high, -low) if sparse else high - low
            self.factor_ = 1 / np.where(spread > 0, spread, 1.0)
        self.sparse_output_ = sp.issparse(X) or self.sparse_output is True
        if self.sparse_output == "auto" and categories:
            numbers, marks = self._encoded(X)
            n_stored = np.count_nonzero(numbers) + marks.nnz
            self.sparse_output_ = n_stored < _SPARSE_BELOW * len(X) * self.columns_.n_features
        return self

    def transform(self, X):
        """Encode rows.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        encoded : ndarray or csr_array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        own = self.columns_
        X = with_days(self._in_order(X), self.dates_)
        X = read_new(self, with_parsed(X, own.numbers), own, "count as the mean of their column")
        numbers, marks = self._encoded(X)
        if self.sparse_output_:
            return sp.hstack([sp.csr_array(numbers), marks], format="csr")
        found = np.empty((X.shape[0], own.n_features), dtype=self.dtype_)
        found[:, : own.n_numbers] = numbers.toarray() if sp.issparse(numbers) else numbers
        found[:, own.n_numbers :] = marks.toarray()
        return found

    def _encoded(self, X) -> tuple[np.ndarray | sp.csr_array, sp.csr_array]:
        """Numbers and indicators of rows that were read."""
        values, marks = self.columns_.parts(X)
        shape = (X.shape[0], self.columns_.n_features - self.columns_.n_numbers)
        if marks is None:
            ones = sp.csr_array(shape, dtype=self.dtype_)
        else:
            stored = np.ones(len(marks.index), dtype=self.dtype_)
            ones = sp.csr_array((stored, marks.index, marks.start), shape=shape)
        if not values.sparse:
            numbers = np.where(np.isnan(values.data), self.fill_, values.data)
            return ((numbers - self.shift_) * self.factor_).astype(self.dtype_), ones
        numbers = values.csr().copy()
        column = numbers.indices
        numbers.data = np.where(np.isnan(numbers.data), self.fill_[column], numbers.data)
        numbers.data = (numbers.data * self.factor_[column]).astype(self.dtype_)
        return numbers, ones

    def _in_order(self, X):
        """The columns of a data frame that `fit` had, by name."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or not nw.dependencies.is_into_dataframe(X):
            return X
        frame = nw.from_native(X, eager_only=True)
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise ValueError(
                f"X lacks the columns {quoted(absent)}, which TableEncoder was fitted to. It has "
                f"{quoted(frame.columns)}."
            )
        return frame.select([*map(str, names)]).to_native()

    def _check_params(self) -> None:
        check_chosen("categorical_features", self.categorical_features)
        check_chosen("date_features", self.date_features)
        if self.scaling is not None:
            check_choice("scaling", self.scaling, ("minmax",))
        if self.sparse_output != "auto":
            check_bool("sparse_output", self.sparse_output)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` returns: numbers first, then categories.

        Returns
        -------
        names : ndarray of str
            A column of numbers keeps its name; others are ``column=category``.
        """
        check_is_fitted(self)
        own, names = self.columns_, check_feature_names_in(self, input_features)
        found = np.empty(own.n_features, dtype=object)
        for j, name in enumerate(names):
            features = own.features(j)
            if features.number is not None:
                found[features.number] = name
            if features.missing is not None:
                found[features.missing] = f"{name}={MISSING}"
            for k, category in zip(features.categories, own.categories.get(j, ()), strict=True):
                found[k] = f"{name}={category}"
        return found


def _low_high_mean(values: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each column, without its missing values; 0 where all are missing."""
    low, high = (np.where(np.isfinite(end), end, 0.0) for end in values.ranges())
    X = values.csr() if values.sparse else values.data
    n = X.shape[0] - n_missing(X)
    if sp.issparse(X):
        total = np.bincount(X.indices, np.nan_to_num(X.data, nan=0.0), minlength=X.shape[1])
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.nansum(X, axis=0, dtype=np.float64)
    mean = total / np.maximum(n, 1)
    return low, high, np.where(np.isfinite(mean), mean, low / 2 + high / 2)
