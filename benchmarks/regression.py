"""KernelSVR and KernelSVC beside scikit-learn's SVR: covtype's elevation from all other features.

Usage: python -m benchmarks.regression [rows, default 30000]

Features are in [0, 1], the elevation has mean 0 and spread 1.  CPU seconds of one thread each, as
other programs may run; every fit of ours in a process of its own, for its peak of memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks import data
from benchmarks.eight_million import forget_peak, peak
from benchmarks.report import SEED, table, write

ROWS = 30_000
TESTED = 10_000
SETTINGS = [(1.0, 0.1, 4.0), (10.0, 0.1, 8.0), (10.0, 0.3, 8.0)]  # C, epsilon, gamma


def elevation(n_rows: int):
    """Training and test rows: the first column from the others."""
    X, _, X_test, _ = data.covtype(n_rows, SEED)
    X_test = X_test[:TESTED]
    mean, spread = float(X[:, 0].mean()), float(X[:, 0].std())
    y, y_test = ((np.asarray(A[:, 0], float) - mean) / spread for A in (X, X_test))
    return X[:, 1:], y, X_test[:, 1:], y_test


def machine(name: str, C: float, epsilon: float, gamma: float):
    if name == "SVR":
        from sklearn.svm import SVR

        return SVR(C=C, epsilon=epsilon, gamma=gamma, cache_size=2000)
    from widemargin import KernelSVC, KernelSVR

    if name == "KernelSVC":
        return KernelSVC(C=C, gamma=gamma, n_jobs=1, random_state=SEED)
    early = name.endswith("early")
    how = {"epsilon": epsilon, "gamma": gamma, "early": early}
    return KernelSVR(C=C, **how, n_jobs=1, random_state=SEED)


def measure(name: str, n_rows: int, C: float, epsilon: float, gamma: float) -> dict:
    X, y, X_test, y_test = elevation(n_rows)
    target = y > 0 if name == "KernelSVC" else y
    model = machine(name, C, epsilon, gamma)
    forget_peak()
    before, started = peak(), time.process_time()
    model.fit(X, target)
    seconds, memory = time.process_time() - started, peak() - before
    found = {"seconds": seconds, "MB": memory, "support": len(model.support_)}
    if name != "KernelSVC":
        error = model.predict(X_test) - y_test
        found["RMSE"] = float(np.sqrt(np.mean(error**2)))
    return found


def child(*arguments: str) -> dict:
    command = [sys.executable, "-m", "benchmarks.regression", "one", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(n_rows: int) -> None:
    rows = []
    for C, epsilon, gamma in SETTINGS:
        how = (str(n_rows), str(C), str(epsilon), str(gamma))
        found = {}
        for name in ("KernelSVR", "KernelSVR early", "KernelSVC", "SVR"):
            found[name] = child(name, *how)
            print(how, name, found[name], file=sys.stderr, flush=True)
        for name, f in found.items():
            ratio = found["SVR"]["seconds"] / f["seconds"]
            cells = [f"{f['seconds']:.1f}", "" if name == "KernelSVC" else f"{ratio:.1f}"]
            rmse = f"{f['RMSE']:.4f}" if "RMSE" in f else ""
            rows.append([str(C), str(epsilon), str(gamma), name, *cells, f"{f['MB']:.0f}",
                         str(f["support"]), rmse])  # fmt: skip
    columns = ["C", "epsilon", "gamma", "machine", "CPU s", "times as fast as SVR", "MB",
               "support vectors", "RMSE"]  # fmt: skip
    write(
        "regression",
        f"Regression: covtype's elevation from the other 53 features, {n_rows:,} rows",
        [*table(columns, rows), "", "KernelSVC is the same rows with two classes, above and below "
         "the mean, for the memory."],
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        name, n, *numbers = sys.argv[2:]
        print(json.dumps(measure(name, int(n), *map(float, numbers))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
