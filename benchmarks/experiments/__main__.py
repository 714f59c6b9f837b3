"""``python -m benchmarks.experiments NAME ... [--quick] [--site FOLDER]``: run, or go on; pages."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.experiments import plan
from benchmarks.experiments.lines import lines_of
from benchmarks.experiments.runner import Runner
from benchmarks.report import RESULTS, table
from widemargin.claim import Claim

QUICK = Path("build/experiments")  # not to be published


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments, or all; none: list them"
    )
    parser.add_argument("--quick", action="store_true", help="1,000 rows, to see that it works")
    parser.add_argument("--out", type=Path, help="folder of the results")
    parser.add_argument("--site", type=Path, help="write pages of all results to this folder")
    parser.add_argument("--limit", type=float, help="seconds per fit, instead of the file's")
    options = parser.parse_args(arguments)
    if options.limit is not None and not options.limit > 0:
        parser.error(f"--limit {options.limit:g}: use a number of seconds above 0.")
    folder = options.out or (QUICK if options.quick else RESULTS / "experiments")
    if not options.names and options.site is None:
        for name in plan.names():
            print(f"{name:<24} {plan.read(name).title}")
        return 0
    wanted = plan.names() if options.names == ["all"] else options.names
    try:
        experiments = [plan.read(name) for name in wanted]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for experiment in experiments:
        run(experiment, folder, options)
    if options.site is not None:
        from benchmarks.experiments.site import write_site  # matplotlib, only where it draws

        print(write_site(folder, options.site))
    return 0


def run(experiment: plan.Experiment, folder: Path, options: argparse.Namespace) -> None:
    from benchmarks.experiments.store import Results  # pyarrow, only where there is work

    if options.quick:
        experiment = plan.quickened(experiment)
    if options.limit is not None:
        experiment = replace(experiment, limit=options.limit)
    print(f"== {experiment.name}: {experiment.title}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with Claim(folder, f"The folder {str(folder)!r}", "run of experiments"):
        results = Results(folder / f"{experiment.name}.parquet")
        show = partial(print, flush=True)
        print(*summary(Runner(experiment, results, show, not options.quick).run()), sep="\n")
        print(f"kept in {results.path}")


def summary(rows: list[dict]) -> list[str]:
    """Medians over seeds and repeats, beside what the paper prints."""
    shown = []
    for line in lines_of(rows):
        accuracy, seconds, room = (
            line.accuracy, line.median("fit_seconds"), line.median("fit_megabytes"),
        )  # fmt: skip
        figures = [
            line.status if accuracy is None else f"{accuracy:.2f}",
            str(line.published.get("accuracy", "")),
            "" if seconds is None else f"{seconds:.2f}",
            "" if room is None else f"{room:.0f}",
        ]
        shown.append([line.data, line.method, line.setting, *figures])
    columns = ["data", "method", "parameters", "accuracy, %", "paper", "fit, s", "fit, MB"]
    return table(columns, shown)


if __name__ == "__main__":
    sys.exit(main())
