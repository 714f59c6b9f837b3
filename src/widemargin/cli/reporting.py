"""report."""

from __future__ import annotations

from pathlib import Path

from widemargin import AdditiveSVC, write_report
from widemargin.cli.arguments import UsageError
from widemargin.cli.datasets import (
    check_folder,
    densified_for,
    labels_for,
    load_model,
    machine_of,
    read_like_training,
)
from widemargin.cli.memory import Memory
from widemargin.cli.options import Source
from widemargin.drawing.shapes import MOST_BANDS
from widemargin.persistence import Header


def report(
    model: Path, data: Path, out: Path | None, training: Path | None, source: Source
) -> None:
    out = check_folder(out or Path(model.name).with_suffix(".html"))
    header, fitted = load_model(model, source, calibrated=True)
    if training is not None:
        _check_bands(machine_of(fitted))
    about: dict[str, object] = {"model file": str(model), "data": str(data)}
    if training is not None:
        about["training data"] = str(training)
    command = header.notes.get("command")
    if isinstance(command, str):
        about["made by"] = command
    X, y = _rows(data, source, header, fitted)
    write_report(
        fitted,
        X,
        y,
        out,
        names=Memory.recalled(header).names,
        title=f"Report of {model.name}",
        training=None if training is None else _rows(training, source, header, fitted),
        about=about,
    )
    print(out)


def _check_bands(machine) -> None:
    """Better said than 20 fits that nobody sees."""
    if not isinstance(machine, AdditiveSVC):
        raise UsageError("--training is for bands of shapes, which KernelSVC has not.")
    if len(machine.classes_) > MOST_BANDS:
        raise UsageError(
            f"--training is for bands of shapes, which are drawn for up to {MOST_BANDS} classes; "
            f"the model has {len(machine.classes_)}."
        )


def _rows(path: Path, source: Source, header: Header, fitted):
    dataset = read_like_training(path, source, header)
    return densified_for(fitted, dataset.X), labels_for(path, dataset, fitted)
