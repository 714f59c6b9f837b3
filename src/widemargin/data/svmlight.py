"""Read svmlight / LIBSVM text in blocks of lines, which the core parses.

A buffer of text is cut at newlines into one part per thread.  The parts are measured, and all are
parsed in parallel to the end of the arrays; memory never holds the whole text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import BinaryIO, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from widemargin import _core
from widemargin.budget import Budget
from widemargin.data.dataset import Dataset
from widemargin.data.streams import fill
from widemargin.validation import check_choice, check_number

PART = 4 << 20  # bytes of text per thread and round
_LEAST_PART = 1 << 14
_PARTS_PER_BUDGET = 64  # bounds a round's text and rows to a fraction of the budget
_ROW = 36  # bytes per row: label, query, end, start in the matrix
_TEXT = 64  # bytes of a text label, without its characters
_BOM = b"\xef\xbb\xbf"
_ALL_QID = "give a qid to all rows or to none."
_SHOWN = 40  # characters of a bad token in a message

_FAULTS = {
    "no_label": "{token!r} is in the place of the label. Every line begins with a label; write "
    "0 if it is unknown.",
    "many_labels": "{token!r} lists several labels. Multi-label data is not supported: train one "
    "model per label.",
    "bad_label": "the label {token!r} is not a finite number.",
    "long_label": "the label {token!r} is longer than 256 bytes.",
    "not_utf8": "the label {token!r} is not UTF-8 text.",
    "bad_qid": "{token!r} is not a query number.",
    "late_qid": "{token!r} must come right after the label.",
    "bad_index": "{token!r} is not a feature. Write index:value with a whole number as index.",
    "negative_index": "{token!r} has a negative feature index.",
    "large_index": "{token!r} has a feature index above 2^62.",
    "descending_index": "{token!r} comes after a larger feature index; indices must ascend.",
    "repeated_index": "{token!r} repeats a feature index.",
    "no_value": "{token!r} is a feature without a value. Write index:value.",
    "bad_value": "{token!r} is not a finite number.",
    "large_value": "{token!r} is too large for the number type.",
    "bad_byte": "an unexpected byte, {byte:#04x}. Is this a text file?",
}


class _ReadAgain(Exception):  # noqa: N818
    """Labels are text or indices need 64 bits, so the file must be read again."""


class _Result(NamedTuple):
    """The core's result for a part of the text; see cpp/svmlight.hpp."""

    rows: int
    values: int
    lines: int
    with_qid: int
    least: int
    most: int
    fault: str
    line_at: int
    fault_at: int


def read_svmlight(
    file: BinaryIO,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype=np.float64,
    n_jobs: int | None = None,
    name: str = "svmlight text",
    max_bytes: int | Budget | None = None,
) -> Dataset:
    """Read svmlight or LIBSVM text.

    Parameters
    ----------
    file : binary file
        Seekable, if labels are text or indices above 2^31.
    n_features : int, default=None
        Number of columns; by default from the largest index.
    zero_based : bool or "auto", default="auto"
        Whether indices count from 0; "auto" is yes if the index 0 occurs.
    dtype : float32 or float64
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    name : str
    max_bytes : int, default=None
        Memory limit for the rows, by default 80 % of the free memory.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import io
    >>> data = read_svmlight(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1 # a comment\\n"))
    >>> data.X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> data.y
    array([ 1., -1.])
    """
    options = {"n_features": n_features, "zero_based": zero_based, "dtype": dtype, "n_jobs": n_jobs}
    return next(stream_svmlight(file, whole=True, name=name, max_bytes=max_bytes, **options))


