"""Read NumPy's files: .npz with X and y, .npy with one matrix."""

from __future__ import annotations

import math
import operator
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from widemargin.budget import Budget
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.streams import fill, one_line
from widemargin.errors import Message, Parameter, TooLargeError, warn_user

_SPARSE = ("data", "indices", "indptr", "shape")
_LAYOUTS = {"csr": sp.csr_array, "csc": sp.csc_array}
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the methods that NumPy uses


def stream_npz(
    file: BinaryIO,
    *,
    split: str | None,
    like: Layout | None,
    budget: Budget,
    chunk_bytes: int | None,
) -> Iterator[Dataset]:
    """Yield chunks of X and y, or of X_train and y_train (``split``), from an .npz file.

    X may be sparse, in the arrays of `scipy.sparse.save_npz`, with or without y.  Other arrays are
    ignored.  Without ``split`` and X, X_train is read, with a warning if the file also has X_test
    and a model reads it (``like``).  Without ``chunk_bytes`` there is one chunk; y and a sparse X
    are always read whole.  The budget is checked before an array is unpacked.
    """
    name = budget.name
    with _unreadable(name, "npz"):
        archive = _Archive(file, budget)
    suffix = _npz_split(archive.members, split, None if like is None else name)
    sparse = suffix == "" and all(key in archive.members for key in _SPARSE)
    if not sparse and f"X{suffix}" not in archive.members:
        listed = one_line(", ".join(archive.members)) or "nothing"
        way_out = "Save with numpy.savez(path, X=X, y=y)."
        if split is not None and "X" in archive.members:
            way_out = Message("Leave {split} out to read X.", split=Parameter("split"))
        fields = {"name": name, "array": f"X{suffix}", "found": listed, "way_out": way_out}
        raise ValueError(Message("{name}: no array {array}, only {found}. {way_out}", fields))
    y = archive.optional(f"y{suffix}")
    if sparse:
        parts = [archive.array(key) for key in _SPARSE]
        X = _sparse(parts, archive.optional("format"), budget)
        yield from slices(_check_matrix(X, y, name), chunk_bytes)
        return
    at = 0
    for n_rows, rows in archive.rows(f"X{suffix}", chunk_bytes):
        _check_labels(y, n_rows, name)
        yield _check_matrix(rows, None if y is None else y[at : at + len(rows)], name)
        at += len(rows)


def _npz_split(members: Collection[str], split: str | None, new: str | None) -> str:
    """Return the suffix of X and y in the names of the arrays to read.

    ``new`` is the name of a file read for a model; reading its training split warns.
    """
    if split is None and "X" not in members and "X_train" in members:
        split = "train"
        if new is not None and "X_test" in members:
            test = Parameter("split", "test")
            warn_user(Message("{file}: X_train is read. {test} reads X_test.", file=new, test=test))
    return "" if split is None else f"_{split}"


def stream_npy(
    file: BinaryIO,
    *,
    label,
    like: Layout | None,
    budget: Budget,
    chunk_bytes: int | None,
) -> Iterator[Dataset]:
    """Yield chunks of the matrix in an .npy file; ``label`` is the position of the label's column.

    By default that of ``like``, if there is one column more than it has features.  Without
    ``chunk_bytes`` there is one chunk.
    """
    for _, rows in _chunks(file, budget, "npy", "its array takes", chunk_bytes):
        yield _with_label(rows, label, like, budget)


def _with_label(table: np.ndarray, label, like: Layout | None, budget: Budget) -> Dataset:
    """Split the label's column, if any, off a matrix; see `stream_npy`."""
    if label is None and like is not None and like.n_features is not None:
        label = like.label if table.shape[1:] == (like.n_features + 1,) else None
    if label is None or label is False:
        return _check_matrix(table, None, budget.name)
    try:
        column = int(label) if isinstance(label, str) else operator.index(label)
        y = table[:, column]
    except (ValueError, IndexError, TypeError):
        message = Message(
            "{name}: {label} is not a column; its array has {n}.",
            name=budget.name,
            label=Parameter("label", label),
            n=table.shape[1] if table.ndim == 2 else 0,
        )
        raise ValueError(message) from None
    budget.check(table.nbytes, "its array without the labels takes")
    X, position = np.delete(table, column, axis=1), str(column % table.shape[1])
    return replace(_check_matrix(X, y, budget.name), label_name=position)


@contextmanager
def _unreadable(name: str, kind: str) -> Iterator[None]:
    """Turn errors of damaged files in zipfile and NumPy into ValueErrors with the name."""
    try:
        yield
    except (TooLargeError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"{name}: not a readable .{kind} file ({one_line(error)}).") from None


