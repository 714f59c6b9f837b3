"""The page of one experiment: what the paper has beside what is measured here, and where."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from benchmarks.experiments.charts import charts
from benchmarks.experiments.lines import Line, labels
from benchmarks.experiments.plan import Experiment
from widemargin.pages import Html, anchor, facts, folded, grid, joined, page, section, table, tag

FAR = 0.5  # points of accuracy from the paper that ask for a reason
COLUMNS = ("method", "accuracy, %", "paper, %", "difference", "fit, s",
           "paper, s", "predict, ms a row", "paper, ms", "fit, MB", "gap", "fits",
           "paper, max error, %", "paper, mean error, %", "parameters")  # fmt: skip


def experiment_page(experiment: Experiment, lines: list[Line]) -> str:
    introduction = joined([
        tag("p", tag("a", "All experiments", href="index.html"), " · ", experiment.source),
        tag("p", experiment.note) if experiment.note else "",
    ])  # fmt: skip
    sections = []
    for data in dict.fromkeys(line.data for line in lines):
        own = [line for line in lines if line.data == data]
        sections.append(section(data, _table(own), grid(*charts(experiment, data, own)),
                                *_details(own)))  # fmt: skip
    sections.append(section("Environment", environment(lines)))
    return page(experiment.title, introduction, sections)


def _table(lines: list[Line]) -> Html:
    """Columns that are empty throughout are left out."""
    rows = [_cells(*pair) for pair in zip(lines, labels(lines), strict=True)]
    kept = [k for k in range(len(COLUMNS)) if any(row[k] != "" for row in rows)]
    counts = [int(max(ln.median(name) or 0 for ln in lines)) for name in
              ("train_rows", "scored_rows")]  # fmt: skip
    caption = (f"{counts[0]:,} rows to learn from, {counts[1]:,} to score; medians of the fits; "
               f"marked where the paper is more than {FAR} points away")  # fmt: skip
    return table([COLUMNS[k] for k in kept], [[row[k] for k in kept] for row in rows], caption)


def _cells(line: Line, label: str) -> list[object]:
    away = line.difference
    far = away is not None and abs(away) > FAR
    link = tag("a", label, href=f"methods.html#{anchor(line.use)}")
    return [
        link,
        line.status if line.accuracy is None else f"{line.accuracy:.2f}",
        line.published.get("accuracy", ""),
        "" if away is None else tag("td", f"{away:+.2f}", class_="warn" if far else "near"),
        _figure(line.median("fit_seconds")),
        line.published.get("seconds", ""),
        _figure(line.milliseconds_per_row),
        line.published.get("test_ms", ""),
        _figure(line.median("fit_megabytes")),
        _figure(line.detail("gap")),
        f"{len(line.done)} of {len(line.rows)}",
        line.published.get("max_error", ""),
        line.published.get("mean_error", ""),
        tag("td", line.setting, class_="text") if line.setting else "",
    ]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _details(lines: list[Line]) -> Iterable[Html]:
    """Tables within results (levels, errors by feature), and fits that did not end."""
    for line, name in zip(lines, labels(lines), strict=True):
        for key, found in (line.done[0]["details"] if line.done else {}).items():
            entries = _entries(found)
            if entries:
                header = ["", *entries[0][1]]
                rows = [[label, *entry.values()] for label, entry in entries]
                yield folded(f"{name}: {key}", table(header, rows, f"{key} of the first fit"))
    for line in lines:
        for row in line.rows:
            if row["status"] != "done":
                yield tag("p", f"{line.method} {line.setting}: {row['status']}, {row['message']}",
                          class_="soft")  # fmt: skip


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
