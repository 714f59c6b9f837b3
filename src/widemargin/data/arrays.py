"""NumPy's own files: .npz with X and y, .npy with one matrix."""

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

from widemargin.budget import Budget, TooLargeError
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.streams import fill, one_line
from widemargin.warning import warn_user
from widemargin.wording import words

_SPARSE = ("data", "indices", "indptr", "shape")
_LAYOUTS = {"csr": sp.csr_array, "csc": sp.csc_array}
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes


def read_npz(
    file: BinaryIO,
    *,
    split: str | None = None,
    like: Layout | None = None,
    name: str = "npz file",
    max_bytes: int | Budget | None = None,
) -> Dataset:
    """Arrays X and y of an .npz file, or X_train and y_train (``split="train"`` or "test").

    X may be sparse, as the arrays that `scipy.sparse.save_npz` writes of compressed rows or
    columns; with y among them or without.  Arrays of other names are not looked at.  X_train that
    nobody asked for is a warning where the data is to be ``like`` other data: of a model.  What the
    arrays take by their own account is held against ``max_bytes`` before they are unpacked.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, X=np.eye(2), y=[0, 1])
    >>> _ = file.seek(0)
    >>> read_npz(file).X.shape
    (2, 2)
    """
    with Budget.of(max_bytes, name) as budget:
        with unreadable(name, "npz"):
            archive = _Archive(file, budget)
        suffix = npz_split(archive.members, split, None if like is None else name)
        if suffix == "" and all(key in archive.members for key in _SPARSE):
            parts = [archive.array(key) for key in _SPARSE]
            X = _sparse(parts, archive.optional("format"), budget)
        elif f"X{suffix}" in archive.members:
            X = archive.array(f"X{suffix}")
        else:
            found = one_line(", ".join(archive.members)) or "nothing"
            way_out = "Save with numpy.savez(path, X=X, y=y)."
            if split is not None and "X" in archive.members:
                way_out = f"Leave {words().option('split')} out to read X."
            raise ValueError(f"{name}: no array X{suffix} in it, only {found}. {way_out}")
        return check_matrix(X, archive.optional(f"y{suffix}"), name)


def npz_split(members: Collection[str], split: str | None, new: str | None = None) -> str:
    """What follows X and y in the names of the arrays that are wanted.

    ``new`` names a file for a model that is there: its training rows are taken with a word.
    """
    if split is None and "X" not in members and "X_train" in members:
        split = "train"
        if new is not None and "X_test" in members:
            warn_user(f"{new}: X_train is read. {words().option('split', 'test')} reads X_test.")
    return "" if split is None else f"_{split}"


def read_npy(
    file: BinaryIO,
    *,
    label=None,
    like: Layout | None = None,
    name: str = "npy file",
    max_bytes: int | Budget | None = None,
) -> Dataset:
    """The matrix of an .npy file; ``label`` is the position of the label column, if it has one.

    By default that of ``like``, if there is a column more than it has features.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.array([[1.0, 5.0], [0.0, 7.0]]))
    >>> _ = file.seek(0)
    >>> read_npy(file, label=0).y
    array([1., 0.])
    """
    with Budget.of(max_bytes, name) as budget:
        with unreadable(name, "npy"):
            table = _array(file, budget, "its array takes")
        return with_label(table, label, like, budget)


def with_label(table: np.ndarray, label, like: Layout | None, budget: Budget) -> Dataset:
    """A matrix one column of which may be the labels, as `read_npy` says."""
    if label is None and like is not None and like.n_features is not None:
        label = like.label if table.shape[1:] == (like.n_features + 1,) else None
    if label is None or label is False:
        return check_matrix(table, None, budget.name)
    try:
        column = int(label) if isinstance(label, str) else operator.index(label)
        y = table[:, column]
    except (ValueError, IndexError, TypeError):
        asked, n_columns = words().option("label", label), table.shape[1] if table.ndim == 2 else 0
        raise ValueError(
            f"{budget.name}: {asked} is no column; its array has {n_columns}."
        ) from None
    budget.check(table.nbytes, "its array without the labels takes")
    X, position = np.delete(table, column, axis=1), str(column % table.shape[1])
    return replace(check_matrix(X, y, budget.name), label_name=position)


