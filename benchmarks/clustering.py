"""Two-step kernel k-means of all of covtype's training rows, level by level, and an early model.

``python -m benchmarks.clustering`` clusters 464,810 rows into 256, 64, 16 and 4 clusters (or more:
large ones are split) on two threads, with centres of norm 1, plain means as DC-SVM prints them, and
k-means in input space; compares one look at all rows in single and in double precision; and fits
`papers.dcsvm_early()`.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, accuracy, alternate, table, write
from widemargin import papers
from widemargin.kernel.backend import Host
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.partition import kernel_kmeans, partition

ROWS, GAMMA, C, THREADS = 464_810, 32.0, 32.0, 2
WAYS = {"norm 1": "kernel_kmeans", "plain means": "plain_kernel_kmeans", "k-means": "kmeans"}


class DoubleOnly:
    """A router that knows no single precision."""

    def __init__(self, router):
        self.router = router

    def scores(self, rows, centres, *, double):
        return self.router.scores(rows, centres, double=True) if double else None


def clustered(kernel, rows, k: int, way: str, host: Host) -> list[str]:
    """Seconds, CPU seconds, clusters and the share of the largest."""
    started, cpu = time.perf_counter(), time.process_time()
    how = (1000, np.random.default_rng(SEED), host, WAYS[way])
    router, label = partition(kernel, rows, k, np.arange(len(rows)), *how)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    largest = 100 * np.bincount(label).max() / len(rows)
    return [f"{seconds:.2f}", f"{cpu:.2f}", str(router.n_clusters), f"{largest:.1f}"]


def precisions(kernel, rows, host: Host) -> list[str]:
    """CPU seconds of a look at all rows, by precision."""
    some = np.sort(np.random.default_rng(SEED).choice(len(rows), 1000, replace=False))
    router = kernel_kmeans(kernel, rows[some], 256, np.random.default_rng(SEED), host).by_centre()
    ways = {
        "single, where certain": lambda: host.nearest(router, rows),
        "double": lambda: host.nearest(DoubleOnly(router), rows),
    }
    seconds = alternate(ways, 3, time.process_time)
    shown = [[way, f"{s:.2f}"] for way, s in seconds.items()]
    return table(["a look at all rows, 256 centres", "CPU seconds"], shown)


def early(X, y, X_test, y_test) -> list[str]:
    started, cpu = time.perf_counter(), time.process_time()
    svc = papers.dcsvm_early(C=C, gamma=GAMMA, n_jobs=THREADS, random_state=SEED).fit(X, y)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    levels = [
        [f"level {at.level}, {at.n_clusters} clusters", f"{at.seconds_clustering:.1f}",
         f"{at.seconds_training:.1f}"]
        for at in svc.levels_
    ]  # fmt: skip
    lines = table(["`papers.dcsvm_early()`", "clustering, s", "training, s"], levels)
    found = f"{accuracy(svc, X_test, y_test)} % of the test rows are right"
    return [*lines, "", f"In all {seconds:.1f} s, {cpu:.1f} s of CPU; {found}."]


def main() -> None:
    X, y, X_test, y_test = data.covtype(ROWS)
    kernel = make_kernel("rbf", GAMMA, 0.0, 3, X)
    rows = kernel.prepare(X)
    with Host(THREADS) as host:
        lines = []
        for way in WAYS:
            for level in (4, 3, 2, 1):
                lines.append([way, str(level), *clustered(kernel, rows, 4**level, way, host)])
        looks = precisions(kernel, rows, host)
    columns = ["centres", "level", "seconds", "CPU seconds", "clusters", "largest, % of rows"]
    text = [
        f"{len(X):,} rows, {THREADS} threads; others worked on the machine, so that CPU seconds"
    ]
    text += ["say more than seconds.", "", *table(columns, lines), "", *looks, ""]
    text += early(X, y, X_test, y_test)
    write("clustering", "Clusters of covtype, two-step kernel k-means", text)


if __name__ == "__main__":
    main()
