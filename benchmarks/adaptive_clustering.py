"""What adaptive clustering gains (DC-SVM, section 4): centres from support vectors, or all rows.

``python -m benchmarks.adaptive_clustering`` divides two sets into 64, 16 and 4 clusters (or more:
large ones are split) and solves the whole, by turns with centres of upper levels from either.
"""

from __future__ import annotations

import os
from unittest import mock

import numpy as np

from benchmarks import data
from benchmarks.report import one_thread, table, write
from widemargin import KernelSVC
from widemargin.kernel import divide

ROWS, SEEDS = 20_000, (0, 1, 2)
SETS = {"covtype": (data.covtype, 32.0, 32.0), "ijcnn1": (data.ijcnn1_dense, 32.0, 2.0)}  # C, gamma
WAYS = ("support vectors", "all rows")


def of_all_rows(kernel, rows, k, _, *how, partition=divide.partition):
    return partition(kernel, rows, k, np.arange(len(rows)), *how)


def levels(way: str, X, y, C: float, gamma: float, seed: int) -> np.ndarray:
    """Of each: precision, recall and objective in per cent; clusters; seconds."""
    svc = KernelSVC(
        C=C, gamma=gamma, levels=3, early=False, clustering="kernel_kmeans", fit_intercept=False,
        record_levels=True, random_state=seed, n_jobs=1,
    )  # fmt: skip
    chosen = divide.partition if way == WAYS[0] else of_all_rows
    with mock.patch.object(divide, "partition", chosen):
        found = svc.fit(X, y).levels_
    near = np.array([(at.precision, at.recall, at.whole_objective) for at in found])
    rest = [(at.n_clusters, at.seconds_clustering, at.seconds_training) for at in found]
    return np.hstack([100 * near / [1, 1, near[-1, -1]], rest])


def main() -> None:
    rows = []
    for name, (load, C, gamma) in SETS.items():
        X, y, *_ = data.sampled(load(), ROWS, 1)
        every = np.array([[levels(way, X, y, C, gamma, s) for way in WAYS] for s in SEEDS])
        for level, left in enumerate("3210"):
            for way, found in zip(WAYS, every[:, :, level].swapaxes(0, 1), strict=True):
                cells = zip(found.min(axis=0), found.max(axis=0), strict=True)
                rows.append([name, left, way, *(f"{a:.3g} to {b:.3g}" for a, b in cells)])
    columns = ["data", "level", "centres from", "precision, %", "recall, %"]
    columns += ["objective, % of the final", "clusters", "clustering, s", "training, s"]
    text = [f"{ROWS:,} rows, one thread, least and largest of {len(SEEDS)} seeds. Others worked on"]
    text += [f"the machine (load {os.getloadavg()[0]:.1f} at the end).", ""]
    write("adaptive_clustering", "What adaptive clustering gains", text + table(columns, rows))


if __name__ == "__main__":
    one_thread()
    main()
