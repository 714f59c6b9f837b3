"""bench."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from widemargin.cli.output import INTERRUPTED
from widemargin.cli.progress import SearchBar, line
from widemargin.comparison import DATA, FIGURES, MACHINES, Outcome, compare
from widemargin.comparison_page import write_comparison
from widemargin.plots import new_figure


def bench(folder: Path, splits: int) -> None:
    new_figure(1, 1, (1, 1))  # without matplotlib, say so before minutes of work
    folder.mkdir(parents=True, exist_ok=True)
    n = len(DATA) * len(MACHINES)
    outcomes: list[Outcome] = []
    print(f"{splits} splits of each data set; one thread; all tuned on training rows.")
    with line(quiet=False) as shown:
        bar = SearchBar(shown, n, "machines")
        try:
            for outcome in compare(splits, lambda name: bar.begin(name, len(outcomes))):
                if all(known.data != outcome.data for known in outcomes):
                    print(_aligned(outcome.data, *FIGURES), flush=True)
                outcomes.append(outcome)
                bar.fold()
                print(_aligned(f"  {outcome.machine}", *outcome.figures), flush=True)
        except KeyboardInterrupt:
            print(f"interrupted after {len(outcomes)} of {n} machines.", file=sys.stderr)
    if outcomes:
        print(write_comparison(outcomes, folder))
    if len(outcomes) < n:
        raise typer.Exit(INTERRUPTED)


def _aligned(first: str, *others: str) -> str:
    widths = (10, 8, 10, 17, 10, 21)
    cells = (f"{cell:>{width}}" for cell, width in zip(others, widths, strict=True))
    return (f"{first:<22}" + "".join(cells)).rstrip()
