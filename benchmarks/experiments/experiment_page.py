"""The page of one experiment: what the paper has beside what is measured here, and where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.experiments.charts import charts
from benchmarks.experiments.cuts import cuts
from benchmarks.experiments.lines import Line, labels, not_run
from benchmarks.experiments.plan import Experiment
from benchmarks.experiments.ranks import NEAR, Standing, standings
from widemargin.pages import Html, anchor, facts, folded, grid, joined, page, section, table, tag

GRID = 20  # settings of a method that make a grid, whose seconds are added
FAR = 0.5  # points of accuracy from the paper that ask for a reason


def experiment_page(experiment: Experiment, lines: list[Line]) -> str:
    absent = not_run(experiment, lines)
    introduction = joined([
        tag("p", tag("a", "All experiments", href="index.html"), " · ", experiment.source),
        *(tag("p", paragraph) for paragraph in experiment.note.split("\n\n") if paragraph),
        tag("p", cuts(experiment), class_="soft"),
        tag("p", f"Not run: {'; '.join(absent)}.", class_="soft") if absent else "",
    ])  # fmt: skip
    sections = [section("Ranks", _ranks(found))] if (found := standings(lines)) else []
    for data in dict.fromkeys(line.data for line in lines):
        own = [line for line in lines if line.data == data]
        sections.append(section(data, _table(own), *_reasons(experiment, own), *_totals(own),
                                grid(*charts(experiment, data, own)), *_details(own)))  # fmt: skip
    sections.append(section("Environment", environment(lines)))
    return page(experiment.title, introduction, sections)


def _ranks(found: list[Standing]) -> Html:
    sets = max(standing.sets for standing in found)
    rows = [[s.method, f"{s.rank:.2f}", s.first, f"{s.behind:.2f}", s.near, s.sets] for s in found]
    header = ["method", "average rank", "first", "points behind the best",
              f"within {NEAR} of the best kernel method", "sets with a result"]  # fmt: skip
    caption = f"{len(found)} methods that were run on all {sets} sets; without a result is last"
    return table(header, rows, caption)


def is_far(line: Line) -> bool:
    """Whether the paper's accuracy is so far away that the page has to say why."""
    return line.difference is not None and abs(line.difference) > FAR


def _reasons(experiment: Experiment, lines: list[Line]) -> Iterable[Html]:
    """Why figures are far from the paper's, each reason once."""
    found: dict[str, list[str]] = {}
    for line in filter(is_far, lines):
        why = experiment.reason(line.method, line.data, line.parameters)
        names = found.setdefault(why, [])
        if line.method not in names:
            names.append(line.method)
    items = [tag("li", f"{', '.join(names)}: {why}") for why, names in found.items() if why]
    return [tag("h3", "Why these differ"), tag("ul", *items)] if items else []


def _totals(lines: list[Line]) -> Iterable[Html]:
    """Seconds of whole grids (DC-SVM, Table 5)."""
    rows = []
    for method in dict.fromkeys(line.method for line in lines):
        own = [line for line in lines if line.method == method]
        if len(own) >= GRID:
            ended = [s for line in own if (s := line.median("fit_seconds")) is not None]
            printed = sum(line.published.get("seconds", 0) for line in own)
            rows.append([method, f"{len(ended)} of {len(own)}", f"{sum(ended):.1f}",
                         f"{printed:,.0f}" if printed else ""])  # fmt: skip
    header = ["method", "settings that ended", "fits, s", "paper, s"]
    return [table(header, rows, "Seconds of all settings together")] if rows else []


def _table(lines: list[Line]) -> Html:
    """Columns that are empty throughout are left out."""
    columns: dict[str, list[object]] = {"method": [
        tag("td", tag("a", label, href=f"methods.html#{anchor(line.use)}"), class_="wrap")
        for line, label in zip(lines, labels(lines), strict=True)
    ]}  # fmt: skip
    columns |= {title: [cell(line) for line in lines] for title, cell in COLUMNS.items()}
    places = [line.place for line in lines]
    if len(set(places)) > 1:  # then seconds are not those of one machine
        columns["timed on"] = [tag("td", place, class_="text") for place in places]
    if all(len(line.rows) == 1 for line in lines):
        del columns["fits"]  # the page says that there is one each
    kept = {title: cells for title, cells in columns.items() if any(c != "" for c in cells)}
    counts = [int(max(ln.median(name) or 0 for ln in lines)) for name in
              ("train_rows", "scored_rows")]  # fmt: skip
    caption = f"{counts[0]:,} rows to learn from, {counts[1]:,} to score; medians of the fits"
    busy = [line.detail("load") or 0.0 for line in lines if line.is_busy]
    if busy:
        caption += (f"; seconds of {len(busy)} of {len(lines)} lines are those of a busy machine "
                    f"(load {max(busy):.1f} at most)")  # fmt: skip
    if any(line.difference is not None for line in lines):
        caption += f"; marked where the paper is more than {FAR} points away"
    return table(list(kept), zip(*kept.values(), strict=True), caption)


