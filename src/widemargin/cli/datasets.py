"""Read data and models for the commands, and write models with what they recall of their data."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from widemargin import BlockStore, TableEncoder, load, save
from widemargin.additive.frames import is_frame
from widemargin.additive.manifest import MANIFEST
from widemargin.calibration import machine_within, uncalibrated
from widemargin.cli import output as run
from widemargin.cli.options import Output, Source
from widemargin.cli.output import printable
from widemargin.cli.words import UsageError, call_features
from widemargin.data import Dataset, Layout, stream
from widemargin.data.columns import matrix, of_model
from widemargin.data.ranges import is_range_file
from widemargin.errors import warn_user
from widemargin.machine import Machine
from widemargin.persistence import Header, read_header
from widemargin.persistence.parts import OF_IMAGES
from widemargin.resources import free_memory

_MOST_DENSE = 4 << 30  # bytes
ENCODER = "encoder.safetensors"  # in the folder of a store
MODEL_SUFFIX = ".safetensors"
# Endings that a model's default name drops: LIBSVM's text and compression.  Endings of tables and
# arrays stay, so that the models of s.csv and s.txt have different names.
_LEFT_OFF = {".txt", ".svm", ".libsvm", ".svmlight", ".gz", ".bz2", ".xz", ".zst", ".zip"}


def read_training(path: Path, source: Source, output: Output, *, kernel_values=False):
    """Read data with labels, and the memory that a model keeps of them."""
    data = source.read(path, **source.rule())
    if data.y is None:
        raise no_labels(path)
    if data.columns is not None and not output.quiet:
        print(printable(f"columns: {data.columns}"), file=sys.stderr)
    memory = Memory.of(data)
    if kernel_values and is_frame(data.X):
        data = replace(data, X=matrix(data.X))
    if kernel_values and has_serial_numbers(data):
        memory = replace(memory, serial_numbers=True)
        data = replace(data, X=with_width(data.X[:, 1:], data.X.shape[0]))
    call_features(memory.called)
    return data, memory


def read_like_training(path: Path, source: Source, header: Header) -> Dataset:
    """Read new data; return the model's features in the model's order."""
    if is_store(path):
        raise UsageError(f"{path}: a store, but this command needs a file.")
    memory = Memory.recalled(header)
    call_features(memory.called)
    (data,) = _like_training(iter([source.read(path, like=memory.layout)]), path, memory, header)
    return data


def stream_of(source: Source, path: Path, **more) -> Iterator[Dataset]:
    """Read the source in chunks."""
    return stream(path, **source.read_options, **more)


def stream_like_training(path: Path, source: Source, header: Header) -> Iterator[Dataset]:
    """Read new data like `read_like_training`, in chunks; a store block by block."""
    memory = Memory.recalled(header)
    call_features(memory.called)
    if is_store(path):
        return _like_training(_stored(path, memory, header), path, memory, header)
    return _like_training(stream_of(source, path, like=memory.layout), path, memory, header)


def is_store(path: Path) -> bool:
    return os.path.lexists(path / MANIFEST)


def encoder_of(store: BlockStore) -> TableEncoder | None:
    """Load the encoder that turned a table's columns into the store's values."""
    path = Path(store.folder) / ENCODER
    return load(path) if path.exists() else None


def _stored(path: Path, memory: Memory, header: Header) -> Iterator[Dataset]:
    """Yield the rows of a store; codes stay codes, for a model with the same bins."""
    store = BlockStore(path)
    label = store.classes[store.labels()]
    if store.settings.get("keep") != "values":
        if header.kinds not in (("AdditiveSVC",), ("AdditiveSVR",)):
            raise UsageError(
                f"{path}: a store of codes, which only an additive model without a scaler can "
                "read. Use the file that it was built from, or a store of values "
                "(store --keep values)."
            )
        yield Dataset(store, label)  # type: ignore[arg-type]
        return
    encoder = encoder_of(store)
    if encoder is not None:
        for rows, X in store.matrix().parts():
            table, names = encoder.inverse_transform(X), memory.layout.columns
            if isinstance(names, list):
                yield Dataset(of_model(table, names, memory.layout, str(path)), label[rows])
            else:
                yield Dataset(matrix(table), label[rows])
        return
    order = _order_in(store, memory.layout)
    for rows, X in store.matrix().parts():
        yield Dataset(X if order is None else X[:, order], label[rows])


def _order_in(store: BlockStore, layout: Layout) -> list[int] | None:
    """Return the positions of a model's features in a store; None if the order is the same."""
    way_out = "Give the file that it was built from."
    base = {store.notes.get("zero_based"), layout.zero_based}
    if base == {True, False}:
        raise UsageError(
            f"{store.folder}: its features count from {int(bool(layout.zero_based))}, those of "
            f"the model from {int(not layout.zero_based)}. {way_out}"
        )
    names, wanted = store.feature_names, layout.columns
    if names is None or not isinstance(wanted, list) or names == wanted:
        return None
    if sorted(names) != sorted(wanted):
        raise UsageError(f"{store.folder}: its features differ from the model's. {way_out}")
    position = {name: j for j, name in enumerate(names)}
    return [position[name] for name in wanted]


