"""Two Dask workers with one thread each against one process with one thread, on covtype.

Usage: python -m benchmarks.dask_workers [rows, default 464810 [turns, default 3]]

Both machines to the same certified gap: AdditiveSVC from a store in parts of its rows, early
KernelSVC from an array and from a store of values.  Fits run in turns.  Seconds on the wall are the
least of some turns.  On a busy machine they say little, so what must be done one after the other is
there too, in seconds on cores of the threads that compute: all of one process; of the cluster, the
client's and those of the worker that has most to do.  Dask's own threads are not counted: they take
some of a core in every second, whether there is work or not.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import widemargin
from benchmarks import data
from benchmarks.report import SEED, one_thread, table, write
from widemargin import BlockStore
from widemargin.dask import AdditiveSVC, KernelSVC

ROWS, TURNS = 464_810, 3
WORKERS = 2
BAR = 1.4
ROWS_PER_CHUNK = 10_000
ADDITIVE = {"kernel": "chi2", "tol": 1e-2, "random_state": SEED}
EARLY = {"C": 32, "gamma": 32, "early": True, "random_state": SEED}


def stores(folder: Path, X, y) -> tuple[BlockStore, BlockStore]:
    """Of codes and of values."""
    begins = range(0, len(y), ROWS_PER_CHUNK)
    found = []
    for keep in ("codes", "values"):
        chunks = ((X[k : k + ROWS_PER_CHUNK], y[k : k + ROWS_PER_CHUNK]) for k in begins)
        found.append(BlockStore.build(folder / keep, chunks, keep=keep))
    return found[0], found[1]


def fits(codes: BlockStore, values: BlockStore, X, y, client: Client) -> dict:
    """By name: in one process, and on workers."""
    return {
        "AdditiveSVC, a store": (
            lambda: widemargin.AdditiveSVC(**ADDITIVE, n_jobs=1).fit(codes),
            lambda: AdditiveSVC(**ADDITIVE, client=client).fit(codes),
        ),
        "early KernelSVC, an array": (
            lambda: widemargin.KernelSVC(**EARLY, n_jobs=1).fit(X, y),
            lambda: KernelSVC(**EARLY, n_jobs=1, client=client).fit(X, y),
        ),
        "early KernelSVC, a store": (
            lambda: widemargin.KernelSVC(**EARLY, n_jobs=1).fit(values),
            lambda: KernelSVC(**EARLY, n_jobs=1, client=client).fit(values),
        ),
    }


def on_cores(client: Client) -> np.ndarray:
    """Seconds of the threads that compute: of this one, and of each worker's."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    theirs = [client.submit(time.thread_time, workers=[w], pure=False) for w in workers]
    return np.array([time.thread_time(), *client.gather(theirs)])


def measure(fit: Callable, client: Client) -> tuple[Any, float, np.ndarray]:
    before, started = on_cores(client), time.perf_counter()
    model = fit()
    wall = time.perf_counter() - started
    return model, wall, on_cores(client) - before


def alternate(pair: tuple[Callable, Callable], client: Client, turns: int) -> list[tuple]:
    """Model, least seconds on the wall, and on cores those of the turn with the shortest way."""
    best: list[tuple] = [(None, np.inf, np.full(1 + WORKERS, np.inf))] * 2
    for _ in range(turns):
        for k, fit in enumerate(pair):
            model, wall, cpu = measure(fit, client)
            shorter = in_turn(cpu) < in_turn(best[k][2])
            best[k] = (model, min(wall, best[k][1]), cpu if shorter else best[k][2])
    return best


def in_turn(cpu: np.ndarray) -> float:
    """Seconds that cannot pass at the same time: the client's, and the busiest worker's."""
    return float(cpu[0] + cpu[1:].max())


def compared(name: str, best: list[tuple]) -> list[list[str]]:
    (one, alone, cpu), (two, shared, spread) = best
    workers = ", ".join(f"{s:.2f}" for s in sorted(spread[1:], reverse=True))
    ratios = [f"{alone / shared:.2f}", f"{in_turn(cpu) / in_turn(spread):.2f}"]
    first = ["1 process", f"{one.duality_gap_:.2g}", f"{alone:.2f}", f"{cpu[0]:.2f}", "", "", ""]
    second = [f"{WORKERS} workers", f"{two.duality_gap_:.2g}", f"{shared:.2f}", f"{spread[0]:.2f}"]
    return [[name, *first], ["", *second, workers, *ratios]]


def about(name: str, model) -> str:
    if isinstance(model, widemargin.AdditiveSVC):
        return f"- {name}: {model.n_iter_} rounds of 2 parts."
    level = model.levels_[-1]
    return (
        f"- {name}: {level.n_clusters} clusters, found in {level.seconds_clustering:.1f} s, solved "
        f"in {level.seconds_training:.1f} s (wall, last turn)."
    )


def main(n_rows: int = ROWS, turns: int = TURNS) -> None:
    one_thread()
    X, y, *_ = data.covtype(None if n_rows == ROWS else n_rows)
    rows, said = [], []
    with (
        tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder,
        LocalCluster(WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        codes, values = stores(Path(folder), X, y)
        for name, pair in fits(codes, values, X, y, client).items():
            best = alternate(pair, client, turns)
            rows += compared(name, best)
            said.append(about(name, best[1][0]))
            print(*rows[-2:], said[-1], sep="\n", file=sys.stderr, flush=True)
    heads = ["fit", "", "gap", "s wall", "s on cores", "of workers", "faster, wall"]
    lines = [
        f"covtype, {len(y):,} rows, two classes; the least of {turns} (its second argument); "
        f"load of the machine {os.getloadavg()[1]:.0f}. Faster: of the wall, and of seconds on "
        f"cores that cannot pass at the same time (bar: {BAR:g}).",
        "",
        *table([*heads, "on cores"], rows),
        "",
        *said,
    ]
    write("dask_workers", "Two Dask workers against one process", lines)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
