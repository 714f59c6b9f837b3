"""Pages of all experiments that have results: an overview, one page each, and the methods."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.competitors import COMPETITORS
from benchmarks.experiments import plan
from benchmarks.experiments.experiment_page import FAR, environment, experiment_page
from benchmarks.experiments.lines import Line, in_order, lines_of
from benchmarks.experiments.methods_page import methods_page
from benchmarks.experiments.plan import Experiment
from benchmarks.experiments.store import Results, opened
from widemargin.pages import Html, joined, page, picture, section, table, tag, tiles, write_page
from widemargin.plots.canvas import NAME

Measured = dict[str, tuple[Experiment, list[Line]]]


def write_site(results: Path, folder: Path) -> Path:
    """Write the pages of a folder of results, and return the one to begin with."""
    measured = read_results(results)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (experiment, lines) in measured.items():
        write_page(folder / f"{name}.html", experiment_page(experiment, lines))
    uses: dict[str, list[str]] = {}
    for name, (_, lines) in measured.items():
        for use in dict.fromkeys(line.use for line in lines):
            uses.setdefault(use, []).append(name)
    write_page(folder / "methods.html", methods_page(uses))
    write_page(folder / "index.html", overview(measured))
    return folder / "index.html"


def read_results(folder: Path) -> Measured:
    """Experiments and their lines, by name; those without a finished fit are left out."""
    found: Measured = {}
    for name in plan.names():
        rows = Results(folder / f"{name}.parquet").rows
        experiment = plan.read(name)
        lines = in_order(experiment, lines_of(map(opened, rows.values())))
        if any(line.done for line in lines):
            found[name] = experiment, lines
    return found


def overview(measured: Measured) -> str:
    every = [line for _, lines in measured.values() for line in lines]
    away = _differences(every)
    told = {
        "experiments with results": f"{len(measured)} of {len(plan.names())}",
        "fits": sum(len(line.done) for line in every),
        "accuracies that a paper prints": len(away),
        f"within {FAR} points of it": _near(away),
        "farther, with the reason": len(away) - _near(away),
    }
    introduction = joined([
        tag("p", "What the papers print, what is measured here, and who wins today. ",
            tag("a", "The methods", href="methods.html"), "."),
        tiles(told),
    ])  # fmt: skip
    missing = [name for name in plan.names() if name not in measured]
    sections = [section("Experiments", _experiments(measured), *_bars(measured))]
    if every:
        sections.append(section("Who wins", _winners(measured)))
    if missing:
        items = (tag("li", f"{name}: {plan.read(name).title}") for name in missing)
        sections.append(section("Without results here", tag("ul", *items)))
    if every:
        sections.append(section("Environment", environment(every)))
    return page("widemargin: experiments", introduction, sections)


def _differences(lines: list[Line]) -> list[float]:
    return [d for line in lines if (d := line.difference) is not None]


def _near(differences: list[float]) -> int:
    return sum(abs(d) <= FAR for d in differences)


def _experiments(measured: Measured) -> Html:
    rows = []
    for name, (experiment, lines) in measured.items():
        away = _differences(lines)
        rows.append([
            tag("td", tag("a", experiment.title, href=f"{name}.html"),
                tag("div", experiment.source, class_="soft"), class_="wrap"),
            sum(len(line.done) for line in lines),
            len(away) or "",
            _near(away) if away else "",
            f"{max(away, key=abs):+.2f}" if away else "",
        ])  # fmt: skip
    header = ["experiment", "fits", "printed", f"within {FAR}", "farthest, points"]
    caption = "Accuracies that the papers print against ours, often of fewer rows: see the pages"
    return table(header, rows, caption)


def _bars(measured: Measured) -> list[Html]:
    means = {name: float(np.mean(np.abs(away)))
             for name, (_, lines) in measured.items() if (away := _differences(lines))}  # fmt: skip
    if not means:
        return []

    def draw(ax) -> None:
        heights = range(len(means))[::-1]
        ax.barh(heights, list(means.values()), height=0.6)
        ax.set_yticks(heights, list(means), **NAME)
        ax.axvline(FAR, color="C3", lw=1)
        ax.set_xlabel("points from the paper's accuracy, on average")

    worst = max(means, key=lambda name: means[name])
    alt = (f"Bars of the average distance from the papers' accuracies, at most {means[worst]:.2f} "
           f"points ({worst}); a line at {FAR}.")  # fmt: skip
    return [picture(draw, alt, (4.6, 0.26 * len(means) + 0.9))]


def _winners(measured: Measured) -> Html:
    """The most accurate of ours and of the others, wherever an experiment has both."""
    rows = []
    for name, (_, lines) in measured.items():
        for data in dict.fromkeys(line.data for line in lines):
            ended = [ln for ln in lines if ln.data == data and ln.accuracy is not None]
            sides = [[ln for ln in ended if (ln.use in COMPETITORS) is other]
                     for other in (False, True)]  # fmt: skip
            if all(sides):
                ours, theirs = (max(side, key=lambda ln: ln.accuracy or 0.0) for side in sides)
                rows.append([tag("a", f"{name}, {data}", href=f"{name}.html"),
                             *_best(ours), *_best(theirs), _lead(ours, theirs)])  # fmt: skip
    header = ["experiment, data", "our best", "%", "s", "best of others", "%", "s", "lead, points"]
    return table(header, rows, "Most accurate of all settings that ran; losses are marked")


def _best(line: Line) -> list[object]:
    seconds = line.median("fit_seconds") or 0.0
    return [tag("td", line.method, class_="text"), f"{line.accuracy:.2f}", f"{seconds:.3g}"]


def _lead(ours: Line, theirs: Line) -> Html:
    lead = (ours.accuracy or 0.0) - (theirs.accuracy or 0.0)
    return tag("td", f"{lead:+.2f}", class_="warn" if lead < 0 else "near")
