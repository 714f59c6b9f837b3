"""Which fraction of one core's multiply-add peak does the 16-lane loop reach?

Counted: every row is read and the rows that move are written, rank x 16 multiply-adds per value
each (most rows move in a first sweep from zero).  The peak is measured, by a loop of
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
from widemargin.additive.learn import Settings, learn
from widemargin.additive.problem import LANES, BoxProblem, Layout, SharedProblem
from widemargin.additive.solver import ActiveSamples
from widemargin.additive.source import Values
from widemargin.engine import Control
from widemargin.losses import LOSSES
from widemargin.multiclass import Coding

PEAK = """
typedef float V __attribute__((vector_size(64)));
extern "C" float peak(long n) {
  V a0 = {1}, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0;
  const V m = a0 * 0.5f + 0.4f, c = a0 * 0.1f;
  for (long i = 0; i < n; ++i) {
    a0 = a0 * m + c; a1 = a1 * m + c; a2 = a2 * m + c; a3 = a3 * m + c; a4 = a4 * m + c;
    a5 = a5 * m + c; a6 = a6 * m + c; a7 = a7 * m + c; a8 = a8 * m + c; a9 = a9 * m + c;
    asm volatile("" : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4));
    asm volatile("" : "+v"(a5), "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9));
  }
  const V s = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9;
  return s[0] + s[15];
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
    return 10 * LANES * n / best


def first_sweep(X, y, rank) -> tuple[float, float]:
    """Best seconds of a sweep from zero over every row, and the share of rows that moved."""
    learned = learn(Values.of(X), np.ones(len(y)), Settings("chi2", rank=rank))
    diagonal = learned.diagonal()
    shared = SharedProblem.of(
        learned,
        Layout(LANES, np.float32),
        label=y,
        c=np.full(len(y), 1 / diagonal.mean()),
        kernel_diagonal=diagonal,
        bias_value=1.0,
        loss=LOSSES["squared_hinge"],
    )
    targets, best = Coding("ovr", 10).targets, np.inf
    for _ in range(4):
        problem = BoxProblem(shared, targets, shared.tables.weights(10))
        samples, rng = ActiveSamples(problem), np.random.default_rng(SEED)
        started = time.perf_counter()
        samples.sweep(rng, Control())
        best = min(best, time.perf_counter() - started)
    moved = np.count_nonzero(np.any(problem.coef != 0, axis=1))
    return best, moved / len(y)


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
        seconds, moved = first_sweep(X, y, rank)
        rate = (1 + moved) * rank * LANES * X.size / seconds
        lines.append(
            f"| {rank} | {seconds:.3f} | {1e9 * seconds / X.size / LANES:.3f} | {rate / 1e9:.1f} | "
            f"{100 * rate / peak:.0f} % |"
        )
    write("fma_peak", "The 16-lane loop against the multiply-add peak", lines)


if __name__ == "__main__":
    main()
