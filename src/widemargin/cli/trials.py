"""Trials of a search as people and programs see them."""

from __future__ import annotations

from collections.abc import Sequence

from widemargin.cli.output import print_table
from widemargin.selection import Trial

WAY_OUT = "Raise --max-iter, lower C, or accept a larger --tol."


def described(trial: Trial) -> str:
    return f"{trial.candidate.name}, C {trial.C:g} ({100 * trial.accuracy:.2f} %{mark(trial)})"


def mark(trial: Trial) -> str:
    """A star where some fold did not converge."""
    return "*" if trial.unconverged else ""


def folds_unconverged(trial: Trial) -> str:
    return f"{trial.unconverged} of {trial.folds}" if trial.unconverged else ""


def as_fields(trial: Trial) -> dict:
    found = {name: getattr(trial, name) for name in ("C", "accuracy", "spread", "unconverged")}
    return {**trial.candidate.settings, **found, "path_seconds": trial.seconds}


def print_trials(trials: Sequence[Trial], most: int = 20) -> None:
    """A table of the first of them, with a word on those that did not converge."""
    shown = trials[:most]
    header = ["machine", "C", "accuracy, %", "spread"]
    rows = [
        [t.candidate.name, t.C, f"{100 * t.accuracy:.2f}{mark(t)}", f"{100 * t.spread:.2f}"]
        for t in shown
    ]
    if any(t.unconverged for t in shown):
        header.append("not converged")
        rows = [[*row, folds_unconverged(t)] for row, t in zip(rows, shown, strict=True)]
    print_table(header, rows)
    if any(t.unconverged for t in shown):
        print(f"* in some folds the fit did not converge: no score to rely on. {WAY_OUT}")


def reservation(trials: Sequence[Trial]) -> str | None:
    """What there is to say of a choice that convergence had a part in; None where it had none."""
    chosen = trials[0]
    if chosen.unconverged:
        return (
            f"{described(chosen)} did not converge in {folds_unconverged(chosen)} folds, and "
            f"nothing that converged is within a standard error of it. {WAY_OUT}"
        )
    passed = [t for t in trials[1:] if t.accuracy > chosen.accuracy]
    if not passed:
        return None
    return (
        f"{described(chosen)} is chosen before {described(passed[0])}, which did not converge in "
        f"{folds_unconverged(passed[0])} folds and is within a standard error."
    )
