"""The commands predict and evaluate."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from widemargin import AdditiveSVC, AdditiveSVR
from widemargin.calibration import CalibratedSVC, uncalibrated
from widemargin.cli.datasets import (
    Memory,
    cell,
    class_named,
    densified_for,
    labels_for,
    labels_like,
    load_model,
    machine_of,
    no_labels,
    stream_like_training,
)
from widemargin.cli.options import Output, Source
from widemargin.cli.output import (
    or_stdout,
    print_facts,
    print_json,
    print_table,
    printable,
)
from widemargin.cli.tasks import LIBSVM_SCORES, SquaredErrors, predicts_numbers
from widemargin.cli.words import UsageError
from widemargin.files import text_output
from widemargin.persistence import Header
from widemargin.regressor import numeric_targets
from widemargin.report import MOST_IN_MATRIX, Evaluation, evaluate_chunks
from widemargin.terms import Explanation, explain

_CHUNK = 10_000  # rows of output formatted at once


def predict(
    data: Path,
    model: Path,
    out: Path | None,
    what: str,
    class_label: str | None,
    source: Source,
    output: Output,
) -> None:
    as_json, quiet = output.as_json, output.quiet
    if as_json and or_stdout(out) is sys.stdout:
        raise UsageError("--json prints a summary; name a file OUT for the predictions.")
    if class_label is not None and what != "contributions":
        raise UsageError("--class needs --output contributions.")
    probable = what == "probability"
    header, fitted = load_model(model, source, calibrated=probable)
    if probable and not hasattr(fitted, "predict_proba"):
        raise UsageError(f"{model}: the model has no probabilities. Train it with --probability.")
    if not hasattr(fitted, "classes_"):
        _predict_values(data, fitted, out, what, (source, output, header))
        return
    n_rows, n_right, n_unlikely, known, seconds = 0, 0, 0, False, 0.0
    between = " " if probable and not _has_blanks(fitted.classes_) else "\t"
    with text_output(or_stdout(out)) as file:
        for chunk in stream_like_training(data, source, header):
            X = densified_for(uncalibrated(fitted), chunk.X)
            y = labels_like(chunk, fitted.classes_)
            started = time.perf_counter()
            columns, values = _predicted(fitted, X, what, class_label, header)
            seconds += time.perf_counter() - started
            if columns and n_rows == 0:
                file.write(between.join(map(printable, columns)) + "\n")
            _write_rows(file, values, between)
            n_rows += len(values)
            if isinstance(fitted, CalibratedSVC):
                n_unlikely += _n_unlikely(fitted, values)
            if y is not None:
                known |= bool(np.isin(y, fitted.classes_).any())
                predicted = values if what == "labels" else _labels(fitted, X, values, probable)
                n_right += int(np.sum(predicted == y))
    facts: dict[str, Any] = {"rows": n_rows, "seconds": seconds}
    if out is not None:
        facts = {"out": str(out), **facts}
    if known:
        facts["accuracy"] = n_right / n_rows
    if n_unlikely and not quiet:
        _tell_unlikely(n_unlikely, n_rows)
    if as_json:
        print_json(facts)
    elif known and not quiet:  # svm-predict's line, but not between predictions
        where = sys.stderr if or_stdout(out) is sys.stdout else sys.stdout
        accuracy = f"{100 * n_right / n_rows:g}% ({n_right}/{n_rows})"
        print(f"Accuracy = {accuracy} (classification)", file=where)


def _predict_values(
    data: Path, model: Any, out: Path | None, what: str, given: tuple[Source, Output, Header]
) -> None:
    """Predict numbers, or 1 and -1 of one class, and print svm-predict's lines about them."""
    source, output, header = given
    numbers = predicts_numbers(model)
    if what == "decision" and numbers:
        raise UsageError("--output decision needs a classifier.")
    explained = _explained(model, header) if what == "contributions" else None
    errors, n_rows, n_right, known, seconds = SquaredErrors(), 0, 0, False, 0.0
    with text_output(or_stdout(out)) as file:
        for chunk in stream_like_training(data, source, header):
            X, started = densified_for(model, chunk.X), time.perf_counter()
            if explained is not None:
                if n_rows == 0:
                    file.write("\t".join(map(printable, _columns(explained))) + "\n")
                values = explained.contributions(X)
            else:
                values = (model.decision_function if what == "decision" else model.predict)(X)
            seconds += time.perf_counter() - started
            _write_rows(file, values, "\t")
            n_rows += len(values)
            y = None if chunk.y is None or explained is not None else np.asarray(chunk.y)
            if y is None or y.dtype.kind not in "biuf":
                continue
            if numbers:
                errors.add(y.astype(np.float64), values)
            elif np.isin(y, (-1, 1)).all():
                known, n_right = True, n_right + int(np.sum(np.where(values < 0, -1, 1) == y))
    facts: dict[str, Any] = {} if out is None else {"out": str(out)}
    facts |= {"rows": n_rows, "seconds": seconds}
    lines = []
    if errors.n:
        scores = errors.scores()
        facts |= scores
        lines = [f"{name.capitalize()} = {scores[name]:g} (regression)" for name in LIBSVM_SCORES]
    elif known:
        facts["accuracy"] = n_right / n_rows
        percent = f"{100 * n_right / n_rows:g}% ({n_right}/{n_rows})"
        lines = [f"Accuracy = {percent} (classification)"]
    if output.as_json:
        print_json(facts)
    elif not output.quiet:
        where = sys.stderr if or_stdout(out) is sys.stdout else sys.stdout
        for line in lines:
            print(line, file=where)


