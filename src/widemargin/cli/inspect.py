"""The commands info, plot, report and export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from widemargin import AdditiveSVC, AdditiveSVR, load
from widemargin.cli.datasets import (
    Memory,
    check_folder,
    class_named,
    densified_for,
    existing_model,
    labels_for,
    load_model,
    machine_of,
    read_like_training,
)
from widemargin.cli.options import Drawing, Source
from widemargin.cli.output import print_facts, print_json, print_table, save_figure
from widemargin.cli.words import UsageError, joined, names
from widemargin.data import Dataset
from widemargin.data.ranges import is_range_file, read_range
from widemargin.errors import listed
from widemargin.kernel.machine import KernelMachine
from widemargin.libsvm.predictors import ForeignModel
from widemargin.machine import changed_and_default_parameters
from widemargin.pairs import Pair, PairsSummary, missed_pairs
from widemargin.persistence import Header, MissingKernelError, read_header
from widemargin.terms import explain

_MOST_PAIRS = 4  # pictures


def info(model: Path, as_json: bool, max_bytes: int | None) -> None:
    model = existing_model(model)
    if is_range_file(model):
        _info_of_range(model, as_json, max_bytes)
        return
    try:
        fitted = load(model, max_bytes=max_bytes)
    except MissingKernelError:  # everything but its vectors is checked
        fitted = None
    header = read_header(model, max_bytes=max_bytes)
    if as_json:
        print_json(header.content)
    elif isinstance(fitted, ForeignModel):
        print_facts({"file": str(model), **_words(header.content)})
    else:
        machine = None if header.record is None else machine_of(fitted)
        facts = _of_file(model, header) | _of_training(header)
        print_facts(facts | _of_machine(machine) | _remembered(header))


def _of_file(path: Path, header: Header) -> dict[str, Any]:
    facts = {
        "file": str(path),
        "machine": " after ".join(reversed(header.kinds)),
        "format": header.format,
        "written by": f"widemargin {header.package}",
        "features": header.n_features,
    }
    if "calibration" in header.content:
        facts["probabilities"] = "of pairs of classes"
    return facts


def _of_training(header: Header) -> dict[str, Any]:
    """Return facts about the fit; none for a scaler."""
    if header.record is None:
        return {}
    record, labels = header.record, header.classes or []
    classes = {"classes": listed([*map(str, labels)], 10)}
    return (classes if labels else {}) | {
        "rows": record.n_rows,
        "seconds": record.seconds,
        "duality gap": record.gap,
        "iterations": record.n_iter,
    }


def _of_machine(machine) -> dict[str, Any]:
    """Return results and parameters of a fitted machine."""
    if machine is None:
        return {}
    facts: dict[str, Any] = {}
    if isinstance(machine, KernelMachine):
        facts = {"support vectors": len(machine.support_), "gamma": machine.gamma_}
    if isinstance(machine, AdditiveSVC | AdditiveSVR):
        facts = {"kernel": machine.kernel_}
    changed, same = (
        ", ".join(f"{name}={value}" for name, value in part.items())
        for part in changed_and_default_parameters(machine)
    )
    return facts | {"parameters": changed or "all default", "defaults": same}


def _words(content: dict[str, Any]) -> dict[str, Any]:
    """Format fields of a header for people."""
    return {
        name.replace("_", " "): ", ".join(map(str, v)) if isinstance(v, list) else v
        for name, v in content.items()
    }


def _info_of_range(path: Path, as_json: bool, max_bytes: int | None) -> None:
    factors = read_range(path, max_bytes=max_bytes)
    facts: dict[str, Any] = {"file": str(path), "kind": "range file of svm-scale"}
    facts |= {"features": len(factors.index), "lower": factors.to.low, "upper": factors.to.high}
    (print_json if as_json else print_facts)(facts)


def _remembered(header: Header) -> dict[str, str]:
    """Return what a model file says about its data, and the command that made it."""
    layout = Memory.recalled(header).layout
    facts: dict[str, str] = {}
    if isinstance(layout.columns, list):
        more = ", ..." * (len(layout.columns) > 10)
        facts["columns"] = joined(layout.columns[:10], ", ") + more
    facts |= {"label column": layout.label} if layout.label else {}
    facts |= {"dropped": joined(layout.drop, ", ")} if layout.drop else {}
    facts |= {"missing values": ", ".join(layout.na)} if layout.na else {}
    command = header.notes.get("command")
    return facts | ({"made by": command} if isinstance(command, str) else {})


def plot(model: Path, out: Path | None, drawing: Drawing, source: Source) -> None:
    header, fitted = load_model(model, source)
    machine = machine_of(fitted)
    additive = isinstance(machine, AdditiveSVC | AdditiveSVR)
    what = drawing.what or ("shapes" if additive else "convergence")
    if what != "convergence" and not additive:
        kind = type(machine).__name__
        raise UsageError(f"--what {what} needs an additive model; this one is {kind}.")
    if isinstance(machine, ForeignModel):
        raise UsageError(f"{model}: {type(machine).__name__} has no record of its training.")
    for option, value, wanted in (
        ("--features", drawing.features, ("shapes",)),
        ("--class", drawing.class_label, ("shapes", "pairs")),
        ("--data", drawing.data, ("shapes", "importance", "pairs")),
    ):
        if value is not None and what not in wanted:
            raise UsageError(f"{option} cannot be combined with --what {what}.")
    data = None
    if drawing.data is not None:
        data = read_like_training(drawing.data, source, header)
    figure = _figure(what, fitted, Memory.recalled(header), drawing, data)
    out = out or Path(model.name).with_suffix(".png")
    save_figure(figure, out)
    print(out)


def _figure(what: str, fitted, memory: Memory, drawing: Drawing, data: Dataset | None):
    from widemargin import plots

    machine = machine_of(fitted)
    if what == "convergence":
        return plots.plot_convergence(machine).figure
    X = None if data is None else densified_for(fitted, data.X)
    if what == "importance":
        return plots.plot_importance(fitted, names=memory.names, X=X).figure
    word = drawing.class_label
    label = None if word is None else class_named(machine, word)
    if what == "pairs":
        pairs = _pairs(fitted, memory, drawing, data)
        return plots.plot_pairs(pairs[:_MOST_PAIRS], machine.classes_, class_label=label)
    words = None if drawing.features is None else names(drawing.features, "--features")
    wanted = None if words is None else [_term(fitted, memory, word) for word in words]
    options: Any = {"names": memory.names, "X": X, "class_label": label}
    return plots.plot_shapes(fitted, features=wanted, **options)


def _pairs(fitted, memory: Memory, drawing: Drawing, data: Dataset | None) -> list[Pair]:
    """Print the pairs with their strengths and return those to draw."""
    if data is None or drawing.data is None:
        raise UsageError(
            "--what pairs needs labelled rows, preferably new ones: pass them with --data."
        )
    y = labels_for(drawing.data, data, fitted)
    pairs = missed_pairs(fitted, densified_for(fitted, data.X), y, names=memory.names)
    if not pairs:
        raise ValueError("The model has only one column, so there are no pairs.")
    summary = PairsSummary.of(pairs)
    if summary.rows:
        print_table(list(summary.header), summary.rows)
    print(summary.verdict)
    return pairs[: max(1, len(summary.rows))]


def _term(fitted, memory: Memory, word: str) -> str:
    """Find a term by its column's name, or by the name or number of one of its features."""
    explained, position = explain(fitted, memory.names), memory.position(word)
    try:
        return explained.term(word if position is None else position).name
    except ValueError:
        n = len(memory.names)
        span = f"{memory.called(0)} to {memory.called(n - 1)}"
        raise UsageError(f"--features {word}: no such feature; there are {n}, {span}.") from None


