"""Loading a model of about 100 MB with all checks, from the page cache.

An RBF model of dense float32 vectors and an additive model of many features and classes; NumPy's
`np.load` of the same bytes is the floor.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.report import SEED, alternate, write
from widemargin import AdditiveSVC, KernelSVC, load, save


def kernel_model():
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((25_000, 2000), dtype=np.float32)
    y = rng.integers(2, size=len(X))  # nothing to learn: nearly every row is a support vector
    return KernelSVC(C=1e-3, gamma=1e-3, tol=0.5, n_jobs=2).fit(X, y)


def additive_model():
    rng = np.random.default_rng(SEED)
    X = rng.random((300, 100_000), dtype=np.float32)
    return AdditiveSVC("chi2", rank=4, tol=0.5, random_state=SEED).fit(X, np.arange(300) % 64)


def compare(name: str, model, folder: Path) -> str:
    path, floor = folder / "model.safetensors", folder / "floor.npy"
    save(model, path)
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    np.save(floor, content)
    seconds = alternate({"load": lambda: load(path), "np.load": lambda: np.load(floor)}, 5)
    size = len(content) / 1e6
    return (
        f"| {name} | {size:.0f} | {seconds['load']:.3f} | {size / seconds['load']:.0f} | "
        f"{size / seconds['np.load']:.0f} |"
    )


def main() -> None:
    lines = [
        "Bar: 300 MB/s with validation.",
        "",
        "| model | MB | load, s | MB/s | np.load of as many bytes, MB/s |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        lines.append(compare("KernelSVC, 25,000 x 2,000", kernel_model(), Path(folder)))
        lines.append(compare("AdditiveSVC, 100,000 features", additive_model(), Path(folder)))
    write("model_load", "Loading models", lines)


if __name__ == "__main__":
    main()