def _like_training(
    chunks: Iterator[Dataset], path: Path, memory: Memory, header: Header
) -> Iterator[Dataset]:
    n_rows, extra, d = 0, 0, header.n_features
    for data in chunks:
        X: Any = data.X
        n_rows += X.shape[0]
        if sp.issparse(X) and header.categorical:
            names = ", ".join(memory.called(j) for j in header.categorical)
            raise ValueError(
                f"{path}: rows of numbers, but the model needs a table, because its columns "
                f"{names} are categorical."
            )
        if sp.issparse(X) and not header.any_width:
            X = X[:, 1:] if memory.serial_numbers else X
            extra += X[:, d:].count_nonzero() if X.shape[1] > d else 0
            X = with_width(X, d)
        yield replace(data, X=X)
    if not n_rows:
        raise ValueError(f"{path}: the file has no rows.")
    if extra:
        warn_user(
            f"{path}: {extra} values of features above {memory.called(d - 1)}, which the model has "
            f"not seen, are left out.{' The model counts from 0.' * bool(memory.layout.zero_based)}"
        )


def no_labels(path: Path) -> ValueError:
    """Return the error for missing labels, which says where to put them."""
    npz = path.suffix.lower() == ".npz"
    way_out = "Save them in it as y" if npz else "Name their column with --label"
    return ValueError(f"{path}: no labels found. {way_out}.")


def has_serial_numbers(data: Dataset) -> bool:
    """Whether rows begin with 0:1, 0:2, ..., as in LIBSVM's files of kernel values."""
    X: Any = data.X
    n = X.shape[0]
    if not (sp.issparse(X) and data.zero_based and X.shape[1] <= n + 1):
        return False
    return np.array_equal(X[:, [0]].toarray().ravel(), np.arange(1, n + 1))


def with_width(X, d: int):
    """Return sparse rows widened or cut to d columns."""
    if X.shape[1] >= d:
        return X if X.shape[1] == d else X[:, :d]
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))


def densified_for(model, X):
    """Return dense data for a model or scaler that rejects sparse data."""
    if not sp.issparse(X) or get_tags(model).input_tags.sparse:
        return X
    if X.shape[0] * X.shape[1] * 8 > min(_MOST_DENSE, free_memory()):
        raise ValueError(
            f"{X.shape[0]} x {X.shape[1]} values are too many for a dense matrix, which this "
            "scaling or kernel needs. Scale with maxabs; among the general kernels, rbf, poly "
            "and sigmoid accept sparse data."
        )
    return X.toarray()


def load_model(path: Path, source: Source, *, calibrated: bool = False):
    """Load header and model, and set its number of threads; refuse a scaler.

    The model keeps its probabilities only if they are requested.
    """
    path = existing_model(path)
    if is_range_file(path):
        raise UsageError(f"{path}: the factors of a scaling, not a model.")
    most = source.max_bytes
    model, header = load(path, max_bytes=most), read_header(path, max_bytes=most)
    if not hasattr(model, "predict"):
        raise UsageError(f"{path}: the factors of a scaling, not a model.")
    if header.kinds[0] in OF_IMAGES:
        raise UsageError(f"{path}: a model of images. Use widemargin images.")
    machine = machine_of(model)
    if source.jobs is not None and "n_jobs" in machine.get_params():
        machine.set_params(n_jobs=source.jobs)
    return header, model if calibrated else uncalibrated(model)


def labels_of(data: Dataset) -> np.ndarray:
    """Return the labels, with whole numbers as integers, as LIBSVM prints them."""
    y = np.asarray(data.y)
    if y.dtype.kind == "f" and np.all(y == np.round(y)) and np.all(np.abs(y) < 2**53):
        return y.astype(np.int64)
    return y


def labels_like(data: Dataset, classes: np.ndarray) -> np.ndarray | None:
    """Convert labels to the type of the model's classes; None if they cannot be compared."""
    if data.y is None:
        return None
    y = labels_of(data)
    if classes.dtype.kind in "UO" and y.dtype.kind not in "UO":  # all look like numbers here
        return np.array([str(label) for label in y.tolist()])
    return y if (classes.dtype.kind in "UO") == (y.dtype.kind in "UO") else None


def labels_for(path: Path, data: Dataset, model) -> np.ndarray:
    """Return labels to compare predictions with, or raise an error that says why there are none."""
    if data.y is None:
        raise no_labels(path)
    y = labels_like(data, model.classes_)
    if y is None:
        raise ValueError(f"{path}: the labels are text, but those of the model are numbers.")
    return y


def machine_of(model):
    return machine_within(uncalibrated(model))


