"""Tune, fit, keep: an experiment from its file to its results, from where it stopped before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from benchmarks.experiments import process
from benchmarks.experiments.environment import describe
from benchmarks.experiments.plan import Cell, Experiment, Method, cell
from benchmarks.experiments.store import Results

EXTENSIONS = 8  # of a grid at either end, at most


@dataclass
class Runner:
    """Runs what the results do not have yet; ``fit`` is replaced in tests."""

    experiment: Experiment
    results: Results
    say: Callable[[str], None] = print
    extend: bool = True  # grids whose best value is their last
    fit: Callable[[Cell, float], dict] = process.fit

    def run(self) -> list[dict[str, Any]]:
        """All rows of the table, tuned, for every seed and repeat."""
        rows = []
        for data, method in product(self.experiment.data, self.experiment.methods):
            for settings in method.settings():
                chosen, at_end = self._tuned(data, method, settings)
                test = cell(self.experiment, data, method, chosen, "test")
                for seed, repeat in product(self.experiment.seeds, range(self.experiment.repeats)):
                    rows.append(self._result(replace(test, seed=seed, repeat=repeat), at_end))
        return rows

    def _tuned(self, data: str, method: Method, settings: dict) -> tuple[dict, list[str]]:
        """The best parameters on held-out training rows, and those that ended a grid."""
        grids = {name: sorted(values) for name, values in method.tune.items()}
        added = dict.fromkeys(grids, 0)
        while True:
            scores = {}
            for values in product(*grids.values()):
                parameters = settings | dict(zip(grids, values, strict=True))
                tried = cell(self.experiment, data, method, parameters, "tune")
                scores[values] = self._score(tried) if grids else 0.0
            best = max(scores, key=lambda values: scores[values])  # the smaller ones of equals
            chosen = dict(zip(grids, best, strict=True))
            ends = [n for n, v in chosen.items() if v in (grids[n][0], grids[n][-1])]
            growing = [n for n in ends if len(grids[n]) > 1 and added[n] < EXTENSIONS]
            if not (self.extend and growing):
                return settings | chosen, ends
            for name in growing:
                grids[name] = extended(grids[name], chosen[name])
                added[name] += 1

    def _score(self, tried: Cell) -> float:
        row = self._result(tried, [])
        return row["accuracy"] if row["status"] == "done" else -1.0

    def _result(self, wanted: Cell, at_end: list[str]) -> dict[str, Any]:
        limit = self.experiment.limit
        known = self.results.find(wanted, limit)
        if known is not None:
            return known
        outcome = self.fit(wanted, limit) | {"limit": limit} | describe()
        if at_end and outcome["status"] == "done":
            outcome["details"] = outcome.get("details", {}) | {"at_end_of_grid": at_end}
        printed = self.experiment.printed(wanted.method, wanted.data, wanted.parameters)
        row = self.results.keep(wanted, outcome | {"published": printed})
        self.say(line(row))
        return row


def extended(values: list[float], best: float) -> list[float]:
    """A sorted grid, one step longer beyond the end that was best; steps are ratios.

    >>> extended([1.0, 4.0, 16.0], 16.0)
    [1.0, 4.0, 16.0, 64.0]
    >>> extended([1.0, 4.0], 1.0)
    [0.25, 1.0, 4.0]
    """
    if best == values[-1]:
        return [*values, values[-1] * values[-1] / values[-2]]
    return [values[0] * values[0] / values[1], *values]


def line(row: dict[str, Any]) -> str:
    """What a fit came to.

    >>> line({"stage": "tune", "data": "usps", "method": "ICD", "parameters": {"C": 0.1}, "seed": 0,
    ...       "status": "done", "accuracy": 0.95, "fit_seconds": 1.25, "fit_megabytes": 3.0})
    'tune usps      ICD                  C=0.1                    95.00 %      1.25 s      3 MB'
    """
    parameters = " ".join(f"{k}={_short(v)}" for k, v in row["parameters"].items())
    head = f"{row['stage']} {row['data']:<9} {row['method']:<20} {parameters:<24}"
    if row["status"] != "done":
        return f"{head} {row['status']}: {row['message']}"
    seconds, room = row["fit_seconds"], row["fit_megabytes"]
    return f"{head} {100 * row['accuracy']:.2f} % {seconds:>9.2f} s {room:>6.0f} MB"


def _short(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
