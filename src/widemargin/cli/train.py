"""The command train."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from widemargin import BlockStore
from widemargin.calibration import FOLDS, with_probabilities
from widemargin.cli.datasets import (
    Memory,
    check_folder,
    default_model,
    densified_for,
    encoder_of,
    labels_of,
    read_training,
    save_model,
)
from widemargin.cli.making import chosen_kernel, make_estimator, make_scaler, match_weights
from widemargin.cli.options import Machine, Output, Source, Validation
from widemargin.cli.output import (
    INTERRUPTED,
    print_json,
    print_result,
)
from widemargin.cli.progress import progress_on, stopping_on_ctrl_c
from widemargin.cli.store import goes_to_disk, keep_within, memory_of, store_for
from widemargin.cli.tasks import (
    LIBSVM_SCORES,
    check_task,
    cross_validated,
    task_of,
)
from widemargin.cli.trials import check_score, folds_unconverged
from widemargin.cli.words import UsageError, call_features, spelled
from widemargin.errors import CONVERGING, warn_user
from widemargin.kernel.checkpoint import found_in
from widemargin.kernel.machine import KernelMachine
from widemargin.regressor import MarginRegressor
from widemargin.selection import Candidate, behind_scaler, tune
from widemargin.table_encoder import encoding


def train(
    data: Path,
    model: Path | None,
    options: Machine,
    validation: Validation,
    source: Source,
    output: Output,
    memory_limit: str | None = None,
) -> None:
    if validation.scoring is not None:
        check_score(validation.scoring, probabilities=options.probability)
    check_task(options.task)
    kernel = chosen_kernel(options.kernel, options.preset)
    parameters = options.parameters() | {"n_jobs": source.jobs}
    make = partial(make_estimator, kernel, parameters, options.preset)
    machine = make(task=options.task or "classes")
    scaler = make_scaler(options.scale, kernel)
    path, started = check_folder(model or default_model(data)), time.perf_counter()
    fit = _Fit(path, machine, scaler, options, output, memory_limit, started)
    in_memory = scaler is not None or validation.folds is not None or kernel == "precomputed"
    in_memory |= options.probability
    if options.task not in (None, "classes"):
        _check_without_classes(options, validation)
    if goes_to_disk(data, memory_limit, machine, possible=not in_memory):
        keep = "values" if isinstance(machine, KernelMachine) else "codes"
        with store_for(data, fit.path, keep, source, output) as store:
            fit = _for_labels(fit, store.classes, make, validation)
            fit.run(store, None, store.classes, memory_of(store))
        return
    given = kernel == "precomputed"
    dataset, memory = read_training(data, source, output, kernel_values=given)
    y = labels_of(dataset)
    fit = _for_labels(fit, y, make, validation)
    machine = fit.machine
    scaler = encoding(dataset.X, scaler, machine)
    X = densified_for(behind_scaler(scaler, machine), dataset.X)
    if validation.folds is None:
        replace(fit, scaler=scaler).run(X, y, y, memory)
        return
    if options.checkpoint is not None:
        raise UsageError("--checkpoint cannot be combined with --folds: it resumes a single fit.")
    match_weights(machine, y)
    keep_within(memory_limit, machine, X)
    if isinstance(machine, MarginRegressor) and validation.scoring is None:
        _cross_validate_numbers(behind_scaler(scaler, machine), X, y, validation, options, output)
        return
    candidate = Candidate({"kernel": kernel}, machine, scaler, options.probability)
    _cross_validate(candidate, X, y, validation, options.random_state, output)


def _for_labels(fit: _Fit, labels: np.ndarray, make: Callable, validation: Validation) -> _Fit:
    """Return the fit with the machine that the labels ask for, where --task is not given."""
    if fit.options.task is not None or (task := task_of(labels)) == "classes":
        return fit
    _check_without_classes(fit.options, validation)
    if not fit.output.quiet:
        print("labels are numbers that are not whole: --task numbers", file=sys.stderr)
    return replace(fit, machine=make(task=task))


@dataclass(frozen=True)
class _Fit:
    """One fit, from data in memory or on disk to a model file."""

    path: Path
    machine: Any
    scaler: Any
    options: Machine
    output: Output
    memory_limit: str | None
    started: float

    def run(self, X, y, labels: np.ndarray, memory: Memory) -> None:
        """Fit, write the model and print a summary; exit with status 130 after Ctrl-C."""
        seconds_reading = time.perf_counter() - self.started
        machine, output, folder = self.machine, self.output, self.options.checkpoint
        match_weights(machine, labels)
        keep_within(self.memory_limit, machine, X)
        if folder is not None and (finished := found_in(folder)) and not output.quiet:
            print(f"continuing from {folder}: {finished}", file=sys.stderr)
        with stopping_on_ctrl_c() as interrupt, _hint_at(folder):
            fitted = fit_with_progress(self.scaler, machine, X, y, interrupt, quiet=output.quiet)
        if isinstance(X, BlockStore) and (encoder := encoder_of(X)) is not None:
            fitted = behind_scaler(Pipeline([("table", encoder)]), fitted)
        if self.options.probability and not interrupt.asked:
            fitted = calibrated(fitted, X, y, quiet=output.quiet or output.as_json)
        save_model(fitted, self.path, memory)
        facts: dict[str, Any] = {
            "model": str(self.path),
            "rows": X.shape[0],
            "features": X.shape[1],
            **({"classes": len(machine.classes_)} if hasattr(machine, "classes_") else {}),
            "seconds reading": seconds_reading,
            "seconds training": machine.fit_record_.seconds,
            "duality gap": float(machine.duality_gap_),
        }
        if isinstance(machine, KernelMachine):
            facts["support vectors"] = len(machine.support_)
        print_result(facts, output)
        if interrupt.asked:
            more = ", without probabilities" * self.options.probability + "."
            if folder is not None:
                more += f" The same command continues from {folder}."
            end_interrupted(self.path, more)


def end_interrupted(path: Path, more: str = ".") -> None:
    """Say after Ctrl-C what the model file holds, and exit."""
    print(f"interrupted: {path} is the model of the unfinished fit{more}", file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def _check_without_classes(options: Machine, validation: Validation) -> None:
    """Refuse what only classes have."""
    task = options.task or "numbers"
    for name, given in (
        ("--probability", options.probability),
        ("--scoring", validation.scoring is not None and task == "one-class"),
        ("--folds", validation.folds is not None and task == "one-class"),
    ):
        if given:
            raise UsageError(f"{name} cannot be combined with --task {task}.")


@contextmanager
def _hint_at(folder: Path | None) -> Iterator[None]:
    """After Ctrl-C, say that the fit can continue from a checkpoint."""
    try:
        yield
    except KeyboardInterrupt:
        if folder is not None and (finished := found_in(folder)):
            print(f"{folder} has {finished}: the same command continues from it", file=sys.stderr)
        raise


def _cross_validate(
    candidate: Candidate, X, y, validation: Validation, seed: int | None, output: Output
) -> None:
    """Print the score over the folds, in LIBSVM's line (which its grid.py reads), and details."""
    scoring, folds = validation.scoring or "accuracy", validation.folds or 0
    check_score(
        scoring,
        y,
        probabilities=candidate.probability,
        numbers=isinstance(candidate.estimator, MarginRegressor),
    )
    Cs = [candidate.estimator.C]
    (trial,) = tune([candidate], X, y, Cs, folds=folds, random_state=seed, scoring=scoring)
    facts = {
        "folds": folds,
        scoring: trial.score,
        "spread": trial.spread,
        "unconverged": trial.unconverged,
    }
    if output.as_json:
        print_json({"cross_validation": facts})
    else:
        percent = f"Accuracy = {100 * trial.score:g}%"
        print(
            "Cross Validation", percent if scoring == "accuracy" else f"{scoring} = {trial.score:g}"
        )
        print_result(facts, output)
    if trial.unconverged:
        warn_user(
            f"{folds_unconverged(trial)} folds did not converge: the {scoring} is not that of "
            f"the requested model. {spelled(CONVERGING)}"
        )


def _cross_validate_numbers(
    model, X, y, validation: Validation, options: Machine, output: Output
) -> None:
    """Print svm-train's lines."""
    folds = validation.folds or 0
    scores = cross_validated(model, X, y, folds, options.random_state)
    if output.as_json:
        print_json({"cross_validation": {"folds": folds, **scores}})
        return
    for name in LIBSVM_SCORES:
        print(f"Cross Validation {name.capitalize()} = {scores[name]:g}")


def fit_with_progress(scaler, machine, X, y, *also, quiet: bool):
    """Fit a machine, after a scaler if any, with a progress line and other callbacks."""
    rows = X if scaler is None else scaler.fit_transform(X)
    if isinstance(scaler, Pipeline):
        names = scaler[0].get_feature_names_out()
        call_features(lambda j: repr(names[j]))
    with progress_on(machine, quiet, *also):  # scikit-learn has no callbacks within a pipeline
        machine.fit(rows, y)
    return behind_scaler(scaler, machine)


def calibrated(fitted, X, y, *, quiet: bool):
    """Return the model with probabilities, which take one more fit per fold."""
    if not quiet:
        print(f"probabilities: cross-validation of {FOLDS} folds", file=sys.stderr)
    return with_probabilities(fitted, X, y)
