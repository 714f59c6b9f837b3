"""Fits larger than memory: pairs of MNIST's digits with noise, generated in a stream.

Usage: python -m benchmarks.out_of_core [limit in MB [MB of text, 200]], which writes the table,
       python -m benchmarks.out_of_core again, all but the large fit, whose figures stay, or
       python -m benchmarks.out_of_core text MB, which prints the speed of building alone

A process whose address space is limited (RLIMIT_AS: the limit, and what the libraries map before
anything is done) builds a store of 8 times the limit and fits it.  A second process fits the part
that fits in the limit from a store and from memory.  The page cache is warm unless it says cold:
then the blocks have been dropped from it (posix_fadvise) before every pass.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, kept_rows, table, write
from widemargin import AdditiveSVC, BlockStore, read, stream
from widemargin.additive.solver import ActiveSamples
from widemargin.data import write_svmlight

N_FEATURES = 2 * 784
ROWS_PER_CHUNK = 2500
TIMES = 8
BLOCKS_PER_LIMIT = 100
FITS = 4
SWEEPS = 3  # of a fit that count: later ones pass over rows that are at rest
TURNS = 5
LIMIT = "limit, MB beyond the libraries"
ROW_OF_TEXT = {"whole numbers": 10_400, "fractions": 20_700}  # bytes


def chunks(n_rows: int):
    """Two digits side by side with noise of a few grey values; is the first one odd?"""
    X, y, *_ = data.npz_pair("mnist.npz")
    rng = np.random.default_rng(SEED)
    for begin in range(0, n_rows, ROWS_PER_CHUNK):
        rows = rng.integers(0, len(X), (min(ROWS_PER_CHUNK, n_rows - begin), 2))
        noise = rng.integers(1, 9, (len(rows), N_FEATURES), dtype=np.uint8)
        yield np.minimum(X[rows].reshape(len(rows), -1), 240) + noise, y[rows[:, 0]] % 2


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6 * 1024


def machine(kernel: str = "chi2", **changes) -> AdditiveSVC:
    return AdditiveSVC(kernel, **{"tol": 1e-2, "random_state": SEED, **changes})


def large(folder: str, limit: float, n_rows: int) -> dict:
    """Build and fit a store under a limit of the address space."""
    next(chunks(10))
    machine().fit(*next(chunks(2000)))  # code and libraries are loaded before the limit
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (int(limit * 1e6) + mapped,) * 2)
    started = time.perf_counter()
    per_block = int(limit * 1e6 / BLOCKS_PER_LIMIT)
    store = BlockStore.build(folder, chunks(n_rows), values_per_block=per_block)
    built, building = time.perf_counter(), peak()
    model = machine().fit(store)
    return {
        "store": store.nbytes / 1e6,
        "bytes per value": store.nbytes / store.n_values,
        "building": built - started,
        "peak building": building,
        "fit": time.perf_counter() - built,
        "peak": peak(),
        "sweeps": model.n_iter_,
        "gap": model.duality_gap_,
    }


def sweeps(fit, folder: Path | None = None) -> tuple[list[float], AdditiveSVC]:
    """Seconds of every sweep of a fit; without the page cache if there is a folder to drop."""
    seconds: list[float] = []
    original = ActiveSamples.sweep

    def timed(samples, rng, control):
        if folder is not None:
            for path in folder.glob("block*"):
                descriptor = os.open(path, os.O_RDONLY)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
        started = time.perf_counter()
        account = original(samples, rng, control)
        seconds.append(time.perf_counter() - started)
        return account

    ActiveSamples.sweep = timed  # type: ignore[method-assign]
    try:
        return seconds, fit()
    finally:
        ActiveSamples.sweep = original  # type: ignore[method-assign]


def part(folder: str, n_rows: int) -> dict:
    """The part that fits: the same rows from a store and from memory."""
    store = BlockStore.build(folder, chunks(n_rows))
    X, y = map(np.concatenate, zip(*chunks(n_rows), strict=True))
    os.sync()  # what is not on the disk yet cannot be dropped
    best: dict[str, float] = {}
    for _ in range(FITS):  # in turns: the machine may be busy for a while
        cold, _ = sweeps(lambda: machine().fit(store), Path(folder))
        warm, stored = sweeps(lambda: machine().fit(store))
        memory, whole = sweeps(lambda: machine().fit(X, y))
        for name, seconds in (("cold", cold), ("warm", warm), ("memory", memory)):
            best[name] = min(best.get(name, np.inf), *seconds[:SWEEPS])
    return {
        "rows": n_rows,
        "sweeps": [stored.n_iter_, whole.n_iter_],
        "gap": [stored.duality_gap_, whole.duality_gap_],
        "objective": stored.objective_ / whole.objective_,
        **best,
    }


def write_text(path: Path, kind: str, megabytes: float) -> int:
    """About as much svmlight text; the number of its values."""
    X, y = map(np.concatenate, zip(*chunks(int(megabytes * 1e6 / ROW_OF_TEXT[kind])), strict=True))
    if kind == "fractions":  # of six digits
        X = np.round(X / 255 + np.random.default_rng(SEED).random(X.shape) * 0.01, 6)
    write_svmlight(str(path), X, y)
    return X.size


def clocks() -> np.ndarray:
    """Wall clock, and CPU of this process in user code and in the system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([time.perf_counter(), used.ru_utime, used.ru_stime])


