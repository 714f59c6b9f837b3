"""Format the results of a search as text, tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from widemargin.cli.output import print_table
from widemargin.cli.words import UsageError, said, spelled
from widemargin.errors import CONVERGING, ParameterError
from widemargin.scoring import check_scoring
from widemargin.selection import Trial

STAR = "* in some folds the fit did not converge: the score is unreliable."


def check_score(
    name: str,
    labels: np.ndarray | None = None,
    *,
    probabilities: bool = False,
    numbers: bool = False,
) -> None:
    """Refuse a score that is unknown or does not fit the labels."""
    classes = None if numbers or labels is None else np.unique(labels)
    try:
        check_scoring(name, classes, probabilities=probabilities, numbers=numbers)
    except ParameterError as error:
        raise UsageError(said(error)) from None


def shown_score(trial: Trial) -> str:
    """Format a score, accuracies in per cent, with a star if a fold did not converge."""
    star = "*" if trial.unconverged else ""
    if trial.scoring.endswith("accuracy"):
        return f"{100 * trial.score:.2f} %{star}"
    return f"{trial.scoring} {trial.score:.4f}{star}"


def described(trial: Trial) -> str:
    return f"{trial.candidate.name}, C {trial.C:g} ({shown_score(trial)})"


def progress_line(trials: Sequence[Trial]) -> str:
    """Format the scores of one candidate at every C."""
    by_C = sorted(trials, key=lambda trial: trial.C)
    scores = ", ".join(f"{shown_score(trial)} at C {trial.C:g}" for trial in by_C)
    return (
        f"{trials[0].candidate.name}: {scores}; {trials[0].folds} folds, {trials[0].seconds:.1f} s"
    )


def folds_unconverged(trial: Trial) -> str:
    return f"{trial.unconverged} of {trial.folds}" if trial.unconverged else ""


def as_fields(trial: Trial) -> dict:
    fields = {"C": trial.C, trial.scoring: trial.score, "spread": trial.spread}
    folds = {"folds": trial.folds, "unconverged": trial.unconverged}
    more = {"rows": trial.rows, "path_seconds": trial.seconds}
    return {**trial.candidate.settings, **fields, **folds, **more}


def print_trials(trials: Sequence[Trial], most: int = 20) -> None:
    """Print a table of the first trials, and a note if some did not converge."""
    shown = trials[:most]
    percent = shown[0].scoring.endswith("accuracy")
    header = ["machine", "C", f"{shown[0].scoring}, %" if percent else shown[0].scoring, "spread"]
    rows = [[t.candidate.name, t.C, *_numbers(t)] for t in shown]
    if any(t.unconverged for t in shown):
        header.append("not converged")
        rows = [[*row, folds_unconverged(t)] for row, t in zip(rows, shown, strict=True)]
    print_table(header, rows)
    if any(t.unconverged for t in shown):
        print(f"{STAR} {spelled(CONVERGING)}")


def _numbers(trial: Trial) -> tuple[str, str]:
    unit, digits = (100, 2) if trial.scoring.endswith("accuracy") else (1, 4)
    star = "*" if trial.unconverged else ""
    return f"{unit * trial.score:.{digits}f}{star}", f"{unit * trial.spread:.{digits}f}"


def reservation(trials: Sequence[Trial]) -> str | None:
    """Return a warning if convergence decided the choice, else an empty text."""
    chosen = trials[0]
    if chosen.unconverged:
        return (
            f"{described(chosen)} did not converge in {folds_unconverged(chosen)} folds, and "
            f"nothing that converged is within a standard error of it. {spelled(CONVERGING)}"
        )
    alike = (t for t in trials[1:] if (t.rows, t.folds) == (chosen.rows, chosen.folds))
    passed = [t for t in alike if t.score > chosen.score]
    if not passed:
        return None
    return (
        f"{described(chosen)} is chosen before {described(passed[0])}, which did not converge in "
        f"{folds_unconverged(passed[0])} folds and is within a standard error."
    )
