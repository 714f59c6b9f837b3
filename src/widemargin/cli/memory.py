"""Facts about the training in a model file: columns, label, command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin import save
from widemargin.calibration import uncalibrated
from widemargin.cli import output
from widemargin.data import Dataset, Layout
from widemargin.machine import Machine
from widemargin.persistence import Header

MODEL_SUFFIX = ".safetensors"
# Endings that a model's default name drops: LIBSVM's text and compression.  Endings of tables and
# arrays stay, so that the models of s.csv and s.txt have different names.
_LEFT_OFF = {".txt", ".svm", ".libsvm", ".svmlight", ".gz", ".bz2", ".xz", ".zst", ".zip"}


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
            "command": output.command_line or None,
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
