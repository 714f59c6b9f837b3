"""scale, info, plot, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from widemargin import AdditiveSVC, KernelSVC, load, save
from widemargin.cli.arguments import UsageError, make_scaler
from widemargin.cli.datasets import (
    Source,
    labels_of,
    machine_of,
    n_features,
    names_of,
    notes_of,
    or_stdout,
    read_like_training,
    save_figure,
)
from widemargin.cli.output import print_facts, print_json
from widemargin.data import write_svmlight
from widemargin.persistence import read_header
from widemargin.persistence.parameters import pack_parameters

_MOST_DENSE = 4 << 30


def scale(data: Path, out: Path | None, method: str, lower: float, upper: float,
          save_to: Path | None, restore: Path | None, source: Source) -> None:  # fmt: skip
    if restore is not None:
        scaler = load(restore)
        if hasattr(scaler, "predict"):
            raise UsageError(f"--restore {restore}: a model, not the factors of a scaling.")
        dataset = read_like_training(data, source, read_header(restore))
    else:
        scaler = make_scaler(method)
        if scaler is None:
            raise UsageError("--method none: nothing to do.")
        if method == "minmax":
            scaler.set_params(feature_range=(lower, upper))
        dataset = source.read(data)
    X = _for_scaler(dataset.X, scaler)
    scaled = scaler.transform(X) if restore is not None else scaler.fit_transform(X)
    if save_to is not None:
        save(scaler, save_to, notes=notes_of(dataset))
    y = None if dataset.y is None else labels_of(dataset)
    write_svmlight(or_stdout(out), scaled, y, qid=dataset.qid, zero_based=bool(dataset.zero_based))


def _for_scaler(X, scaler):
    """Sparse data filled in for a scaler that moves zeros."""
    if not sp.issparse(X) or type(scaler).__name__ == "MaxAbsScaler":
        return X
    if X.shape[0] * X.shape[1] * 8 > _MOST_DENSE:
        raise ValueError(
            f"{X.shape[0]} x {X.shape[1]} values are too many to fill in, and this scaling moves "
            "zeros. Use --method maxabs."
        )
    return X.toarray()


def info(model: Path, as_json: bool) -> None:
    header, fitted = read_header(model), load_or_explain(model)
    if as_json:
        print_json(header)
        return
    steps = header.get("steps", [header])
    own = steps[-1]
    facts: dict[str, Any] = {"file": str(model), "machine": " after ".join(
        reversed([step["kind"] for step in steps]))}  # fmt: skip
    facts |= {"format": header["format"], "written by": f"widemargin {header['package']}"}
    facts["features"] = n_features(header)
    if "training" in own:
        training = own["training"]
        facts["classes"] = ", ".join(map(str, own["classes"]["values"][:10]))
        facts |= {"rows": training["rows"], "seconds": training["seconds"]}
        facts |= {"duality gap": training["gap"], "iterations": training["n_iter"]}
        if isinstance(machine_of(fitted), KernelSVC):
            facts["support vectors"] = len(machine_of(fitted).support_)
            facts["gamma"] = machine_of(fitted).gamma_
        facts["parameters"] = _not_default(own)
    print_facts(facts)


def _not_default(step: dict) -> str:
    """The parameters that somebody set."""
    default = pack_parameters({"AdditiveSVC": AdditiveSVC, "KernelSVC": KernelSVC}[step["kind"]]())
    changed = {k: v for k, v in step["parameters"].items() if v != default.get(k)}
    return ", ".join(f"{k}={v}" for k, v in changed.items()) or "all default"


def load_or_explain(path: Path):
    """The model, checked; one that needs a function is known by its header only."""
    try:
        return load(path)
    except ValueError as error:
        if "kernel=function" not in str(error):
            raise
        return None


def plot(model: Path, out: Path | None, what: str | None, data: Path | None,
         features: str | None, source: Source) -> None:  # fmt: skip
    from widemargin import plots

    header, fitted = read_header(model), load(model)
    machine = machine_of(fitted)
    additive = isinstance(machine, AdditiveSVC)
    what = what or ("shapes" if additive else "convergence")
    if what != "convergence" and not additive:
        raise UsageError(f"--what {what} needs an additive model; this one is KernelSVC.")
    names = names_of(machine, header)
    X = None if data is None else read_like_training(data, source, header).X
    if X is not None and isinstance(fitted, Pipeline):
        X = fitted[:-1].transform(X)
    if what == "shapes":
        wanted = None if features is None else [_feature(names, f) for f in features.split(",")]
        figure = plots.plot_shapes(machine, features=wanted, names=names, X=X)
    elif what == "importance":
        figure = plots.plot_importance(machine, names=names, X=X)
    else:
        figure = plots.plot_convergence(machine)
    out = out or Path(model.name).with_suffix(".png")
    save_figure(figure, out)
    print(out)


def _feature(names: list[str], word: str) -> int:
    if word in names:
        return names.index(word)
    if word.isdigit() and int(word) < len(names):
        return int(word)
    raise UsageError(f"--features {word}: no such feature; there are {len(names)}.")


def export(model: Path, out: Path, kind: str | None) -> None:
    from widemargin import export as exports

    writers = {"libsvm": exports.export_libsvm, "onnx": exports.export_onnx,
               "shapes": exports.export_shapes}  # fmt: skip
    kind = kind or {".onnx": "onnx", ".json": "shapes"}.get(out.suffix, "libsvm")
    if kind not in writers:
        raise UsageError(f"--to {kind}: not one of {', '.join(writers)}.")
    writers[kind](load(model), out)
    print(out)
