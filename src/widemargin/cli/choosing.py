"""tune, easy."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from widemargin import save
from widemargin.cli.arguments import kernel_name, make_estimator, make_scaler
from widemargin.cli.datasets import (
    Source,
    default_model,
    labels_of,
    notes_of,
    read_like_training,
    read_training,
    save_figure,
)
from widemargin.cli.output import print_json, print_table
from widemargin.cli.training import evaluation, print_evaluation
from widemargin.persistence import read_header
from widemargin.report import evaluate
from widemargin.selection import (
    EASY_CS,
    EASY_FOLDS,
    EASY_ROWS,
    Candidate,
    Trial,
    easy_candidates,
    sample_rows,
    tune,
)


def tune_models(data: Path, model: Path | None, kernels: list[str], Cs: list[float],
                gammas: list[float] | None, powers: list[float] | None, options: dict,
                scale: str | None, folds: int, rows: int | None, plot: Path | None,
                source: Source, quiet: bool, as_json: bool) -> None:  # fmt: skip
    candidates = list(_candidates(kernels, gammas, powers, options, scale, source))
    dataset = read_training(data, source)
    X, y = dataset.X, labels_of(dataset)
    chosen = sample_rows(X, y, rows or X.shape[0])
    trials = _search(candidates, X[chosen], y[chosen], Cs, folds, quiet or as_json)
    best = trials[0]
    fitted = best.candidate.fit(X, y, best.C)
    path = model or default_model(data)
    save(fitted, path, notes=notes_of(dataset))
    if plot is not None:
        from widemargin.plots import plot_search

        save_figure(plot_search(trials), plot)
    if as_json:
        print_json(
            {"model": str(path), "best": _trial(best), "trials": [_trial(t) for t in trials]}
        )
        return
    _print_trials(trials)
    print(f"\nbest: {_described(best)}; trained on all {X.shape[0]} rows: {path}")


def _candidates(kernels, gammas, powers, options, scale, source: Source) -> Iterator[Candidate]:
    """Every kernel with every value of its own parameter."""
    scaler = make_scaler(scale)
    common = {**options, "n_jobs": source.jobs}
    for word in kernels:
        kernel = kernel_name(word)
        name, values = "", [None]
        if kernel == "power_mean":
            name, values = "power", powers or [-0.5, -1.0, -2.0, -8.0]
        elif kernel in ("rbf", "poly", "sigmoid", "laplacian", "exp_chi2") and gammas:
            name, values = "gamma", gammas
        for value in values:
            own = {name: value} if name else {}
            machine = make_estimator(kernel, {**common, **own})
            yield Candidate({"kernel": kernel, **own}, machine, scaler)


def _search(candidates, X, y, Cs, folds, quiet: bool) -> list[Trial]:
    """Tune; a candidate that cannot take this data is left out, with a word of why."""
    trials: list[Trial] = []
    for candidate in candidates:
        try:
            own = tune([candidate], X, y, Cs, folds=folds)
        except ValueError as error:
            warnings.warn(f"{_named(candidate)} is left out: {error}", UserWarning, stacklevel=2)
            continue
        trials += own
        if not quiet:
            found = f"{100 * own[0].accuracy:.2f} % at C = {own[0].C:g}, {own[0].seconds:.1f} s"
            print(f"{_named(candidate)}: {found}", file=sys.stderr)
    if not trials:
        raise ValueError("No candidate could be trained on this data.")
    return sorted(trials, key=lambda t: (-t.accuracy, t.C))


def _named(candidate: Candidate) -> str:
    return ", ".join(f"{k} {v}" for k, v in candidate.settings.items())


def _described(trial: Trial) -> str:
    return f"{_named(trial.candidate)}, C {trial.C:g} ({100 * trial.accuracy:.2f} %)"


def _trial(trial: Trial) -> dict:
    return {**trial.candidate.settings, "C": trial.C, "accuracy": trial.accuracy,
            "spread": trial.spread, "path_seconds": trial.seconds}  # fmt: skip


def _searched(path: Path, trials: list[Trial]) -> dict:
    return {"model": str(path), "best": _trial(trials[0]), "trials": [_trial(t) for t in trials]}


def _print_trials(trials: list[Trial], most: int = 20) -> None:
    rows = [
        [_named(t.candidate), t.C, f"{100 * t.accuracy:.2f}", f"{100 * t.spread:.2f}"]
        for t in trials[:most]
    ]
    print_table(["machine", "C", "accuracy, %", "spread"], rows)


def easy(train_path: Path, test_path: Path | None, model: Path | None, source: Source,
         quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Scale, choose machine and parameters on a sample, train on all, report."""
    dataset = read_training(train_path, source)
    X, y = dataset.X, labels_of(dataset)
    chosen = sample_rows(X, y, EASY_ROWS)
    candidates = list(easy_candidates(X, n_jobs=source.jobs))
    trials = _search(candidates, X[chosen], y[chosen], EASY_CS, EASY_FOLDS, quiet or as_json)
    best = trials[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = best.candidate.fit(X, y, best.C)
    path = model or default_model(train_path)
    save(fitted, path, notes=notes_of(dataset))
    found = None
    if test_path is not None:
        tested = read_like_training(test_path, source, read_header(path))
        if tested.y is None:
            raise ValueError(f"{test_path}: no labels in it. Name their column with --label.")
        found = evaluate(fitted, tested.X, labels_of(tested))
    if as_json:
        print_json(_searched(path, trials) | ({"test": evaluation(found)} if found else {}))
        return
    print(f"best of {len(trials)} on {len(chosen)} rows: {_described(best)}")
    print(f"trained on all {X.shape[0]} rows: {path}")
    if found:
        print()
        print_evaluation(found)
