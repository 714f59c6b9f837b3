"""info, plot, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from widemargin import AdditiveSVC, KernelSVC, load
from widemargin.cli.arguments import UsageError, names
from widemargin.cli.datasets import (
    densified_for,
    load_model,
    machine_of,
    read_like_training,
)
from widemargin.cli.memory import Memory
from widemargin.cli.options import Source
from widemargin.cli.output import print_facts, print_json, save_figure
from widemargin.data.ranges import is_range_file, read_range
from widemargin.persistence import Header, MissingKernelError, read_header
from widemargin.terms import explain


def info(model: Path, as_json: bool, max_bytes: int | None) -> None:
    if is_range_file(model):
        _info_of_range(model, as_json, max_bytes)
        return
    try:
        fitted = load(model, max_bytes=max_bytes)
    except MissingKernelError:  # everything but its vectors has been checked
        fitted = None
    header = read_header(model, max_bytes=max_bytes)
    if as_json:
        print_json(header.content)
        return
    facts: dict[str, Any] = {
        "file": str(model),
        "machine": " after ".join(reversed(header.kinds)),
        "format": header.format,
        "written by": f"widemargin {header.package}",
        "features": header.n_features,
    }
    if header.record is not None:
        record, labels = header.record, header.classes or []
        facts["classes"] = ", ".join(map(str, labels[:10])) + ", ..." * (len(labels) > 10)
        facts |= {"rows": record.n_rows, "seconds": record.seconds}
        facts |= {"duality gap": record.gap, "iterations": record.n_iter}
        machine = machine_of(fitted)
        if isinstance(machine, KernelSVC):
            facts["support vectors"] = len(machine.support_)
            facts["gamma"] = machine.gamma_
        if isinstance(machine, AdditiveSVC):
            facts["kernel"] = machine.kernel_
        if machine is not None:
            facts |= _parameters(machine)
    print_facts(facts | _remembered(header))


def _info_of_range(path: Path, as_json: bool, max_bytes: int | None) -> None:
    found = read_range(path, max_bytes=max_bytes)
    facts: dict[str, Any] = {"file": str(path), "kind": "range file of svm-scale"}
    facts |= {"features": len(found.index), "lower": found.to.low, "upper": found.to.high}
    (print_json if as_json else print_facts)(facts)


def _parameters(machine) -> dict[str, str]:
    """Those that somebody set, and the others."""
    given, default = machine.get_params(), type(machine)().get_params()
    changed = [f"{k}={v}" for k, v in given.items() if v != default[k]]
    same = [f"{k}={v}" for k, v in given.items() if v == default[k]]
    return {"parameters": ", ".join(changed) or "all default", "defaults": ", ".join(same)}


def _remembered(header: Header) -> dict[str, str]:
    """What a model knows of its data, and the command that made it."""
    layout = Memory.recalled(header).layout
    facts: dict[str, str] = {}
    if isinstance(layout.columns, list):
        facts["columns"] = ", ".join(layout.columns[:10]) + ", ..." * (len(layout.columns) > 10)
    facts |= {"label column": layout.label} if layout.label else {}
    facts |= {"dropped": ", ".join(layout.drop)} if layout.drop else {}
    facts |= {"missing values": ", ".join(layout.na)} if layout.na else {}
    command = header.notes.get("command")
    return facts | ({"made by": command} if isinstance(command, str) else {})


def plot(
    model: Path,
    out: Path | None,
    what: str | None,
    data: Path | None,
    features: str | None,
    source: Source,
) -> None:
    from widemargin import plots

    header, fitted = load_model(model, source)
    machine = machine_of(fitted)
    additive = isinstance(machine, AdditiveSVC)
    what = what or ("shapes" if additive else "convergence")
    if what != "convergence" and not additive:
        raise UsageError(f"--what {what} needs an additive model; this one is KernelSVC.")
    if features is not None and what != "shapes":
        raise UsageError(f"--features has no meaning with --what {what}.")
    if data is not None and what == "convergence":
        raise UsageError("--data has no meaning with --what convergence.")
    memory = Memory.recalled(header)
    X = None
    if data is not None:
        X = densified_for(fitted, read_like_training(data, source, header).X)
    if what == "shapes":
        words = None if features is None else names(features, "--features")
        wanted = None if words is None else [_term(fitted, memory, word) for word in words]
        figure = plots.plot_shapes(fitted, features=wanted, names=memory.names, X=X)
    elif what == "importance":
        figure = plots.plot_importance(fitted, names=memory.names, X=X)
    else:
        figure = plots.plot_convergence(machine)
    out = out or Path(model.name).with_suffix(".png")
    save_figure(figure, out)
    print(out)


def _term(fitted, memory: Memory, word: str) -> str:
    """A term by the name of its column, or by the name or number of one of its features."""
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
    header, fitted = load_model(model, Source(max_bytes=max_bytes))
    if kind == "shapes":
        memory = Memory.recalled(header)
        exports.export_shapes(fitted, out, None if memory.numbers_are_positions else memory.names)
    else:
        writers[kind](fitted, out)
    print(out)
