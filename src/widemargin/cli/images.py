"""The commands images train, predict, evaluate, explain and report."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin import AdditiveSVC, load, save
from widemargin.cli import output as run
from widemargin.cli.datasets import (
    cell,
    check_folder,
    class_named,
    default_model,
    existing_model,
    machine_of,
)
from widemargin.cli.image_options import Features, ImageSource
from widemargin.cli.making import chosen_kernel, make_estimator, make_scaler, match_weights
from widemargin.cli.options import Machine, Output
from widemargin.cli.output import or_stdout, print_json, print_result, printable, save_figure
from widemargin.cli.predict import evaluation, print_evaluation
from widemargin.cli.progress import Line, NoLine, SearchBar, line, stopping_on_ctrl_c
from widemargin.cli.train import end_interrupted, fit_with_progress
from widemargin.cli.words import UsageError
from widemargin.files import text_output
from widemargin.report import evaluate_chunks
from widemargin.vision import Images, explain_image, plot_heat, write_image_report
from widemargin.vision.counting import WordCounter

_AT_ONCE = 256  # images whose counts are in memory at prediction


def train(
    data: Path,
    model: Path | None,
    counted: Features,
    options: Machine,
    source: ImageSource,
    output: Output,
) -> None:
    machine, scaler = _machine(counted, options, source.jobs)
    features = counted.make(options.random_state, source.jobs)
    path, started = check_folder(model or default_model(data)), time.perf_counter()
    images = _read(data, source, output)
    if images.labels is None:
        raise UsageError(
            f"{data}: some images have no label. Put every image into the folder of its class, "
            "or write the labels into a table."
        )
    read = time.perf_counter()
    match_weights(machine, images.labels)
    quiet = output.quiet or output.as_json
    with _counting(quiet) as count:
        features.fit(count(images, "codebook"))
        X = features.transform(count(images, "features"))
    counted_at = time.perf_counter()
    with stopping_on_ctrl_c() as interrupt:
        fitted = fit_with_progress(scaler, machine, X, images.labels, interrupt, quiet=quiet)
    steps = fitted.steps if isinstance(fitted, Pipeline) else [("machine", fitted)]
    notes = {"command": run.command_line} if run.command_line else {}
    save(Pipeline([("features", features), *steps]), path, notes=notes)
    facts = {
        "model": str(path),
        **_of_reading(images),
        "features": X.shape[1],
        "classes": len(machine.classes_),
        "seconds reading": read - started,
        "seconds counting": counted_at - read,
        "seconds training": machine.fit_record_.seconds,
        "duality gap": float(machine.duality_gap_),
    }
    print_result(facts, output)
    if interrupt.asked:
        end_interrupted(path)


def _machine(counted: Features, options: Machine, jobs: int):
    """Return machine and scaler; ICD by default, on counts as they are."""
    if options.probability:
        raise UsageError("--probability is not supported for images.")
    if options.preset is None and options.kernel is None:
        whole = not counted.shares and counted.neighbours in (None, 1)
        whole &= counted.features != "pmsvm-words" or counted.shares is False
        options = replace(options, preset="icd-counts" if whole else "icd")
    kernel = chosen_kernel(options.kernel, options.preset)
    if kernel == "precomputed":
        raise UsageError("--kernel precomputed is for matrices, not for images.")
    given = options.parameters() | {"n_jobs": jobs}
    return make_estimator(kernel, given, options.preset), make_scaler(options.scale, kernel)


def _read(data: Path, source: ImageSource, output: Output) -> Images:
    """Read images, and name those that are skipped."""
    images = source.read(data)
    if not output.quiet:
        for fault in images.faults:
            print(printable(f"skipped: {fault.reason}"), file=sys.stderr)
    return images


def _labelled(data: Path, source: ImageSource, output: Output) -> Images:
    images = _read(data, source, output)
    if images.labels is None:
        raise UsageError(f"{data}: some images have no label to compare predictions with.")
    return images


def _of_reading(images: Images) -> dict[str, Any]:
    return {
        "images": len(images),
        "skipped": len(images.faults),
        "other files": len(images.ignored),
    }


class _Counted(Sequence):
    """Images that move a progress line when they are asked for."""

    def __init__(self, images: Images, bar: SearchBar):
        self._images, self._bar = images, bar

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, k):
        image = self._images[k]
        self._bar.fold()
        return image


@contextmanager
def _counting(quiet: bool) -> Iterator:
    """Yield a function that lets images move a progress line."""
    with line(quiet) as shown:
        yield lambda images, name: _counted(images, name, shown)


def _counted(images: Images, name: str, shown: Line | NoLine) -> _Counted:
    bar = SearchBar(shown, len(images), "images")
    bar.begin(name, 0)
    return _Counted(images, bar)


def predict(
    data: Path, model: Path, out: Path | None, what: str, source: ImageSource, output: Output
) -> None:
    if output.as_json and or_stdout(out) is sys.stdout:
        raise UsageError("--json prints a summary; name a file OUT for the predictions.")
    fitted = _load(model, source)
    images = _read(data, source, output)
    classes, started = fitted.classes_, time.perf_counter()
    n_right = 0
    with text_output(or_stdout(out)) as file:
        if what == "decision":
            names = classes[1:] if len(classes) == 2 else classes
            file.write("\t".join(["image", *map(cell, names.tolist())]) + "\n")
        for part in _parts(images):
            found = fitted.predict(part) if what == "labels" else fitted.decision_function(part)
            for name, value in zip(part.names, found.tolist(), strict=True):
                cells = value if isinstance(value, list) else [value]
                file.write("\t".join([printable(name), *map(cell, cells)]) + "\n")
            if images.labels is not None and what == "labels":
                n_right += int(np.sum(part.labels == found))
    facts = _of_reading(images) | {"seconds": time.perf_counter() - started}
    if out is not None:
        facts = {"out": str(out), **facts}
    if images.labels is not None and what == "labels" and np.isin(images.labels, classes).any():
        facts["accuracy"] = n_right / len(images)
    if or_stdout(out) is not sys.stdout:
        print_result(facts, output)


def _parts(images: Images) -> Iterator[Images]:
    for begin in range(0, len(images), _AT_ONCE):
        yield images[begin : begin + _AT_ONCE]


def evaluate(data: Path, model: Path, source: ImageSource, output: Output) -> None:
    fitted = _load(model, source)
    images = _labelled(data, source, output)
    found = evaluate_chunks(fitted, ((part, part.labels) for part in _parts(images)))
    rate = found.rows / max(found.seconds, 1e-9)
    if output.as_json:
        facts = {"images_per_second": rate} | _of_reading(images)
        print_json(evaluation(found) | {k.replace(" ", "_"): v for k, v in facts.items()})
    elif not output.quiet:
        print_evaluation(found)


def explain(
    data: Path,
    model: Path,
    out: Path | None,
    class_label: str | None,
    source: ImageSource,
    output: Output,
) -> None:
    fitted = _load(model, source)
    if not isinstance(machine_of(fitted), AdditiveSVC):
        raise UsageError(f"{model}: images explain needs an additive machine, such as ICD's.")
    label = None if class_label is None else class_named(machine_of(fitted), class_label)
    images = _read(data, source, output)
    if len(images) != 1:
        raise UsageError(f"{data}: {len(images)} images; images explain takes one.")
    found = explain_image(fitted, images[0], label)
    path = out or Path(f"{data.stem}.png")
    if path.exists() and path.samefile(data):
        raise UsageError(f"{path} is the image itself; name another file OUT.")
    save_figure(plot_heat(found, images[0]).figure, path)
    facts: dict[str, Any] = {"picture": str(path), "label": cell(found.label)}
    facts |= {"score": found.score, "intercept": found.intercept}
    facts |= {"in the image": float(found.heat.sum()), "absent words": float(found.absent.sum())}
    if output.as_json:
        tables = ("windows", "by_window", "by_word")
        facts |= {name: getattr(found, name).tolist() for name in tables}
    print_result(facts, output)


def report(data: Path, model: Path, out: Path | None, source: ImageSource, output: Output) -> None:
    path = check_folder(out or Path(model.name).with_suffix(".html"))
    fitted = _load(model, source)
    images = _labelled(data, source, output)
    about = {"model file": str(model), "data": str(data)}
    write_image_report(fitted, images, path, title=f"Report of {model.name}", about=about)
    print_result({"report": str(path), **_of_reading(images)}, output)


def _load(model: Path, source: ImageSource) -> Pipeline:
    """Load a model of images and set its number of threads."""
    fitted = load(existing_model(model), max_bytes=source.max_bytes)
    features = fitted[0] if isinstance(fitted, Pipeline) else fitted
    if not isinstance(features, WordCounter) or not hasattr(fitted, "predict"):
        raise UsageError(f"{model}: not a model of images. Write one with images train.")
    features.set_params(n_jobs=source.jobs)
    machine = machine_of(fitted)
    machine.set_params(n_jobs=source.jobs)
    return fitted
