"""tune, easy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.cli.arguments import UsageError, numbers
from widemargin.cli.datasets import (
    check_folder,
    densified_for,
    labels_of,
    read_training,
)
from widemargin.cli.machines import (
    WITH_GAMMA,
    kernel_name,
    make_estimator,
    make_scaler,
    match_weights,
)
from widemargin.cli.memory import default_model, save_model
from widemargin.cli.options import Output, Search, Source
from widemargin.cli.output import print_json, print_table, save_figure
from widemargin.cli.training import (
    evaluate_on,
    evaluation,
    fit_with_progress,
    print_evaluation,
)
from widemargin.persistence import read_header
from widemargin.selection import (
    EASY_CS,
    EASY_FOLDS,
    EASY_ROWS,
    Candidate,
    Trial,
    behind_scaler,
    easy_candidates,
    ranked,
    sample_rows,
    tune,
)
from widemargin.warning import warn_user


@dataclass(frozen=True)
class _Comparison:
    """How candidates are compared: along which C, on how many folds, drawn how."""

    Cs: Sequence[float]
    folds: int
    seed: int | None


def tune_models(
    data: Path, model: Path | None, search: Search, source: Source, output: Output
) -> None:
    compared = _Comparison(numbers(search.Cs, "--Cs"), search.folds, search.random_state)
    names = [kernel_name(word.strip()) for word in search.kernels.split(",")]
    candidates = list(_candidates(names, search, compared.Cs, source.jobs))
    path = check_folder(model or default_model(data))
    given = names == ["precomputed"]
    dataset, memory = read_training(data, source, output, kernel_values=given)
    X, y = dataset.X, labels_of(dataset)
    for candidate in candidates:
        match_weights(candidate.estimator, y)
    rows = sample_rows(X, y, search.rows or X.shape[0], compared.seed)
    trials = _search(candidates, X, y, rows, compared, quiet=output.quiet or output.as_json)
    save_model(_trained(trials[0], X, y, output), path, memory)
    if search.plot is not None:
        from widemargin.plots import plot_search

        save_figure(plot_search(trials), search.plot)
    if output.as_json:
        print_json(_searched(path, trials))
    elif not output.quiet:
        _print_trials(trials)
        print(f"\nbest: {_described(trials[0])}; trained on all {X.shape[0]} rows: {path}")


def _candidates(
    kernels: list[str], search: Search, Cs: Sequence[float], jobs: int | None
) -> Iterator[Candidate]:
    """Every kernel with every value of its own parameter."""
    listed = ",".join(kernels)
    gammas = numbers(search.gammas, "--gammas") if search.gammas else None
    powers = numbers(search.powers, "--powers") if search.powers else None
    if gammas and not set(kernels) & set(WITH_GAMMA):
        raise UsageError(f"--gammas has no meaning with --kernels {listed}.")
    if powers and "power_mean" not in kernels:
        raise UsageError(f"--powers has no meaning with --kernels {listed}.")
    if "precomputed" in kernels and len(kernels) > 1:
        raise UsageError(f"--kernels {listed}: data are features, or they are kernel values.")
    common = search.common() | {"n_jobs": jobs}
    for kernel in kernels:
        name: str = ""
        values: Sequence[float | None] = [None]
        if kernel == "power_mean":
            name, values = "power", powers or [-0.5, -1.0, -2.0, -8.0]
        elif kernel in WITH_GAMMA and gammas:
            name, values = "gamma", gammas
        scaler = make_scaler(search.scale, kernel)
        for value in values:
            own = {name: value} if name else {}
            machine, *_ = [make_estimator(kernel, {**common, **own, "C": C}) for C in Cs]
            yield Candidate({"kernel": kernel, **own}, machine, scaler)


def _densified(candidate: Candidate, X):
    return densified_for(behind_scaler(candidate.scaler, candidate.estimator), X)


def _search(
    candidates: list[Candidate], X, y, rows: np.ndarray, compared: _Comparison, *, quiet: bool
) -> list[Trial]:
    """Tune on some rows; a candidate that cannot take them is left out, with a word of why."""
    trials: list[Trial] = []
    settings: dict[str, Any] = {"folds": compared.folds, "random_state": compared.seed}
    for candidate in candidates:
        try:
            part = candidate.part(_densified(candidate, X), rows)
            own = tune([candidate], part, y[rows], compared.Cs, **settings)
        except ValueError as error:
            warn_user(f"{candidate.name} is left out: {error}")
            continue
        trials += own
        if not quiet:
            found = f"{100 * own[0].accuracy:.2f} % at C = {own[0].C:g}, {own[0].seconds:.1f} s"
            print(f"{candidate.name}: {found}", file=sys.stderr)
    if not trials:
        raise ValueError("No candidate could be trained on this data.")
    return ranked(trials)


def _trained(best: Trial, X, y, output: Output):
    """The winner, trained on all rows."""
    scaler, machine = best.candidate.unfitted(best.C)
    X = _densified(best.candidate, X)
    return fit_with_progress(scaler, machine, X, y, quiet=output.quiet)


def _described(trial: Trial) -> str:
    return f"{trial.candidate.name}, C {trial.C:g} ({100 * trial.accuracy:.2f} %)"


def _trial(trial: Trial) -> dict:
    found = {name: getattr(trial, name) for name in ("C", "accuracy", "spread")}
    return {**trial.candidate.settings, **found, "path_seconds": trial.seconds}


def _searched(path: Path, trials: list[Trial]) -> dict:
    return {"model": str(path), "best": _trial(trials[0]), "trials": [_trial(t) for t in trials]}


def _print_trials(trials: list[Trial], most: int = 20) -> None:
    rows = [
        [t.candidate.name, t.C, f"{100 * t.accuracy:.2f}", f"{100 * t.spread:.2f}"]
        for t in trials[:most]
    ]
    print_table(["machine", "C", "accuracy, %", "spread"], rows)


def easy(
    train_path: Path, test_path: Path | None, model: Path | None, source: Source, output: Output
) -> None:
    """Scale, choose machine and parameters on a sample, train on all, report."""
    path = check_folder(model or default_model(train_path))
    if test_path is not None:
        test_path.stat()  # better missed now than after the training
    dataset, memory = read_training(train_path, source, output)
    X, y = dataset.X, labels_of(dataset)
    rows = sample_rows(X, y, EASY_ROWS)
    candidates = list(easy_candidates(X, n_jobs=source.jobs))
    compared = _Comparison(EASY_CS, EASY_FOLDS, seed=0)
    trials = _search(candidates, X, y, rows, compared, quiet=output.quiet or output.as_json)
    fitted = _trained(trials[0], X, y, output)
    save_model(fitted, path, memory)
    found = None
    if test_path is not None:
        found = evaluate_on(test_path, source, read_header(path), fitted)
    if output.as_json:
        print_json(_searched(path, trials) | ({"test": evaluation(found)} if found else {}))
        return
    if not output.quiet:
        print(f"best of {len(trials)} on {len(rows)} rows: {_described(trials[0])}")
        print(f"trained on all {X.shape[0]} rows: {path}" + "\n" * bool(found))
    if found:
        print_evaluation(found)
