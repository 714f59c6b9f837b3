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
    text = document.read_text(encoding="utf-8")
    new = f"{BEGIN}\n\n{date.today()}, {how}:\n\n{totals.table()}\n\n{END}"
    pattern = f"{re.escape(BEGIN)}.*{re.escape(END)}"
    if not re.search(pattern, text, re.DOTALL):
        raise ValueError(f"{document} has no place for the counts: {BEGIN} ... {END}")
    document.write_text(re.sub(pattern, lambda _: new, text, flags=re.DOTALL), encoding="utf-8")
