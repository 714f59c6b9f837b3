"""train, predict, evaluate."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from widemargin import AdditiveSVC, KernelSVC
from widemargin.calibration import FOLDS, uncalibrated, with_probabilities
from widemargin.cli.arguments import UsageError
from widemargin.cli.datasets import (
    cell,
    check_folder,
    class_named,
    densified_for,
    encoder_of,
    labels_for,
    labels_like,
    labels_of,
    load_model,
    machine_of,
    read_training,
    stream_like_training,
)
from widemargin.cli.interrupt import stopping_on_ctrl_c
from widemargin.cli.limits import keep_within
from widemargin.cli.machines import chosen_kernel, make_estimator, make_scaler, match_weights
from widemargin.cli.memory import Memory, default_model, save_model
from widemargin.cli.options import Machine, Output, Source
from widemargin.cli.output import (
    INTERRUPTED,
    or_stdout,
    print_facts,
    print_json,
    print_table,
    printable,
)
from widemargin.cli.progress import progress_on
from widemargin.cli.search_options import Validation
from widemargin.cli.storing import goes_to_disk, memory_of, store_for
from widemargin.cli.trials import check_score, folds_unconverged
from widemargin.cli.words import call_features, know_scaling
from widemargin.files import text_output
from widemargin.kernel.checkpoint import found_in
from widemargin.persistence import Header
from widemargin.report import MOST_IN_MATRIX, Evaluation, evaluate_chunks
from widemargin.selection import Candidate, behind_scaler, tune
from widemargin.table_encoder import encoding
from widemargin.terms import explain
from widemargin.warning import warn_user
from widemargin.wording import words

_CHUNK = 10_000  # rows of output formatted at once


def train(
    data: Path,
    model: Path | None,
    options: Machine,
    validation: Validation,
    source: Source,
    output: Output,
    memory_limit: str | None = None,
) -> None:
    check_score(validation.scoring or "accuracy", probabilities=options.probability)
    kernel = chosen_kernel(options.kernel, options.preset)
    parameters = options.parameters() | {"n_jobs": source.jobs}
    machine = make_estimator(kernel, parameters, options.preset)
    scaler = make_scaler(options.scale, kernel)
    know_scaling(scaler)
    path = check_folder(model or default_model(data))
    given = kernel == "precomputed"
    possible = scaler is None and validation.folds is None and not given
    possible = possible and not options.probability  # whose folds are rows in memory
    if goes_to_disk(data, memory_limit, machine, possible=possible):
        _train_from_disk(data, path, machine, source, output, memory_limit)
        return
    started = time.perf_counter()
    dataset, memory = read_training(data, source, output, kernel_values=given)
    seconds_reading = time.perf_counter() - started
    scaler = encoding(dataset.X, scaler, machine)
    X, y = densified_for(behind_scaler(scaler, machine), dataset.X), labels_of(dataset)
    match_weights(machine, y)
    keep_within(memory_limit, machine, X)
    if validation.folds is not None:
        if options.checkpoint is not None:
            raise UsageError("--checkpoint has no meaning with --folds: it is for one fit.")
        candidate = Candidate({"kernel": kernel}, machine, scaler, options.probability)
        _cross_validate(candidate, X, y, validation, options.random_state, output)
        return
    if options.checkpoint is not None:
        _say_what_is_there(options.checkpoint, output)
    with stopping_on_ctrl_c() as interrupt, _saying_how_to_go_on(options.checkpoint):
        fitted = fit_with_progress(scaler, machine, X, y, interrupt, quiet=output.quiet)
    if options.probability and not interrupt.asked:
        fitted = calibrated_with_word(fitted, X, y, quiet=output.quiet or output.as_json)
    save_model(fitted, path, memory)
    _say_trained(path, machine, X.shape, seconds_reading, output)
    if interrupt.asked:
        without = ", without probabilities" if options.probability else ""
        _end_interrupted(path, options.checkpoint, without)


def _train_from_disk(
    data: Path, path: Path, machine, source: Source, output: Output, limit: str | None
) -> None:
    started = time.perf_counter()
    keep = "values" if isinstance(machine, KernelSVC) else "codes"
    checkpoint = getattr(machine, "checkpoint", None)
    with store_for(data, path, keep, source, output) as store:
        seconds_reading = time.perf_counter() - started
        match_weights(machine, store.classes)
        memory = memory_of(store)
        keep_within(limit, machine, store)
        if checkpoint is not None:
            _say_what_is_there(checkpoint, output)
        with stopping_on_ctrl_c() as interrupt, _saying_how_to_go_on(checkpoint):
            fitted = fit_with_progress(None, machine, store, None, interrupt, quiet=output.quiet)
        encoder = encoder_of(store)
        if encoder is not None:
            fitted = behind_scaler(Pipeline([("table", encoder)]), fitted)
        save_model(fitted, path, memory)
    _say_trained(path, machine, store.shape, seconds_reading, output)
    if interrupt.asked:
        _end_interrupted(path, checkpoint)


def _say_trained(path: Path, machine, shape, seconds_reading: float, output: Output) -> None:
    facts: dict[str, Any] = {
        "model": str(path),
        "rows": shape[0],
        "features": shape[1],
        "classes": len(machine.classes_),
        "seconds reading": seconds_reading,
        "seconds training": machine.fit_record_.seconds,
        "duality gap": float(machine.duality_gap_),
    }
    if isinstance(machine, KernelSVC):
        facts["support vectors"] = len(machine.support_)
    _print(facts, {} if output.quiet else facts, output.as_json)


def _say_what_is_there(folder: Path, output: Output) -> None:
    there = found_in(folder)
    if there and not output.quiet:
        print(f"going on from {folder}: {there}", file=sys.stderr)


@contextmanager
def _saying_how_to_go_on(folder: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        there = None if folder is None else found_in(folder)
        if there:
            print(f"{folder} has {there}: the same command goes on from there", file=sys.stderr)
        raise


def _end_interrupted(path: Path, checkpoint: Path | None, without: str = "") -> None:
    """A model that was cut short has another exit status."""
    said = f"interrupted: {path} is the model as far as it came{without}."
    if checkpoint is not None:
        said += f" The same command goes on from {checkpoint}."
    print(said, file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def _cross_validate(
    candidate: Candidate, X, y, validation: Validation, seed: int | None, output: Output
) -> None:
    """The score over the folds, in LIBSVM's line (which its grid.py reads), then what else."""
    scoring, folds = validation.scoring or "accuracy", validation.folds or 0
    check_score(scoring, np.unique(y), probabilities=candidate.probability)
    Cs = [candidate.estimator.C]
    (trial,) = tune([candidate], X, y, Cs, folds=folds, random_state=seed, scoring=scoring)
    found = {
        "folds": folds,
        scoring: trial.score,
        "spread": trial.spread,
        "unconverged": trial.unconverged,
    }
    if not output.as_json:
        percent = f"Accuracy = {100 * trial.score:g}%"
        said = percent if scoring == "accuracy" else f"{scoring} = {trial.score:g}"
        print(f"Cross Validation {said}")
    _print({"cross_validation": found}, {} if output.quiet else found, output.as_json)
    if trial.unconverged:
        warn_user(
            f"{folds_unconverged(trial)} folds did not converge: the {scoring} is not that of "
            f"the model asked for. {words().converging}"
        )


