"""train."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, PowerMean, papers
from widemargin.additive import kernels as additive_kernels
from widemargin.calibration import FOLDS, with_probabilities
from widemargin.cli.datasets import (
    check_folder,
    densified_for,
    labels_of,
    read_training,
)
from widemargin.cli.machine_options import Machine, Validation
from widemargin.cli.memory import default_model, save_model
from widemargin.cli.options import Output, Source
from widemargin.cli.output import (
    INTERRUPTED,
    print_facts,
    print_json,
)
from widemargin.cli.progress import progress_on, stopping_on_ctrl_c
from widemargin.cli.store import goes_to_disk, keep_within, memory_of, store_for
from widemargin.cli.trials import check_score, folds_unconverged
from widemargin.cli.words import UsageError, number_or_text, option, said, spelled
from widemargin.errors import CONVERGING
from widemargin.kernel import kernels as general_kernels
from widemargin.kernel.checkpoint import found_in
from widemargin.selection import Candidate, behind_scaler, tune
from widemargin.warning import warn_user


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
    path = check_folder(model or default_model(data))
    given = kernel == "precomputed"
    possible = scaler is None and validation.folds is None and not given
    possible = possible and not options.probability  # whose folds are rows in memory
    if goes_to_disk(data, memory_limit, machine, possible=possible):
        _train_from_disk(data, path, machine, source, output, memory_limit)
        return
    started = time.perf_counter()
    machines = [behind_scaler(scaler, machine)]
    dataset, memory = read_training(data, source, output, machines=machines, kernel_values=given)
    seconds_reading = time.perf_counter() - started
    X, y = densified_for(machines[0], dataset.X), labels_of(dataset)
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
            f"the model asked for. {spelled(CONVERGING)}"
        )


def fit_with_progress(scaler, machine, X, y, *also, quiet: bool):
    """The machine, behind its scaler if it has one, fitted in sight of user and callbacks."""
    with progress_on(machine, quiet, *also):  # which scikit-learn does not take within a pipeline
        machine.fit(X if scaler is None else scaler.fit_transform(X), y)
    return behind_scaler(scaler, machine)


def calibrated_with_word(fitted, X, y, *, quiet: bool):
    """The model with probabilities, which take a fit per fold more."""
    if not quiet:
        print(f"probabilities: cross-validation of {FOLDS} folds", file=sys.stderr)
    return with_probabilities(fitted, X, y)


def _print(content: dict, facts: dict, as_json: bool) -> None:
    if as_json:
        print_json({k.replace(" ", "_"): v for k, v in content.items()})
    elif facts:
        print_facts(facts)


ADDITIVE = (*additive_kernels.KERNELS, "power_mean", "auto")
# A name that both machines know is the additive kernel; KernelSVC's then has "exp_" before it.
_GENERAL = {f"exp_{k}" if k in ADDITIVE else k: k for k in general_kernels.KERNELS}
GENERAL = tuple(_GENERAL)
KERNELS = ADDITIVE + GENERAL
LIBSVM_KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
# What makes the machine, and the kernel that it has if none is named.
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
    """The general kernels that have a parameter."""
    traits = general_kernels.KERNELS
    return tuple(name for name, own in _GENERAL.items() if parameter in traits[own].parameters)


# Which kernels an option is for, unless it is for all; by the options' names in Python.
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
    """A kernel by name (hyphens allowed) or by LIBSVM's number."""
    name = LIBSVM_KERNELS.get(word, word.replace("-", "_"))
    if name not in KERNELS:
        raise UsageError(
            f"{option('kernel', word)}: not one of {', '.join(KERNELS)}, nor LIBSVM's 0 to "
            "4 (linear, poly, rbf, sigmoid, precomputed)."
        )
    return name


def chosen_kernel(word: str | None, preset: str | None) -> str:
    """The kernel that is named, or that of the preset, or rbf."""
    if preset is None:
        return kernel_name("rbf" if word is None else word)
    if preset not in PRESETS:
        raise UsageError(f"--preset {preset}: not one of {', '.join(PRESETS)}.")
    own = PRESETS[preset][1]
    kernel = own if word is None else kernel_name(word)
    family = ADDITIVE if own in ADDITIVE else GENERAL
    if kernel not in family:
        raise UsageError(f"--kernel {kernel}: --preset {preset} takes {', '.join(family)}.")
    return kernel


def make_estimator(kernel: str, options: dict[str, Any], preset: str | None = None):
    """An unfitted machine; options that it does not have are refused, None means its default.

    Weights of classes go by the labels' text until the data is known (`match_weights`).
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if kernel not in _KERNELS_OF.get(name, KERNELS):
            raise UsageError(f"{option(name)} has no meaning with {option('kernel', kernel)}.")
    if weights := given.pop("weight", None):
        given["class_weight"] = class_weights(weights)
    if "early" in given:
        given["early"] = _early(given["early"])
    try:
        machine = _make(kernel, given, preset)
        with warnings.catch_warnings():  # they come again when it is fitted
            warnings.simplefilter("ignore")
            machine._check_params()
    except (ValueError, TypeError) as error:
        raise UsageError(f"{option('kernel', kernel)}: {said(error)}") from None
    return machine


def class_weights(words: list[str] | None) -> dict | str | None:
    """--weight as the parameter ``class_weight`` has it, by the labels' text."""
    if not words:
        return None
    return "balanced" if words == ["balanced"] else dict(map(_weight, words))


def _make(kernel: str, given: dict[str, Any], preset: str | None):
    own = None
    make: Callable = AdditiveSVC if kernel in ADDITIVE else KernelSVC
    if preset is not None:
        make, own = PRESETS[preset]
    if kernel in ADDITIVE:
        given["missing"] = "learn"
    if kernel != "power_mean":
        given["kernel"] = _GENERAL.get(kernel, kernel)
    elif "power" in given:
        given["kernel"] = PowerMean(given.pop("power"))
    elif own != kernel:
        raise UsageError("it needs --power, the exponent p (at most 0).")
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
        raise UsageError(f"--weight {pair}: write label=factor, a number from 0 on, or balanced.")
    return label, factor


def match_weights(machine, y) -> None:
    """Give weights that go by the labels' text to the labels of the data."""
    if not isinstance(machine.class_weight, dict):
        return
    labels = {str(label): label for label in sorted(set(y.tolist()))}
    matched = {}
    for text, weight in machine.class_weight.items():
        label = labels.get(text, number_or_text(text))
        if label not in labels.values():
            raise UsageError(f"--weight {text}={weight:g}: the data has no label {text}.")
        matched[label] = weight
    machine.set_params(class_weight=matched)


def make_scaler(name: str | None, kernel: str | None = None):
    """A scikit-learn scaler by its short name, or None."""
    if name in (None, "none"):
        return None
    if kernel == "precomputed":
        raise UsageError(f"{option('scale', name)} has no meaning with {option('kernel', kernel)}.")
    if name not in SCALERS:
        raise UsageError(f"{option('scale', name)}: not one of none, {', '.join(SCALERS)}.")
    return SCALERS[name]()
