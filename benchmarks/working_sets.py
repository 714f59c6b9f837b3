"""Ways to choose working sets and levels that were tried: rounds, kernel rows and CPU seconds.

``python -m benchmarks.working_sets``.  Each way is the present code with other constants; random
parts are clusters whose rows were shuffled.  Fits end at a relative duality gap of 1e-3, or without
it after `MOST` rounds or when they make no progress.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.many_classes import dense
from benchmarks.report import SEED, one_thread, table, write
from widemargin import KernelSVC
from widemargin.kernel import active_set, divide, machine
from widemargin.kernel.problems import Variables

ROWS, MOST, NEVER, REPEATS = 20_000, 1000, 1 << 30, 2


def letter_halves():
    """A to M against N to Z."""
    X, y, *_ = dense(data.letter())
    return X, np.where(y <= np.median(y), 1, -1)


SETS = {  # C, gamma
    "covtype": (lambda: data.sampled(data.covtype(), ROWS, 1), 32.0, 32.0),
    "ijcnn1": (lambda: data.sampled(data.ijcnn1_dense(), ROWS, 1), 32.0, 2.0),
    "letter, half against half": (letter_halves, 1.0, "scale"),
}
SETS_OF_ROUNDS = {
    "as it is": {"TRUST": active_set.TRUST},
    "one set of 1,024 in every round": {"LEAST_ACTIVE": NEVER},
    "clusters in every round": {"GLOBAL_EVERY": NEVER, "TRUST": 0.0},
    "clusters and one set by turns": {"GLOBAL_EVERY": 2},
    "one set in every eighth round": {"GLOBAL_EVERY": 8},
    "clusters whatever the mean step": {"TRUST": 0.0},
    "128 variables of each cluster": {"SET_OF_CLUSTER": 128},
    "512 variables of each cluster": {"SET_OF_CLUSTER": 512},
    "random parts for clusters": {"TRUST": active_set.TRUST},
}
LEVELS = {
    "every level solved": (machine, {"AUTO_STRIDE": 1}),
    "clusters of 8,000 rows": (divide, {"AUTO_ROWS": 8000}),
    "clusters of 500 rows": (divide, {"AUTO_ROWS": 500}),
    "no levels": (divide, {"AUTO_ROWS": NEVER}),
}


def shuffled(variables: Variables, label: np.ndarray | None) -> Variables:
    if label is None:
        return variables
    return replace(variables, cluster=np.random.default_rng(SEED).permutation(label)[variables.row])


def fitted(X, y, C, gamma) -> list[str]:
    """Rounds and kernel rows of the whole problem, and the least CPU seconds of a fit."""
    model, best = KernelSVC(C=C, gamma=gamma, max_iter=MOST, n_jobs=1, random_state=SEED), np.inf
    for _ in range(REPEATS):
        started = time.process_time()
        model.fit(X, y)
        best = min(best, time.process_time() - started)
    rounds = str(model.n_iter_[0]) if model.converged_ else f"gap of {model.duality_gap_:.1e}"
    return [rounds, f"{model.history_[0][-1]['rows']:,}", f"{best:.2f}"]


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    loaded = [(load()[:2], C, gamma) for load, C, gamma in SETS.values()]
    ways = {way: (active_set, constants) for way, constants in SETS_OF_ROUNDS.items()} | LEVELS
    rows = []
    for way, (module, constants) in ways.items():
        in_clusters = shuffled if way.startswith("random") else Variables.in_clusters
        with (
            mock.patch.multiple(module, **constants),
            mock.patch.object(Variables, "in_clusters", in_clusters),
        ):
            cells = [cell for (X, y), *how in loaded for cell in fitted(X, y, *how)]
        rows.append([way, *cells])
        print(rows[-1], flush=True)
    columns = ["way", *(cell for name in SETS for cell in (f"{name}: rounds", "rows", "CPU, s"))]
    text = [
        "Rounds and kernel rows of the whole problem, from what the levels left; CPU seconds of",
        f"the fit on one thread, best of {REPEATS}. C and gamma are 32 and 32, 32 and 2, 1 and",
        f"scale. A fit that made no progress, or not enough in {MOST:,} rounds, has its gap.",
        "",
    ]
    write("working_sets", "Working sets and levels that were tried", text + table(columns, rows))


if __name__ == "__main__":
    one_thread()
    main()
