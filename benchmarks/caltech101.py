"""Caltech 101 from photographs to labels: 15 and 30 training images a class.

    python -m benchmarks.caltech101            the first split
    python -m benchmarks.caltech101 5          so many splits

PmSVM's protocol (section 5.4): at most 20 test images a class.  The codebook of a split is learned
from its 15 training images a class.  Images are those of the file, reduced to a longest side of
220 pixels, where the papers have 300.  C is not tuned.  Counts and codebooks are kept in
build/caltech101.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.data import folder
from benchmarks.photographs import count, fitted, kept, mean_recall, spread
from benchmarks.report import one_thread, table, write
from benchmarks.scene15 import words
from widemargin.vision import read_images

TRAINING, N_TEST = (15, 30), 20
MACHINES = {"ICD": 1e-3, "linear, scaled": 1e-2}  # and their C
KEPT = Path("build/caltech101")
STEPS = {
    "400 words, patches of 16, 24 and 32, every 6": lambda: words(root=False),
    "1,000 words, every 4, square roots": lambda: words(1000, 4),
    "of edges too": lambda: words(1000, 4, edges=True),
}


def places(labels: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Return the numbers of a split's images: the first 15 of a class, 15 more, and the test."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[int]] = {"15": [], "30": [], "test": []}
    for label in np.unique(labels[~np.char.startswith(labels, "BACKGROUND")]):
        own = rng.permutation(np.flatnonzero(labels == label))
        most = max(TRAINING)
        for name, some in (("15", own[:15]), ("30", own[15:most]), ("test", own[most:])):
            found[name].extend(some[:N_TEST].tolist())
    return {name: np.array(rows) for name, rows in found.items()}


def main() -> None:
    one_thread()
    images = read_images(folder() / "caltech101.tar")
    n_splits = int((sys.argv[1:] or ["1"])[0])
    reached: dict[tuple, list[float]] = {}
    for split in range(n_splits):
        parts = places(images.labels, split)
        rows = np.concatenate(list(parts.values()))
        y, first = images.labels[rows], images.subset(parts["15"])
        place, own = KEPT / f"split {split}", len(parts["15"])
        bags = {
            name: kept(place / f"{name}.safetensors", make(), first) for name, make in STEPS.items()
        }
        test = slice(len(rows) - len(parts["test"]), None)
        for name, X in count(bags, images.subset(rows), place).items():
            for machine, C in MACHINES.items():
                for n, end in zip(TRAINING, (own, test.start), strict=True):
                    model, seconds = fitted(machine, C, X[:end], y[:end])
                    found = mean_recall(model, X[test], y[test])
                    reached.setdefault((name, machine, n), []).append(found)
                    print(split, name, machine, n, f"{found:.2f} {seconds:.1f}", flush=True)
    page(reached, n_splits)


def page(reached: dict[tuple, list[float]], n_splits: int) -> None:
    head = ["features, in 31 windows", *(f"{m}, {n} a class" for m in MACHINES for n in TRAINING)]
    rows = [
        [name, *(spread(reached[name, machine, n]) for machine in MACHINES for n in TRAINING)]
        for name in STEPS
    ]
    lines = [
        *table(head, rows),
        "",
        f"Mean accuracy of 101 classes in percent, {n_splits} split(s), at most {N_TEST} test",
        "images of a class; a line adds to the one above. The linear SVM's counts are divided by",
        "their largest values in training. "
        + ", ".join(f"C {m}: {C:g}" for m, C in MACHINES.items()),
        "PmSVM's Table 3 has 72.2 % for PmSVM-HI and 68.4 % for LIBLINEAR, with 15 images a class.",
    ]
    write("caltech101", "Caltech 101, from photographs", lines)


if __name__ == "__main__":
    main()
