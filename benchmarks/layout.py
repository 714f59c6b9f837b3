"""Dense or compressed codes?  Time of a sweep by the share of values that are not zero."""

from __future__ import annotations

import numpy as np

from benchmarks.fma_peak import first_sweep
from benchmarks.report import SEED, write
from widemargin.additive import codes


def main() -> None:
    rng = np.random.default_rng(SEED)
    lines = ["| not zero | dense, s | compressed, s | ratio |", "|---|---|---|---|"]
    chosen = codes._DENSE_ENOUGH
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8):
        X = rng.integers(1, 256, (20_000, 784)).astype(np.uint8)
        X[rng.random(X.shape) > share] = 0
        y = rng.integers(0, 10, len(X))
        codes._DENSE_ENOUGH = 0.0
        dense, _ = first_sweep(X, y, 3)
        codes._DENSE_ENOUGH = 1.1
        compressed, _ = first_sweep(X, y, 3)
        lines.append(f"| {share:.0%} | {dense:.4f} | {compressed:.4f} | {dense / compressed:.2f} |")
    codes._DENSE_ENOUGH = chosen
    lines += ["", f"Rows are compressed below {chosen:.0%}: compressing costs time and memory too."]
    write("layout", "Dense or compressed rows", lines)


if __name__ == "__main__":
    main()
