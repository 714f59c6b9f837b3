"""``python -m benchmarks.experiments NAME ... [--quick] [--site FOLDER]``: run, or go on; pages."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

from benchmarks.experiments import plan
from benchmarks.experiments.lines import lines_of
from benchmarks.experiments.runner import Runner
from benchmarks.experiments.schedule import Schedule
from benchmarks.experiments.store import Results
from benchmarks.report import RESULTS, table
from widemargin.files import Folder

QUICK = Path("build/experiments")  # not to be published


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folder = options.out or (QUICK if options.quick else RESULTS / "experiments")
    if not options.names and options.site is None:
        for name in plan.names():
            print(f"{name:<24} {plan.read(name).title}")
        return 0
    try:
        experiments = [plan.read(name) for name in _wanted(options.names)]
        _check_again(options.again, experiments)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if experiments:
        run([_changed(experiment, options) for experiment in experiments], folder, options)
    if options.site is not None:
        from benchmarks.experiments.site import write_site  # matplotlib, only where it draws

        print(write_site(folder, options.site))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help="experiments, in this order; all: those not named before it; none: list them",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="1,000 rows, to see that it works")
    parser.add_argument("--jobs", type=int, default=1, help="threads of all fits at once")
    parser.add_argument("--budget", type=float, default=inf, help="stop after so many seconds")
    parser.add_argument("--limit", type=float, help="seconds per fit, instead of the file's")
    parser.add_argument(
        "--again", action="append", default=[], metavar="NAME",
        help="forget the fits of this data set or method first; can be given more than once",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="folder of the results")
    parser.add_argument("--site", type=Path, help="write pages of all results to this folder")
    options = parser.parse_args(arguments)
    for name in ("limit", "budget"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            parser.error(f"--{name} {value:g}: use a number of seconds above 0.")
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: use 1 or more.")
    return options


def _wanted(names: list[str]) -> list[str]:
    """Names in their order, each once; "all" stands for those that are not named."""
    rest = [name for name in plan.names() if name not in names]
    return list(dict.fromkeys(n for name in names for n in (rest if name == "all" else [name])))


def _check_again(names: list[str], experiments: list[plan.Experiment]) -> None:
    known = {name for e in experiments for name in (*e.data, *(m.name for m in e.methods))}
    if not known.issuperset(names):
        wrong = next(name for name in names if name not in known)
        raise ValueError(f"--again {wrong!r}: there are {', '.join(sorted(known))}.")


def _changed(experiment: plan.Experiment, options: argparse.Namespace) -> plan.Experiment:
    if options.quick:
        experiment = plan.quickened(experiment)
    return experiment if options.limit is None else replace(experiment, limit=options.limit)


def run(experiments: list[plan.Experiment], folder: Path, options: argparse.Namespace) -> None:
    """Run what is missing, then print every table and where it is kept."""
    with Folder(folder, make=True) as claimed:
        claimed.claim(f"The folder {str(folder)!r}", "run of experiments")
        kept = [Results(folder / f"{experiment.name}.parquet") for experiment in experiments]
        for results in kept:
            results.forget(options.again)
        runners = [
            Runner(experiment, results, partial(print, flush=True), extend=not options.quick)
            for experiment, results in zip(experiments, kept, strict=True)
        ]
        schedule = Schedule(runners, options.jobs, options.budget)
        try:
            finished = schedule.run()
        finally:
            places = [results.collect() for results in kept]
        for runner, place in zip(runners, places, strict=True):
            print(f"== {runner.experiment.name}: {runner.experiment.title}")
            print(*summary(schedule.rows(runner)), sep="\n")
            print(f"kept in {place}" if place.exists() else "no fit has ended")
        if not finished:
            print(f"{schedule.open_lines()} lines have fits to come: the same command goes on.")


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
