"""Write svmlight / LIBSVM text that reads back to the same numbers."""

from __future__ import annotations

import io
import math
import re
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from widemargin.files import text_output
from widemargin.validation import canonical

_SHOWN = 40  # characters of a bad token in a message
_WRITE_ROWS = 1000
_LONGEST_LABEL = 256  # bytes, as in the core
_LABEL = re.compile(r"(?!(?i:[+-]?nan\())[^\s#:,\x00-\x1f\x7f\ufeff]+")


def write_svmlight(path, X, y=None, *, qid=None, zero_based: bool = False) -> None:
    """Write svmlight text that reads back, in the same number type, to the same numbers.

    Parameters
    ----------
    path : path or text file
        A path is written atomically.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), default=None
        Numbers, or strings without spaces; 0 where there is none. Strings that all are numbers
        read back as numbers.
    qid : array-like of int, default=None
    zero_based : bool, default=False
        Count features from 0 rather than 1, as LIBSVM does.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_svmlight(f"{folder}/a.txt", [[0.5, 0.0], [0.0, 2.0]], [1, -1])
    ...     Path(folder, "a.txt").read_text()
    '1 1:0.5\\n-1 2:2\\n'
    """
    X = sp.csr_array(X)
    if X.ndim == 2:
        X = canonical(X)
    if X.dtype == np.longdouble:
        X = X.astype(np.float64)  # a reader returns no more digits
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not np.all(np.isfinite(X.data)):
        raise ValueError("X must be a matrix of finite real numbers.")
    n = X.shape[0]
    y = np.zeros(n, dtype=int) if y is None else np.asarray(y)
    numbers = None if qid is None else np.asarray(qid)
    if y.shape != (n,) or (numbers is not None and numbers.shape != (n,)):
        raise ValueError(f"X has {n} rows; y and qid must have one value for each.")
    if numbers is not None and numbers.dtype.kind not in "iu":
        raise ValueError(f"qid must be whole numbers, not {numbers.dtype}.")
    labels = [_label_text(v) for v in y]
    queries = [""] * n if numbers is None else [f" qid:{q}" for q in numbers]
    base = 0 if zero_based else 1
    with text_output(path) as file:
        for first in range(0, n, _WRITE_ROWS):
            lines = io.StringIO()
            ends = X.indptr[first : first + _WRITE_ROWS + 1].tolist()
            block = slice(ends[0], ends[-1])
            numbers_of = (X.indices[block] + base).tolist()
            features = [f" {j}:{v}" for j, v in zip(numbers_of, _texts(X.data[block]), strict=True)]
            for i, (begin, end) in enumerate(pairwise(ends), first):
                row = "".join(features[begin - ends[0] : end - ends[0]])
                lines.write(f"{labels[i]}{queries[i]}{row}\n")
            file.write(lines.getvalue())


def _texts(values: np.ndarray) -> list[str]:
    """Return the texts of numbers; equal ones (by their bits: 0 is not -0) are converted once."""
    bits = values.view(f"u{values.itemsize}")
    _, first, number = np.unique(bits, return_index=True, return_inverse=True)
    texts = [_number_text(value, values.dtype) for value in values[first].tolist()]
    return np.array(texts, dtype=object)[number].tolist()


def _number_text(value, dtype) -> str:
    """Return the shortest text that reads back to the same number."""
    if dtype.kind in "biu":
        return str(int(value))
    if dtype == np.float64:
        return repr(float(value)).removesuffix(".0")
    text = str(dtype.type(value))
    if dtype.type(float(text)) != value:  # float32 7.038531e-26: reading rounds twice
        text = str(float(value))
    return text.removesuffix(".0")


def _label_text(value) -> str:
    if isinstance(value, str):
        fits = len(value.encode(errors="replace")) <= _LONGEST_LABEL
        if not (fits and _LABEL.fullmatch(value) and _is_finite(value)):
            raise ValueError(
                f"the label {str(value)[:_SHOWN]!r} cannot be written: labels must not be empty, "
                f"longer than {_LONGEST_LABEL} bytes or infinite, nor contain spaces, commas, "
                "colons or #."
            )
        return str(value)
    if not np.isfinite(value):
        raise ValueError(f"the label {value} is not finite.")
    kind = np.asarray(value).dtype
    return _number_text(value, kind if kind.kind in "biu" else np.dtype(np.float64))


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return True
