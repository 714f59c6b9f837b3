"""Millions of digits, deformed as mnist8m was, on disk: AdditiveSVC and an early KernelSVC.

Usage: python -m benchmarks.eight_million [rows, default 200000 [rows of KernelSVC, default all]]

mnist8m (Loosli, Canu and Bottou, 2007) is MNIST with small random deformations: to an image are
added its derivatives along both axes, weighted by smooth random fields, and some of its edges,
which makes strokes thicker or thinner.  Here they come from a generator, chunk after chunk.  The
task is DC-SVM's: round digits (0, 3, 6, 8, 9) against the others, C = 1 and gamma = 2^-21 on pixels
from 0 to 255.

Each machine has a process of its own, which builds a store, fits it and is measured.  The folder
(in TMPDIR) is deleted at the end.  What was measured is kept in build/ as it comes, and the table
is made of what is there: after a stop, the same command goes on.  Seconds on cores are beside those
on the wall, which a busy machine makes longer.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks import data
from benchmarks.report import SEED, table, write
from widemargin import AdditiveSVC, BlockStore, KernelSVC

ROUND = [0, 3, 6, 8, 9]
ROWS_PER_CHUNK = 5000
FIELDS = 500  # smooth random fields, of which every image gets two
PIXELS = 1.5  # by which a field moves a pixel, in standard deviations
THICKER = 0.3  # of the edges that are added or taken off, likewise
N_TEST = 20_000
WHOLE = 8_000_000  # rows of mnist8m
KEPT = Path("build/eight_million")
PAPER = {"early KernelSVC": ("10,287", "99.85")}


def smooth_fields(rng: np.random.Generator) -> np.ndarray:
    fields = gaussian_filter(rng.normal(size=(FIELDS, 28, 28)), (0, 4, 4))
    fields /= fields.std(axis=(1, 2), keepdims=True)
    return fields.astype(np.float32)


def deformed(X: np.ndarray, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Images of 28 x 28 pixels, each with a deformation of its own."""
    images = X.reshape(-1, 28, 28).astype(np.float32)
    down, right = np.gradient(images, axis=(1, 2))
    one, two = fields[rng.integers(0, len(fields), (2, len(images)))]
    size = PIXELS * rng.normal(size=(2, len(images), 1, 1)).astype(np.float32)
    thicker = THICKER * rng.normal(size=(len(images), 1, 1)).astype(np.float32)
    images += size[0] * one * down + size[1] * two * right + thicker * np.hypot(down, right)
    return np.clip(images, 0, 255).astype(np.uint8).reshape(len(images), -1)


