"""Options of what compares models: train --folds, tune and easy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from widemargin.cli.arguments import UsageError
from widemargin.cli.options import (
    SHAPE,
    Intercept,
    MaxIter,
    MultiClass,
    Probability,
    Scale,
    Seed,
    Tol,
    Weight,
    machine_option,
)

FoldsInstead = Annotated[
    int | None,
    typer.Option("-v", "--folds", min=2, help="Cross-validate instead and print the accuracy"),
]
ScoringOfFolds = Annotated[
    str | None, typer.Option("--scoring", help="With --folds: another score, as in tune")
]


@dataclass(frozen=True)
class Validation:
    """Cross-validation in the place of a model."""

    folds: FoldsInstead = None
    scoring: ScoringOfFolds = None

    def __post_init__(self) -> None:
        if self.scoring is not None and self.folds is None:
            raise UsageError("--scoring has no meaning without --folds.")


# ------------------------------------------------------------------ searches

Kernels = Annotated[str, machine_option("-t", "--kernels", help="With commas between them")]
Costs = Annotated[str, machine_option("-c", "--Cs", help="Numbers, or low:high:count")]
Gammas = Annotated[
    str | None,
    machine_option("-g", "--gammas", help="Likewise (default: 1 / (features * variance))"),
]
Powers = Annotated[str | None, machine_option("-p", "--powers", help="Likewise, of power_mean")]
Folds = Annotated[int, typer.Option("-v", "--folds", min=2, help="Of cross-validation")]
Scoring = Annotated[
    str,
    typer.Option(
        "--scoring",
        help="What to maximise: accuracy, balanced_accuracy, roc_auc, f1, ...",
    ),
]
SomeRows = Annotated[
    int | None, typer.Option("--rows", min=10, help="Search on so many rows (default: all)")
]
SearchPlot = Annotated[
    Path | None, typer.Option("--plot", help="Draw the score against C", rich_help_panel=SHAPE)
]


@dataclass(frozen=True)
class Search:
    """What `tune` tries, on which rows, and what all of its candidates have in common."""

    kernels: Kernels = "rbf,chi2,intersection"
    Cs: Costs = "0.1:1000:5"
    gammas: Gammas = None
    powers: Powers = None
    scale: Scale = None
    scoring: Scoring = "accuracy"
    folds: Folds = 5
    rows: SomeRows = None
    random_state: Seed = 0
    tol: Tol = None
    max_iter: MaxIter = None
    weight: Weight = None
    multi_class: MultiClass = None
    fit_intercept: Intercept = None
    probability: Probability = False
    plot: SearchPlot = None

    def common(self) -> dict:
        """Parameters of every machine."""
        names = ("tol", "max_iter", "weight", "multi_class", "fit_intercept", "random_state")
        return {name: getattr(self, name) for name in names}


Minutes = Annotated[
    float,
    typer.Option(
        "--minutes",
        min=0.01,
        help="Choice and training end within them; a fit that does not keeps what it has",
    ),
]


@dataclass(frozen=True)
class Wanted:
    """What is left to say where `easy` chooses the rest."""

    scoring: Scoring = "accuracy"
    weight: Weight = None
    minutes: Minutes = 10.0