def _difference(line: Line) -> object:
    if line.difference is None:
        return ""
    return tag("td", f"{line.difference:+.2f}", class_="warn" if is_far(line) else "near")


def _figure(value: float | None) -> str:
    """
    >>> _figure(1098.2), _figure(0.00012345), _figure(None)
    ('1,098', '0.000123', '')
    """
    if value is None:
        return ""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _printed(name: str) -> Callable[[Line], object]:
    return lambda line: line.published.get(name, "")


def _median(name: str) -> Callable[[Line], object]:
    return lambda line: _figure(line.median(name))


def _detail(name: str) -> Callable[[Line], object]:
    return lambda line: _figure(line.detail(name))


def _error(name: str) -> Callable[[Line], object]:
    """In per cent, of the last feature: the paper's stands beside it."""

    def cell(line: Line) -> object:
        errors = line.done[0]["details"].get("errors") if line.done else None
        return _figure(100 * errors[max(errors, key=int)][name]) if errors else ""

    return cell


def _objective(line: Line) -> str:
    """With digits enough to tell solutions apart that are near the optimum.

    >>> _objective(Line("", "", "", {}, [{"status": "done", "details": {"dual_objective": 1e5}}]))
    '100,000.0'
    """
    value = line.detail("dual_objective")
    return "" if value is None else f"{value:,.1f}"


COLUMNS: dict[str, Callable[[Line], object]] = {  # after the method's name
    "accuracy, %": lambda ln: ln.status if ln.accuracy is None else f"{ln.accuracy:.2f}",
    "paper, %": _printed("accuracy"),
    "difference": _difference,
    "fit, s": _median("fit_seconds"),
    "paper, s": _printed("seconds"),
    "predict, ms a row": lambda line: _figure(line.milliseconds_per_row),
    "paper, ms": _printed("test_ms"),
    "fit, MB": _median("fit_megabytes"),
    "gap": _detail("gap"),
    "dual objective": _objective,
    "iterations": _detail("iterations"),
    "support vectors": _detail("support_vectors"),
    "precision": _detail("precision"),
    "recall": _detail("recall"),
    "fits": lambda line: f"{len(line.done)} of {len(line.rows)}",
    "max error, %": _error("relative_max"),
    "paper, max error, %": _printed("max_error"),
    "mean error, %": _error("relative_mean"),
    "paper, mean error, %": _printed("mean_error"),
    "parameters": lambda ln: tag("td", ln.setting, class_="text") if ln.setting else "",
}


def _details(lines: list[Line]) -> Iterable[Html]:
    """Tables within results (levels, errors by feature), and fits that did not end."""
    named = list(zip(lines, labels(lines), strict=True))
    for line, name in named:
        for key, found in (line.done[0]["details"] if line.done else {}).items():
            entries = _entries(found)
            if entries:
                told = [k for k in entries[0][1] if any(e[k] == e[k] for _, e in entries)]  # no NaN
                rows = [[label, *(entry[k] for k in told)] for label, entry in entries]
                caption = f"{key} of the first fit"
                yield folded(f"{name}: {key}", table(["", *told], rows, caption))
    for line, name in named:
        for row in line.rows:
            if row["status"] != "done":
                yield tag("p", f"{name}: {row['status']}, {row['message']}", class_="soft")


def _entries(found: Any) -> list[tuple[str, dict]]:
    """A list of records, or records by name, as labelled records."""
    if isinstance(found, dict):
        pairs = list(found.items())
    elif isinstance(found, list):
        pairs = [(str(k + 1), entry) for k, entry in enumerate(found)]
    else:
        return []
    return pairs if all(isinstance(entry, dict) for _, entry in pairs) else []


def environment(lines: list[Line]) -> Html:
    """Where, with what and from which source: every value that occurs."""
    rows = [row for line in lines for row in line.rows]
    packages = sorted({json.dumps(json.loads(row["packages"])) for row in rows})
    names = ("machine", "cores", "threads", "python", "seed", "limit", "commit")
    told: dict[str, object] = {
        name: "; ".join(sorted({f"{row[name]:g}" if isinstance(row[name], float)
                                else str(row[name]) for row in rows}))
        for name in names
    }  # fmt: skip
    told["packages"] = "; ".join(text.strip("{}").replace('"', "") for text in packages)
    told["fits from"] = min(row["when"] for row in rows)
    told["to"] = max(row["when"] for row in rows)
    return facts(told)
