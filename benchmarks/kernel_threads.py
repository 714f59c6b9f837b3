"""The bottom level of covtype on 1 to 16 threads: 64 clusters or more, one task each.

For a machine with 16 cores; on a smaller one it goes as far as there are cores.
"""

from __future__ import annotations

import os

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, write
from widemargin import KernelSVC

REPEATS = 3


def main() -> None:
    X, y, X_test, _ = data.covtype()
    threads = [n for n in (1, 2, 4, 8, 16) if n <= (os.cpu_count() or 1)]
    best = dict.fromkeys(threads, float("inf"))
    scores = {}
    for turn in range(REPEATS + 1):
        for n in threads:
            if turn == 0 and n < max(threads):
                continue  # one warm-up
            model = KernelSVC(C=32, gamma=32, early=3, tol=1e-3, n_jobs=n, random_state=SEED)
            level = model.fit(X, y).levels_[-1]
            scores[n] = model.decision_function(X_test[:5000])
            if turn > 0:
                best[n] = min(best[n], level.seconds_training)
    same = all(np.array_equal(scores[n], scores[threads[0]]) for n in threads)
    lines = [
        f"covtype, {len(X)} rows, {level.n_clusters} clusters of up to {max(level.sizes)} rows, "
        f"C = 32, gamma = 32, relative gap 1e-3. Training of the level, best of {REPEATS} in "
        f"turns. Decision values {'have the same bits' if same else 'DIFFER'} for every number of "
        "threads.",
        "",
        "| threads | seconds | speed-up | bar |",
        "|---|---|---|---|",
    ]
    for n in threads:
        bar = "10" if n == 16 else ""
        lines.append(f"| {n} | {best[n]:.2f} | {best[threads[0]] / best[n]:.1f} | {bar} |")
    write("kernel_threads", "Threads on the bottom level", lines)


if __name__ == "__main__":
    main()
