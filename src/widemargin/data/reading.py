"""`read`: one function for every format, which it detects from the content."""

from __future__ import annotations

import os
import re
from typing import Any, Unpack, get_type_hints

from widemargin.budget import Budget
from widemargin.data.arrays import stream_npy, stream_npz
from widemargin.data.columns import RuleOptions
from widemargin.data.dataset import Dataset, Layout
from widemargin.data.streams import DAMAGE, HEAD, decompressed, naming_file, opened, whole
from widemargin.data.svmlight import read_svmlight
from widemargin.data.table_files import TABLE_FORMATS
from widemargin.data.tables import read_table
from widemargin.errors import Message, Parameter
from widemargin.validation import check_choice

FORMATS = ("svmlight", *TABLE_FORMATS, "npz", "npy")
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}
RULE = tuple(RuleOptions.__annotations__)
_FORMATS_OF = {
    "label": (*TABLE_FORMATS, "npy"),
    "split": ("npz",),
    "n_features": ("svmlight",),
    **dict.fromkeys(RULE, TABLE_FORMATS),
}
_LEAST_HEAD = 4096
_SAFETENSORS = re.compile(rb"(?s).{6}\0\0\{\"")
_JSON = re.compile(rb"\s*[\[{]\s*[\[{\"]")
_SVMLIGHT_LINE = re.compile(rb"[^\s:,;]+([ \t]+(qid|[0-9]+):[^\s:,;]+)*[ \t]*(#.*)?")


class Options(RuleOptions, total=False):
    """Options of some formats: `RuleOptions` for tables, the others for svmlight text."""

    n_features: int | None
    zero_based: bool | str
    dtype: Any
    n_jobs: int | None


def read(
    path,
    *,
    format: str | None = None,
    label=None,
    columns=None,
    like: Layout | None = None,
    split: str | None = None,
    max_bytes: int | None = None,
    **more: Unpack[Options],
) -> Dataset:
    """Read a data set: svmlight text, CSV, TSV, Parquet, Arrow, .npz or .npy.

    The format is detected from the content; text may be compressed (gzip, bzip2, xz, zstandard, or
    the only file of a zip archive).

    Parameters
    ----------
    path : path or binary file
    format : str, default=None
        One of "svmlight", "csv", "tsv", "parquet", "arrow", "npz", "npy", to override detection.
    label : str, int or False, default=None
        Tables and .npy: the label's column, by name or position; False if there is none.
    split : str, default=None
        .npz: "train" reads X_train and y_train.
    max_bytes : int, default=None
        Memory limit for the contents, by default 80 % of the free memory: a small file may declare,
        or unpack to, any amount.
    n_features : int, default=None
        svmlight: number of columns, by default from the largest index.
    columns, zero_based
        Facts about a model's data, used if they apply: the features of a table
        (``feature_names_in_``), and whether indices of svmlight text count from 0.
    like : Layout, default=None
        All of these: ``read(path, like=data.layout)`` reads new data as ``data`` was read, with
        its columns, label, missing values and first index.
    numeric, categorical, drop : list of str
        Tables: columns to read as numbers or as categories, or to leave out.  By default numbers
        are numbers and text is categories.  Text is refused, unless one of these options names it,
        if nine values in ten are numbers (perhaps with commas: 1,5), or if there are more than 50
        values and more than one for every other row.  So are dates; numeric dates are days since
        1970.
    na : list of str
        Tables: values that count as missing, such as "?", besides empty ones, NA, null and nan.
    dtype, n_jobs
        svmlight: type of the numbers, and threads; other formats bring their own type.

    Returns
    -------
    Dataset
        With ``X``, ``y`` and, if the file has them, ``feature_names``, ``qid``, ``zero_based``.
        ``X`` of a table is a pyarrow Table of numbers and categories, which `AdditiveSVC` takes
        directly, and other machines behind a `TableEncoder`.

    Examples
    --------
    >>> import io
    >>> from widemargin.data import read
    >>> read(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1\\n")).X.shape
    (2, 3)
    >>> data = read(io.BytesIO(b"age,job,target\\n31,smith,1\\n52,clerk,0\\n"))
    >>> list(map(str, data.feature_names))
    ['age', 'job']
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    unknown = sorted(set(more) - set(get_type_hints(Options)))
    if unknown:
        raise TypeError(f"read() got an unexpected keyword argument {unknown[0]!r}.")
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the file"
    damaged = naming_file(name, DAMAGE, "the compressed data is damaged ({}).")
    budget = Budget(max_bytes, name)
    with opened(path) as file, damaged, budget:
        text = decompressed(file, budget)
        head = text.peek(HEAD)
        if len(head) < HEAD and not head.removeprefix(b"\xef\xbb\xbf").strip():
            raise ValueError(f"{name}: the file has no rows.")
        found = format or detect_format(head, name)
        rule = {key: more.get(key) for key in RULE}
        n_features = more.get("n_features")
        _check_options(found, name, label=label, split=split, n_features=n_features, **rule)
        if found == "svmlight":
            own: dict[str, Any] = {key: value for key, value in more.items() if key not in RULE}
            if like is not None and like.zero_based is not None:
                own.setdefault("zero_based", like.zero_based)
            return read_svmlight(text, name=name, max_bytes=budget, **own)
        known: dict[str, Any] = {"label": label, "like": like, "columns": columns, **rule}
        known |= {"name": name, "max_bytes": budget}
        if found in ("csv", "tsv"):
            return read_table(text, found, **known)
        # The other formats seek.
        content = text if text is file and file.seekable() else whole(text, budget)
        if found == "npz":
            return next(stream_npz(content, split=split, like=like, name=name, max_bytes=budget))
        if found == "npy":
            return next(stream_npy(content, label=label, like=like, name=name, max_bytes=budget))
        return read_table(content, found, **known)


def _check_options(found: str, name: str, **options) -> None:
    """Refuse options that the format would ignore."""
    for option, value in options.items():
        if value is not None and found not in _FORMATS_OF[option]:
            template = "{name}: {option} has no meaning for {found}, only for {formats}."
            fields = {"name": name, "found": found, "formats": ", ".join(_FORMATS_OF[option])}
            raise ValueError(Message(template, fields, option=Parameter(option, value)))


def detect_format(head: bytes, name: str = "the file") -> str:
    """Detect the format from a file's first bytes; refuse files of other known formats.

    Examples
    --------
    >>> detect_format(b"-1 3:1 11:0.5\\n"), detect_format(b"a\\tb\\n1\\t2\\n")
    ('svmlight', 'tsv')
    """
    for magic, found in _MAGIC.items():
        if head.startswith(magic):
            return found
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name}: its text is in UTF-16. Save it in UTF-8.")
    if _SAFETENSORS.match(head):
        raise ValueError(f"{name}: a model (a safetensors file), not data.")
    if b"\0" in head:
        raise ValueError(f"{name}: a binary file in none of the formats {', '.join(FORMATS)}.")
    if _JSON.match(head):
        raise ValueError(f"{name}: JSON, which is none of the formats {', '.join(FORMATS)}.")
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    line = next((line for line in lines if line and not line.startswith(b"#")), b"")
    cut = line is lines[-1] and len(head) >= _LEAST_HEAD  # the last token may be cut
    complete = line.rsplit(None, 1)[0] if cut and line else line
    if _SVMLIGHT_LINE.fullmatch(complete):
        alone = b":" not in line and name.lower().endswith(".csv")  # the name of a single column
        return "csv" if alone else "svmlight"
    if b"\t" in line and b"," not in line:
        return "tsv"
    return "csv" if re.search(rb"[,;]", line) else "svmlight"
