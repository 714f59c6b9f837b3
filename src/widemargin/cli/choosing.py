"""tune, easy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from widemargin import save
from widemargin.cli.arguments import (
    WITH_GAMMA,
    UsageError,
    kernel_name,
    make_estimator,
    make_scaler,
    match_weights,
)
from widemargin.cli.datasets import (
    Source,
    check_folder,
    default_model,
    labels_of,
    read_training,
    suited,
)
from widemargin.cli.output import print_json, print_table, save_figure
from widemargin.cli.training import evaluate_on, evaluation, print_evaluation
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


def tune_models(data: Path, model: Path | None, kernels: list[str], Cs: list[float],
                gammas: list[float] | None, powers: list[float] | None, options: dict,
                scale: str | None, folds: int, rows: int | None, plot: Path | None,
                source: Source, quiet: bool, as_json: bool) -> None:  # fmt: skip
    names = [kernel_name(word) for word in kernels]
    candidates = list(_candidates(names, gammas, powers, Cs, options, scale, source))
    path = check_folder(model or default_model(data))
    dataset, layout = read_training(data, source, kernel_values=names == ["precomputed"])
    X, y, seed = dataset.X, labels_of(dataset), options["random_state"]
    for candidate in candidates:
        match_weights(candidate.estimator, y)
    chosen = sample_rows(X, y, rows or X.shape[0], seed)
    trials = _search(candidates, X, y, chosen, Cs, folds, seed, quiet or as_json)
    best = trials[0]
    fitted = best.candidate.fit(_suited(X, best.candidate), y, best.C)
    save(fitted, path, notes=layout.notes())
    if plot is not None:
        from widemargin.plots import plot_search

        save_figure(plot_search(trials), plot)
    if as_json:
        print_json(_searched(path, trials))
    elif not quiet:
        _print_trials(trials)
        print(f"\nbest: {_described(best)}; trained on all {X.shape[0]} rows: {path}")


def _candidates(kernels: list[str], gammas, powers, Cs, options, scale,
                source: Source) -> Iterator[Candidate]:  # fmt: skip
    """Every kernel with every value of its own parameter."""
    listed = ",".join(kernels)
    if gammas and not set(kernels) & set(WITH_GAMMA):
        raise UsageError(f"--gammas has no meaning with --kernels {listed}.")
    if powers and "power_mean" not in kernels:
        raise UsageError(f"--powers has no meaning with --kernels {listed}.")
    if "precomputed" in kernels and len(kernels) > 1:
        raise UsageError(f"--kernels {listed}: data are features, or they are kernel values.")
    common = {**options, "n_jobs": source.jobs}
    for kernel in kernels:
        name, values = "", [None]
        if kernel == "power_mean":
            name, values = "power", powers or [-0.5, -1.0, -2.0, -8.0]
        elif kernel in WITH_GAMMA and gammas:
            name, values = "gamma", gammas
        scaler = make_scaler(scale, kernel)
        for value in values:
            own = {name: value} if name else {}
            machine, *_ = [make_estimator(kernel, {**common, **own, "C": C}) for C in Cs]
            yield Candidate({"kernel": kernel, **own}, machine, scaler)


def _suited(X, candidate: Candidate):
    return suited(X, behind_scaler(candidate.scaler, candidate.estimator))


def _search(candidates, X, y, chosen, Cs, folds, seed, quiet: bool) -> list[Trial]:
    """Tune on some rows; a candidate that cannot take them is left out, with a word of why."""
    trials: list[Trial] = []
    for candidate in candidates:
        try:
            part = candidate.part(_suited(X, candidate), chosen)
            own = tune([candidate], part, y[chosen], Cs, folds=folds, random_state=seed)
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


def _described(trial: Trial) -> str:
    return f"{trial.candidate.name}, C {trial.C:g} ({100 * trial.accuracy:.2f} %)"


def _trial(trial: Trial) -> dict:
    return {**trial.candidate.settings, "C": trial.C, "accuracy": trial.accuracy,
            "spread": trial.spread, "path_seconds": trial.seconds}  # fmt: skip


def _searched(path: Path, trials: list[Trial]) -> dict:
    return {"model": str(path), "best": _trial(trials[0]), "trials": [_trial(t) for t in trials]}


def _print_trials(trials: list[Trial], most: int = 20) -> None:
    rows = [
        [t.candidate.name, t.C, f"{100 * t.accuracy:.2f}", f"{100 * t.spread:.2f}"]
        for t in trials[:most]
    ]
    print_table(["machine", "C", "accuracy, %", "spread"], rows)


def easy(train_path: Path, test_path: Path | None, model: Path | None, source: Source,
         quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Scale, choose machine and parameters on a sample, train on all, report."""
    path = check_folder(model or default_model(train_path))
    if test_path is not None:
        test_path.stat()  # better missed now than after the training
    dataset, layout = read_training(train_path, source)
    X, y = dataset.X, labels_of(dataset)
    chosen = sample_rows(X, y, EASY_ROWS)
    candidates = list(easy_candidates(X, n_jobs=source.jobs))
    trials = _search(candidates, X, y, chosen, EASY_CS, EASY_FOLDS, 0, quiet or as_json)
    best = trials[0]
    fitted = best.candidate.fit(X, y, best.C)
    save(fitted, path, notes=layout.notes())
    found = None
    if test_path is not None:
        found = evaluate_on(test_path, source, read_header(path), fitted)
    if as_json:
        print_json(_searched(path, trials) | ({"test": evaluation(found)} if found else {}))
        return
    if not quiet:
        print(f"best of {len(trials)} on {len(chosen)} rows: {_described(best)}")
        print(f"trained on all {X.shape[0]} rows: {path}" + "\n" * bool(found))
    if found:
        print_evaluation(found)
