"""`TableEncoder`: columns of a table as the numbers that kernels take.

`additive.frames` decides which columns are categories, and `additive.columns` which features a
column has, as they do for `AdditiveSVC`, which needs no encoding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from widemargin.additive import AdditiveSVC
from widemargin.additive.columns import Columns, n_missing
from widemargin.additive.frames import (
    check_chosen,
    dates_chosen,
    is_frame,
    read_new,
    read_training,
    with_days,
    with_parsed,
)
from widemargin.additive.source import Values
from widemargin.errors import quoted
from widemargin.sklearn_private import check_feature_names_in
from widemargin.validation import check_bool, check_choice

_SPARSE_BELOW = 1 / 3  # share of values that are not zero
MISSING = "(missing)"


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as a matrix of numbers.

    Numbers are scaled to [0, 1].  Every category gets a column of zeros and ones, and so do missing
    values.  A missing number is also replaced by the mean of its column.

    Parameters
    ----------
    categorical_features : {"from_dtype"}, list of str or int, mask or None, default="from_dtype"
        Which columns are categories.  By default those of a data frame that hold text or have a
        categorical type.  Text that does not look like categories (nearly all of it numbers, or
        different in nearly every row) is refused.
    date_features : {"from_dtype"}, list of str or int, mask or None, default=None
        Which columns are dates, to be encoded as days since 1970.  Other dates are refused.
    scaling : {"minmax", None}, default="minmax"
        "minmax" scales numbers and dates to [0, 1]; in sparse rows it divides them by the largest
        magnitude of their column, so that zeros stay zeros.  None leaves numbers as they are.
    sparse_output : bool or "auto", default="auto"
        Whether `transform` returns a CSR array.  "auto": for sparse X, and for tables where less
        than a third of the features of a row can differ from zero.

    Attributes
    ----------
    columns_ : Columns
        What the columns of X are: categories of each, and which had missing values.
    ranges_ : Ranges
        Smallest and largest value, sum and number of values of each column of numbers.
    fill_, shift_, factor_ : ndarray of shape (n_numbers,)
        A number x becomes ``(x - shift_) * factor_``; a missing one counts as ``fill_``.
    dates_ : tuple of int
        The columns of dates.
    dtype_ : dtype
        What `transform` returns: float32 if X was in single precision, else float64.
    sparse_input_, sparse_output_ : bool
        Whether X was sparse, and whether `transform` returns a CSR array.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the columns of X had names.

    See Also
    --------
    AdditiveSVC : Learns from categories and missing values as they are.

    Notes
    -----
    `transform` finds columns by name: they may come in any order, and other columns are ignored.
    A category that the training data did not have is encoded as zeros, with a warning.  Numbers
    that come as text are parsed; numbers in a column of categories are compared as text.

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
            A frame of pandas, polars, pyarrow or another library that narwhals reads; a missing
            value is None or NaN.
        y : ignored

        Returns
        -------
        self : TableEncoder
        """
        return self._learn(X, before=None)

    def partial_fit(self, X, y=None):
        """Learn from one chunk of rows, in addition to earlier chunks.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : TableEncoder
        """
        return self._learn(X, before=getattr(self, "columns_", None))

    def _learn(self, X, *, before: Columns | None) -> TableEncoder:
        """Learn from X in addition to the rows summarised in ``before``."""
        self._check_params()
        if before is None:
            self.dates_ = tuple(dates_chosen(self.date_features, X))
        X = with_days(X if before is None else self._in_order(X), self.dates_)
        X, _, categories = read_training(self, X, labelled=False, more=before is not None)
        columns = Columns.of(X, categories)
        ranges = Ranges.of(columns.parts(X).values)
        if before is not None:
            columns, ranges = before.joined(columns), self.ranges_.joined(ranges)
        dtype = np.dtype(np.float32 if X.dtype in (np.float16, np.float32) else np.float64)
        if before is not None:
            dtype = np.result_type(dtype, self.dtype_)
        self._settle(columns, ranges, dtype, sp.issparse(X))
        return self

    def _settle(self, columns: Columns, ranges: Ranges, dtype: np.dtype, sparse: bool) -> None:
        """Set the fitted attributes; ``sparse`` tells whether X was sparse."""
        self.columns_, self.ranges_ = columns, ranges
        self.dtype_, self.sparse_input_ = dtype, sparse
        self.fill_, self.shift_ = ranges.mean, np.zeros(columns.n_numbers)
        self.factor_ = np.ones(columns.n_numbers)
        if self.scaling == "minmax":
            self.shift_, self.factor_ = ranges.scaled(keep_zeros=sparse)
        n_stored = columns.n_numbers + len(columns.categories)
        mostly_zero = bool(columns.categories) and n_stored < _SPARSE_BELOW * columns.n_features
        automatic = self.sparse_output == "auto"
        self.sparse_output_ = sparse or mostly_zero if automatic else bool(self.sparse_output)

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
        columns = self.columns_
        X = with_days(self._in_order(X), self.dates_)
        X = read_new(
            self, with_parsed(X, columns.numbers), columns, "count as the mean of their column"
        )
        numbers, marks = self._encoded(X)
        if self.sparse_output_:
            return sp.hstack([sp.csr_array(numbers), marks], format="csr")
        encoded = np.empty((X.shape[0], columns.n_features), dtype=self.dtype_)
        encoded[:, : columns.n_numbers] = numbers.toarray() if sp.issparse(numbers) else numbers
        encoded[:, columns.n_numbers :] = marks.toarray()
        return encoded

    def inverse_transform(self, X):
        """Decode rows to the original columns, as a pyarrow Table.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features_out)

        Returns
        -------
        table : pyarrow.Table
            Dates are days, and categories that the training data did not have are missing.
        """
        import pyarrow as pa

        check_is_fitted(self)
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        layout, columns = self.columns_, {}
        numbers = X[:, : layout.n_numbers] / self.factor_ + self.shift_
        for j, name in enumerate(check_feature_names_in(self, None)):
            features = layout.features(j)
            if features.number is not None:
                values = numbers[:, features.number]
                if features.missing is not None:
                    values = np.where(X[:, features.missing] > 0, np.nan, values)
                columns[name] = pa.array(values)
            else:
                has = X[:, features.categories.start : features.categories.stop] > 0
                codes = pa.array(has.argmax(axis=1), pa.int32(), mask=~has.any(axis=1))
                texts = pa.array(layout.categories[j], pa.large_string())
                columns[name] = pa.DictionaryArray.from_arrays(codes, texts)
        return pa.table(columns)

    def _encoded(self, X) -> tuple[Any, sp.csr_array]:
        """Encode rows as numbers and indicators."""
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
        """Select the columns that `fit` saw from a data frame, by name."""
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
        """Return the names of `transform`'s columns: numbers first, then categories.

        Returns
        -------
        names : ndarray of str
            A column of numbers keeps its name; others are ``column=category``.
        """
        check_is_fitted(self)
        columns, names = self.columns_, check_feature_names_in(self, input_features)
        out = np.empty(columns.n_features, dtype=object)
        for j, name in enumerate(names):
            features = columns.features(j)
            if features.number is not None:
                out[features.number] = name
            if features.missing is not None:
                out[features.missing] = f"{name}={MISSING}"
            for k, category in zip(features.categories, columns.categories.get(j, ()), strict=True):
                out[k] = f"{name}={category}"
        return out


