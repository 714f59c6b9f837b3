"""Results as Parquet: one file per experiment, one row per fit.

While an experiment runs, every fit is a line of a journal beside that file; at the end the journal
goes into it.  So a fit is kept the moment it ends, and a machine without pyarrow runs experiments
as well: its journals become Parquet on the next one.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from benchmarks.experiments.plan import Cell
from widemargin.files import replacing

TEXT, NUMBER, COUNT = "string", "float64", "int64"  # as pyarrow calls them
SCHEMA = {
    "key": TEXT, "experiment": TEXT, "data": TEXT, "method": TEXT, "use": TEXT,
    "stage": TEXT, "parameters": TEXT, "seed": COUNT, "repeat": COUNT, "threads": COUNT,
    "status": TEXT, "message": TEXT, "limit": NUMBER,
    "accuracy": NUMBER, "balanced_accuracy": NUMBER, "fit_seconds": NUMBER,
    "predict_seconds": NUMBER, "fit_megabytes": NUMBER, "peak_megabytes": NUMBER,
    "train_rows": COUNT, "scored_rows": COUNT, "details": TEXT, "published": TEXT,
    "machine": TEXT, "cores": COUNT, "python": TEXT, "packages": TEXT, "commit": TEXT,
    "when": TEXT,
}  # fmt: skip
OBJECTS = ("parameters", "details", "published")  # JSON within a column
FINAL = ("done", "timeout")  # the others are tried again


class Results:
    """The fits of an experiment that are known, by their keys."""

    def __init__(self, path: Path):
        self.path = path
        self.journal = path.with_suffix(".jsonl")
        self.rows: dict[str, dict[str, Any]] = {}
        for row in [*_parquet_rows(path), *_journal_rows(self.journal)]:
            self.rows[row["key"]] = row

    def find(self, cell: Cell, limit: float) -> dict[str, Any] | None:
        """The finished fit, unless it ran out of a time that was shorter than this one."""
        row = self.rows.get(cell.key)
        if row is None or row["status"] not in FINAL:
            return None
        return None if row["status"] == "timeout" and row["limit"] < limit else opened(row)

    def keep(self, cell: Cell, outcome: dict[str, Any]) -> dict[str, Any]:
        """Write the outcome of a cell at the end of the journal."""
        named = ("experiment", "data", "method", "use", "stage", "parameters", "seed", "repeat",
                 "threads")  # fmt: skip
        row = {"key": cell.key, **{name: getattr(cell, name) for name in named}, **outcome}
        for name in OBJECTS:
            row[name] = json.dumps(row.get(name, {}), sort_keys=True)
        row = self.rows[cell.key] = {name: row.get(name) for name in SCHEMA}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.journal, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return opened(row)

    def forget(self, names: Collection[str]) -> None:
        """Drop the fits of data sets or methods of these names: the next run makes them anew."""
        kept = {
            k: row for k, row in self.rows.items() if not {row["data"], row["method"]} & {*names}
        }
        if len(kept) < len(self.rows):
            self.rows = kept
            self._write()

    def collect(self) -> Path:
        """Put the journal into the Parquet file; where pyarrow is missing, it stays what it is."""
        if not self.journal.exists():
            return self.path
        return self._write()

    def _write(self) -> Path:
        """All rows to one file, Parquet where it can be written, and the other one away."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:  # then there is no Parquet file: it could not have been read
            lines = "".join(json.dumps(row) + "\n" for row in self.rows.values())
            with replacing(self.journal) as file:
                file.write(lines.encode())
            return self.journal
        schema = pa.schema({name: getattr(pa, kind)() for name, kind in SCHEMA.items()})
        table = pa.Table.from_pylist(list(self.rows.values()), schema=schema)
        with replacing(self.path) as file:
            pq.write_table(table, file)
        self.journal.unlink(missing_ok=True)
        return self.path


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    _check_columns(path, table.schema.names)
    return table.to_pylist()


def _journal_rows(path: Path) -> list[dict[str, Any]]:
    """Its whole lines; half a line, left by a full disk or a power cut, is cut off."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole, _, torn = text.rpartition("\n")
    if torn:
        path.write_text(whole + "\n" if whole else "", encoding="utf-8")
    rows = [json.loads(line) for line in whole.splitlines()]
    for row in rows:
        _check_columns(path, list(row))
    return rows


def _check_columns(path: Path, names: list[str]) -> None:
    if names != list(SCHEMA):
        raise ValueError(f"{path} has other columns: move it away and run again.")


def opened(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its JSON as objects."""
    return row | {name: json.loads(row[name]) for name in OBJECTS}
