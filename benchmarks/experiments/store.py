"""Results as Parquet: one file per experiment, one row per fit, written whole after each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.experiments.plan import Cell
from widemargin.files import replacing

TEXT, NUMBER, COUNT = pa.string(), pa.float64(), pa.int64()
SCHEMA = pa.schema(
    {
        "key": TEXT, "experiment": TEXT, "data": TEXT, "method": TEXT, "use": TEXT,
        "stage": TEXT, "parameters": TEXT, "seed": COUNT, "repeat": COUNT, "threads": COUNT,
        "status": TEXT, "message": TEXT, "limit": NUMBER,
        "accuracy": NUMBER, "balanced_accuracy": NUMBER, "fit_seconds": NUMBER,
        "predict_seconds": NUMBER, "fit_megabytes": NUMBER, "peak_megabytes": NUMBER,
        "train_rows": COUNT, "scored_rows": COUNT, "details": TEXT, "published": TEXT,
        "machine": TEXT, "cores": COUNT, "python": TEXT, "packages": TEXT, "commit": TEXT,
        "when": TEXT,
    }
)  # fmt: skip
OBJECTS = ("parameters", "details", "published")  # JSON within a column
FINAL = ("done", "timeout")  # the others are tried again


class Results:
    """The fits of an experiment that are known, by their keys."""

    def __init__(self, path: Path):
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        if path.exists():
            table = pq.read_table(path)
            if table.schema.names != SCHEMA.names:
                raise ValueError(f"{path} has other columns: move it away and run again.")
            self.rows = {row["key"]: row for row in table.to_pylist()}

    def find(self, cell: Cell, limit: float) -> dict[str, Any] | None:
        """The finished fit, unless it ran out of a time that was shorter than this one."""
        row = self.rows.get(cell.key)
        if row is None or row["status"] not in FINAL:
            return None
        return None if row["status"] == "timeout" and row["limit"] < limit else opened(row)

    def keep(self, cell: Cell, outcome: dict[str, Any]) -> dict[str, Any]:
        """Write the outcome of a cell, with all others, whole or not at all."""
        named = ("experiment", "data", "method", "use", "stage", "parameters", "seed", "repeat",
                 "threads")  # fmt: skip
        row = {"key": cell.key, **{name: getattr(cell, name) for name in named}, **outcome}
        for name in OBJECTS:
            row[name] = json.dumps(row.get(name, {}), sort_keys=True)
        row = self.rows[cell.key] = {name: row.get(name) for name in SCHEMA.names}
        table = pa.Table.from_pylist(list(self.rows.values()), schema=SCHEMA)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as file:
            pq.write_table(table, file)
        return opened(row)


def opened(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its JSON as objects."""
    return row | {name: json.loads(row[name]) for name in OBJECTS}