class Ranges(NamedTuple):
    """Minimum, maximum, sum and number of values of each column; 0 where all are missing."""

    low: np.ndarray
    high: np.ndarray
    total: np.ndarray
    n: np.ndarray

    @classmethod
    def of(cls, values: Values) -> Ranges:
        low, high = values.ranges()
        X: Any = values.csr() if values.sparse else values.data
        n = X.shape[0] - n_missing(X)
        if sp.issparse(X):
            total = np.bincount(X.indices, np.nan_to_num(X.data, nan=0.0), minlength=X.shape[1])
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                total = np.nansum(X, axis=0, dtype=np.float64)
        return cls(np.where(n, low, 0.0), np.where(n, high, 0.0), total, n.astype(np.int64))

    def joined(self, other: Ranges) -> Ranges:
        """Return the ranges of the rows of both."""
        low = np.where(other.n * self.n, np.minimum(self.low, other.low), self.low + other.low)
        high = np.where(other.n * self.n, np.maximum(self.high, other.high), self.high + other.high)
        return Ranges(low, high, self.total + other.total, self.n + other.n)

    @property
    def mean(self) -> np.ndarray:
        """Return means rounded to 40 bits, so that they do not depend on the chunks."""
        mean = self.total / np.maximum(self.n, 1)
        mean = np.where(np.isfinite(mean), mean, self.low / 2 + self.high / 2)
        part, power = np.frexp(mean)
        return np.ldexp(np.round(np.ldexp(part, 40)), power - 40)

    def scaled(self, *, keep_zeros: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return shift and factor of the scaling to [0, 1]."""
        shift = 0 * self.low if keep_zeros else self.low
        with np.errstate(over="ignore"):
            spread = np.maximum(self.high, -self.low) if keep_zeros else self.high - self.low
        return shift, 1 / np.where(spread > np.finfo(np.float64).tiny, spread, 1.0)


def encoding(X, scaler, machine):
    """Return the steps before a machine: a `TableEncoder` if X is a table, then the scaler.

    An `AdditiveSVC` without a scaler takes tables as they are.
    """
    if not is_frame(X) or (scaler is None and isinstance(machine, AdditiveSVC)):
        return scaler
    after = [step for step in (scaler, machine) if step is not None]
    sparse = all(get_tags(step).input_tags.sparse for step in after)
    encoder = TableEncoder(scaling=None, sparse_output="auto" if sparse else False)
    steps = [("table", encoder), ("scale", scaler)]
    return Pipeline([step for step in steps if step[1] is not None])
