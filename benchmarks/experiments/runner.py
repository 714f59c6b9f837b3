"""Tune, fit, keep: an experiment from its file to its results, from where it stopped before."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from benchmarks.environment import describe
from benchmarks.experiments import process
from benchmarks.experiments.lines import short_setting
from benchmarks.experiments.plan import Cell, Experiment, Method, cell
from benchmarks.experiments.store import Results
from benchmarks.report import EXTENSIONS, extended

Rows = list[dict[str, Any]]


class Wave(NamedTuple):
    """Fits that may run side by side."""

    cells: list[Cell]
    at_end: Sequence[str] = ()  # parameters whose best value is the last of its grid


# A line of a table asks for a wave, is sent its results, asks for the next; and ends with its rows.
Line = Generator[Wave, Rows, Rows]


@dataclass
class Runner:
    """Knows which fits an experiment needs next; ``fit`` is replaced in tests."""

    experiment: Experiment
    results: Results
    say: Callable[[str], None] = print
    extend: bool = True  # grids whose best value is their last
    fit: Callable[[Cell, float], dict] = process.fit

    def lines(self) -> Iterator[Line]:
        """The lines of the table in its order: each tunes, then fits for every seed and repeat."""
        for data, method in product(self.experiment.data, self.experiment.methods):
            for settings in method.settings():
                yield self._line(data, method, settings)

    def _line(self, data: str, method: Method, settings: dict) -> Line:
        chosen, at_end = yield from self._tuned(data, method, settings)
        test = cell(self.experiment, data, method, chosen, "test")
        runs = product(self.experiment.seeds, range(self.experiment.repeats))
        return (yield Wave([replace(test, seed=seed, repeat=k) for seed, k in runs], at_end))

    def _tuned(
        self, data: str, method: Method, settings: dict
    ) -> Generator[Wave, Rows, tuple[dict, list[str]]]:
        """The best parameters on held-out training rows, and those that ended a grid."""
        grids = {name: sorted(values) for name, values in method.tune.items()}
        if not grids:
            return settings, []
        added = dict.fromkeys(grids, 0)
        scores: dict[tuple, float] = {}
        while True:
            new = [values for values in product(*grids.values()) if values not in scores]
            tried = [settings | dict(zip(grids, values, strict=True)) for values in new]
            rows = yield Wave([cell(self.experiment, data, method, t, "tune") for t in tried])
            scores |= {v: _score(row) for v, row in zip(new, rows, strict=True)}
            best = max(sorted(scores), key=lambda values: scores[values])  # smaller of equals
            chosen = dict(zip(grids, best, strict=True))
            ends = [n for n, v in chosen.items() if v in (grids[n][0], grids[n][-1])]
            growing = [n for n in ends if added[n] < EXTENSIONS]
            if not (self.extend and growing and scores[best] >= 0):
                return settings | chosen, ends
            for name in growing:
                grids[name] = extended(grids[name], chosen[name])
                added[name] += 1

    def find(self, wanted: Cell) -> dict[str, Any] | None:
        """A fit that needs not be done again."""
        return self.results.find(wanted, self.experiment.limit)

    def keep(
        self, wanted: Cell, outcome: dict[str, Any], at_end: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Write down what a fit came to, and say it."""
        outcome = outcome | {"limit": self.experiment.limit} | describe()
        if at_end and outcome["status"] == "done":
            outcome["details"] = outcome.get("details", {}) | {"at_end_of_grid": list(at_end)}
        printed = self.experiment.printed(wanted.method, wanted.data, wanted.parameters)
        row = self.results.keep(wanted, outcome | {"published": printed})
        self.say(line(row))
        return row


def _score(row: dict[str, Any]) -> float:
    return row["accuracy"] if row["status"] == "done" else -1.0


def line(row: dict[str, Any]) -> str:
    """What a fit came to.

    >>> line({"stage": "tune", "data": "usps", "method": "ICD", "parameters": {"C": 0.1}, "seed": 0,
    ...       "status": "done", "accuracy": 0.95, "fit_seconds": 1.25, "fit_megabytes": 3.0})
    'tune usps      ICD                  C=0.1                    95.00 %      1.25 s      3 MB'
    """
    setting = short_setting(row["parameters"])
    head = f"{row['stage']} {row['data']:<9} {row['method']:<20} {setting:<24}"
    if row["status"] != "done":
        return f"{head} {row['status']}: {row['message']}"
    told = f"{head} {100 * row['accuracy']:.2f} % {row['fit_seconds']:>9.2f} s"
    return told if row["fit_megabytes"] is None else f"{told} {row['fit_megabytes']:>6.0f} MB"
