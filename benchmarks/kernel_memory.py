"""What takes the memory of an exact KernelSVC, and what less of it costs: covtype, C = gamma = 32.

Usage: python -m benchmarks.kernel_memory [rows, default 50000], or
       python -m benchmarks.kernel_memory whole [rows, default 464810], all rows within 2 GB

Every fit has a process of its own; peaks are of all that is resident, less what was before the fit.
Within 2 GB, the peak is that of the whole process, reading the data and libraries included, and a
larger one is an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np

from benchmarks import data
from benchmarks.eight_million import forget_peak, peak
from benchmarks.report import SEED, table, write
from widemargin import KernelSVC

CACHES = ("auto", "400", "100")  # megabytes
COVTYPE = 581_012
WHOLE = 464_810  # of these are to train with
LIMIT, CACHE = 2000, "1000"  # megabytes: of the process, and of its kernel rows


def measure(n_rows: int, cache: str) -> dict:
    X, y, *_ = data.covtype(n_rows)
    size = cache if cache == "auto" else float(cache)
    model = KernelSVC(C=32, gamma=32, tol=1e-2, cache_size=size, n_jobs=2, random_state=SEED)
    reading = peak()
    forget_peak()
    before, started = peak(), (time.process_time(), time.perf_counter())
    model.fit(X, y)
    seconds, wall = time.process_time() - started[0], time.perf_counter() - started[1]
    computed = sum(history[-1]["rows"] for history in model.history_)
    found = {"MB": peak() - before, "seconds": seconds, "gap": model.duality_gap_}
    found |= {"wall": wall, "MB of the process": max(reading, peak())}
    return {**found, "rows": computed, "support": len(model.support_), "steps": model.n_iter_}


def child(*arguments: str) -> dict:
    command = [sys.executable, "-m", "benchmarks.kernel_memory", *arguments]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def main(n_rows: int) -> None:
    rows, beside = [], []
    for n in (n_rows // 2, n_rows):
        for cache in CACHES:
            f = child(str(n), cache)
            print(n, cache, f, file=sys.stderr, flush=True)
            figures = [f"{f['MB']:.0f}", f"{f['seconds']:.0f}", f"{f['gap']:.2g}", str(f["rows"])]
            rows.append([f"{n:,}", cache, *figures, str(f["support"]), str(f["steps"])])
            if cache == CACHES[1]:  # smaller ones are not mapped one by one, and stay in the heap
                beside.append((n, f["MB"] - float(cache)))
    per_row, fixed = np.polyfit(*zip(*beside, strict=True), 1)
    expected = fixed + per_row * COVTYPE
    head = ["rows", "cache_size, MB", "MB of the fit", "s on cores", "gap", "kernel rows computed"]
    lines = table([*head, "support vectors", "steps"], rows)
    lines += [
        "",
        f"- Kernel rows are what takes memory. The rest is {fixed:.0f} MB and "
        f"{1e6 * per_row:.0f} bytes per row: the rows in single and in double precision, and "
        "variables.",
        f"- All {COVTYPE:,} rows take {expected:.0f} MB beside their kernel rows, so 2 GB leave "
        f"some {2000 - expected - 300:.0f} MB to these (300 MB are the libraries and X).",
    ]
    write("kernel_memory", "Memory of an exact KernelSVC", lines)


def whole(n_rows: int) -> None:
    """All rows within a limit."""
    f = child(str(n_rows), CACHE)
    if f["MB of the process"] > LIMIT:
        raise SystemExit(f"The process took {f['MB of the process']:.0f} MB of {LIMIT}.")
    head = ["rows", "cache_size, MB", "MB of the process (limit: 2000)", "s", "s on cores", "load"]
    cells = [f"{n_rows:,}", CACHE, f"{f['MB of the process']:.0f}", f"{f['wall']:.0f}"]
    cells += [f"{f['seconds']:.0f}", f"{os.getloadavg()[2]:.0f}", f"{f['gap']:.2g}", str(f["rows"])]
    head += ["gap", "kernel rows computed", "support vectors", "steps"]
    lines = ["Two threads; load is the machine's mean of the last 15 minutes, on 2 cores.", ""]
    lines += table(head, [[*cells, str(f["support"]), str(f["steps"])]])
    write("kernel_memory", "An exact KernelSVC within 2 GB", lines, "whole")


if __name__ == "__main__":
    if sys.argv[1:2] == ["whole"]:
        whole(int(sys.argv[2]) if len(sys.argv) > 2 else WHOLE)
    elif len(sys.argv) > 2:
        print(json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