def building(folder: Path, kind: str, megabytes: float) -> list[str]:
    """Reading svmlight text and making a store of it, in turns, the least of each."""
    path, store = folder / f"{kind}.svm", folder / "of text"
    n_values = write_text(path, kind, megabytes)
    best: dict[str, np.ndarray] = {}
    for _ in range(TURNS):
        for name, work in (
            ("read", lambda: read(path, n_jobs=2)),
            ("store", lambda: BlockStore.build(store, stream(path, n_jobs=2), n_jobs=2)),
        ):
            started = clocks()
            work()
            best[name] = np.minimum(best.get(name, np.inf), clocks() - started)
        shutil.rmtree(store)
    wall, cpu = ({name: found[part].sum() for name, found in best.items()} for part in (0, [1, 2]))
    return [
        f"{kind}, {path.stat().st_size / 1e6:.0f} MB, {n_values / 1e6:.1f} M values",
        *(f"{w:.2f}, {user:.2f} + {system:.2f}" for w, user, system in best.values()),
        ", ".join(f"{1e9 * seconds / n_values:.0f}" for seconds in cpu.values()),
        f"{wall['read'] / wall['store']:.2f}",
        f"{cpu['read'] / cpu['store']:.2f}",
    ]


def text_table(folder: Path, megabytes: float) -> list[str]:
    heads = ["text", "reading, s", "store, s", "ns a value", "speed by clock", "by CPU"]
    rows = [building(folder, kind, megabytes) for kind in ROW_OF_TEXT]
    return [
        "A store of svmlight text, against reading it, in two threads. Seconds are wall clock, CPU "
        "(user + system); then CPU of reading and of the store for each value, and the speed of "
        f"the store, of that of reading (bar: 0.5). The least of {TURNS} turns; load of the "
        f"machine {os.getloadavg()[0]:.0f}.",
        "",
        *table(heads, rows),
    ]


def one_at_a_time(folder: Path) -> list[list[str]]:
    """Sweeps to two gaps, with one block at a time and with four that are mixed."""
    X, y, *_ = data.npz_pair("mnist.npz")
    X, y = X[:10_000], y[:10_000] % 2
    per_block = X.size // 32
    store = BlockStore.build(folder / "small", [(X, y)], values_per_block=per_block)
    rows = []
    for name, at_once in (("one block at a time", 1), ("four, mixed", 4), ("in memory", 0)):
        found = []
        for tol in (1e-2, 1e-3):
            type(store.codes).at_once = at_once or 4  # type: ignore[misc]
            own = (store,) if at_once else (X, y)
            found.append(str(machine("intersection", tol=tol).fit(*own).n_iter_))
        rows.append([name, *found])
    return rows


