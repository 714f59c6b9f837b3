"""The command train."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, BlockStore, KernelSVR, PowerMean, papers
from widemargin.additive import kernels as additive_kernels
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
from widemargin.cli.options import Machine, Output, Source, Validation
from widemargin.cli.output import (
    INTERRUPTED,
    print_json,
    print_result,
)
from widemargin.cli.progress import progress_on, stopping_on_ctrl_c
from widemargin.cli.store import goes_to_disk, keep_within, memory_of, store_for
from widemargin.cli.tasks import LIBSVM_SCORES, MACHINES, check_task, cross_validated, task_of
from widemargin.cli.trials import check_score, folds_unconverged
from widemargin.cli.words import UsageError, call_features, number_or_text, option, said, spelled
from widemargin.errors import CONVERGING, warn_user
from widemargin.kernel import kernels as general_kernels
from widemargin.kernel.checkpoint import found_in
from widemargin.kernel.machine import KernelMachine
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
    check_score(validation.scoring or "accuracy", probabilities=options.probability)
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
            fit.run(store, None, store.classes, memory_of(store))
        return
    given = kernel == "precomputed"
    dataset, memory = read_training(data, source, output, kernel_values=given)
    y = labels_of(dataset)
    if options.task is None and (task := task_of(y)) != "classes":
        _check_without_classes(options, validation)
        machine = make(task=task)
        fit = replace(fit, machine=machine)
        if not output.quiet:
            print("labels are numbers that are not whole: --task numbers", file=sys.stderr)
    scaler = encoding(dataset.X, scaler, machine)
    X = densified_for(behind_scaler(scaler, machine), dataset.X)
    if validation.folds is None:
        replace(fit, scaler=scaler).run(X, y, y, memory)
        return
    if options.checkpoint is not None:
        raise UsageError("--checkpoint cannot be combined with --folds: it resumes a single fit.")
    match_weights(machine, y)
    keep_within(memory_limit, machine, X)
    if isinstance(machine, KernelSVR):
        _cross_validate_numbers(behind_scaler(scaler, machine), X, y, validation, options, output)
        return
    candidate = Candidate({"kernel": kernel}, machine, scaler, options.probability)
    _cross_validate(candidate, X, y, validation, options.random_state, output)


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
        ("--scoring", validation.scoring is not None),
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
    check_score(scoring, np.unique(y), probabilities=candidate.probability)
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


# ------------------------------------------------------------------ from options to machines

ADDITIVE = (*additive_kernels.KERNELS, "power_mean", "auto")
# A name that both machines have gets the prefix "exp_" for KernelSVC.
_OTHER_NAMES = {"chi2": "exp_chi2", "linear": "libsvm_linear"}
_GENERAL = {_OTHER_NAMES.get(k, k): k for k in general_kernels.KERNELS}
GENERAL = tuple(_GENERAL)
KERNELS = ADDITIVE + GENERAL
LIBSVM_KERNELS = {
    "0": "libsvm_linear",
    "1": "poly",
    "2": "rbf",
    "3": "sigmoid",
    "4": "precomputed",
}
# The function that makes the machine, and its default kernel.
PRESETS: dict[str, tuple[Callable, str]] = {
    "icd": (papers.icd, "intersection"),
    "icd-counts": (partial(papers.icd, scaling=None), "intersection"),
    "pmsvm": (papers.pmsvm, "power_mean"),
    "pmsvm-lut": (papers.pmsvm_lut, "power_mean"),
    "dcsvm": (papers.dcsvm, "rbf"),
    "dcsvm-early": (papers.dcsvm_early, "rbf"),
}
SCALERS = {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "standard": StandardScaler}


def _with(parameter: str) -> tuple[str, ...]:
    """Return the general kernels that have a parameter."""
    traits = general_kernels.KERNELS
    return tuple(
        name for name, kernel in _GENERAL.items() if parameter in traits[kernel].parameters
    )


# Options that only some kernels have, by their Python names.
WITH_GAMMA = _with("gamma")
_KERNELS_OF = {
    "power": ("power_mean",),
    "loss": ADDITIVE,
    "rank": ADDITIVE,
    "gamma": WITH_GAMMA,
    "degree": _with("degree"),
    "coef0": _with("coef0"),
    "early": GENERAL,
    "cache_size": GENERAL,
    "checkpoint": GENERAL,
}


def kernel_name(word: str) -> str:
    """Return a kernel's name, given by name (hyphens allowed) or by LIBSVM's number."""
    name = LIBSVM_KERNELS.get(word, word.replace("-", "_"))
    if name not in KERNELS:
        raise UsageError(
            f"{option('kernel', word)}: not one of {', '.join(KERNELS)}, nor LIBSVM's 0 to "
            "4 (libsvm_linear, poly, rbf, sigmoid, precomputed)."
        )
    return name


def chosen_kernel(word: str | None, preset: str | None) -> str:
    """Return the named kernel, the preset's kernel, or rbf."""
    if preset is None:
        return kernel_name("rbf" if word is None else word)
    if preset not in PRESETS:
        raise UsageError(f"--preset {preset}: not one of {', '.join(PRESETS)}.")
    default = PRESETS[preset][1]
    kernel = default if word is None else kernel_name(word)
    family = ADDITIVE if default in ADDITIVE else GENERAL
    if kernel not in family:
        raise UsageError(f"--kernel {kernel}: --preset {preset} takes {', '.join(family)}.")
    return kernel


