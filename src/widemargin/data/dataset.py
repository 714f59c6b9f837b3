"""The result of a reader, and the layout to read new data in the same way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from widemargin.errors import listed

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 8  # columns of a kind in a summary


@dataclass(frozen=True)
class Layout:
    """Facts about a model's data, to read new files in the same way.

    Formats use the fields that apply to them.

    Attributes
    ----------
    columns : list of str, int or None
        The model's columns by name; or their number, if they have no names.
    label : str or None
        The label's column: its name, or its position if columns have none.
    drop, na : tuple of str
        Columns that were left out, and values that counted as missing.
    zero_based : bool or None
        Whether indices of svmlight text count from 0.
    categorical : tuple of int
        Positions of the columns of categories.
    """

    columns: list[str] | int | None = None
    label: str | None = None
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    zero_based: bool | None = None
    categorical: tuple[int, ...] = ()

    @property
    def n_features(self) -> int | None:
        return len(self.columns) if isinstance(self.columns, list) else self.columns


@dataclass(frozen=True)
class Columns:
    """How the columns of a table were interpreted.

    Attributes
    ----------
    numeric : list of str
    categorical : dict of str to int
        Number of categories of each.
    dropped : list of str
    missing : dict of str to int
        Number of missing values of each column that has any.

    Examples
    --------
    >>> str(Columns(["age", "pay"], {"sex": 2, "job": 14}, ["id"], {"pay": 31}))
    '2 numeric, 2 categorical (sex 2, job 14), 1 dropped (id), 31 values missing (pay 31)'
    """

    numeric: list[str] = field(default_factory=list)
    categorical: dict[str, int] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        counts = [f"{_quoted(column)} {n}" for column, n in self.categorical.items()]
        parts = [f"{len(self.numeric)} numeric"]
        parts += [f"{len(counts)} categorical ({listed(counts, _MOST)})"] if counts else []
        dropped = [*map(_quoted, self.dropped)]
        parts += [f"{len(dropped)} dropped ({listed(dropped, _MOST)})"] if dropped else []
        gaps = [f"{_quoted(column)} {n}" for column, n in self.missing.items()]
        parts += (
            [f"{sum(self.missing.values())} values missing ({listed(gaps, _MOST)})"] if gaps else []
        )
        return ", ".join(parts)


def _quoted(name: str) -> str:
    """Quote a name for the command line, where a comma ends a name."""
    return f'"{name}"' if "," in name else name


@dataclass(frozen=True)
class Dataset:
    """Rows, labels and facts from the file.

    Attributes
    ----------
    X : ndarray, csr_array or pyarrow Table of shape (n_samples, n_features)
        A Table for tables, which `AdditiveSVC` takes directly and other machines after a
        `TableEncoder`.
    y : ndarray of shape (n_samples,), or None
        Numbers if every label is one, otherwise strings.
    feature_names : ndarray of str, or None
    qid : ndarray of int64, or None
        Query of each row (svmlight).
    zero_based : bool or None
        Whether an svmlight file counts features from 0.
    label_name : str or None
        The label's column (tables), or its position (.npy).
    columns : Columns or None
        How the columns of a table were interpreted.
    na : tuple of str
        Additional values that counted as missing.
    """

    X: np.ndarray | sp.csr_array | pa.Table
    y: np.ndarray | None
    feature_names: np.ndarray | None = None
    qid: np.ndarray | None = None
    zero_based: bool | None = None
    label_name: str | None = None
    columns: Columns | None = None
    na: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        """Layout for reading new data in the same way: ``read(path, like=data.layout)``."""
        names = self.feature_names
        columns = self.X.shape[1] if names is None else [str(name) for name in names]
        drop = () if self.columns is None else tuple(self.columns.dropped)
        return Layout(columns, self.label_name, drop, self.na, self.zero_based, self._categorical)

    @property
    def _categorical(self) -> tuple[int, ...]:
        if isinstance(self.X, np.ndarray) or sp.issparse(self.X):
            return ()
        from pyarrow import types

        kinds = enumerate(self.X.schema.types)  # type: ignore[union-attr]
        return tuple(j for j, kind in kinds if types.is_dictionary(kind))