def _has_blanks(classes: np.ndarray) -> bool:
    """Whether a class contains a blank, which separates svm-predict's columns."""
    return any(" " in str(label) for label in classes.tolist())


def _write_rows(file: TextIO, values: np.ndarray, between: str) -> None:
    for begin in range(0, len(values), _CHUNK):
        for row in values[begin : begin + _CHUNK].tolist():
            cells = row if isinstance(row, list) else [row]
            file.write(between.join(map(cell, cells)) + "\n")


def _labels(model, X, values: np.ndarray, probable: bool) -> np.ndarray:
    """Return the predicted labels; those beside probabilities are the first column."""
    return np.array(values[:, 0].tolist()) if probable else model.predict(X)


def _n_unlikely(model, values: np.ndarray) -> int:
    """Count labels that are not the most probable class."""
    likely = model.classes_[values[:, 1:].astype(float).argmax(axis=1)]
    return int(np.sum(likely != np.array(values[:, 0].tolist())))


def _tell_unlikely(n: int, of: int) -> None:
    print(
        f"note: {n} of {of} labels are not the most probable class. Labels follow decision values, "
        "as without --probability; class weights shift these, but not probabilities.",
        file=sys.stderr,
    )


def _probabilities(model, X) -> tuple[list[str], np.ndarray]:
    """Return names and values of svm-predict -b 1's columns, in a LIBSVM model's label order.

    Its labels are the most probable classes; those of our models are the machine's.
    """
    probability = model.predict_proba(X)
    labels = getattr(model, "labels_", model.classes_)
    order = np.searchsorted(model.classes_, labels)
    columns = np.empty((len(probability), len(labels) + 1), dtype=object)
    likely = model.classes_[probability.argmax(axis=1)]
    columns[:, 0] = (model.predict(X) if isinstance(model, CalibratedSVC) else likely).tolist()
    columns[:, 1:] = [[f"{p:g}" for p in row] for row in probability[:, order].tolist()]
    return ["labels", *(cell(label) for label in labels.tolist())], columns


def _predicted(model, X, what: str, class_label: str | None, header: Header):
    """Return names of columns (none for labels) and an array of predictions."""
    if what == "probability":
        return _probabilities(model, X)
    machine = machine_of(model)
    classes = [cell(c) for c in machine.classes_.tolist()]
    if what == "labels":
        return [], model.predict(X)
    if what == "decision":
        scores = model.decision_function(X)
        return (classes[1:] if scores.ndim == 1 else classes), scores
    explained = _explained(model, header)
    label = None if class_label is None else class_named(machine, class_label)
    if label is None and len(classes) > 2:
        raise UsageError(f"--output contributions needs --class, one of {', '.join(classes)}.")
    return _columns(explained), explained.contributions(X, label)


