"""``python -m benchmarks.experiments NAME ... [--quick]``: run experiments, or go on with them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.experiments import plan
from benchmarks.experiments.runner import Runner
from benchmarks.report import RESULTS, table
from widemargin.claim import Claim

QUICK = Path("build/experiments")  # not to be published


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; none: list them")
    parser.add_argument("--quick", action="store_true", help="1,000 rows, to see that it works")
    parser.add_argument("--out", type=Path, help="folder of the results")
    parser.add_argument("--limit", type=float, help="seconds per fit, instead of the file's")
    options = parser.parse_args(arguments)
    if options.limit is not None and not options.limit > 0:
        parser.error(f"--limit {options.limit:g}: use a number of seconds above 0.")
    if not options.names:
        for name in plan.names():
            print(f"{name:<24} {plan.read(name).title}")
        return 0
    try:
        experiments = [plan.read(name) for name in options.names]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for experiment in experiments:
        run(experiment, options)
    return 0


def run(experiment: plan.Experiment, options: argparse.Namespace) -> None:
    from benchmarks.experiments.store import Results  # pyarrow, only where there is work

    if options.quick:
        experiment = plan.quickened(experiment)
    if options.limit is not None:
        experiment = replace(experiment, limit=options.limit)
    folder = options.out or (QUICK if options.quick else RESULTS / "experiments")
    print(f"== {experiment.name}: {experiment.title}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with Claim(folder, f"The folder {str(folder)!r}", "run of experiments"):
        results = Results(folder / f"{experiment.name}.parquet")
        show = partial(print, flush=True)
        print(*summary(Runner(experiment, results, show, not options.quick).run()), sep="\n")
        print(f"kept in {results.path}")


def summary(rows: list[dict]) -> list[str]:
    """Medians over seeds and repeats, beside what the paper prints."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        setting = " ".join(f"{k}={v}" for k, v in row["parameters"].items())
        groups.setdefault((row["data"], row["method"], setting), []).append(row)
    lines = []
    for (data, method, setting), group in groups.items():
        done = [row for row in group if row["status"] == "done"]
        printed = group[0]["published"]
        figures = [
            f"{100 * np.median([r['accuracy'] for r in done]):.2f}" if done else group[0]["status"],
            str(printed.get("accuracy", "")),
            f"{np.median([r['fit_seconds'] for r in done]):.2f}" if done else "",
            f"{np.median([r['fit_megabytes'] for r in done]):.0f}" if done else "",
        ]
        lines.append([data, method, setting, *figures])
    columns = ["data", "method", "parameters", "accuracy, %", "paper", "fit, s", "fit, MB"]
    return table(columns, lines)


if __name__ == "__main__":
    sys.exit(main())
