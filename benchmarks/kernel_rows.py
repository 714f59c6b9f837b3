"""Kernel rows per second against the matrix product alone (sgemm), two threads.

512 rows against all training rows, in tiles of 1,024 columns: with NumPy's float32 product only
(the floor for dense data), and as the solver computes them, exponential included.
"""

from __future__ import annotations

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, alternate, write
from widemargin.kernel.backend import Host
from widemargin.kernel.cache import TILE_ROWS
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.rows import CompressedRows


def compare(name, X, gamma) -> str:
    X = np.ascontiguousarray(X[:60_000], dtype=np.float32)
    kernel = make_kernel("rbf", gamma, 0.0, 3, X)
    rows = kernel.training_rows(X, np.arange(len(X)))
    chosen = np.sort(np.random.default_rng(SEED).choice(len(X), TILE_ROWS, replace=False))
    out = np.zeros((TILE_ROWS, len(X)), dtype=np.float32)
    some = np.ascontiguousarray(X[chosen])
    with Host(2) as host:

        def product(begin, end):
            np.matmul(some, X[begin:end].T, out=out[:, begin:end])

        def values():
            left = kernel.as_left(rows[chosen])
            host.tiles(len(X), lambda b, e: kernel.fill(left, rows[b:e], out[:, b:e]), kernel.tile)

        tasks = {"sgemm": lambda: host.tiles(len(X), product), "ours": values}
        seconds = alternate(tasks, 10)
    layout = "compressed" if isinstance(rows, CompressedRows) else "dense"
    per = {k: 1e9 * s / out.size for k, s in seconds.items()}
    return (
        f"| {name} | {X.shape[1]} | {np.count_nonzero(X) / X.size:.2f} | {layout} | "
        f"{TILE_ROWS / seconds['ours']:.0f} | {per['ours']:.2f} | {per['sgemm']:.2f} | "
        f"{100 * seconds['sgemm'] / seconds['ours']:.0f} |"
    )


def main() -> None:
    lines = [
        "| data | features | non-zeros | layout | rows/s | ns per value | sgemm alone, ns | "
        "sgemm / ours, % (bar 50) |",
        "|---|---|---|---|---|---|---|---|",
        compare("covtype", data.covtype()[0], 32.0),
        compare("ijcnn1", data.ijcnn1_dense()[0], 2.0),
        compare("MNIST", data.mnist_round()[0], 0.02),
        compare("Fashion-MNIST", data.fashion()[0].reshape(60_000, -1) / 255, 0.02),
    ]
    write("kernel_rows", "Kernel rows", lines)


if __name__ == "__main__":
    main()
