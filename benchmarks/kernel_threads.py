"""KernelSVC on 1 to 16 threads: whole fits beside scikit-learn-intelex, and the bottom level.

For a machine with 16 cores; on a smaller one it goes as far as there are cores.
``python -m benchmarks.kernel_threads fits`` and ``level`` write a table each.
"""

from __future__ import annotations

import os
import sys
import time
from importlib.util import find_spec

import numpy as np

from benchmarks import data
from benchmarks.many_classes import images
from benchmarks.report import SEED, table, write
from widemargin import KernelSVC

REPEATS = 3
TURNS = 2  # of whole fits on most threads; on fewer, which take longer, one
CACHE = 6000
SETS = {
    "covtype 30,000, two classes": (lambda: data.covtype(30_000), 32.0, 32.0),
    "covtype 30,000, seven classes": (lambda: data.covtype_classes(30_000), 32.0, 32.0),
    "MNIST, round digits": (data.mnist_round, 2.0, 0.04),
    "MNIST, ten classes": (lambda: images(data.npz_pair("mnist.npz")), 8.0, 0.04),
}


def numbers() -> list[int]:
    return [n for n in (1, 2, 4, 8, 16) if n <= (os.cpu_count() or 1)]


def timed(model, X, y, turns: int) -> float:
    """Seconds of the fastest fit."""
    best = float("inf")
    for _ in range(turns):
        started = time.perf_counter()
        model.fit(X, y)
        best = min(best, time.perf_counter() - started)
    return best


def fit(name: str) -> list[str]:
    """One set: seconds for each number of threads, ratios, and whether the bits are the same."""
    load, C, gamma = SETS[name]
    X, y, X_test, y_test = load()
    X_test, y_test = X_test[:10_000], y_test[:10_000]
    threads, seconds, scores = numbers(), {}, {}
    KernelSVC(C=C, gamma=gamma, n_jobs=threads[-1], random_state=SEED).fit(X[:5000], y[:5000])
    for n in reversed(threads):
        model = KernelSVC(C=C, gamma=gamma, n_jobs=n, random_state=SEED)
        seconds[n] = timed(model, X, y, TURNS if n >= threads[-1] // 2 else 1)
        scores[n] = model.decision_function(X_test[:2000])
    same = all(np.array_equal(s, scores[1]) for s in scores.values())
    theirs, their_accuracy = "", ""
    if find_spec("sklearnex"):
        from sklearnex import svm as intel

        peer = intel.SVC(C=C, gamma=gamma, cache_size=CACHE)
        peer_seconds = timed(peer, X, y, TURNS)
        theirs = f"{peer_seconds:.2f} ({peer_seconds / seconds[threads[-1]]:.2f})"
        their_accuracy = f" / {100 * np.mean(peer.predict(X_test) == y_test):.2f}"
    speed = f"{seconds[1] / seconds[threads[-1]]:.1f}"
    accuracy = f"{100 * np.mean(model.predict(X_test) == y_test):.2f}{their_accuracy}"
    times = [f"{seconds[n]:.2f}" for n in threads]
    return [name, *times, speed, theirs, accuracy, "yes" if same else "NO"]


def fits() -> list[str]:
    head = ["", *(f"{n}" for n in numbers()), "speed-up"]
    head += ["intelex (its time / ours)", "accuracy, % (ours / intelex)", "same bits"]
    rows = []
    for name in SETS:
        rows.append(fit(name))
        print(rows[-1], flush=True)
    return [
        "Seconds of a fit to a relative duality gap of 1e-3 by number of threads; "
        f"scikit-learn-intelex on all {os.cpu_count()} cores, with {CACHE / 1000:g} GB of cache. "
        "C and gamma are 32 and 32 (covtype), 2 and .04, 8 and .04 (MNIST).",
        "",
        *table(head, rows),
    ]


def level() -> list[str]:
    X, y, X_test, _ = data.covtype()
    threads = numbers()
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
    speeds = [f"{best[threads[0]] / best[n]:.1f}" for n in threads]
    rows = [[str(n), f"{best[n]:.2f}", s] for n, s in zip(threads, speeds, strict=True)]
    return [
        f"covtype, {len(X)} rows, {level.n_clusters} clusters of up to {max(level.sizes)} rows, "
        f"C = 32, gamma = 32, relative gap 1e-3. Training of the level, best of {REPEATS} in "
        f"turns. Decision values {'have the same bits' if same else 'DIFFER'} for every number of "
        "threads.",
        "",
        *table(["threads", "seconds", "speed-up"], rows),
    ]


def main() -> None:
    parts = {"fits": fits, "level": level}
    titles = {"fits": "Threads in a whole fit", "level": "Threads on the bottom level"}
    for name in sys.argv[1:] or parts:
        write("kernel_threads", titles[name], parts[name](), part=name)


if __name__ == "__main__":
    main()