def _explained(model, header: Header) -> Explanation:
    """Return the terms of an additive model."""
    machine = machine_of(model)
    if not isinstance(machine, AdditiveSVC | AdditiveSVR):
        kind = type(machine).__name__
        raise UsageError(f"--output contributions needs an additive model; this one is {kind}.")
    return explain(model, Memory.recalled(header).names)


def _columns(explained: Explanation) -> list[str]:
    return [*(term.name for term in explained.terms), "intercept"]


def evaluate_model(data: Path, model: Path, source: Source, as_json: bool) -> None:
    header, fitted = load_model(model, source, calibrated=True)
    if not hasattr(fitted, "classes_"):
        _evaluate_numbers(data, model, fitted, source, header, as_json)
        return
    result = evaluate_on(data, source, header, fitted)
    if as_json:
        print_json(evaluation(result))
    else:
        print_evaluation(result)


def _evaluate_numbers(
    data: Path, path: Path, model: Any, source: Source, header: Header, as_json: bool
) -> None:
    """Print `errors_on` data."""
    if not predicts_numbers(model):
        raise UsageError(f"{path}: evaluate does not support models of one class. Use predict.")
    facts = errors_on(data, source, header, model)
    if as_json:
        print_json(facts)
    else:
        print_facts(facts)


def errors_on(data: Path, source: Source, header: Header, model: Any) -> dict[str, Any]:
    """Return errors of predicted numbers, and the share that epsilon lets pass."""
    errors, within, seconds = SquaredErrors(), 0, 0.0
    machine = machine_of(model)
    epsilon = getattr(machine, "epsilon_", [getattr(machine, "epsilon", None)])[0]
    for chunk in stream_like_training(data, source, header):
        if chunk.y is None:
            raise no_labels(data)
        y, X = numeric_targets(chunk.y), densified_for(model, chunk.X)
        started = time.perf_counter()
        values = model.predict(X)
        seconds += time.perf_counter() - started
        errors.add(y, values)
        within += int(np.sum(np.abs(y - values) <= (epsilon or 0)))
    facts: dict[str, Any] = dict(errors.scores())
    if epsilon is not None:
        facts["share within epsilon"] = within / max(errors.n, 1)
    return facts | {"rows": errors.n, "seconds": seconds}


def evaluate_on(data: Path, source: Source, header: Header, fitted) -> Evaluation:
    plain = uncalibrated(fitted)
    chunks = stream_like_training(data, source, header)
    pieces = ((densified_for(plain, c.X), labels_for(data, c, fitted)) for c in chunks)
    return evaluate_chunks(fitted, pieces)


def evaluation(result: Evaluation) -> dict:
    return {
        "accuracy": result.accuracy,
        "balanced_accuracy": result.balanced_accuracy,
        "roc_auc": result.roc_auc,
        **({} if np.isnan(result.log_loss) else {"log_loss": result.log_loss}),
        "rows": result.rows,
        "seconds": result.seconds,
        "microseconds_per_row": result.microseconds_per_row,
        "classes": [vars(c) for c in result.classes],
        "confusion": result.confusion,
    }


def print_evaluation(result: Evaluation) -> None:
    facts = {
        "accuracy": f"{100 * result.accuracy:.2f} %",
        "balanced accuracy": f"{100 * result.balanced_accuracy:.2f} %",
        "AUC": result.roc_auc,
        **({} if np.isnan(result.log_loss) else {"log loss": result.log_loss}),
        "rows": result.rows,
        "time per row": f"{result.microseconds_per_row:.3g} us",
    }
    print_facts(facts)
    print_table(
        ["class", "rows", "precision", "recall", "F1"],
        [[c.label, c.rows, c.precision, c.recall, c.f1] for c in [*result.classes, result.mean]],
        title="\nper class",
    )
    if len(result.classes) > MOST_IN_MATRIX:
        if confused := [list(pair) for pair in result.most_confused()]:
            print_table(["true", "predicted", "rows"], confused, title="\nmost confused")
        return
    labels = [str(c.label) for c in result.classes]
    rows = [[label, *row] for label, row in zip(labels, result.confusion.tolist(), strict=True)]
    print_table(["true \\ predicted", *labels], rows, title="\nconfusion")
