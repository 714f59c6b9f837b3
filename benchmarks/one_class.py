"""OneClassSVM beside scikit-learn's: 100,000 rows in two dimensions, and covtype's rows.

Usage: python -m benchmarks.one_class [plane|covtype] [rows]

CPU seconds of one thread each, as other programs may run.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn import svm

from benchmarks import data
from benchmarks.report import SEED, table, write
from widemargin import OneClassSVM

ROWS = {"plane": 100_000, "covtype": 464_810}
GAMMA = {"plane": 1.0, "covtype": 8.0}
SHARES = {"plane": (0.01,), "covtype": (0.01,)}
MOST_THEIRS = 100_000  # rows above which scikit-learn's takes hours


def rows_of(name: str, n: int) -> np.ndarray:
    if name == "covtype":
        return data.covtype(n, SEED)[0]
    rng = np.random.default_rng(SEED)
    centres = rng.uniform(-4, 4, (5, 2))
    return centres[rng.integers(0, 5, n)] + rng.normal(size=(n, 2)) * rng.uniform(0.3, 1, (n, 1))


def measure(model, X) -> tuple[float, float, np.ndarray]:
    """CPU seconds of a fit, the share of rows outside, and what some rows are."""
    started = time.process_time()
    model.fit(X)
    seconds = time.process_time() - started
    label = model.predict(X[:10_000])
    return seconds, float(np.mean(label < 0)), label


def main(name: str, n: int) -> None:
    X, gamma, rows = rows_of(name, n), GAMMA[name], []
    for nu in SHARES[name]:
        how = {"nu": nu, "gamma": gamma}
        machines = {
            "OneClassSVM": OneClassSVM(**how, n_jobs=1, random_state=SEED),
            "OneClassSVM early": OneClassSVM(**how, early=True, n_jobs=1, random_state=SEED),
        }
        if n <= MOST_THEIRS:
            machines["scikit-learn"] = svm.OneClassSVM(**how, cache_size=2000)
        found = {}
        for kind, model in machines.items():
            found[kind] = measure(model, X)
            print(name, n, nu, kind, found[kind][:2], file=sys.stderr, flush=True)
        label = found["OneClassSVM"][2]
        for kind, (seconds, outside, own) in found.items():
            theirs = found["scikit-learn"][0] / seconds if "scikit-learn" in found else np.nan
            rows.append([f"{nu:g}", kind, f"{seconds:.1f}", f"{theirs:.0f}", f"{outside:.4f}",
                         f"{np.mean(own == label):.4f}"])  # fmt: skip
    columns = ["nu", "machine", "CPU s", "times as fast as scikit-learn", "share outside",
               "labels as the exact one"]  # fmt: skip
    title = f"One class: {name}, {n:,} x {X.shape[1]} rows, gamma = {gamma:g}"
    write("one_class", title, table(columns, rows), part=name)


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "plane"
    main(chosen, int(sys.argv[2]) if len(sys.argv) > 2 else ROWS[chosen])
