"""The record of a fit as it goes: a dictionary per step, with the seconds since it began."""

from __future__ import annotations


def continued(before: list[dict], after: list[dict]) -> list[dict]:
    """The later records, their seconds counted from where the earlier ones began.

    >>> continued([{"seconds": 1.0}, {"seconds": 2.0}], [{"seconds": 0.5}])
    [{'seconds': 2.5}]
    """
    elapsed = before[-1]["seconds"] if before else 0.0
    return [{**record, "seconds": elapsed + record["seconds"]} for record in after]
