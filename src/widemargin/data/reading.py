"""`read`: one function for every format, which is told from the content and not from the name."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from widemargin.data.arrays import read_npy, read_npz
from widemargin.data.compression import HEAD, Stream, blaming, decompressed
from widemargin.data.dataset import Dataset
from widemargin.data.svmlight import read_svmlight
from widemargin.data.tables import read_table
from widemargin.validation import check_choice

FORMATS = ("svmlight", "csv", "tsv", "parquet", "arrow", "npz", "npy")
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}
_LEAST_HEAD = 4096
_SVMLIGHT_LINE = re.compile(rb"[^\s:,;]+([ \t]+(qid|[0-9]+):[^\s:,;]+)*[ \t]*(#.*)?")


def read(
    path,
    *,
    format: str | None = None,
    label=None,
    columns=None,
    split: str | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype=np.float64,
    n_jobs: int | None = None,
) -> Dataset:
    """Read a data set: svmlight text, CSV, TSV, Parquet, Arrow, .npz or .npy.

    The format is told from the content; text may be compressed (gzip, bzip2, xz, zstandard).

    Parameters
    ----------
    path : path or binary file
    format : str, default=None
        One of "svmlight", "csv", "tsv", "parquet", "arrow", "npz", "npy", to overrule detection.
    label : str, int or False, default=None
        Tables and .npy: the label's column, by name or position; False if there is none.
    columns : array-like of str, default=None
        Tables: the features a model was trained on (its ``feature_names_in_``).
    split : str, default=None
        .npz: "train" reads X_train and y_train.
    n_features, zero_based, dtype, n_jobs
        svmlight: see `widemargin.data.svmlight.read_svmlight`.

    Returns
    -------
    Dataset
        With ``X``, ``y`` and, where the file tells, ``feature_names``, ``qid``, ``zero_based``.

    Examples
    --------
    >>> import io
    >>> from widemargin.data import read
    >>> read(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1\\n")).X.shape
    (2, 3)
    >>> data = read(io.BytesIO(b"age,job,target\\n31,smith,1\\n52,clerk,0\\n"))
    >>> list(map(str, data.feature_names))
    ['age', 'job=clerk', 'job=smith']
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the file"
    with _opened(path) as file, blaming(name):
        text = decompressed(file, name)
        found = format or detect_format(text.peek(HEAD))
        if found == "svmlight":
            return read_svmlight(
                text, n_features=n_features, zero_based=zero_based, dtype=dtype, n_jobs=n_jobs,
                name=name,
            )  # fmt: skip
        if found in ("csv", "tsv"):
            return read_table(text, found, label=label, columns=columns, name=name)
        # The others jump about in the file.
        whole = text if text is file and file.seekable() else io.BytesIO(text.read())
        if found == "npz":
            return read_npz(whole, split=split, name=name)
        if found == "npy":
            return read_npy(whole, label=label, name=name)
        return read_table(whole, found, label=label, columns=columns, name=name)


def detect_format(head: bytes) -> str:
    """The format of a file that begins like this.

    Examples
    --------
    >>> detect_format(b"-1 3:1 11:0.5\\n"), detect_format(b"a\\tb\\n1\\t2\\n")
    ('svmlight', 'tsv')
    """
    for magic, found in _MAGIC.items():
        if head.startswith(magic):
            return found
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    line = next((line for line in lines if line and not line.startswith(b"#")), b"")
    cut = line is lines[-1] and len(head) >= _LEAST_HEAD  # the last token may not be whole
    complete = re.sub(rb"[ \t]+[^ \t]*$", b"", line) if cut else line
    if _SVMLIGHT_LINE.fullmatch(complete):
        return "svmlight"
    if b"\t" in line and b"," not in line:
        return "tsv"
    return "csv" if re.search(rb"[,;]", line) else "svmlight"


@contextmanager
def _opened(path) -> Iterator[io.BufferedReader]:
    """The file, of which all of the head can be seen; it stays open if the caller opened it."""
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as file:
            yield file if file.seekable() else io.BufferedReader(Stream(file), HEAD)
    elif isinstance(path, io.TextIOBase) or not hasattr(path, "read"):
        raise TypeError(f"path must be a path or a file opened as binary, got {path!r}.")
    else:
        yield io.BufferedReader(Stream(path), HEAD)
