"""What a fit recorded on its way: lists of records of numbers."""

from __future__ import annotations

from widemargin.persistence.container import Fields, pack_number


def pack_history(history: list[list[dict]]) -> list[list[dict]]:
    return [[{k: _plain(v) for k, v in record.items()} for record in run] for run in history]


def _plain(value):
    return value if isinstance(value, (bool, int)) else pack_number(value)


def unpack_history(fields: Fields) -> list[list[dict]]:
    return [_run(fields, run) for run in fields.items("history")]


def _run(fields: Fields, run) -> list[dict]:
    if not isinstance(run, list):
        raise fields.fault("history", "lists of records")
    return [_record(Fields(content, fields.path, "history")) for content in run]


def _record(record: Fields) -> dict:
    return {
        name: value if type(value) in (bool, int) else record.number(name, finite=False)
        for name, value in record.content.items()
    }
