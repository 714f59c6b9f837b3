"""Convert data frames to matrices in which a category is its index in a list.

Frames of pandas, polars, pyarrow and every other library that narwhals reads.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from widemargin.additive.columns import UNSEEN, Columns
from widemargin.categories import (
    Text,
    WaysOut,
    check_likely,
    is_missing,
    parsed,
    text_of,
    text_of_arrow,
)
from widemargin.errors import (
    IdentifierWarning,
    Message,
    Parameter,
    ParameterError,
    UnseenWarning,
    listed,
    warn_user,
)
from widemargin.validation import check_X, check_X_y, column_name

FROM_DTYPE = "from_dtype"
_MOST_NAMED = 5  # columns in a warning
_FEW = 50  # up to this many rows any column may be unique
_GLANCE = 1000  # rows that suffice to rule out most identifiers
_DAY = 86_400_000_000  # microseconds


def check_chosen(parameter: str, value) -> None:
    """Raise ValueError if a parameter cannot select columns of any data."""
    if value is None or (isinstance(value, str) and value == FROM_DTYPE):
        return
    kinds = {type(item) for item in _listed(value)} if not isinstance(value, str) else {None}
    if len(kinds) > 1 or not kinds <= {str, int, bool}:
        must = "must be 'from_dtype', None, a list of names or of positions of columns, or a mask."
        raise ParameterError(parameter, value, must)


def _listed(value) -> list:
    """Return the items of a list, an array or an index as Python objects."""
    try:
        items = value.tolist() if hasattr(value, "tolist") else list(value)
    except TypeError:
        items = None
    if not isinstance(items, list):
        return [None]  # None is not a column
    return [item.item() if isinstance(item, np.generic) else item for item in items]


def read_training(estimator, X, y=None, *, labelled: bool = True, more: bool = False):
    """Check training data; return matrix, labels, and the categories by column.

    Warns of columns of a data frame that may be identifiers, unless these are ``more`` rows of
    data read before.
    """
    asking, texts = not more and is_frame(X), _texts(estimator, X)
    # Sorted, to be independent of the order of rows.
    categories = {j: tuple(sorted(text.categories)) for j, text in texts.items()}
    X = with_codes(X, {j: places(text, categories[j]) for j, text in texts.items()})
    if labelled:
        X, y = check_X_y(estimator, X, y)
    else:
        X = check_X(estimator, X, reset=not more)
    if asking:
        _ask_about_identifiers(estimator, X, set(range(X.shape[1])).difference(categories))
    return X, y, categories


def read_new(estimator, X, columns: Columns, missing: str = "contribute nothing"):
    """Check data and return it as a matrix with the training data's categories.

    ``missing`` says for a warning what happens to missing values in columns that had none.
    """
    if columns.categories:  # found by position
        validate_data(estimator, X, reset=False, skip_check_array=True)
    texts = {j: text_column(X, j) for j in columns.categories}
    codes = {j: places(text, columns.categories[j]) for j, text in texts.items()}
    X = check_X(estimator, with_codes(X, codes), reset=False)
    unseen = {j: _unseen(texts[j], values) for j, values in codes.items() if UNSEEN in values}
    if unseen:
        warn_user(
            "Categories that the training data did not have are ignored: "
            + _by_column(estimator, unseen),
            UnseenWarning,
        )
    gaps = {j: f"in {_rows(n)}" for j, n in columns.newly_missing(X).items()}
    if gaps:
        warn_user(
            f"Missing values in columns that had none in the training data {missing}: "
            + _by_column(estimator, gaps),
            UnseenWarning,
        )
    return X


def _ask_about_identifiers(estimator, X: np.ndarray, columns: set[int]) -> None:
    """Warn of columns of integers that differ in every row."""
    unique = [j for j in sorted(columns) if _tells_rows_apart(X[:, j])]
    if unique:
        named = listed([str(column_name(estimator, j)) for j in unique], _MOST_NAMED)
        message = (
            "Different in every row: {named}. If such a column only numbers the rows, leave it "
            "out, for example with {drop} when the table is read."
        )
        drop = Parameter("drop", [str(estimator.feature_names_in_[j]) for j in unique])
        warn_user(Message(message, named=named, drop=drop), IdentifierWarning)


def _tells_rows_apart(column: np.ndarray) -> bool:
    def distinct(values: np.ndarray) -> bool:
        whole = bool(np.all(values == np.floor(values)))  # False for missing values
        return whole and len(np.unique(values)) == len(values)

    return len(column) > _FEW and distinct(column[:_GLANCE]) and distinct(column)


def _unseen(text: Text, codes: np.ndarray) -> str:
    rows = np.flatnonzero(codes == UNSEEN)
    return f"in {_rows(len(rows))}, first {text.categories[text.codes[rows[0]]]!r}"


def _rows(n: int) -> str:
    return f"{n} row{'s' * (n != 1)}"


def _by_column(estimator, notes: dict[int, str]) -> str:
    named = [f"{column_name(estimator, j)} {what}" for j, what in notes.items()]
    return listed(named, _MOST_NAMED, "; ") + "."


# ------------------------------------------------------------------ which columns


def _frame(X) -> nw.DataFrame | None:
    """Return X as a narwhals frame, or None if it is not a data frame."""
    return nw.from_native(X, eager_only=True) if nw.dependencies.is_into_dataframe(X) else None


def is_frame(X) -> bool:
    return _frame(X) is not None


def _texts(estimator, X) -> dict[int, Text]:
    """Return the columns of categories by the parameter ``categorical_features``."""
    wanted = estimator.categorical_features
    if wanted is None:
        return {}
    if isinstance(wanted, str):
        return texts_by_dtype(X)
    columns = _positions("categorical_features", wanted, X)
    if columns and sp.issparse(X):
        raise ValueError(
            "Sparse X cannot have categorical_features: make it dense, or pass a data frame."
        )
    return {j: text_column(X, j) for j in columns}


def _positions(parameter: str, chosen, X) -> list[int]:
    """Return the positions of columns given by names, numbers or a mask."""
    wanted, frame, d = _listed(chosen), _frame(X), _width(X)
    if any(isinstance(item, str) for item in wanted):
        known = [] if frame is None else frame.columns
        absent = [item for item in wanted if item not in known]
        if absent:
            there = f"has {known}" if known else "has no names of columns"
            raise ValueError(f"{parameter}: there is no column {absent[0]!r}; X {there}.")
        return sorted({known.index(item) for item in wanted})
    if any(isinstance(item, bool) for item in wanted):
        if len(wanted) != d:
            raise ValueError(f"{parameter} is a mask of {len(wanted)} columns, but X has {d}.")
        return [j for j, chosen in enumerate(wanted) if chosen]
    bad = [item for item in wanted if not -d <= item < d]
    if bad:
        raise ValueError(f"{parameter}: there is no column {bad[0]} among {d}.")
    return sorted({item % d for item in wanted})


def texts_by_dtype(X) -> dict[int, Text]:
    """Return the columns of categories and text; refuse text that does not look like categories."""
    texts: dict[int, Text] = {}
    frame = _frame(X)
    if frame is None:
        return texts
    for j, series in enumerate(frame.iter_columns()):
        declared = series.dtype in (nw.Categorical, nw.Enum)
        if not declared and series.dtype not in (nw.String, nw.Object):
            continue
        if series.dtype == nw.Object and not _are_texts(series.to_list()):
            continue
        texts[j] = _text(series)
        if not declared:
            check_likely(series.name, texts[j], _ways_out(series.name))
    return texts


def _are_texts(objects: list) -> bool:
    """Whether some objects are text that is not a number."""
    present = [value for value in objects if not is_missing(value)]
    if not all(isinstance(value, (str, numbers.Real)) for value in present):
        return False
    try:
        np.array(present, dtype=object).astype(np.float64)
    except ValueError:
        return True
    return False


def _ways_out(name: str) -> WaysOut:
    return WaysOut(
        lambda value: f"X[{name!r}].replace({value!r}, None)",
        f"X.astype({{{name!r}: float}})",
        f"X.astype({{{name!r}: 'category'}})",
        f"X.drop(columns={name!r})",
    )


# ------------------------------------------------------------------ columns to numbers


def dates_chosen(chosen, X) -> list[int]:
    """Return the columns of dates by the parameter ``date_features``."""
    if chosen is None:
        return []
    if not isinstance(chosen, str):
        return _positions("date_features", chosen, X)
    frame = _frame(X)
    series = () if frame is None else frame.iter_columns()
    return [j for j, column in enumerate(series) if column.dtype in (nw.Date, nw.Datetime)]


def with_days(X, dates: Sequence[int]):
    """Replace dates of X by days since 1970, in UTC.

    Dates may be text in ISO 8601; numbers count as days.
    """
    if not dates:
        return X
    frame = _frame(X)
    if frame is None:
        values = np.asarray(X)
        return with_codes(X, {j: as_days(values[:, j].tolist(), str(j)) for j in dates})
    series: dict[int, Any] = {j: frame[:, j] for j in dates}
    return with_codes(
        X, {j: _days_of(column) for j, column in series.items() if not column.dtype.is_numeric()}
    )


def _days_of(series: Any) -> np.ndarray:
    if series.dtype not in (nw.Date, nw.Datetime):
        return as_days(series.to_list(), series.name)
    return np.asarray(series.dt.timestamp("us").to_numpy(), dtype=np.float64) / _DAY


def as_days(values: list, name: str) -> np.ndarray:
    """Convert dates, times, ISO 8601 texts or days to days since 1970."""
    days = np.full(len(values), np.nan)
    for k, value in enumerate(values):
        if is_missing(value):
            continue
        if isinstance(value, numbers.Real):
            days[k] = value
            continue
        try:
            days[k] = np.datetime64(_in_utc(value), "us").astype(np.int64) / _DAY
        except (ValueError, TypeError):
            raise ValueError(
                f"row {k + 1}, column {name!r}: {value!r} is not a date. Write dates as "
                "2026-11-18 or 2026-11-18T12:30:00."
            ) from None
    return days


def _in_utc(value):
    """Convert a date or time to UTC without a zone."""
    zone = getattr(value, "tzinfo", None)
    return value if zone is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def with_parsed(X, columns: Iterable[int]):
    """Parse columns of a frame as numbers if they are text."""
    frame = _frame(X)
    if frame is None:
        return X
    series: dict[int, Any] = {j: frame[:, j] for j in map(int, columns)}
    texts = {j: s for j, s in series.items() if s.dtype in (nw.String, nw.Categorical, nw.Enum)}
    return with_codes(X, {j: parsed(s.name, _text(s)) for j, s in texts.items()})


def _width(X) -> int:
    """Return the number of columns; 0 if X is not a matrix, which is refused elsewhere."""
    shape = np.shape(X) if not hasattr(X, "shape") else X.shape
    return shape[1] if len(shape) == 2 else 0


def text_column(X, j: int) -> Text:
    frame = _frame(X)
    if frame is not None:
        return _text(frame[:, j])
    if sp.issparse(X):
        raise ValueError(f"Column {j} has categories, which sparse data cannot have; give a table.")
    return text_of(np.asarray(X)[:, j].tolist())


def _text(series: Any) -> Text:
    """Return a narwhals series as `Text`, without a slow loop over Arrow texts."""
    column = series.to_native()
    if nw.dependencies.is_pyarrow_chunked_array(column) and _holds_texts(column.type):
        return text_of_arrow(column)
    return text_of(series.to_list())


def _holds_texts(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def places(text: Text, known: Sequence[str]) -> np.ndarray:
    """Return the index of every row's category in ``known``; `UNSEEN`, or NaN if missing."""
    number = {category: float(k) for k, category in enumerate(known)}
    return np.array([*(number.get(c, UNSEEN) for c in text.categories), np.nan])[text.codes]


def with_codes(X, codes: dict[int, np.ndarray]):
    """Replace some columns of X by codes."""
    if not codes:
        return X
    frame = _frame(X)
    if frame is not None:
        names, backend = frame.columns, frame.implementation
        new = [nw.new_series(names[j], values, backend=backend) for j, values in codes.items()]
        return frame.with_columns(*new).to_native()
    X = np.array(X)
    X = X.astype(np.result_type(X, np.float64) if X.dtype.kind in "biuf" else object)
    for j, values in codes.items():
        X[:, j] = values
    return X
