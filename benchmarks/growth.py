"""Time against rows of covtype, twice as many at a time: early and exact KernelSVC, AdditiveSVC.

Usage: python -m benchmarks.growth          early and additive machines
       python -m benchmarks.growth exact    exact ones, as far as 10 minutes go
       python -m benchmarks.growth deeper   early ones with smaller clusters, where these are large

The slope is that of a straight line through the logarithms of rows and seconds: 1 is in proportion.
Seconds are those of the process on its cores, which a busy machine changes less than those on the
wall, and the best of three; exact fits run once, as long as the next is expected to end in time.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, table, write
from widemargin import AdditiveSVC, KernelSVC

ROWS = (58_000, 116_000, 232_000, 464_810)
REPEATS = 3
DEEPER = {58_000: 2, 232_000: 3}  # one level more than early=True takes
WORST = 2.0  # exponent by which the next exact fit is foretold


LIMIT = 600.0  # seconds for exact fits


def machines(part: str) -> dict:
    common = {"C": 32, "gamma": 32, "n_jobs": 2, "random_state": SEED}
    if part == "exact":
        return {"exact KernelSVC": KernelSVC(**common, tol=1e-2)}
    return {
        "early KernelSVC": KernelSVC(**common, early=True),
        "AdditiveSVC": AdditiveSVC("chi2", tol=1e-2, n_jobs=2, random_state=SEED),
    }


def seconds(model, X, y, repeats: int) -> tuple[float, float]:
    """On cores and on the wall."""
    best = (np.inf, np.inf)
    for _ in range(repeats):
        started = time.process_time(), time.perf_counter()
        model.fit(X, y)
        took = time.process_time() - started[0], time.perf_counter() - started[1]
        best = (min(best[0], took[0]), min(best[1], took[1]))
    return best


def slope(rows, times) -> float:
    """Of log seconds against log rows.

    >>> round(slope([1, 2, 4], [3, 6, 12]), 6)
    1.0
    """
    return float(np.polyfit(np.log(rows), np.log(times), 1)[0])


def describe(model) -> str:
    if isinstance(model, AdditiveSVC):
        return f"{model.n_iter_} sweeps"
    level = model.levels_[-1]
    clusters = f"{level.n_clusters} clusters of up to {max(level.sizes)}, " if model.early else ""
    return f"{clusters}{len(model.support_)} support vectors"


def main(part: str) -> None:
    X, y, X_test, y_test = data.covtype()
    found: dict[str, list] = {name: [] for name in machines(part)}
    spent = 0.0
    for n in ROWS:
        for name, model in machines(part).items():
            if part and found[name]:
                before, _, wall = found[name][-1][:3]
                if spent + wall * (n / before) ** WORST > LIMIT:
                    continue
            took, wall = seconds(model, X[:n], y[:n], 1 if part else REPEATS)
            spent += wall
            accuracy = 100 * float(np.mean(model.predict(X_test) == y_test))
            found[name].append((n, took, wall, accuracy, describe(model)))
            print(name, *found[name][-1], file=sys.stderr, flush=True)
    lines = [f"Two threads; load of the machine {os.getloadavg()[1]:.0f}.", ""]
    rows = [
        [name, f"{n:,}", f"{s:.2f}", f"{1e6 * s / n:.1f}", f"{wall:.2f}", f"{a:.2f}", about]
        for name, results in found.items()
        for n, s, wall, a, about in results
    ]
    lines += table(["machine", "rows", "s", "us per row", "s wall", "accuracy, %", ""], rows)
    lines.append("")
    for name, results in found.items():
        if len(results) > 1:
            n, s = zip(*[r[:2] for r in results], strict=True)
            bar = "" if part else " (bar: 1.1)"
            lines.append(f"- {name}: seconds grow with the power {slope(n, s):.2f} of rows{bar}.")
            if name.startswith("early"):
                alike = [f"{slope(n[k::2], s[k::2]):.2f}" for k in range(2)]
                lines.append(f"  Where clusters are alike (see below): {' and '.join(alike)}.")
    lines += [] if part else [EARLY.rstrip()]
    write("growth", f"Time against rows, covtype {part}".strip(), lines, part)


def deeper() -> None:
    """What one level more costs and saves, where early=True has the largest clusters."""
    X, y, X_test, y_test = data.covtype()
    rows = []
    for n, level in DEEPER.items():
        for early in (True, level):
            model = machines("")["early KernelSVC"].set_params(early=early)
            took, wall = seconds(model, X[:n], y[:n], 1)
            accuracy = 100 * float(np.mean(model.predict(X_test) == y_test))
            cells = [f"{took:.2f}", f"{1e6 * took / n:.1f}", f"{wall:.2f}", f"{accuracy:.2f}"]
            rows.append([f"{n:,}", str(early), *cells, describe(model)])
            print(*rows[-1], file=sys.stderr, flush=True)
    heads = ["rows", "early", "s", "us per row", "s wall", "accuracy, %", ""]
    lines = [f"Two threads, one run each; load of the machine {os.getloadavg()[1]:.0f}.", ""]
    write("growth", "Smaller clusters, covtype", [*lines, *table(heads, rows)], "deeper")


EARLY = """
`early=True` is the level nearest to 8,000 rows a cluster, and levels have 4, 16, 64 ... clusters: with
58,000 and 232,000 rows they hold 14,500 on average, with 116,000 and 464,810 half of that. A cluster's
kernel rows grow with its square, so the former take more time per row.
"""  # noqa: E501


if __name__ == "__main__":
    if sys.argv[1:] == ["deeper"]:
        deeper()
    else:
        main("exact" if sys.argv[1:] == ["exact"] else "")
