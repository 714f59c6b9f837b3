"""One fit in a process of its own: ``python -m benchmarks.experiments.cell``, a cell on its input.

The last line of its output is the result.  The time limit is an alarm that nobody handles, so the
kernel ends the process wherever it is, in compiled code too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import MinMaxScaler

from benchmarks import data, prepared
from benchmarks.experiments.measures import MEASURES
from benchmarks.experiments.plan import Cell
from benchmarks.methods import make

WARM_ROWS = 200  # of a first fit, which loads code and libraries


def load(cell: Cell):
    """Rows to learn from and to be scored on, as the cell's stage has them."""
    parts = prepared.load(cell.data)
    if cell.rows or cell.test_rows:
        n, n_test = parts[0].shape[0], parts[2].shape[0]
        parts = data.sampled(parts, cell.rows or n, cell.test_rows or n_test, cell.seed)
    X, y, X_test, y_test = parts
    if cell.scale is not None:
        X, X_test = (Z.toarray() if sp.issparse(Z) else Z for Z in (X, X_test))
        scaler = MinMaxScaler(tuple(cell.scale), clip=True).fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    if cell.stage == "tune":
        X, X_test, y, y_test = data.held_out(X, y, seed=cell.seed)
    return X, y, X_test, y_test


def resident(kind: str) -> float | None:
    """Megabytes: "VmRSS" now, "VmHWM" at most since the last `forget_peak`; if the system tells."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(kind):
                return int(line.split()[1]) / 1024
    return None


def forget_peak() -> bool:
    """Whether it could be: not in every container."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def machine_load() -> float | None:
    """Processes that wanted a core in the last minute, ours too; if the system tells."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def warm_up(cell: Cell, X, y) -> None:
    """A small fit first, so that neither time nor memory is that of loading libraries."""
    rng = np.random.default_rng(0)
    rows = np.unique(np.concatenate([
        rng.choice(np.flatnonzero(y == label), 2) for label in np.unique(y)
    ] + [rng.choice(len(y), min(len(y), WARM_ROWS))]))  # fmt: skip
    with suppress(ValueError):  # too few rows for it: then its first fit is the one that counts
        make(cell.use, cell.parameters, cell.seed, cell.threads).fit(X[rows], y[rows])


def run(cell: Cell, limit: float) -> dict:
    """Fit, predict and measure."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    X, y, X_test, y_test = load(cell)
    signal.setitimer(signal.ITIMER_REAL, limit)
    warm_up(cell, X, y)
    model = make(cell.use, cell.parameters, cell.seed, cell.threads)
    forgotten = forget_peak()
    load_before = machine_load()
    before = resident("VmRSS")
    signal.setitimer(signal.ITIMER_REAL, limit)
    started = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0)
    peak = resident("VmHWM")
    begun = time.perf_counter()
    predicted = np.asarray(model.predict(X_test))
    ended = time.perf_counter()
    details: dict = {} if load_before is None else {"load": load_before}
    for name in cell.measure:
        details |= MEASURES[name](model, X, y, cell)
    return {
        "accuracy": float(np.mean(predicted == y_test)),
        "balanced_accuracy": float(balanced_accuracy_score(y_test, predicted)),
        "fit_seconds": fitted - started,
        "predict_seconds": ended - begun,
        "fit_megabytes": None if None in (peak, before) or not forgotten else peak - before,
        "peak_megabytes": peak,
        "train_rows": len(y),
        "scored_rows": len(y_test),
        "details": details,
    }


def main() -> None:
    order = json.load(sys.stdin)
    print(json.dumps(run(Cell(**order["cell"]), order["limit"])))


if __name__ == "__main__":
    main()