def cell(value) -> str:
    """Format a label or a number for printing."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def class_named(machine, word: str):
    """Return the class with this printed name."""
    known = {cell(label): label for label in machine.classes_.tolist()}
    if word not in known:
        raise UsageError(f"--class {word}: not one of {', '.join(known)}.")
    return known[word]


def check_folder(path: Path) -> Path:
    """Return the path if its folder is writable, so that an error precedes a long training."""
    problem = 0 if path.parent.is_dir() else errno.ENOENT
    if not problem and not os.access(path.parent, os.W_OK):
        problem = errno.EACCES
    if problem:
        raise OSError(problem, os.strerror(problem), str(path))
    return path


# ------------------------------------------------------------------ what a model recalls


@dataclass(frozen=True)
class Memory:
    """How to read new data like the training data, and what to call its features.

    The model has the names of columns and label (``feature_names_in_``, ``label_name_``); the
    notes of its file have the rest.
    """

    layout: Layout
    serial_numbers: bool = False

    @classmethod
    def of(cls, data: Dataset) -> Memory:
        return cls(data.layout)

    @classmethod
    def recalled(cls, header: Header) -> Memory:
        """Read the header of a model file; a scaling has the label's name in its notes."""
        notes = header.notes
        label = header.label_name or notes.get("label")
        layout = Layout(
            header.feature_names or header.n_features,
            label if isinstance(label, str) else None,
            _texts(notes, "drop"),
            _texts(notes, "na"),
            _flag(notes, "zero_based"),
            header.categorical,
        )
        if header.any_width:
            return cls(replace(layout, columns=None))
        return cls(layout, bool(_flag(notes, "serial_numbers")))

    @property
    def numbers_are_positions(self) -> bool:
        """Whether features are known by position only."""
        return not isinstance(self.layout.columns, list) and self.layout.zero_based is None

    @property
    def names(self) -> list[str]:
        """Return the names of features, or their numbers in the data."""
        columns = self.layout.columns
        if isinstance(columns, list):
            return columns
        return [f"feature {self._number(j)}" for j in range(columns or 0)]

    def called(self, feature: int) -> str:
        """Return the name of a feature for messages."""
        columns = self.layout.columns
        return repr(columns[feature]) if isinstance(columns, list) else str(self._number(feature))

    def position(self, word: str) -> int | None:
        """Return the position of a feature, given by its name or its number in the data."""
        names = self.names
        if word in names:
            return names.index(word)
        if isinstance(self.layout.columns, list):
            return int(word) if word.isdigit() and int(word) < len(names) else None
        return names.index(f"feature {word}") if f"feature {word}" in names else None

    def _number(self, feature: int) -> int:
        return feature + (self.layout.zero_based is False)

    def notes(self) -> dict[str, Any]:
        layout = self.layout
        known = {
            "zero_based": layout.zero_based,
            "serial_numbers": self.serial_numbers or None,
            "drop": list(layout.drop) or None,
            "na": list(layout.na) or None,
            "command": run.command_line or None,
        }
        return {name: note for name, note in known.items() if note is not None}


def _texts(notes: dict[str, Any], name: str) -> tuple[str, ...]:
    """Return texts from the notes of a file, which may hold anything."""
    value = notes.get(name, [])
    if not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        raise ValueError(f"The notes of the model are damaged: {name} is not a list of texts.")
    return tuple(value)


def _flag(notes: dict[str, Any], name: str) -> bool | None:
    value = notes.get(name)
    if not (value is None or isinstance(value, bool)):
        raise ValueError(f"The notes of the model are damaged: {name} is neither true nor false.")
    return value


def save_model(model, path: Path, memory: Memory) -> None:
    """Write a model with the names of its columns and label, as if fitted on a frame."""
    plain = uncalibrated(model)
    first, last = (plain[0], plain[-1]) if isinstance(plain, Pipeline) else (plain, plain)
    layout, notes = memory.layout, memory.notes()
    if isinstance(layout.columns, list):
        first.feature_names_in_ = np.array(layout.columns, dtype=object)
    if layout.label is not None and isinstance(last, Machine):
        last.label_name_ = layout.label
    elif layout.label is not None:  # the factors of a scaling
        notes["label"] = layout.label
    save(model, path, notes=notes)


def default_model(data: Path) -> Path:
    """Return the data's name in the current folder, without endings of text and compression.

    >>> [str(default_model(Path(name))) for name in ("s.txt", "s.t", "a/a9a.t.bz2", "s.csv")]
    ['s.safetensors', 's.t.safetensors', 'a9a.t.safetensors', 's.csv.safetensors']
    """
    name = Path(data.name)
    while name.suffix.lower() in _LEFT_OFF:
        name = name.with_suffix("")
    return Path(name.name + MODEL_SUFFIX)


def existing_model(path: Path) -> Path:
    """Return the path, or the file that `train` wrote in place of svm-train's.

    ``svm-train data`` writes data.model, ``widemargin train data`` data.safetensors.
    """
    ours = default_model(Path(path.stem))
    return ours if path.suffix == ".model" and not path.exists() and ours.exists() else path
