"""``python -m benchmarks.benchopt FILE``: what a run of benchmark_kernel_svm measured.

FILE is the parquet file that ``benchopt run`` writes; the table is results/benchopt.md.
"""

from __future__ import annotations

import sys

import pandas as pd
from benchmarks.report import table, write

GAPS = (1e-2, 1e-3, 1e-4)


def first_below(points: pd.DataFrame, gap: float) -> str:
    """Return the seconds of the loosest tolerance that led to this gap."""
    reached = points[points["objective_relative_gap"] <= gap]
    return f"{reached.iloc[0]['time']:.3g}" if len(reached) else ""


def main(path: str) -> None:
    runs = pd.read_parquet(path).sort_values("stop_val", ascending=False)
    rows = []
    for (data, problem), same in runs.groupby(["dataset_name", "objective_name"], sort=True):
        for solver, points in same.groupby("solver_name", sort=True):
            found = [first_below(points, gap) for gap in GAPS]
            rows.append([data, problem, solver, *found, f"{points.objective_value.min():.8g}"])
    columns = ["data", "problem", "solver", *(f"s to a gap of {gap:g}" for gap in GAPS), "primal"]
    lines = [
        "A run of benchopt tries smaller and smaller tolerances. Seconds are of the first fit",
        "whose relative gap, computed from its dual coefficients, is below the bound.",
        "",
        *table(columns, rows),
    ]
    write("benchopt", "benchopt: exact SVMs with an RBF kernel", lines)


if __name__ == "__main__":
    main(sys.argv[1])
