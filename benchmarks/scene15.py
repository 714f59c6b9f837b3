"""Fifteen scenes from photographs to labels: 100 training images a class, five splits.

    python -m benchmarks.scene15 ablation   what each setting changes, on the split of the files
    python -m benchmarks.scene15 machines   seconds of fits on the histograms of the best
    python -m benchmarks.scene15            five splits of the features of ICD, and of the best

The protocol of ICD's Table 3 and of Lazebnik et al. (2006).  A codebook is learned from 500 of the
1,500 training images of each split, without their labels.  ICD and the linear SVM choose C from
three values by three-fold cross-validation on the training rows of the first split.  Seconds are
those of the processor, with one thread.  Counts and codebooks are kept in build/scene15.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.competitors.libsvm import LibsvmHIK
from benchmarks.data import folder
from benchmarks.photographs import MACHINES, best_C, count, fitted, icd, kept, scaled_linear, spread
from benchmarks.report import one_thread, table, write
from widemargin import AdditiveSVC
from widemargin.vision import (
    BagOfVisualWords,
    Codebook,
    DenseSIFT,
    Images,
    SpatialPyramid,
    icd_words,
    read_images,
)

N_SPLITS, PER_CLASS = 5, 100
KEPT = Path("build/scene15")


def words(n: int = 400, step: int = 8, *, root: bool = True, edges: bool = False):
    """Return words of patches of three sizes."""
    sift = DenseSIFT(step, sides=(16, 24, 32), root=root)
    return BagOfVisualWords(sift, Codebook(n), SpatialPyramid(), edges=edges)


BEST = "400 words, of edges too, patches of 16, 24 and 32, square roots"
PIPELINES = {BEST: lambda: words(edges=True), "ICD's: 200 words, patches of 16": icd_words}
ABLATION = {
    "ICD's: 200 words, patches of 16, every 8 pixels": icd_words,
    "400 words, patches of 16, 24 and 32": lambda: words(root=False),
    "square roots of descriptors": words,
    "words of edges too": lambda: words(edges=True),
}
FEWER = 3  # codebooks are of every third training image
SMALL = (50, 30)  # images of a class that the ablation learns from, and that it is tested on
FIXED = {"ICD": 1e-3, "linear": 1e-5, "linear, scaled": 1e-2}  # C of the ablation


@cache
def photographs() -> tuple[Images, np.ndarray, int]:
    """Return all images, their labels, and how many the file has for training."""
    images = read_images(folder() / "scene15.tar")
    parts = np.array([name.split("/")[:2] for name in images.names])
    order = np.argsort(parts[:, 0] == "test", kind="stable")
    return images.subset(order), parts[order, 1], int((parts[:, 0] == "train").sum())


def training_rows(y: np.ndarray, split: int, n_first: int) -> np.ndarray:
    """Return the numbers of training images; the first split is that of the files."""
    if split == 0:
        return np.arange(n_first)
    rng = np.random.default_rng(split)
    each = (rng.permutation(np.flatnonzero(y == label))[:PER_CLASS] for label in np.unique(y))
    return np.concatenate(list(each))


def ablation() -> None:
    """Measure each line on some images of the split of the files."""
    images, y, n = photographs()
    parts = [np.arange(n), np.arange(n, len(y))]
    chosen = [
        np.concatenate([rows[y[rows] == label][:most] for label in np.unique(y)])
        for rows, most in zip(parts, SMALL, strict=True)
    ]
    n, few = len(chosen[0]), images.subset(chosen[0][::FEWER])
    bags = {
        name: kept(KEPT / "ablation" / f"{name}.safetensors", make(), few)
        for name, make in ABLATION.items()
    }
    rows = np.concatenate(chosen)
    counts, y = count(bags, images.subset(rows), KEPT / "ablation"), y[rows]
    lines = []
    for name, X in counts.items():
        line = [name, f"{X.shape[1]:,}", f"{X.nnz / len(y):,.0f}"]
        for machine, C in FIXED.items():
            model, seconds = fitted(machine, C, X[:n], y[:n])
            line.append(f"{100 * model.score(X[n:], y[n:]):.1f}")
            print(name, machine, line[-1], f"{seconds:.1f}", flush=True)
        lines.append(line)
    head = ["features", "counts", "not 0", *(f"{machine}, %" for machine in FIXED)]
    text = [
        *table(head, lines),
        "",
        f"{SMALL[0]} training and {SMALL[1]} test images a class; a line adds to the one above it.",
        "The standard error of an accuracy is about 2 points. C: "
        + ", ".join(f"{C:g} ({machine})" for machine, C in FIXED.items()) + ".",
    ]  # fmt: skip
    write("scene15", "Fifteen scenes: what each setting changes", text, "ablation")


def splits() -> None:
    """Measure five splits of each pipeline."""
    images, y, n = photographs()
    training = [training_rows(y, split, n) for split in range(N_SPLITS)]
    rows, notes = [], []
    for k, (name, make) in enumerate(PIPELINES.items()):
        place = KEPT / f"pipeline {k}"
        bags = {
            f"split {s}": kept(
                place / f"split {s}.safetensors",
                make(),
                images.subset(own[::FEWER]),
            )
            for s, own in enumerate(training)
        }
        counts = count(bags, images, place)
        X, own = counts["split 0"], training[0]
        Cs = {machine: best_C(machine, X[own], y[own]) for machine in MACHINES}
        reached: dict[str, list[float]] = {machine: [] for machine in MACHINES}
        for s, own in enumerate(training):
            X, rest = counts[f"split {s}"], np.setdiff1d(np.arange(len(y)), own)
            for machine, C in Cs.items():
                model, seconds = fitted(machine, C, X[own], y[own])
                reached[machine].append(100 * model.score(X[rest], y[rest]))
                print(name, s, machine, C, f"{reached[machine][-1]:.2f} {seconds:.1f}", flush=True)
        gaps = [np.mean(reached["ICD"]) - np.mean(reached[m]) for m in list(MACHINES)[1:]]
        rows.append([name, *map(spread, reached.values()), *(f"{gap:+.1f}" for gap in gaps)])
        notes.append(", ".join(f"{C:g} ({machine})" for machine, C in Cs.items()))
    head = ["features, in 31 windows", *(f"{m}, %" for m in MACHINES), "ICD - linear", "- scaled"]
    lines = [
        *table(head, rows),
        "",
        f"Means and deviations over {N_SPLITS} splits of {PER_CLASS} training images a class, the",
        "others for the test; a codebook for every split, from its training images. Counts are the",
        "same for all machines; the scaled ones are divided by their largest values in training.",
        "C is the best of three in three-fold cross-validation on the training rows of the first",
        f"split: {'; '.join(notes)}. The paper prints 81.9 % for ICD and 75.3 % for",
        "LIBLINEAR, on the words of a codebook that cannot be had.",
    ]
    write("scene15", "Fifteen scenes, from photographs", lines)


def machines() -> None:
    """Time fits on the histograms of the best features, after `splits` has made them."""
    images, y, n = photographs()
    make = PIPELINES[BEST]
    place = KEPT / f"pipeline {list(PIPELINES).index(BEST)}"
    bag = kept(place / "split 0.safetensors", make(), images.subset(range(0, n, FEWER)))
    X = count({"split 0": bag}, images, place)["split 0"]
    test = slice(n, None, 3)
    rows = []
    for name, machine in {
        "ICD, C = 0.001": icd(1e-3),
        "AdditiveSVC, intersection": AdditiveSVC("intersection", random_state=0),
        "LIBLINEAR, scaled counts, C = 0.01": scaled_linear(1e-2),
        "LIBSVM, kernel matrix of the intersection, C = 0.001": LibsvmHIK(1e-3),
    }.items():
        given = X.toarray() if isinstance(machine, LibsvmHIK) else X
        began = time.process_time()
        machine.fit(given[:n], y[:n])
        seconds = time.process_time() - began
        rows.append([name, f"{seconds:.1f}", f"{100 * machine.score(given[test], y[test]):.1f}"])
        print(*rows[-1], flush=True)
    lines = [
        *table(["machine", "fit, s of a processor", "accuracy, %"], rows),
        "",
        f"{n:,} training rows of {X.shape[1]:,} counts, {X.nnz / len(y):,.0f} of them not 0; every",
        "third test image. One fit each. LIBSVM's seconds include its kernel matrix.",
    ]
    write("scene15", "Fifteen scenes: machines on the same histograms", lines, "machines")


def main() -> None:
    one_thread()
    {"ablation": ablation, "machines": machines}.get(" ".join(sys.argv[1:]), splits)()


if __name__ == "__main__":
    main()
