"""Read and write svm-scale's range files: the span of every feature, and its target.

The file omits features with a single value; scaling leaves them out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from widemargin.budget import Budget
from widemargin.files import replacing

_PER_BYTE = 32  # most bytes of memory per byte of text, as lists of numbers
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Span:
    """An interval."""

    low: float
    high: float

    def moved(self, values: np.ndarray, to: Span) -> np.ndarray:
        """Map values from this span to another; ends map to ends exactly."""
        share = (to.high - to.low) * (values - self.low) / (self.high - self.low)
        moved = np.where(values == self.high, to.high, to.low + share)
        return np.where(values == self.low, to.low, moved)


@dataclass(frozen=True)
class Range:
    """Spans of features, by their numbers in files, and of labels if scaled.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 4.0]])
    >>> found = Range.of(X, 1, Span(-1, 1))
    >>> found.index
    array([1, 3])
    >>> found.scaled(np.array([[2.0, 7.0, 1.0]]), 1)
    array([[ 0. ,  0. , -0.5]])
    """

    index: np.ndarray
    low: np.ndarray
    high: np.ndarray
    to: Span
    labels: Span | None = None
    labels_to: Span | None = None

    @classmethod
    def of(cls, X, first: int, to: Span) -> Range:
        """Return the range of rows whose first column is feature number ``first``."""
        low, high = (_along_columns(X, least) for least in (True, False))
        used = np.flatnonzero(low != high)
        return cls(used + first, low[used], high[used], to)

    def with_labels(self, y: np.ndarray, to: Span) -> Range:
        return replace(self, labels=Span(float(y.min()), float(y.max())), labels_to=to)

    def scaled(self, X, first: int) -> np.ndarray:
        """Return dense scaled rows; features without a span become zero."""
        rows = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        column, known = self._columns(X.shape[1], first)
        out = np.zeros(rows.shape)
        spans = Span(self.low[known], self.high[known])  # type: ignore[arg-type]
        out[:, column] = spans.moved(rows[:, column], self.to)
        return out

    def scaled_labels(self, y: np.ndarray) -> np.ndarray:
        if self.labels is None or self.labels_to is None:
            return y
        return self.labels.moved(y, self.labels_to)

    def not_seen(self, X, first: int) -> np.ndarray:
        """Return the numbers of features that vary in X but have no span."""
        varies = _along_columns(X, True) != _along_columns(X, False)
        varies[self._columns(X.shape[1], first)[0]] = False
        return np.flatnonzero(varies) + first

    def _columns(self, width: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns with a span, and the indices of their spans."""
        known = np.flatnonzero((self.index >= first) & (self.index < first + width))
        return self.index[known] - first, known

    def write(self, path: str | os.PathLike) -> None:
        """Write svm-scale's file, byte for byte and atomically."""
        lines = []
        if self.labels is not None and self.labels_to is not None:
            lines += ["y", _pair(self.labels_to), _pair(self.labels)]
        lines += ["x", _pair(self.to)]
        each = zip(self.index.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        lines += [f"{j} {_pair(Span(low, high))}" for j, low, high in each]
        with replacing(path) as file:
            file.write(("\n".join(lines) + "\n").encode())


def is_range_file(path: str | os.PathLike) -> bool:
    """Whether the path is a file that begins like a range file."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(64)  # the length of a safetensors header can look like x and a newline
    first, newline, _ = head.partition(b"\n")
    return bool(newline) and first.strip() in (b"x", b"y") and b"\0" not in head


def read_range(path: str | os.PathLike, *, max_bytes: int | None = None) -> Range:
    """Read a range file; check every number."""
    name = os.fspath(path)
    with Budget(max_bytes, name) as budget:
        budget.check(_PER_BYTE * os.stat(path).st_size, "its numbers take")
        lines = _Lines(name, Path(path).read_bytes())
        labels_to = labels = None
        if lines.take() == [b"y"]:
            labels_to, labels = lines.span(), lines.span()
            lines.take()
        lines.expect([b"x"])
        to = lines.span()
        index: list[int] = []
        spans: list[Span] = []
        while lines.left:
            words = lines.take()
            spans.append(lines.span_of(words[1:]))
            if not (words[0].isdigit() and len(words[0]) <= 10 and int(words[0]) <= _LARGEST):
                raise lines.fault(words, "the number of a feature, and its span")
            if index and int(words[0]) <= index[-1]:
                raise lines.fault(words, "a larger feature number than the one before")
            index.append(int(words[0]))
        low, high = (np.array([getattr(s, end) for s in spans]) for end in ("low", "high"))
        return Range(np.array(index, dtype=np.int64), low, high, to, labels, labels_to)


class _Lines:
    """The lines of a small text file."""

    def __init__(self, name: str, text: bytes):
        self._name, self._lines, self._at = name, text.splitlines(), 0

    @property
    def left(self) -> bool:
        return self._at < len(self._lines)

    def take(self) -> list[bytes]:
        words = self._lines[self._at].split() if self.left else []
        self._at += 1
        if not words:
            raise self.fault(words, "not empty: the range file ends too early")
        return words

    def fault(self, words: list[bytes], what: str) -> ValueError:
        shown = b" ".join(words)[:40].decode(errors="replace")
        return ValueError(f"{self._name}: line {self._at} must be {what}, not {shown!r}.")

    def expect(self, words: list[bytes]) -> None:
        line = self._lines[self._at - 1].split()
        if line != words:
            raise self.fault(line, "x, as in svm-scale's range files")

    def span(self) -> Span:
        return self.span_of(self.take())

    def span_of(self, words: list[bytes]) -> Span:
        try:
            low, high = map(float, words)
        except ValueError:
            low = high = 0.0
        if not (np.isfinite([low, high]).all() and low < high) or any(b"_" in w for w in words):
            raise self.fault(words, "two finite numbers, the smaller first")
        return Span(low, high)


def _pair(span: Span) -> str:
    return f"{span.low:.17g} {span.high:.17g}"


def _along_columns(X, least: bool) -> np.ndarray:
    extremes = X.min(axis=0) if least else X.max(axis=0)
    return np.asarray(
        extremes.toarray() if sp.issparse(extremes) else extremes, dtype=np.float64
    ).ravel()