def child(*arguments: str) -> dict:
    command = [sys.executable, "-m", "benchmarks.out_of_core", *arguments]
    # One arena: each thread would reserve 64 MB of addresses that it does not use.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
    return json.loads(run.stdout)


def larger_than_memory(folder: Path, limit: float, n_rows: int) -> list[list[str]]:
    big = child("large", str(folder), str(limit), str(n_rows))
    return [
        ["store, MB (limit times 8)", f"{big['store']:.0f}"],
        [LIMIT, f"{limit:.0f}"],
        ["bytes per value (bar: 2)", f"{big['bytes per value']:.2f}"],
        ["peak of building and fitting, MB, libraries included", f"{big['peak']:.0f}"],
        ["building, s", f"{big['building']:.0f}"],
        ["fit, s", f"{big['fit']:.0f}"],
        ["sweeps, relative gap", f"{big['sweeps']}, {big['gap']:.2g}"],
        ["load of the machine", f"{os.getloadavg()[2]:.0f}"],
    ]


def kept_facts() -> list[list[str]]:
    """What `larger_than_memory` found the last time."""
    return [cells for cells in kept_rows("out_of_core") if len(cells) == 2][1:]


def main(limit: float = 1000, megabytes: float = 200, facts: list | None = None) -> None:
    n_rows = int(TIMES * limit * 1e6 / N_FEATURES)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        facts = facts or larger_than_memory(folder / "large", limit, n_rows)
        small = child("part", str(folder / "part"), str(n_rows // (2 * TIMES)))
        load = os.getloadavg()[1]
        text = text_table(folder, megabytes)
        mixed = one_at_a_time(folder)
    same = [
        ["sweeps", *map(str, small["sweeps"])],
        ["relative gap", *(f"{gap:.3g}" for gap in small["gap"])],
        ["s per sweep, warm", f"{small['warm']:.3f}", f"{small['memory']:.3f}"],
        ["s per sweep, cold", f"{small['cold']:.3f}", ""],
    ]
    lines = [f"Pairs of digits, {n_rows} x {N_FEATURES} bytes, two classes, chi2, tol 0.01:", ""]
    lines = [f"Limit {limit:.0f} MB (its argument).", "", *lines]
    lines += [*table(["", "larger than memory"], facts), ""]
    lines += [f"The part that fits, {small['rows']} rows; load of the machine {load:.0f}:", ""]
    lines += [*table(["", "from a store", "in memory"], same), ""]
    lines += [
        f"Objectives agree to {abs(small['objective'] - 1):.1g}. A sweep (the least of "
        f"{FITS * SWEEPS}) takes "
        f"{small['warm'] / small['memory']:.2f} (warm) and {small['cold'] / small['memory']:.2f} "
        "(cold) times that in memory (bar: 2).",
        "",
        *text,
        "",
        "Sweeps to a relative gap, 10,000 digits in 32 blocks, intersection kernel:",
        "",
        *table(["", "0.01", "0.001"], mixed),
    ]
    write("out_of_core", "Fits larger than memory", lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["large"]:
        print(json.dumps(large(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))))
    elif sys.argv[1:2] == ["text"]:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
            print(*text_table(Path(name), float(sys.argv[2])), sep="\n")
    elif sys.argv[1:2] == ["part"]:
        print(json.dumps(part(sys.argv[2], int(sys.argv[3]))))
    elif sys.argv[1:2] == ["again"]:
        facts = kept_facts()
        main(float(dict(facts)[LIMIT]), facts=facts)
    else:
        main(*map(float, sys.argv[1:]))
