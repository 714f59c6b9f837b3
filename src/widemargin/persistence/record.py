"""Pack and unpack `FitRecord`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from widemargin.machine import FitRecord
from widemargin.persistence.container import Fields, pack_number


def pack_record(record: FitRecord, measure: str) -> tuple[dict, dict]:
    """Return the fields "training", and the model's fields: history and ``measure``."""
    training = {
        "rows": record.n_rows,
        "seconds": record.seconds,
        "n_iter": int(record.n_iter),
        "gap": pack_number(record.gap),
        "objective": pack_number(record.objective),
    }
    history = [[{k: _plain(v) for k, v in step.items()} for step in run] for run in record.history]
    return training, {measure: pack_number(getattr(record, measure)), "history": history}


def _plain(value):
    return value if isinstance(value, (bool, int)) else pack_number(value)


def unpack_training(training: Fields) -> FitRecord:
    """Read the fields "training": everything but history and the model's measure."""
    return FitRecord(
        n_rows=training.integer("rows"),
        seconds=training.number("seconds"),
        n_iter=training.integer("n_iter"),
        gap=training.number("gap", finite=False),
        objective=training.number("objective", finite=False),
    )


def unpack_record(training: Fields, own: Fields, measure: str) -> FitRecord:
    record = unpack_training(training)
    more: dict[str, Any] = {
        "history": [_run(own, run) for run in own.items("history")],
        measure: own.number(measure, finite=False),
    }
    return replace(record, **more)


def _run(fields: Fields, run) -> list[dict]:
    if not isinstance(run, list):
        raise fields.fault("history", "lists of records")
    return [_record(Fields(content, fields.path, "history")) for content in run]


def _record(record: Fields) -> dict:
    return {
        name: value if type(value) in (bool, int) else record.number(name, finite=name == "seconds")
        for name, value in record.content.items()
    }