def make_estimator(
    kernel: str, options: dict[str, Any], preset: str | None = None, task: str = "classes"
):
    """Return an unfitted machine; None means its default, and unknown options are refused.

    Class weights have the labels' text as keys until the data is read (`match_weights`).
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if kernel not in _KERNELS_OF.get(name, KERNELS):
            raise UsageError(f"{option(name)} cannot be combined with {option('kernel', kernel)}.")
    _check_task(kernel, given, preset, task)
    if weights := given.pop("weight", None):
        given["class_weight"] = class_weights(weights)
    if "early" in given:
        given["early"] = _early(given["early"])
    try:
        machine = _make(kernel, given, preset, task)
        with warnings.catch_warnings():  # the fit repeats the warnings
            warnings.simplefilter("ignore")
            machine._check_params()
    except (ValueError, TypeError) as error:
        raise UsageError(f"{option('kernel', kernel)}: {said(error)}") from None
    return machine


def _check_task(kernel: str, given: dict[str, Any], preset: str | None, task: str) -> None:
    """Refuse options that the task's machine does not have."""
    if task != "classes" and (preset is not None or kernel in ADDITIVE):
        what = f"--preset {preset}" if preset is not None else option("kernel", kernel)
        raise UsageError(f"{what}: --task {task} takes {', '.join(GENERAL)}.")
    known = {*MACHINES[task]._get_param_names(), *(("weight",) if task == "classes" else ())}
    for name in given:
        of_kernel = kernel in ADDITIVE and name not in ("epsilon", "nu")
        if name not in known and not of_kernel:
            raise UsageError(f"{option(name)} cannot be combined with --task {task}.")


def class_weights(words: list[str] | None) -> dict | str | None:
    """Return the parameter ``class_weight`` for --weight, with the labels' text as keys."""
    if not words:
        return None
    return "balanced" if words == ["balanced"] else dict(map(_weight, words))


def _make(kernel: str, given: dict[str, Any], preset: str | None, task: str):
    default = None
    make: Callable = AdditiveSVC if kernel in ADDITIVE else MACHINES[task]
    if preset is not None:
        make, default = PRESETS[preset]
    if kernel in ADDITIVE:
        given["missing"] = "learn"
    if kernel != "power_mean":
        given["kernel"] = _GENERAL.get(kernel, kernel)
    elif "power" in given:
        given["kernel"] = PowerMean(given.pop("power"))
    elif default != kernel:
        raise UsageError("it needs --power, an exponent p of at most 0.")
    return make(**given)


def _early(word: str) -> bool | int:
    if word != "auto" and not word.isdigit():
        raise UsageError(f"--early {word}: write the number of a level, or auto.")
    return True if word == "auto" else int(word)


def _weight(pair: str) -> tuple[str, float]:
    label, _, weight = pair.rpartition("=")
    try:
        factor = float(weight)
    except ValueError:
        factor = -1.0
    if not (label and 0 <= factor < float("inf")):
        raise UsageError(f"--weight {pair}: write LABEL=FACTOR (at least 0) or balanced.")
    return label, factor


def match_weights(machine, y) -> None:
    """Replace the text keys of class weights with the labels of the data."""
    if not isinstance(getattr(machine, "class_weight", None), dict):
        return
    labels = {str(label): label for label in sorted(set(y.tolist()))}
    matched = {}
    for text, weight in machine.class_weight.items():
        label = labels.get(text, number_or_text(text))
        if label not in labels.values():
            raise UsageError(f"--weight {text}={weight:g}: no row has the label {text}.")
        matched[label] = weight
    machine.set_params(class_weight=matched)


def make_scaler(name: str | None, kernel: str | None = None):
    """Return a scikit-learn scaler by its short name, or None."""
    if name in (None, "none"):
        return None
    if kernel == "precomputed":
        raise UsageError(
            f"{option('scale', name)} cannot be combined with {option('kernel', kernel)}."
        )
    if name not in SCALERS:
        raise UsageError(f"{option('scale', name)}: not one of none, {', '.join(SCALERS)}.")
    return SCALERS[name]()
