"""Data and models as the commands see them."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from widemargin.cli.arguments import UsageError
from widemargin.data import Dataset, read
from widemargin.files import replacing

MODEL_SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Source:
    """How to read data, and with how many threads."""

    format: str | None = None
    label: str | None = None
    split: str | None = None
    jobs: int | None = None

    def read(self, path: Path, **more) -> Dataset:
        label = False if self.label == "none" else self.label
        return read(path, format=self.format, label=label, split=self.split, n_jobs=self.jobs,
                    **more)  # fmt: skip


def read_training(path: Path, source: Source) -> Dataset:
    data = source.read(path)
    if data.y is None:
        raise ValueError(f"{path}: no labels in it. Name their column with --label.")
    return data


def read_like_training(path: Path, source: Source, header: dict) -> Dataset:
    """New data with the features that a model knows, in their order."""
    notes = header.get("notes", {})
    base = notes.get("zero_based", "auto")
    data = source.read(path, columns=notes.get("columns"), zero_based=base)
    X: Any = data.X
    d = n_features(header)
    if sp.issparse(X) and X.shape[1] != d:
        if X.shape[1] > d:
            extra = X[:, d:].count_nonzero()
            warnings.warn(
                f"{path}: {extra} values of features above {d}, which the model has not seen, are "
                "left out.",
                UserWarning,
                stacklevel=2,
            )
            X = X[:, :d]
        else:
            X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    return Dataset(X, data.y)


def n_features(header: dict) -> int:
    return header["n_features"] if "n_features" in header else header["steps"][0]["n_features"]


def labels_of(data: Dataset) -> np.ndarray:
    """Labels; numbers without a fraction are whole numbers, as LIBSVM prints them."""
    y = np.asarray(data.y)
    if y.dtype.kind == "f" and np.all(y == np.round(y)) and np.all(np.abs(y) < 2**53):
        return y.astype(np.int64)
    return y


def notes_of(data: Dataset) -> dict:
    """What reading new data takes."""
    notes: dict[str, Any] = {}
    if data.feature_names is not None:
        notes["columns"] = [str(name) for name in data.feature_names]
    if data.zero_based is not None:
        notes["zero_based"] = data.zero_based
    return notes


def machine_of(model):
    return model[-1] if isinstance(model, Pipeline) else model


def behind_scaler(scaler, machine):
    return machine if scaler is None else Pipeline([("scale", scaler), ("svm", machine)])


def default_model(data: Path) -> Path:
    """Beside nothing but the current folder, as svm-train does."""
    return Path(data.name.split(".")[0] + MODEL_SUFFIX)


def names_of(machine, header: dict) -> list[str]:
    names = header.get("notes", {}).get("columns") or getattr(machine, "feature_names_in_", None)
    return [f"feature {j}" for j in range(machine.n_features_in_)] if names is None else list(names)


def or_stdout(out: Path | None):
    return sys.stdout if out is None or str(out) == "-" else out


def save_figure(figure, path: Path) -> None:
    kind = path.suffix.lstrip(".") or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise UsageError(f"{path}: matplotlib cannot draw {kind}; use .png, .svg or .pdf.")
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind)