def chunks(n_rows: int, seed: int = SEED) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Deformed training digits, and whether each is a round one."""
    X, y, *_ = data.npz_pair("mnist.npz")
    rng = np.random.default_rng(seed)
    fields = smooth_fields(rng)
    for begin in range(0, n_rows, ROWS_PER_CHUNK):
        rows = rng.integers(0, len(X), min(ROWS_PER_CHUNK, n_rows - begin))
        yield deformed(X[rows], fields, rng), np.isin(y[rows], ROUND)


MACHINES = {
    "AdditiveSVC": (AdditiveSVC("chi2", tol=1e-2, n_jobs=2, random_state=SEED), "codes"),
    "early KernelSVC": (
        KernelSVC(C=1.0, gamma=2.0**-21, early=True, n_jobs=2, random_state=SEED),
        "values",
    ),
}


def peak() -> float:
    """Megabytes since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def seconds() -> np.ndarray:
    """On the wall, and on cores: of this process and of those that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return np.array([time.perf_counter(), sum(u.ru_utime + u.ru_stime for u in used)])


def measure(name: str, folder: str, n_rows: int) -> dict:
    """One machine, in this process."""
    model, keep = MACHINES[name]
    forget_peak()
    clock = [seconds()]
    store = BlockStore.build(folder, chunks(n_rows), keep=keep)
    clock.append(seconds())
    building = peak()
    print(name, "built:", *(clock[1] - clock[0]), file=sys.stderr, flush=True)
    forget_peak()
    model.fit(store)
    clock.append(seconds())
    fitting = peak()
    X, y = map(np.concatenate, zip(*chunks(N_TEST, SEED + 1), strict=True))
    *_, X_own, y_own = data.npz_pair("mnist.npz")
    right = np.isin(y_own, ROUND) == model.predict(X_own.reshape(len(X_own), -1))
    about = f"{model.n_iter_} sweeps"
    if isinstance(model, KernelSVC):
        level = model.levels_[-1]
        about = (
            f"{level.n_clusters} clusters of up to {max(level.sizes)}: "
            f"{level.seconds_clustering:.0f} s to find them, {level.seconds_training:.0f} s to "
            f"solve them, {len(model.support_)} support vectors"
        )
    return {
        "build": list(clock[1] - clock[0]),
        "fit": list(clock[2] - clock[1]),
        "load": os.getloadavg()[2],
        "MB": [building, fitting, store.nbytes / 1e6],
        "accuracy": [100 * float(np.mean(model.predict(X) == y)), 100 * float(right.mean())],
        "gap": model.duality_gap_,
        "about": about,
        "clusters": model.levels_[-1].n_clusters if isinstance(model, KernelSVC) else 0,
    }


def whole(n_clusters: float) -> list[str]:
    """What all rows would take that does not grow in proportion, worked out."""
    work = 2 * WHOLE * 784 * n_clusters / 1e12
    return [
        f"- Worked out for {WHOLE:,} rows in clusters like these: {n_clusters:,.0f} centres, "
        f"{work:.0f} TFLOP for each pass that compares every row with every centre, and "
        f"{784 * WHOLE / 1e9:.1f} GB in a store of values, as much again while clusters are "
        "written.",
    ]


def child(*arguments: str) -> dict:
    command = [sys.executable, "-m", "benchmarks.eight_million", *arguments]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(run.stdout)


def kept(name: str, n_rows: int) -> dict:
    """One machine in a process of its own, unless it was measured before."""
    path = KEPT / f"{name.replace(' ', '_')}_{n_rows}.json"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
            found = child(name, folder, str(n_rows))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
    print(name, path.read_text(), file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def main(n_rows: int, n_kernel: int | None = None) -> None:
    sizes = dict(zip(MACHINES, (n_rows, n_kernel or n_rows), strict=True))
    found = {name: kept(name, n) for name, n in sizes.items()}
    part = " ".join(str(n) for n in dict.fromkeys(sizes.values()))
    rows, below = [], min(sizes.values()) < WHOLE
    for name, f in found.items():
        times = WHOLE / sizes[name]
        clocks = [f"{wall:.0f} ({cpu:.0f})" for wall, cpu in (f["build"], f["fit"])]
        megabytes = [f"{mb:.0f}" for mb in f["MB"]]
        accuracy = [f"{a:.2f}" for a in f["accuracy"]]
        cells = [*clocks, f"{f['load']:.0f}", *megabytes, *accuracy, f"{f['gap']:.1g}"]
        hours = [f"{times * (f['build'][1] + f['fit'][1]) / 3600:.1f} h" if times > 1 else ""]
        cells += [*(hours if below else []), *PAPER.get(name, ("", ""))]
        rows.append([name, f"{sizes[name]:,}", *cells])
    head = ["", "rows", "building, s (on cores)", "fit, s (on cores)", "load"]
    head += ["MB building", "MB fitting", "MB on disk", "accuracy, %", "on MNIST's own test rows"]
    expected = [f"{WHOLE:,} on cores, in proportion"] if below else []
    head += ["gap", *expected, "paper, s", "paper, %"]
    lines = ["Rows of 784 bytes, two threads.", ""]
    lines += table(head, rows)
    lines += ["", *(f"- {name}: {f['about']}." for name, f in found.items())]
    lines += [
        "- Seconds are on the wall, and on cores; load is the machine's mean of the last 15 "
        "minutes of the fit, on 2 cores.",
        "- MB are peaks of all that is resident, libraries and mapped pages included.",
        f"- Accuracy is on {N_TEST:,} deformed training digits that were not trained on, as in the "
        "paper's random split, and on MNIST's own test digits.",
        "- The paper (Table 4, mnist8m, 8,000,000 rows): DC-SVM early; exact 71,823 s and 99.93 %, "
        "LIBSVM 298,900 s and 99.91 %.",
        *(whole(found["early KernelSVC"]["clusters"] * times) if below else []),
    ]
    write("eight_million", "Digits deformed as mnist8m was, from disk", lines, part)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in MACHINES:
        print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
    else:
        main(*map(int, sys.argv[1:] or ["200000"]))
