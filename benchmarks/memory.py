"""Peak memory growth during fit on a 60,000 x 784 uint8 array, each method in its own process."""

from __future__ import annotations

import resource
import subprocess
import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import table, write


def growth(method: str) -> float:
    """Mebibytes by which the peak resident size of a fresh process grows during fit."""
    out = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", method], capture_output=True, check=True
    )
    return float(out.stdout)


def child(method: str) -> None:
    from benchmarks.fashion_fit import additive, linear

    X, y, *_ = data.fashion()
    model = {"ours": additive(1.0), "linear": linear(0.0001)}[method].set_params(max_iter=5)
    warnings.simplefilter("ignore", ConvergenceWarning)  # five sweeps: the peak comes first
    model.fit(X[:500], y[:500])  # code and libraries are loaded before the measurement
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.fit(X, y)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def main() -> None:
    ours, linear = growth("ours"), growth("linear")
    rows = [["AdditiveSVC chi2", f"{ours:.1f}"], ["LinearSVC", f"{linear:.0f}"]]
    lines = table(["method", "growth of the peak, MiB"], rows)
    lines += ["", f"Ratio {ours / linear:.3f} (bar: at most 0.15)."]
    write("memory", "Memory during fit", lines)


if __name__ == "__main__":
    child(sys.argv[1]) if len(sys.argv) > 1 else main()
