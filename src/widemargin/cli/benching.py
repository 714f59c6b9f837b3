"""bench."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from widemargin.cli.output import INTERRUPTED, print_table
from widemargin.cli.progress import SearchBar, line, noticing_ctrl_c
from widemargin.comparison import DATA, FIGURES, MACHINES, Outcome, compare
from widemargin.comparison_page import write_comparison
from widemargin.plots import new_figure


def bench(folder: Path, splits: int) -> None:
    new_figure(1, 1, (1, 1))  # without matplotlib, say so before minutes of work
    folder.mkdir(parents=True, exist_ok=True)
    n = len(DATA) * len(MACHINES)
    outcomes: list[Outcome] = []
    said = "each tuned on its training rows, one thread"
    print(f"{splits} splits of every data set, {said}", file=sys.stderr)
    with line(quiet=False) as shown, noticing_ctrl_c() as interrupt:
        bar = SearchBar(shown, n, "machines")
        try:
            for outcome in compare(splits, lambda name: bar.begin(name, len(outcomes))):
                if interrupt.asked:
                    break
                outcomes.append(outcome)
                bar.fold()
                print(_told(outcome), file=sys.stderr)
        except (KeyboardInterrupt, Exception):
            if not interrupt.asked:
                raise
        if interrupt.asked:
            print(f"interrupted after {len(outcomes)} of {n} machines.", file=sys.stderr)
    if outcomes:
        print_table(["", "machine", *FIGURES], [[o.data, o.machine, *o.figures] for o in outcomes])
        print(write_comparison(outcomes, folder))
    if len(outcomes) < n:
        raise typer.Exit(INTERRUPTED)


def _told(outcome: Outcome) -> str:
    seconds = outcome.median("fit_seconds")
    return f"{outcome.data}, {outcome.machine}: {outcome.accuracy:.2f} %, {seconds:.3g} s to learn"
