"""Any bytes as svmlight text: a data set whose parts fit together, or a ValueError.

    python fuzz/fuzz_svmlight.py -dict=fuzz/svmlight.dict corpus fuzz/seeds/svmlight

The first byte chooses the options, the rest is the text; see README.md.
"""

import io
import math
import sys
import zlib
from types import SimpleNamespace

import numpy as np

from widemargin import _core
from widemargin.data import svmlight

BUFFER = 64  # bytes at a time: lines then cross from one buffer to the next, and outgrow it


def TestOneInput(data: bytes, whole: bool | None = None) -> None:
    """One text, read as a whole, or by the compiled parser alone: it is five times as fast.

    Every fourth input is read as a whole; which ones, their contents say.
    """
    options, text = data[0] if data else 0, data[1:]
    dtype = np.float32 if options & 1 else np.float64
    if not (zlib.crc32(data) % 4 == 0 if whole is None else whole):
        parse(text, dtype, options)
        return
    part, svmlight.PART = svmlight.PART, BUFFER if options & 48 == 48 else 4096
    try:
        read(io.BytesIO(text), dtype, options)
    except ValueError:
        pass
    finally:
        svmlight.PART = part


def read(file, dtype, options: int) -> None:
    if options & 64:
        zero_based = options & 2 != 0
        for piece in svmlight.stream_svmlight(
            file, n_features=7, zero_based=zero_based, dtype=dtype, n_jobs=1
        ):
            check(piece, dtype, 7)
        return
    zero_based = ("auto", True, False, "auto")[options >> 1 & 3]
    n_features = 5 if options & 8 else None
    dataset = svmlight.read_svmlight(
        file, n_features=n_features, zero_based=zero_based, dtype=dtype, n_jobs=1
    )
    check(dataset, dtype, n_features)


def check(dataset, dtype, n_features) -> None:
    """What compiled code may rely on, and what the text cannot change."""
    X, y = dataset.X, dataset.y
    start, index = X.indptr.tolist(), X.indices.tolist()
    assert X.shape[0] == len(y) == len(start) - 1 > 0
    assert n_features is None or X.shape[1] == n_features
    assert X.dtype == dtype
    assert all(map(math.isfinite, X.data.tolist()))
    assert start[0] == 0
    assert start[-1] == len(index) == len(X.data)
    assert start == sorted(start)
    assert not index or (min(index) >= 0 and max(index) < X.shape[1])
    assert y.dtype.kind == "U" or all(map(math.isfinite, y.tolist()))
    assert dataset.qid is None or dataset.qid.shape == y.shape


def parse(text: bytes, dtype, options: int) -> None:
    """The compiled parser, into arrays that are just as large as it said."""
    content = np.frombuffer(text, dtype=np.uint8)
    rows, values = _core.measure_svmlight(content)
    label, span = np.empty(rows), np.empty((rows, 2), dtype=np.int64)
    qid, end = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    index = np.empty(values, dtype=np.int64 if options & 2 else np.int32)
    value = np.empty(values, dtype=dtype)
    labels = (None, span) if options & 4 else (label, None)
    result = svmlight._Result(*_core.parse_svmlight(content, *labels, qid, end, index, value))
    assert 0 <= result.rows <= rows
    assert 0 <= result.values <= values
    assert 0 <= result.line_at <= result.fault_at <= len(text)
    ends = end[: result.rows].tolist()
    assert ends == sorted(ends)
    if not result.fault:
        assert not ends or ends[-1] == result.values
        assert all(map(math.isfinite, value[: result.values].tolist()))


class Arrays:
    """In place of SciPy's matrix, whose making takes as long as the reading."""

    def __init__(self, parts, shape):
        self.data, self.indices, self.indptr = parts
        self.shape, self.dtype = shape, self.data.dtype


if __name__ == "__main__":
    import atheris  # pip install atheris
    from guidance import instrument

    svmlight.sp = SimpleNamespace(csr_array=Arrays)
    rows = svmlight._GrowingRows
    instrument(rows._fail, rows._append_labels, rows.dataset, svmlight._rounds, parse)
    atheris.Setup(sys.argv, TestOneInput)
    atheris.Fuzz()