def stream_svmlight(
    file: BinaryIO,
    *,
    n_features: int | None = None,
    zero_based: bool | str = False,
    dtype=np.float64,
    n_jobs: int | None = None,
    name: str = "svmlight text",
    max_bytes: int | Budget | None = None,
    whole: bool = False,
) -> Iterator[Dataset]:
    """Read svmlight text piece by piece, in bounded memory, or the ``whole`` of it.

    Parameters are those of `read_svmlight`.  Without ``n_features`` a piece is as wide as its
    largest index.  The first piece decides ``zero_based="auto"`` and whether labels are text.
    ``max_bytes`` limits a block and the longest line, not the file.
    Parsing assumes numeric labels and 32-bit indices first, and restarts if a file has others.

    Examples
    --------
    >>> import io
    >>> text = io.BytesIO(b"1 1:0.5\\n-1 2:1\\n")
    >>> [block.X.shape for block in stream_svmlight(text, n_features=2)]
    [(2, 2)]
    """
    check_choice("zero_based", zero_based, (True, False, "auto"))
    if n_features is not None:
        check_number("n_features", n_features, low=1, integer=True)
    budget, start = Budget.of(max_bytes, name), file.tell() if file.seekable() else 0
    rows, has_qid = _GrowingRows(dtype, budget), None
    while True:
        try:
            with budget:
                for _ in _rounds(file, rows, effective_n_jobs(n_jobs), keep=whole):
                    if whole or not rows.n_rows:
                        continue
                    piece = rows.dataset(n_features, zero_based)
                    if has_qid not in (None, piece.qid is not None):
                        raise ValueError(f"{budget.name}: only some rows have a qid; {_ALL_QID}")
                    has_qid, zero_based = piece.qid is not None, bool(piece.zero_based)
                    yield piece
                    rows.forget()
                if whole:
                    yield rows.dataset(n_features, zero_based)
                return
        except _ReadAgain:
            if has_qid is not None:  # pieces were already returned
                problem, way_out = " from some row on", "Read the file as a whole."
            elif not file.seekable():
                problem = ", which takes a second pass, and a pipe cannot be read twice"
                way_out = "Save it to a file first."
            else:
                file.seek(start)
                continue
            what = f"{budget.name}: labels are text or indices above 2^31"
            raise ValueError(f"{what}{problem}. {way_out}") from None


