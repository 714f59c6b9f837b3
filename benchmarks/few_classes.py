"""One batch of classes on several cores: Fashion-MNIST, 10 classes, default tolerance.

``python -m benchmarks.few_classes [MOST]`` compares 1, 2, 4, ... threads, up to so many (2 if
nothing is said), in whole fits, in turns.  Where a neighbour takes a core away the
solver falls back to one thread, so the best of several fits counts; the median stands beside it.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import SEED, one_thread, table, write
from widemargin import AdditiveSVC

KERNELS = ["chi2", "intersection"]
REPEATS = 4


def compare(kernel: str, threads: list[int], X, y, X_test) -> list[list[str]]:
    """A row for each number of threads, from fits in turns."""
    models = {n: AdditiveSVC(kernel, random_state=SEED, n_jobs=n) for n in threads}
    seconds: dict[int, list[float]] = {n: [] for n in threads}
    for turn in range(REPEATS + 1):
        for n in threads if turn % 2 else threads[::-1]:
            started = time.perf_counter()
            models[n].fit(X, y)
            if turn > 0:  # the first is the warm-up
                seconds[n].append(time.perf_counter() - started)
    decisions = [model.decision_function(X_test) for model in models.values()]
    best = {n: min(times) for n, times in seconds.items()}
    return [
        [
            f"{kernel}, rank {models[n].rank_}",
            str(n),
            f"{best[n]:.2f}",
            f"{statistics.median(seconds[n]):.2f}",
            f"{best[threads[0]] / best[n]:.2f}",
            "yes" if np.array_equal(decision, decisions[0]) else "NO",
        ]
        for n, decision in zip(threads, decisions, strict=True)
    ]


def main(most: str = "") -> None:
    one_thread()
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, X_test, _ = data.fashion()
    threads = [2**k for k in range(int(most or 2).bit_length())]
    rows = [row for kernel in KERNELS for row in compare(kernel, threads, X, y, X_test)]
    columns = ["kernel", "threads", "best, s", "median, s", "speed-up", "same bits"]
    lines = [f"Whole fits, {REPEATS} of each in turns after a warm-up.", "", *table(columns, rows)]
    lines += [
        "",
        "Bars: 1.6 times on two threads, both; on 16 cores 3 (chi2) and 5 (intersection).",
    ]
    write("few_classes", f"One batch of classes on {most or 2} cores", lines, most)


if __name__ == "__main__":
    main(*sys.argv[1:])
