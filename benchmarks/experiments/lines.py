"""Lines of a table: fits that differ in seed and repeat only, and the paper's figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.experiments.plan import Experiment, Method


@dataclass(frozen=True)
class Line:
    """A method with its parameters on one data set; figures are medians of the fits that ended."""

    data: str
    method: str
    use: str
    parameters: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def setting(self) -> str:
        return " ".join(f"{k}={v}" for k, v in self.parameters.items())

    @property
    def done(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["status"] == "done"]

    @property
    def status(self) -> str:
        """What became of it: done, as soon as one fit is."""
        return "done" if self.done else self.rows[0]["status"]

    def median(self, name: str) -> float | None:
        values = [row[name] for row in self.done if row.get(name) is not None]
        return float(np.median(values)) if values else None

    def detail(self, name: str) -> float | None:
        found = [row["details"].get(name) for row in self.done]
        values = [value for value in found if value is not None and not np.isnan(value)]
        return float(np.median(values)) if values else None

    @property
    def is_busy(self) -> bool:
        """Whether more processes than cores ran when it was timed; older fits do not tell."""
        load = self.detail("load")
        return load is not None and load > self.rows[0]["cores"]

    @property
    def place(self) -> str:
        """Where its seconds are from."""
        return f"{self.rows[0]['cores']} cores{', busy' if self.is_busy else ''}"

    @property
    def accuracy(self) -> float | None:
        """In per cent."""
        share = self.median("accuracy")
        return None if share is None else 100 * share

    @property
    def milliseconds_per_row(self) -> float | None:
        """Of prediction."""
        seconds, rows = self.median("predict_seconds"), self.median("scored_rows")
        return None if seconds is None or not rows else 1e3 * seconds / rows

    @property
    def published(self) -> dict[str, float]:
        return self.rows[0]["published"]

    @property
    def difference(self) -> float | None:
        """Points of accuracy above the paper's."""
        printed = self.published.get("accuracy")
        return None if printed is None or self.accuracy is None else self.accuracy - printed


def labels(lines: list[Line]) -> list[str]:
    """Short names: methods, with the parameters in which lines of a method differ."""
    told = []
    for line in lines:
        own = [other.parameters for other in lines if other.method == line.method]
        differ = {k: v for k, v in line.parameters.items()
                  if any(known.get(k) != v for known in own)}  # fmt: skip
        told.append(f"{line.method} {short_setting(differ)}".strip())
    return told


def short_setting(parameters: dict[str, Any]) -> str:
    """Parameters with as many digits as tell them apart.

    >>> short_setting({"C": 0.0009765625, "gamma": 1024.0, "clustering": "kmeans"})
    'C=0.000977 gamma=1024 clustering=kmeans'
    """
    return " ".join(f"{k}={_short(v)}" for k, v in parameters.items())


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.3g}"
    return str(value)


def in_order(experiment: Experiment, lines: list[Line]) -> list[Line]:
    """Lines in the order of the experiment's file: fits side by side end in any order.

    Those that the file no longer has are left out.
    """
    methods = {method.name: method for method in experiment.methods}

    def place(line: Line) -> tuple[int, int, int]:
        method = methods[line.method]
        varied = [{k: settings[k] for k in method.vary} for settings in method.settings()]
        own = {k: line.parameters.get(k) for k in method.vary}
        return experiment.data.index(line.data), list(methods).index(line.method), varied.index(own)

    kept = [ln for ln in lines if ln.method in methods and ln.data in experiment.data]
    return sorted((ln for ln in kept if _is_asked(methods[ln.method], ln)), key=place)


def not_run(experiment: Experiment, lines: list[Line]) -> list[str]:
    """What the file asks for and nobody has run: whole sets, methods, or some of their settings."""
    told = []
    for data in experiment.data:
        on_set = [line for line in lines if line.data == data]
        if not on_set:
            told.append(data)
            continue
        for method in experiment.methods:
            own = [line for line in on_set if line.method == method.name]
            asked = list(method.settings())
            absent = sum(not any(_has(line, settings) for line in own) for settings in asked)
            if absent:
                part = f" ({absent} of {len(asked)} settings)" if len(asked) > 1 else ""
                told.append(f"{method.name}{part} on {data}")
    return told


def _is_asked(method: Method, line: Line) -> bool:
    """Whether the method's file asks for such a line, whatever it has tuned."""
    return any(_has(line, settings) for settings in method.settings())


def _has(line: Line, settings: dict[str, Any]) -> bool:
    return all(line.parameters.get(k) == v for k, v in settings.items())


def lines_of(rows: Iterable[dict[str, Any]]) -> list[Line]:
    """The lines of a table, in the order of their first fits; fits that tuned are none of it."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        if row["stage"] == "test":
            setting = repr(sorted(row["parameters"].items()))
            groups.setdefault((row["data"], row["method"], setting), []).append(row)
    return [
        Line(first["data"], first["method"], first["use"], first["parameters"], group)
        for group in groups.values()
        for first in group[:1]
    ]