def _rounds(
    file: BinaryIO, rows: _GrowingRows, n_threads: int, *, keep: bool = True
) -> Iterator[None]:
    """Parse buffer after buffer into ``rows``; ``keep`` all, or only the last."""
    part = min(PART, max(_LEAST_PART, rows.budget.max_bytes // _PARTS_PER_BUDGET // n_threads))
    buffer, held, at_start = bytearray(part * n_threads), 0, True
    size, n_read = _size(file) if keep else 0, 0
    rows.spare = 2.0 if keep else 1.0
    with ExitStack() as stack:
        each: Callable = map
        if n_threads > 1:
            each = stack.enter_context(ThreadPoolExecutor(n_threads)).map
        while True:
            got = fill(file, memoryview(buffer)[held:])
            end, n_read = held + got, n_read + got
            rows.expected = size / n_read if n_read else 1.0
            whole = buffer.rfind(b"\n", 0, end) + 1 if got else end
            begin = len(_BOM) if at_start and buffer.startswith(_BOM) else 0
            if whole > begin:
                rows.parse(_parts(buffer, begin, whole, n_threads), each)
                at_start = False
                yield
            if got == 0:
                return
            if end - whole == len(buffer):
                rows.check_memory(2 * len(buffer), "a line of it takes")
            buffer, held = _moved(buffer, whole, end), end - whole


def _size(file: BinaryIO) -> int:
    """Return the bytes of a plain file; 0 if unknown."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, AttributeError):
        return 0


def _moved(buffer: bytearray, begin: int, end: int) -> bytearray:
    """Move text to the front of the buffer; return a larger buffer if the text fills it."""
    size = end - begin
    # A new buffer, because threads may still use the old one.
    moved = bytearray(2 * size) if size == len(buffer) else buffer
    moved[:size] = buffer[begin:end]
    return moved


def _parts(buffer: bytearray, begin: int, end: int, n: int) -> list[np.ndarray]:
    """Cut text at newlines into at most n parts of about the same size."""
    cuts = [begin]
    for k in range(1, n):
        at = buffer.find(b"\n", begin + (end - begin) * k // n, end) + 1
        if cuts[-1] < at < end:
            cuts.append(at)
    text = np.frombuffer(buffer, dtype=np.uint8)
    return [text[a:b] for a, b in zip(cuts, [*cuts[1:], end], strict=True)]


class _GrowingRows:
    """Arrays that grow as text is parsed."""

    def __init__(self, dtype, budget: Budget):
        dtype = np.dtype(dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype} must be float32 or float64.")
        self.name, self.budget, self.dtype = budget.name, budget, dtype
        self.text_labels = False
        self.index_dtype: type = np.int32
        self.forget()
        self.n_lines = 0
        self.expected = 1.0  # size of the file / bytes read
        self.spare = 2.0  # growth of the arrays if that is unknown

    def forget(self) -> None:
        """Start a new piece in new memory; the caller owns the last one."""
        self.n_rows = self.n_values = self.with_qid = 0
        self.least, self.most = np.iinfo(np.int64).max, -1
        self.labels: list[str] = []
        self.label_bytes = 0
        self._allocate(0, 0)

    def _allocate(self, rows: int, values: int) -> None:
        self.label = np.empty(rows)
        self.qid = np.empty(rows, dtype=np.int64)
        self.end = np.empty(rows, dtype=np.int64)
        self.index: np.ndarray = np.empty(values, dtype=self.index_dtype)
        self.value = np.empty(values, dtype=self.dtype)

    def _bytes(self, rows: int, values: int) -> int:
        return _ROW * rows + (self.index.itemsize + self.dtype.itemsize) * values

    def check_memory(self, more: int, what: str = "its rows take") -> None:
        used = self._bytes(self.n_rows, self.n_values)
        self.budget.check(used + self.label_bytes + more, what)

    def _reserve(self, rows: int, values: int) -> None:
        """Make room for more rows and values; unused memory is never touched."""
        more = self._bytes(rows, values)
        if self.n_rows + rows <= len(self.label) and self.n_values + values <= len(self.value):
            self.check_memory(more)
            return
        needed = self._bytes(self.n_rows + rows, self.n_values + values)
        self.check_memory(needed)  # in addition to the old arrays, until they are copied
        old = (self.label, self.qid, self.end, self.index, self.value)
        factor = max(self.spare, 1.1 * self.expected)
        factor = min(factor, max(1.0, self.budget.max_bytes / needed))
        self._allocate(int(factor * (self.n_rows + rows)), int(factor * (self.n_values + values)))
        for array, before in zip(old[:3], (self.label, self.qid, self.end), strict=True):
            before[: self.n_rows] = array[: self.n_rows]
        for array, before in zip(old[3:], (self.index, self.value), strict=True):
            before[: self.n_values] = array[: self.n_values]

    def parse(self, parts: list[np.ndarray], each: Callable) -> None:
        """Append the rows of text, cut into parts; ``each`` maps over the parts."""
        sizes = np.array(list(each(_core.measure_svmlight, parts))).reshape(-1, 2)
        self._reserve(*sizes.sum(axis=0))
        row_at, value_at = (np.cumsum(sizes, axis=0) - sizes + (self.n_rows, self.n_values)).T
        spans = [np.empty((n if self.text_labels else 0, 2), dtype=np.int64) for n, _ in sizes]

        def parse_part(k: int) -> _Result:
            r = slice(row_at[k], row_at[k] + sizes[k, 0])
            v = slice(value_at[k], value_at[k] + sizes[k, 1])
            label, span = (None, spans[k]) if self.text_labels else (self.label[r], None)
            rows, values = (self.qid[r], self.end[r]), (self.index[v], self.value[v])
            return _Result(*_core.parse_svmlight(parts[k], label, span, *rows, *values))

        results = list(each(parse_part, range(len(parts))))
        for k, result in enumerate(results):
            if result.fault:
                self._fail(parts[k], result.fault, result.lines, result.line_at, result.fault_at)
            if self.text_labels:
                self._append_labels(parts[k], spans[k][: result.rows])
            self._append(result, row_at[k], value_at[k])

    def _append(self, result: _Result, row_at: int, value_at: int) -> None:
        """Append a parsed part: close gaps left by comments and empty lines, shift row ends."""
        rows = slice(row_at, row_at + result.rows)
        values = slice(value_at, value_at + result.values)
        to_rows = slice(self.n_rows, self.n_rows + result.rows)
        to_values = slice(self.n_values, self.n_values + result.values)
        self.end[to_rows] = self.end[rows] + self.n_values
        if row_at != self.n_rows:
            self.label[to_rows], self.qid[to_rows] = self.label[rows], self.qid[rows]
        if value_at != self.n_values:
            self.index[to_values], self.value[to_values] = self.index[values], self.value[values]
        self.n_rows, self.n_values = to_rows.stop, to_values.stop
        self.n_lines += result.lines
        self.with_qid += result.with_qid
        self.least, self.most = min(self.least, result.least), max(self.most, result.most)

    def _append_labels(self, text: np.ndarray, spans: np.ndarray) -> None:
        self.label_bytes += _TEXT * len(spans) + 4 * int((spans[:, 1] - spans[:, 0]).sum())
        self.check_memory(0)
        content = text.tobytes()
        for begin, end in spans.tolist():
            try:
                self.labels.append(content[begin:end].decode())
            except UnicodeDecodeError:
                line_at = content.rfind(b"\n", 0, begin) + 1
                self._fail(text, "not_utf8", content.count(b"\n", 0, begin), line_at, begin)

    def _fail(self, text: np.ndarray, fault: str, lines: int, line_at: int, at: int) -> NoReturn:
        """Raise the error ``fault``, at byte ``at``, ``lines`` after the start of the text."""
        if fault in ("text_label", "wide_index"):
            self.text_labels |= fault == "text_label"
            if fault == "wide_index":
                self.index_dtype = np.int64
            self.forget()
            self.n_lines = 0
            raise _ReadAgain
        content = text[at : at + 4 * _SHOWN].tobytes()
        token = re.split(rb"[ \t\r\n#]", content, maxsplit=1)[0].decode(errors="replace")
        token = token if len(token) <= _SHOWN else token[:_SHOWN] + "..."
        message = _FAULTS[fault].format(token=token, byte=content[0])
        line, column = self.n_lines + lines + 1, at - line_at + 1
        raise ValueError(f"{self.name}, line {line}, column {column}: {message}") from None

    def dataset(self, n_features, zero_based) -> Dataset:
        if self.n_rows == 0:
            raise ValueError(f"{self.name}: the file has no rows.")
        if 0 < self.with_qid < self.n_rows:
            raise ValueError(
                f"{self.name}: {self.with_qid} of {self.n_rows} rows have a qid; {_ALL_QID}"
            )
        if zero_based == "auto":
            zero_based = self.least == 0
        elif not zero_based and self.least == 0:
            raise ValueError(
                f"{self.name}: the feature index 0 occurs, but zero_based=False, or the data that "
                "the model was trained on, says that indices count from 1."
            )
        used = self.most + (1 if zero_based else 0)
        if n_features is None:
            n_features = max(used, 1)
        elif used > n_features:
            raise ValueError(
                f"{self.name}: the feature index {self.most} occurs, but there are only "
                f"{n_features} features."
            )
        start = np.zeros(self.n_rows + 1, dtype=np.int64)
        start[1:] = self.end[: self.n_rows]
        index, value = self.index[: self.n_values], self.value[: self.n_values]
        if not zero_based:
            index -= 1
        if self.n_values <= np.iinfo(np.int32).max and n_features <= np.iinfo(np.int32).max:
            start = start.astype(np.int32)
        else:
            index = index.astype(np.int64)
        X = sp.csr_array((value, index, start), shape=(self.n_rows, n_features))
        if self.text_labels:  # NumPy stores every label with the longest one's length
            self.check_memory(4 * self.n_rows * max(map(len, self.labels)), "its labels take")
        y = np.array(self.labels) if self.text_labels else self.label[: self.n_rows]
        qid = self.qid[: self.n_rows] if self.with_qid else None
        return Dataset(X, y, None, qid, bool(zero_based))
