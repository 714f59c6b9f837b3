"""This tree against another commit: the same fits, reads and peaks of memory, in turns.

Each tree has a process with its own virtual environment, which waits for a workload's name on a
pipe; data is loaded and a warm-up run before anything is timed.  The workloads use public names
only, so that they run on both trees; settings are those of the scripts they are named after.

``python -m benchmarks.compare_commits OTHER [--quick] [NAME ...]``: OTHER is a checkout with a
``.venv`` in it; NAME picks some of the workloads; --quick takes few rows, to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.model_load import kernel_model
from benchmarks.parse import long_decimals, sector
from benchmarks.report import SEED, write
from widemargin import AdditiveSVC, BlockStore, KernelSVC, load, read, save

HERE = Path(__file__).parents[1]
QUICK_ROWS = 2000
REPEATS = 5
BAR = 1.03
Task = Callable[[], object]


def fit(model, problem: Callable, quick: bool) -> Task:
    X, y, *_ = problem()
    rows = np.random.default_rng(SEED).permutation(X.shape[0])[: QUICK_ROWS if quick else None]
    X, y = (X[rows], y[rows]) if quick else (X, y)
    return partial(model.fit, X, y)


def additive(kernel: str, C: float) -> AdditiveSVC:
    return AdditiveSVC(kernel, C=C, tol=0.01, random_state=SEED)


def general(C: float, gamma: float, intercept: bool = False) -> KernelSVC:
    return KernelSVC(C=C, gamma=gamma, fit_intercept=intercept, n_jobs=2, random_state=SEED)


def parse(make: Callable[[Path], None], n_jobs: int, quick: bool) -> Task:
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "data.txt")
    make(path)
    if quick:
        text = path.read_bytes()[:1_000_000]
        path.write_bytes(text[: text.rindex(b"\n") + 1])
    return partial(read_in, folder, n_jobs)


def read_in(folder: tempfile.TemporaryDirectory, n_jobs: int) -> None:
    read(Path(folder.name, "data.txt"), n_jobs=n_jobs)


def store(quick: bool) -> Task:
    """Fashion-MNIST as blocks of codes, in a folder of its own each time."""
    X, y, *_ = data.fashion()
    chunks = [(X[a : a + 5000], y[a : a + 5000]) for a in range(0, 5000 if quick else len(X), 5000)]

    def build() -> None:
        with tempfile.TemporaryDirectory() as folder:
            BlockStore.build(Path(folder, "store"), chunks)

    return build


def loading(model: Callable, quick: bool) -> Task:
    """A model of model_load.py; each tree loads what it has saved."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "model.safetensors")
    save(model(), path)
    return partial(_load, folder)


def _load(folder: tempfile.TemporaryDirectory) -> None:
    load(Path(folder.name, "model.safetensors"))


WORKLOADS: dict[str, Callable[[bool], Task]] = {
    "fashion_fit": partial(fit, additive("chi2", 4.0), data.fashion),
    "news20, counts": partial(fit, additive("chi2", 1.0), data.news20),
    "news20, tf-idf": partial(fit, additive("linear", 1.0), data.news20_tfidf),
    "sector": partial(fit, additive("linear", 9.0), data.sector),
    "covtype, 30,000 rows": partial(fit, general(32.0, 32.0), partial(data.covtype, 30_000)),
    "ijcnn1": partial(fit, general(32.0, 2.0, intercept=True), data.ijcnn1_dense),
    "MNIST, round digits": partial(fit, general(8.0, 0.04), data.mnist_round),
    "parse sector, one thread": partial(parse, sector, 1),
    "parse sector, two threads": partial(parse, sector, 2),
    "parse 17 digits, one thread": partial(parse, long_decimals, 1),
    "parse 17 digits, two threads": partial(parse, long_decimals, 2),
    "store of fashion": store,
    "load a model of 107 MB": partial(loading, kernel_model),
}
MEMORY = "memory"


def growth(quick: bool) -> float:
    """Mebibytes by which the peak of a fresh process grows during five sweeps (see memory.py)."""
    X, y, *_ = data.fashion()
    model = additive("chi2", 1.0).set_params(max_iter=5)
    model.fit(X[:500], y[:500])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.fit(*((X[:QUICK_ROWS], y[:QUICK_ROWS]) if quick else (X, y)))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def serve(quick: bool) -> None:
    """The waiting process: a workload's name in, its seconds (or mebibytes) out, a line each."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    ready: dict[str, Task] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name == MEMORY:
            print(growth(quick), flush=True)
            continue
        if name not in ready:
            ready.clear()  # one data set at a time
            ready[name] = WORKLOADS[name](quick)
            ready[name]()  # warm-up
        started = time.perf_counter()
        ready[name]()
        print(time.perf_counter() - started, flush=True)


class Worker:
    """One tree's process.  The workloads are this tree's, the package is its own."""

    def __init__(self, tree: Path, quick: bool):
        command = [str(tree / ".venv/bin/python"), "-m", "benchmarks.compare_commits", "--serve"]
        self.process = subprocess.Popen(
            [*command, *(["--quick"] if quick else [])],
            cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, name: str) -> float:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{name} failed in {self.process.args}")
        return float(answer)

    def stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def compare(trees: dict[str, Path], name: str, repeats: int, quick: bool) -> dict[str, float]:
    """The best of each tree, in turns; a process that did not run the workload yet warms up."""
    workers = {tree: Worker(path, quick) for tree, path in trees.items()}
    best = {tree: float("inf") for tree in trees}
    for turn in range(1 if name == MEMORY else repeats):
        order = list(workers) if turn % 2 == 0 else list(workers)[::-1]
        for tree in order:
            best[tree] = min(best[tree], workers[tree].run(name))
    for worker in workers.values():
        worker.stop()
    return best


def commit(tree: Path) -> str:
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty", "--abbrev=7"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(other: Path, names: list[str], quick: bool) -> None:
    trees, repeats = {"old": other, "new": HERE}, 2 if quick else REPEATS
    lines = [
        f"Old is commit {commit(other)}, new {commit(HERE)}; best of {repeats} after a warm-up, in "
        f"turns, each in its own process. Bar: a ratio of at most {BAR}.",
        "",
        "| workload | old | new | new / old |",
        "|---|---|---|---|",
    ]
    for name in names or [*WORKLOADS, MEMORY]:
        best = compare(trees, name, repeats, quick)
        unit = "MiB" if name == MEMORY else "s"
        ratio = best["new"] / best["old"] if best["old"] else float("nan")
        lines.append(
            f"| {name} | {best['old']:.3f} {unit} | {best['new']:.3f} {unit} | {ratio:.3f} |"
        )
        print(lines[-1], flush=True)
    if not quick:
        write("compare_commits", "This tree against another commit", lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=Path, help="another checkout, with a .venv")
    parser.add_argument("names", nargs="*", help="some of: " + ", ".join([*WORKLOADS, MEMORY]))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.quick)
    elif arguments.other is None:
        parser.error("name the other checkout")
    else:
        main(arguments.other.resolve(), arguments.names, arguments.quick)
