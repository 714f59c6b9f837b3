"""What an experiment's file cuts, in words: rows, fits and seconds.

Its page says this beside its note, so that no cut is left unsaid.
"""

from __future__ import annotations

from benchmarks.experiments.plan import Experiment


def cuts(experiment: Experiment) -> str:
    """One sentence for each.

    >>> cuts(Experiment("e", "", "", ["usps"], [], rows=5000, limit=90.0))
    'At most 5,000 rows to learn from. One fit each, of seed 0. A fit is ended after 90 s.'
    """
    sizes = [
        f"{number:,} rows to {purpose}"
        for number, purpose in ((experiment.rows, "learn from"), (experiment.test_rows, "score"))
        if number
    ]
    told = [f"At most {' and '.join(sizes)}."] if sizes else ["All rows of the files at hand."]
    fits = len(experiment.seeds) * experiment.repeats
    seeds = ", ".join(map(str, experiment.seeds))
    each = "One fit each" if fits == 1 else f"Medians of {fits} fits each"
    told.append(f"{each}, of seed{'s' if len(experiment.seeds) > 1 else ''} {seeds}.")
    told.append(f"A fit is ended after {experiment.limit:g} s.")
    if experiment.threads > 1:
        told.append(f"{experiment.threads} threads.")
    return " ".join(told)