class _Archive:
    """The arrays of an .npz file, unpacked on demand."""

    def __init__(self, file: BinaryIO, budget: Budget):
        self._zip, self._budget = zipfile.ZipFile(file), budget
        self.members = {m.filename.removesuffix(".npy"): m for m in self._zip.infolist()}

    def optional(self, key: str) -> np.ndarray | None:
        return self.array(key) if key in self.members else None

    def array(self, key: str) -> np.ndarray:
        ((_, array),) = self.rows(key)
        return array

    def rows(self, key: str, chunk_bytes: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        with _unreadable(self._budget.name, "npz"):
            if self.members[key].compress_type not in _PACKINGS:
                raise ValueError(f"{key} is packed in a way that NumPy does not use")
            member = self._zip.open(self.members[key])
        with member:
            yield from _chunks(member, self._budget, "npz", f"its array {key} takes", chunk_bytes)


def _array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, order and type of an array in NumPy's format."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"its format has the version {version}")
    shape, is_fortran, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    if any(n < 0 for n in shape):
        raise ValueError(f"it has the shape {shape}")
    return shape, is_fortran, dtype


def _chunks(
    file: IO[bytes], budget: Budget, kind: str, what: str, chunk_bytes: int | None
) -> Iterator[tuple[int, np.ndarray]]:
    """Return the number of rows of an array in NumPy's format, and an iterator over chunks.

    An array without ``chunk_bytes``, or stored by columns, is one chunk.  The budget is checked
    before a chunk is allocated, in place of the previous one.
    """
    with _unreadable(budget.name, kind):
        shape, is_fortran, dtype = _array_header(file)
        n_rows = shape[0] if shape else 1
        row_bytes = math.prod(shape[1:]) * dtype.itemsize
        step = max(n_rows, 1)
        if chunk_bytes is not None and shape and not is_fortran:
            step = max(chunk_bytes // max(row_bytes, 1), 1)
        held = budget.held
        for begin in range(0, max(n_rows, 1), step):
            n = min(step, n_rows - begin)
            budget.held = held
            budget.hold(n * row_bytes, what)
            content = np.empty(n * row_bytes, dtype=np.uint8)
            got = fill(file, content.data)
            if got < len(content):
                raise ValueError(f"it should have {n * row_bytes - got} bytes more")
            # Reading the end compares the checksum.
            if begin + n == n_rows and kind == "npz" and file.read(1):
                raise ValueError(f"{what} more bytes than it says")
            size = (n, *shape[1:]) if shape else ()
            yield n_rows, content.view(dtype).reshape(size, order="F" if is_fortran else "C")


def _sparse(parts: list[np.ndarray], layout: np.ndarray | None, budget: Budget) -> sp.csr_array:
    """Return sparse rows; check their pointers and indices."""
    data, indices, indptr, shape = parts
    try:
        if not all(array.dtype.kind in "iu" for array in (indices, indptr, shape)):
            raise ValueError("indices, indptr and shape must be whole numbers")
        kind = "csr" if layout is None else layout.astype(str).item()
        if kind not in _LAYOUTS:
            raise ValueError(f"its format is {kind}; save it as compressed rows, X.tocsr()")
        n_rows, n_columns = shape.tolist()
        # Row starts, and indices in SciPy's type.
        n_bytes = 8 * (n_rows + len(indices)) + data.nbytes
        budget.check(n_bytes, f"its sparse matrix of {n_rows} rows takes")
        X = _LAYOUTS[kind]((data, indices, indptr), shape=(n_rows, n_columns))
        X.check_format(full_check=True)
        return X.tocsr()
    except TooLargeError:
        raise
    except (ValueError, TypeError, OverflowError) as e:
        raise ValueError(f"{budget.name}: its sparse matrix is invalid ({one_line(e)}).") from None


def _check_matrix(X, y, name: str) -> Dataset:
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{name}: X must be a matrix of numbers, not {X.dtype} of {X.shape}.")
    if 0 in X.shape:
        raise ValueError(f"{name}: X is empty, it has the shape {X.shape}.")
    _check_labels(y, X.shape[0], name)
    return Dataset(X, y)


def _check_labels(y, n_rows: int, name: str) -> None:
    if y is not None and y.shape != (n_rows,):
        raise ValueError(f"{name}: X has {n_rows} rows, but y has the shape {y.shape}.")


def slices(data: Dataset, chunk_bytes: int | None) -> Iterator[Dataset]:
    """Yield data in memory in chunks of about ``chunk_bytes`` when dense; or all of it."""
    n, d = data.X.shape
    step = n if chunk_bytes is None else max(1, chunk_bytes // (8 * d))
    for begin in range(0, n, step):
        rows = slice(begin, begin + step)
        y, qid = (None if a is None else a[rows] for a in (data.y, data.qid))
        yield replace(data, X=data.X[rows], y=y, qid=qid)