def export(model: Path, out: Path, kind: str | None, max_bytes: int | None) -> None:
    from widemargin import export as exports

    writers = {"libsvm": exports.export_libsvm, "onnx": exports.export_onnx}
    kind = kind or {".onnx": "onnx", ".json": "shapes"}.get(out.suffix, "libsvm")
    if kind not in (*writers, "shapes"):
        raise UsageError(f"--to {kind}: not one of {', '.join(writers)}, shapes.")
    calibrated = kind != "shapes"  # which hold no probabilities
    header, fitted = load_model(model, Source(max_bytes=max_bytes), calibrated=calibrated)
    if kind == "shapes":
        memory = Memory.recalled(header)
        exports.export_shapes(fitted, out, None if memory.numbers_are_positions else memory.names)
    else:
        writers[kind](fitted, out)
    print(out)


def report(
    model: Path, data: Path, out: Path | None, training: Path | None, source: Source
) -> None:
    from widemargin import write_report  # imports plots

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
    """Refuse --training if the report could not draw the bands."""
    from widemargin.plots.shapes import MOST_BANDS

    if not isinstance(machine, AdditiveSVC):
        raise UsageError("--training draws bands for additive models only.")
    if len(machine.classes_) > MOST_BANDS:
        raise UsageError(
            f"--training draws bands for up to {MOST_BANDS} classes; the model has "
            f"{len(machine.classes_)}."
        )


def _rows(path: Path, source: Source, header: Header, fitted):
    dataset = read_like_training(path, source, header)
    return densified_for(fitted, dataset.X), labels_for(path, dataset, fitted)