def fit_with_progress(scaler, machine, X, y, *also, quiet: bool):
    """The machine, behind its scaler if it has one, fitted in sight of user and callbacks."""
    rows = X if scaler is None else scaler.fit_transform(X)
    if isinstance(scaler, Pipeline):
        names = scaler[0].get_feature_names_out()
        call_features(lambda j: repr(names[j]))
    with progress_on(machine, quiet, *also):  # which scikit-learn does not take within a pipeline
        machine.fit(rows, y)
    return behind_scaler(scaler, machine)


def calibrated_with_word(fitted, X, y, *, quiet: bool):
    """The model with probabilities, which take a fit per fold more."""
    if not quiet:
        print(f"probabilities: cross-validation of {FOLDS} folds", file=sys.stderr)
    return with_probabilities(fitted, X, y)


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
        raise UsageError("--class has no meaning without --output contributions.")
    probable = what == "probability"
    header, fitted = load_model(model, source, calibrated=probable)
    if probable and not hasattr(fitted, "predict_proba"):
        raise UsageError(f"{model}: the model has no probabilities. Train it with --probability.")
    n_rows, n_right, known, seconds = 0, 0, False, 0.0
    between = " " if probable and not _has_blanks(fitted.classes_) else "\t"
    with text_output(or_stdout(out)) as file:
        for chunk in stream_like_training(data, source, header):
            X = densified_for(uncalibrated(fitted), chunk.X)
            y = labels_like(chunk, fitted.classes_)
            started = time.perf_counter()
            columns, values = _predicted(fitted, X, what, class_label, header)
            seconds += time.perf_counter() - started
            if columns and n_rows == 0:
                file.write(
                    between.join(map(printable, columns)) + "\n"
                )  # a line, whatever they are
            _write_rows(file, values, between)
            n_rows += len(values)
            if y is not None:
                known |= bool(np.isin(y, fitted.classes_).any())
                predicted = values if what == "labels" else _labels(fitted, X, values, probable)
                n_right += int(np.sum(predicted == y))
    facts: dict[str, Any] = {"rows": n_rows, "seconds": seconds}
    if out is not None:
        facts = {"out": str(out), **facts}
    if known:
        facts["accuracy"] = n_right / n_rows
    if as_json:
        print_json(facts)
    elif known and not quiet:  # as svm-predict says it, but not between predictions
        where = sys.stderr if or_stdout(out) is sys.stdout else sys.stdout
        accuracy = f"{100 * n_right / n_rows:g}% ({n_right}/{n_rows})"
        print(f"Accuracy = {accuracy} (classification)", file=where)


