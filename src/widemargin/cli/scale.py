"""The command scale: as svm-scale does, or with scikit-learn's scalers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from widemargin import load
from widemargin.cli.datasets import Memory, densified_for, labels_of, read_like_training, save_model
from widemargin.cli.making import make_scaler
from widemargin.cli.options import Scaling, Source
from widemargin.cli.output import or_stdout
from widemargin.cli.words import UsageError
from widemargin.data import Dataset, write_svmlight
from widemargin.data.ranges import Range, Span, is_range_file, read_range
from widemargin.errors import listed, warn_user
from widemargin.files import text_output
from widemargin.persistence import read_header
from widemargin.table_encoder import encoding

_AT_ONCE = 1 << 23  # values in a block of rows with zeros filled in


def scale(data: Path, out: Path | None, scaling: Scaling, source: Source) -> None:
    if scaling.restore is not None:
        if scaling != Scaling(restore=scaling.restore) or source.rule():
            raise UsageError(
                "--restore reads the factors from a file: combine it with DATA and OUT only."
            )
        if is_range_file(scaling.restore):
            _restore_range(data, out, scaling.restore, source)
        else:
            _restore_scaler(data, out, scaling.restore, source)
        return
    method = scaling.method or "minmax"
    scaler = _scaler(method, scaling.lower, scaling.upper)
    dataset = source.read(data, **source.rule())
    if method == "minmax" and dataset.zero_based is not None:  # as svm-scale reads and writes
        _scale_by_range(dataset, out, scaling, Span(*scaler.feature_range))
        return
    if scaling.labels is not None:
        raise UsageError("-y is only for svmlight text scaled by minmax.")
    scaler = encoding(dataset.X, scaler, None)
    scaled = scaler.fit_transform(densified_for(scaler, dataset.X))
    if scaling.save is not None:
        save_model(scaler, scaling.save, Memory.of(dataset))
    _write(out, replace(dataset, X=scaled))


def _scaler(method: str, lower: float | None, upper: float | None):
    scaler = make_scaler(method)
    if scaler is None:
        raise UsageError("--method none: nothing to do.")
    if method == "minmax":
        bounds = -1.0 if lower is None else lower, 1.0 if upper is None else upper
        if not (np.all(np.isfinite(bounds)) and bounds[0] < bounds[1]):
            raise UsageError(f"--lower {bounds[0]:g} must be below --upper {bounds[1]:g}.")
        return scaler.set_params(feature_range=bounds)
    if lower is not None or upper is not None:
        raise UsageError(f"--lower and --upper cannot be combined with --method {method}.")
    return scaler


def _restore_scaler(data: Path, out: Path | None, path: Path, source: Source) -> None:
    scaler = load(path, max_bytes=source.max_bytes)
    if hasattr(scaler, "predict"):
        raise UsageError(f"--restore {path}: a model, not the factors of a scaling.")
    dataset = read_like_training(data, source, read_header(path, max_bytes=source.max_bytes))
    _write(out, replace(dataset, X=scaler.transform(densified_for(scaler, dataset.X))))


# ------------------------------------------------------------------ as svm-scale does


def _scale_by_range(dataset: Dataset, out: Path | None, scaling: Scaling, to: Span) -> None:
    factors = Range.of(dataset.X, _first(dataset), to)
    if scaling.labels is not None:
        y = _numbers(dataset)
        if y.min() == y.max():
            raise ValueError("-y: the labels are all the same.")
        factors = factors.with_labels(y, _checked(scaling.labels))
    if scaling.save is not None:
        factors.write(scaling.save)
    _write_scaled(out, dataset, factors)


def _restore_range(data: Path, out: Path | None, path: Path, source: Source) -> None:
    factors = read_range(path, max_bytes=source.max_bytes)
    dataset = source.read(data)
    new = factors.not_seen(dataset.X, _first(dataset))
    if len(new):
        some = listed([*map(str, new)], 5)
        warn_user(f"{data}: the features {some} are not in {path} and are ignored.")
    _write_scaled(out, dataset, factors)


def _write_scaled(out: Path | None, dataset: Dataset, factors: Range) -> None:
    """Write in blocks of rows, so that memory never holds all filled-in zeros."""
    y = dataset.y if factors.labels is None else factors.scaled_labels(_numbers(dataset))
    first, n = _first(dataset), dataset.X.shape[0]
    rows = max(1, _AT_ONCE // dataset.X.shape[1])
    with text_output(or_stdout(out)) as file:
        for begin in range(0, n, rows):
            part = slice(begin, begin + rows)
            block = replace(
                dataset,
                X=factors.scaled(dataset.X[part], first),
                y=None if y is None else y[part],
                qid=None if dataset.qid is None else dataset.qid[part],
            )
            _write(file, block)


def _first(dataset: Dataset) -> int:
    return 0 if dataset.zero_based else 1


def _numbers(dataset: Dataset) -> np.ndarray:
    y = np.asarray(dataset.y)
    if y.dtype.kind not in "biuf":
        raise ValueError("-y: the labels are not numbers.")
    return y


def _checked(labels: tuple[float, float]) -> Span:
    if not (np.all(np.isfinite(labels)) and labels[0] < labels[1]):
        raise UsageError(f"-y {labels[0]:g} {labels[1]:g}: the first must be below the second.")
    return Span(*labels)


def _write(out, dataset: Dataset) -> None:
    """Write the rows to a path, the standard output or an open file."""
    y = None if dataset.y is None else labels_of(dataset)
    base = bool(dataset.zero_based)
    out = or_stdout(out) if out is None or isinstance(out, Path) else out
    write_svmlight(out, dataset.X, y, qid=dataset.qid, zero_based=base)
