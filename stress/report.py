"""Counts of a run as a table, and that table in a document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from stress.hunt import Count

BEGIN, END = "<!-- written by python -m stress -->", "<!-- end of the counts -->"


@dataclass
class Totals:
    """Counts by check."""

    by_check: dict[str, Count]

    @property
    def kinds(self) -> set[str]:
        return {f.kind for count in self.by_check.values() for f in count.failures}

    @property
    def failed(self) -> int:
        return sum(count.failed for count in self.by_check.values())

    def add(self, check: str, found: Count) -> None:
        """Failures are printed as they come."""
        total = self.by_check[check]
        total.cases += found.cases
        total.refused += found.refused
        total.failed += found.failed
        total.failures += found.failures
        for failure in found.failures:
            print(f"{failure}\n", flush=True)

    def table(self) -> str:
        rows = [(name, c.cases, c.refused, c.failed) for name, c in self.by_check.items()]
        rows.append(("all", *(sum(row[k] for row in rows) for k in (1, 2, 3))))
        return "\n".join(
            ["| check | cases | of these refused | failed |", "|---|---|---|---|"]
            + [f"| {name} | {a:,} | {b:,} | {c:,} |" for name, a, b, c in rows]
        )


def write(document: Path, totals: Totals, how: str) -> None:
    """Put the table where the document keeps it."""
    write_between(document, BEGIN, END, how, totals.table())


def write_between(document: Path, begin: str, end: str, how: str, table: str) -> None:
    """Replace what stands between two marks of a document."""
    text = document.read_text(encoding="utf-8")
    new = f"{begin}\n\n{date.today()}, {how}:\n\n{table}\n\n{end}"
    pattern = f"{re.escape(begin)}.*{re.escape(end)}"
    if not re.search(pattern, text, re.DOTALL):
        raise ValueError(f"{document} has no place for the counts: {begin} ... {end}")
    document.write_text(re.sub(pattern, lambda _: new, text, flags=re.DOTALL), encoding="utf-8")
