"""History of a fit: a dictionary per step, with the seconds since the start."""

from __future__ import annotations


def continued(before: list[dict], after: list[dict]) -> list[dict]:
    """Return the later records with their seconds shifted by those of the earlier ones.

    >>> continued([{"seconds": 1.0}, {"seconds": 2.0}], [{"seconds": 0.5}])
    [{'seconds': 2.5}]
    """
    elapsed = before[-1]["seconds"] if before else 0.0
    return [{**record, "seconds": elapsed + record["seconds"]} for record in after]