def _has_blanks(classes: np.ndarray) -> bool:
    """Whether blanks between columns, as svm-predict writes them, would tell nothing apart."""
    return any(" " in str(label) for label in classes.tolist())


def _write_rows(file: TextIO, values: np.ndarray, between: str) -> None:
    for begin in range(0, len(values), _CHUNK):
        for row in values[begin : begin + _CHUNK].tolist():
            cells = row if isinstance(row, list) else [row]
            file.write(between.join(map(cell, cells)) + "\n")


def _labels(model, X, values: np.ndarray, probable: bool) -> np.ndarray:
    """Of probabilities, those that stand before them."""
    return np.array(values[:, 0].tolist()) if probable else model.predict(X)


def _probabilities(model, X) -> tuple[list[str], np.ndarray]:
    """As svm-predict -b 1 writes them, labels in the order of a model of LIBSVM's."""
    probability = model.predict_proba(X)
    labels = getattr(model, "labels_", model.classes_)
    order = np.searchsorted(model.classes_, labels)
    found = np.empty((len(probability), len(labels) + 1), dtype=object)
    found[:, 0] = model.classes_[probability.argmax(axis=1)].tolist()
    found[:, 1:] = [[f"{p:g}" for p in row] for row in probability[:, order].tolist()]
    return ["labels", *(cell(label) for label in labels.tolist())], found


def _predicted(model, X, what: str, class_label: str | None, header: Header):
    """Names of columns (none for labels) and an array of predictions."""
    if what == "probability":
        return _probabilities(model, X)
    machine = machine_of(model)
    classes = [cell(c) for c in machine.classes_.tolist()]
    if what == "labels":
        return [], model.predict(X)
    if what == "decision":
        scores = model.decision_function(X)
        return (classes[1:] if scores.ndim == 1 else classes), scores
    if not isinstance(machine, AdditiveSVC):
        kind = type(machine).__name__
        raise UsageError(f"--output contributions needs an additive model; this one is {kind}.")
    label = None if class_label is None else class_named(machine, class_label)
    if label is None and len(classes) > 2:
        raise UsageError(f"--output contributions needs --class, one of {', '.join(classes)}.")
    explained = explain(model, Memory.recalled(header).names)
    names = [term.name for term in explained.terms]
    return [*names, "intercept"], explained.contributions(X, label)


def evaluate_model(data: Path, model: Path, source: Source, as_json: bool) -> None:
    header, fitted = load_model(model, source, calibrated=True)
    found = evaluate_on(data, source, header, fitted)
    if as_json:
        print_json(evaluation(found))
    else:
        print_evaluation(found)


def evaluate_on(data: Path, source: Source, header: Header, fitted) -> Evaluation:
    plain = uncalibrated(fitted)
    chunks = stream_like_training(data, source, header)
    pieces = ((densified_for(plain, c.X), labels_for(data, c, fitted)) for c in chunks)
    return evaluate_chunks(fitted, pieces)


def evaluation(found: Evaluation) -> dict:
    return {
        "accuracy": found.accuracy,
        "balanced_accuracy": found.balanced_accuracy,
        "roc_auc": found.roc_auc,
        **({} if np.isnan(found.log_loss) else {"log_loss": found.log_loss}),
        "rows": found.rows,
        "seconds": found.seconds,
        "microseconds_per_row": found.microseconds_per_row,
        "classes": [vars(c) for c in found.classes],
        "confusion": found.confusion,
    }


def print_evaluation(found: Evaluation) -> None:
    facts = {
        "accuracy": f"{100 * found.accuracy:.2f} %",
        "balanced accuracy": f"{100 * found.balanced_accuracy:.2f} %",
        "AUC": found.roc_auc,
        **({} if np.isnan(found.log_loss) else {"log loss": found.log_loss}),
        "rows": found.rows,
        "time per row": f"{found.microseconds_per_row:.3g} us",
    }
    print_facts(facts)
    print_table(
        ["class", "rows", "precision", "recall", "F1"],
        [[c.label, c.rows, c.precision, c.recall, c.f1] for c in [*found.classes, found.mean]],
        title="\nper class",
    )
    if len(found.classes) > MOST_IN_MATRIX:
        if confused := [list(pair) for pair in found.most_confused()]:
            print_table(["true", "predicted", "rows"], confused, title="\nmost confused")
        return
    labels = [str(c.label) for c in found.classes]
    rows = [[label, *row] for label, row in zip(labels, found.confusion.tolist(), strict=True)]
    print_table(["true \\ predicted", *labels], rows, title="\nconfusion")


def _print(content: dict, facts: dict, as_json: bool) -> None:
    if as_json:
        print_json({k.replace(" ", "_"): v for k, v in content.items()})
    elif facts:
        print_facts(facts)
