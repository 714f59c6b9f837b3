"""NumPy's own files: .npz with X and y, .npy with one matrix."""

from __future__ import annotations

import operator
from typing import BinaryIO

import numpy as np
import scipy.sparse as sp

from widemargin.data.dataset import Dataset

_SPARSE = ("data", "indices", "indptr", "shape")
_LAYOUTS = {"csr": sp.csr_array, "csc": sp.csc_array}


def read_npz(file: BinaryIO, *, split: str | None = None, name: str = "npz file") -> Dataset:
    """Arrays X and y of an .npz file, or X_train and y_train (``split="train"`` or "test").

    X may be sparse, as the arrays that `scipy.sparse.save_npz` writes of compressed rows or
    columns; with y among them or without.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, X=np.eye(2), y=[0, 1])
    >>> _ = file.seek(0)
    >>> read_npz(file).X.shape
    (2, 2)
    """
    try:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except Exception as e:  # a damaged file makes zipfile and NumPy raise all sorts
        raise ValueError(f"{name}: not a readable .npz file ({e}).") from None
    if split is None and "X" not in arrays and "X_train" in arrays:
        split = "train"
    suffix = "" if split is None else f"_{split}"
    y = arrays.get(f"y{suffix}")
    if suffix == "" and all(key in arrays for key in _SPARSE):
        X = _sparse([arrays[key] for key in _SPARSE], arrays.get("format"), name)
    elif f"X{suffix}" in arrays:
        X = arrays[f"X{suffix}"]
    else:
        raise ValueError(
            f"{name}: no array X{suffix} in it, only {', '.join(arrays) or 'nothing'}. Save with "
            "numpy.savez(path, X=X, y=y)."
        )
    return _checked(X, y, name)


def read_npy(file: BinaryIO, *, label=None, name: str = "npy file") -> Dataset:
    """The matrix of an .npy file; ``label`` is the position of the label column, if it has one.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.array([[1.0, 5.0], [0.0, 7.0]]))
    >>> _ = file.seek(0)
    >>> read_npy(file, label=0).y
    array([1., 0.])
    """
    try:
        table = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as e:  # a damaged header makes NumPy raise all sorts
        raise ValueError(f"{name}: not a readable .npy file ({e}).") from None
    if label is None or label is False:
        return _checked(table, None, name)
    try:
        column = int(label) if isinstance(label, str) else operator.index(label)
        y = table[:, column]
    except (ValueError, IndexError, TypeError):
        raise ValueError(
            f"{name}: label={label!r} is no column of a {table.shape} array."
        ) from None
    return _checked(np.delete(table, column, axis=1), y, name)


def _sparse(parts: list[np.ndarray], layout: np.ndarray | None, name: str) -> sp.csr_array:
    """Compressed rows whose pointers and indices have been checked."""
    data, indices, indptr, shape = parts
    try:
        if not all(array.dtype.kind in "iu" for array in (indices, indptr, shape)):
            raise ValueError("indices, indptr and shape must be whole numbers")
        kind = "csr" if layout is None else layout.astype(str).item()
        if kind not in _LAYOUTS:
            raise ValueError(f"its format is {kind}; save it as compressed rows, X.tocsr()")
        n_rows, n_columns = shape.tolist()
        X = _LAYOUTS[kind]((data, indices, indptr), shape=(n_rows, n_columns))
        X.check_format(full_check=True)
        return X.tocsr()
    except (ValueError, TypeError, OverflowError, MemoryError) as e:
        raise ValueError(f"{name}: its sparse matrix is not in order ({e}).") from None


def _checked(X, y, name: str) -> Dataset:
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{name}: X must be a matrix of numbers, not {X.dtype} of {X.shape}.")
    if y is not None and y.shape != (X.shape[0],):
        raise ValueError(f"{name}: X has {X.shape[0]} rows, but y has the shape {y.shape}.")
    return Dataset(X, y)
