"""scale, info, plot, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from widemargin import AdditiveSVC, KernelSVC, load, save
from widemargin.cli.arguments import UsageError
from widemargin.cli.datasets import (
    Layout,
    densified_for,
    labels_of,
    load_model,
    machine_of,
    names_of,
    read_like_training,
)
from widemargin.cli.machines import make_scaler
from widemargin.cli.options import Scaling, Source
from widemargin.cli.output import or_stdout, print_facts, print_json, save_figure
from widemargin.data import write_svmlight
from widemargin.persistence import MissingKernelError, read_header
from widemargin.terms import explain


def scale(data: Path, out: Path | None, scaling: Scaling, source: Source) -> None:
    restore = scaling.restore
    if restore is not None:
        if scaling != Scaling(restore=restore):
            raise UsageError("--restore brings its own factors: only DATA and OUT go with it.")
        scaler = load(restore, max_bytes=source.max_bytes)
        if hasattr(scaler, "predict"):
            raise UsageError(f"--restore {restore}: a model, not the factors of a scaling.")
        dataset = read_like_training(data, source, read_header(restore, max_bytes=source.max_bytes))
        scaled = scaler.transform(densified_for(scaler, dataset.X))
    else:
        scaler = _scaler(scaling.method or "minmax", scaling.lower, scaling.upper)
        dataset = source.read(data)
        scaled = scaler.fit_transform(densified_for(scaler, dataset.X))
    if scaling.save is not None:
        save(scaler, scaling.save, notes=Layout.of(dataset).notes())
    y = None if dataset.y is None else labels_of(dataset)
    write_svmlight(or_stdout(out), scaled, y, qid=dataset.qid, zero_based=bool(dataset.zero_based))


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
        raise UsageError(f"--lower and --upper have no meaning with --method {method}.")
    return scaler


def info(model: Path, as_json: bool, max_bytes: int | None) -> None:
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
            facts["parameters"] = _not_default(machine)
    print_facts(facts)


def _not_default(machine) -> str:
    """The parameters that somebody set."""
    default = type(machine)().get_params()
    changed = {k: v for k, v in machine.get_params().items() if v != default[k]}
    return ", ".join(f"{k}={v}" for k, v in changed.items()) or "all default"


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
    names = names_of(machine, header)
    X = None
    if data is not None:
        X = densified_for(fitted, read_like_training(data, source, header).X)
    if what == "shapes":
        wanted = None if features is None else _terms(fitted, names, features)
        figure = plots.plot_shapes(fitted, features=wanted, names=names, X=X)
    elif what == "importance":
        figure = plots.plot_importance(fitted, names=names, X=X)
    else:
        figure = plots.plot_convergence(machine)
    out = out or Path(model.name).with_suffix(".png")
    save_figure(figure, out)
    print(out)


def _terms(fitted, names: list[str], words: str) -> list[int | str]:
    """Names of columns or features, or numbers of features."""
    explained = explain(fitted, names)
    wanted: list[int | str] = []
    for word in map(str.strip, words.split(",")):
        try:
            wanted.append(explained.term(word).name)
        except ValueError:
            if not word.isdigit() or int(word) >= len(names):
                raise UsageError(
                    f"--features {word}: no such feature; there are {len(names)}."
                ) from None
            wanted.append(int(word))
    return wanted


def export(model: Path, out: Path, kind: str | None, max_bytes: int | None) -> None:
    from widemargin import export as exports

    writers = {"libsvm": exports.export_libsvm, "onnx": exports.export_onnx}
    kind = kind or {".onnx": "onnx", ".json": "shapes"}.get(out.suffix, "libsvm")
    if kind not in (*writers, "shapes"):
        raise UsageError(f"--to {kind}: not one of {', '.join(writers)}, shapes.")
    header, fitted = load_model(model, Source(max_bytes=max_bytes))
    if kind == "shapes":
        exports.export_shapes(fitted, out, Layout.noted(header).columns)
    else:
        writers[kind](fitted, out)
    print(out)
