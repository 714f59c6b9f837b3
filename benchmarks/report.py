"""Timing by alternation, and tables that say where and with what they were made."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import cpu

RESULTS = Path(__file__).parent / "results"
SEED = 0
EXTENSIONS = 8  # of a grid at either end, at most


def one_thread() -> None:
    """Keep BLAS and OpenMP from lending a second core to either side."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def alternate(
    tasks: dict[str, Callable[[], object]],
    repeats: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Best seconds of each task, run in turns after one warm-up round."""
    best = {name: float("inf") for name in tasks}
    for turn in range(repeats + 1):
        for name, task in tasks.items():
            started = clock()
            task()
            if turn > 0:
                best[name] = min(best[name], clock() - started)
    return best


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown.

    >>> print(*table(["data", "seconds"], [["letter", "0.31"]]), sep="\\n")
    | data | seconds |
    |---|---|
    | letter | 0.31 |
    """
    lined = [f"| {' | '.join(cells)} |" for cells in (columns, *rows)]
    return [lined[0], "|" + "---|" * len(columns), *lined[1:]]


def rows_of(text: str) -> list[list[str]]:
    """The cells of every line of the tables in a text, heads included.

    >>> rows_of("| data | C |\\n|---|---|\\n| letter | |")
    [['data', 'C'], ['letter', '']]
    """
    lines = [line for line in text.splitlines() if line[:1] == "|" and line[:4] != "|---"]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def kept_rows(name: str) -> list[list[str]]:
    """What the tables of a result have already; nothing where there is no such result."""
    path = RESULTS / f"{name}.md"
    return rows_of(path.read_text(encoding="utf-8")) if path.exists() else []


def rows_by_set(name: str) -> dict[str, list[list[str]]]:
    """The same by data set, where first cells are "letter, 15,000 x 16" or "letter, 6,000 rows"."""
    found: dict[str, list[list[str]]] = {}
    for cells in kept_rows(name):
        found.setdefault(re.sub(r", [\d,]+ (rows|x [\d,]+)$", "", cells[0]), []).append(cells)
    return found


def accuracy(model, X, y) -> str:
    """Of predictions, in per cent with two digits."""
    return f"{100 * float(np.mean(model.predict(X) == y)):.2f}"


def write(name: str, title: str, lines: list[str], part: str = "") -> None:
    """Print a result and keep it as benchmarks/results/<name>.md, or one of its parts."""
    from widemargin import _core

    packages = ", ".join(f"{p} {version(p)}" for p in ("numpy", "scipy", "scikit-learn"))
    command = f"python -m benchmarks.{name} {part}".strip()
    head = [
        f"# {title}",
        "",
        f"Made by `{command}`, seed {SEED}, on {os.cpu_count()} cores of "
        f"{cpu()} ({_core.instruction_set()}); Python {platform.python_version()}, {packages}, "
        f"widemargin {version('widemargin')}.",
        "",
    ]
    text = "\n".join(head + lines).rstrip() + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{'_'.join([name, *part.split()])}.md").write_text(text)
    print(text)


def best_C(make: Callable[[float], Any], Cs: list[float], X, y, X_held, y_held) -> float:
    """The C with the best accuracy on the held-out part, the smaller one of equals.

    A grid whose best value is its first or last goes on there, up to eight steps.
    """
    scores: dict[float, float] = {}
    for _ in range(1 + EXTENSIONS):
        scores |= {C: make(C).fit(X, y).score(X_held, y_held) for C in Cs if C not in scores}
        best = max(Cs, key=lambda C: scores[C])
        if best not in (Cs[0], Cs[-1]):
            break
        Cs = extended(Cs, best)
    return best


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