@contextmanager
def unreadable(name: str, kind: str) -> Iterator[None]:
    """Damage makes zipfile and NumPy raise all sorts."""
    try:
        yield
    except (TooLargeError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"{name}: not a readable .{kind} file ({one_line(error)}).") from None


class _Archive:
    """The arrays of an .npz file, each unpacked when it is asked for."""

    def __init__(self, file: BinaryIO, budget: Budget):
        self._zip, self._budget = zipfile.ZipFile(file), budget
        self.members = {m.filename.removesuffix(".npy"): m for m in self._zip.infolist()}

    def optional(self, key: str) -> np.ndarray | None:
        return self.array(key) if key in self.members else None

    def array(self, key: str) -> np.ndarray:
        with unreadable(self._budget.name, "npz"):
            if self.members[key].compress_type not in _PACKINGS:
                raise ValueError(f"{key} is packed in a way that NumPy does not use")
            with self._zip.open(self.members[key]) as member:
                array = _array(member, self._budget, f"its array {key} takes")
                if member.read(1):  # at the end, its checksum is compared
                    raise ValueError(f"{key} is longer than it says")
                return array


def array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of an array in NumPy's format, which begins after them."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"its format has the version {version}")
    shape, is_fortran, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    if any(n < 0 for n in shape):
        raise ValueError(f"it has the shape {shape}")
    return shape, is_fortran, dtype


def _array(file: IO[bytes], budget: Budget, what: str) -> np.ndarray:
    """An array in NumPy's format, whose size is held against the budget before it is made."""
    shape, is_fortran, dtype = array_header(file)
    size = math.prod(shape) * dtype.itemsize
    budget.hold(size, what)
    content = np.empty(size, dtype=np.uint8)
    got = fill(file, content.data)
    if got < size:
        raise ValueError(f"it should have {size} bytes, but ends after {got}")
    return content.view(dtype).reshape(shape, order="F" if is_fortran else "C")


def _sparse(parts: list[np.ndarray], layout: np.ndarray | None, budget: Budget) -> sp.csr_array:
    """Compressed rows whose pointers and indices have been checked."""
    data, indices, indptr, shape = parts
    try:
        if not all(array.dtype.kind in "iu" for array in (indices, indptr, shape)):
            raise ValueError("indices, indptr and shape must be whole numbers")
        kind = "csr" if layout is None else layout.astype(str).item()
        if kind not in _LAYOUTS:
            raise ValueError(f"its format is {kind}; save it as compressed rows, X.tocsr()")
        n_rows, n_columns = shape.tolist()
        # The start of every row, and indices as wide as SciPy makes them.
        n_bytes = 8 * (n_rows + len(indices)) + data.nbytes
        budget.check(n_bytes, f"its sparse matrix of {n_rows} rows takes")
        X = _LAYOUTS[kind]((data, indices, indptr), shape=(n_rows, n_columns))
        X.check_format(full_check=True)
        return X.tocsr()
    except TooLargeError:
        raise
    except (ValueError, TypeError, OverflowError) as e:
        raise ValueError(
            f"{budget.name}: its sparse matrix is not in order ({one_line(e)})."
        ) from None


def check_matrix(X, y, name: str) -> Dataset:
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{name}: X must be a matrix of numbers, not {X.dtype} of {X.shape}.")
    if 0 in X.shape:
        raise ValueError(f"{name}: X is empty, it has the shape {X.shape}.")
    if y is not None and y.shape != (X.shape[0],):
        raise ValueError(f"{name}: X has {X.shape[0]} rows, but y has the shape {y.shape}.")
    return Dataset(X, y)
