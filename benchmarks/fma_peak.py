"""Which fraction of one core's multiply-add peak does the 16-lane loop reach?

Counted: the first sweep from zero moves every sample, so a dense sweep does
2 (read, write) x rank x 16 multiply-adds per value.  The peak is measured, by a loop of
independent multiply-adds on registers, compiled here.  Bytes: the weights (features x rank x 64)
pass through the second-level cache once per row, read and written; the codes are one byte per
value.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, write
from widemargin import AdditiveSVC
from widemargin.additive.solver import LANES, Data, _no_shrinking
from widemargin.duality import N_SUMS

PEAK = """
typedef float V __attribute__((vector_size(64)));
extern "C" float peak(long n) {
  V a[12];
  for (int k = 0; k < 12; ++k) for (int l = 0; l < 16; ++l) a[k][l] = k + l;
  V m = a[1] * 1e-9f + 0.999f, c = a[2] * 1e-9f;
  for (long i = 0; i < n; ++i) {
    for (int k = 0; k < 12; ++k) a[k] = a[k] * m + c;
    asm volatile("" : "+x"(a[0]), "+x"(a[5]), "+x"(a[11]));
  }
  float s = 0;
  for (int k = 0; k < 12; ++k) for (int l = 0; l < 16; ++l) s += a[k][l];
  return s;
}
"""


def peak_per_second() -> float:
    """Multiply-adds per second of independent register chains, best of several."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "peak.cpp", Path(folder) / "peak.so"
        source.write_text(PEAK)
        command = ["g++", "-O3", "-march=native", "-Wno-psabi", "-shared", "-fPIC"]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        run = ctypes.CDLL(str(library)).peak
        run.restype = ctypes.c_float
        n, best = 20_000_000, np.inf
        for _ in range(5):
            started = time.perf_counter()
            run(ctypes.c_long(n))
            best = min(best, time.perf_counter() - started)
    return 12 * 16 * n / best


def first_sweep(X, y, rank) -> float:
    """Best seconds of a sweep from zero over every row."""
    model = AdditiveSVC("chi2", rank=rank, random_state=SEED)
    model._check_params()
    prepared = model._prepare(X, y, None)
    n, best = len(y), np.inf
    c = np.full(n, 1 / prepared.diagonal.mean())
    d = Data.of(prepared.codes, prepared.tables, LANES, np.float32, c, prepared.diagonal, 1.0, True)
    order = np.random.default_rng(SEED).permutation(n).astype(np.int32)
    for _ in range(4):
        problem = model._problems(d, prepared, d.tables.weights(10), None)[0]
        account, shrunk = np.zeros((N_SUMS, LANES)), np.zeros(n, np.uint8)
        started, at = time.perf_counter(), 0
        while at < n:
            at = problem.sweep(order, at, _no_shrinking(10), shrunk, account)
        best = min(best, time.perf_counter() - started)
        assert np.all(np.any(problem.alpha != 0, axis=1)), "every row must have moved"
    return best


def main() -> None:
    X, y, *_ = data.fashion()
    peak = peak_per_second()
    lines = [
        f"Measured peak of one core: {peak / 1e9:.1f} G multiply-adds per second.",
        "",
        "Fashion-MNIST, 60,000 x 784 dense codes, 10 classes in 16 lanes:",
        "",
        "| rank | sweep, s | ns per value and lane | G multiply-adds/s | of the peak (bar 35 %) |",
        "|---|---|---|---|---|",
    ]
    for rank in (1, 2, 3, 4, 8, 16):
        seconds = first_sweep(X, y, rank)
        rate = 2 * rank * LANES * X.size / seconds
        lines.append(
            f"| {rank} | {seconds:.3f} | {1e9 * seconds / X.size / LANES:.3f} | {rate / 1e9:.1f} | "
            f"{100 * rate / peak:.0f} % |"
        )
    write("fma_peak", "The 16-lane loop against the multiply-add peak", lines)


if __name__ == "__main__":
    main()
