"""Workers killed in the middle of every phase of a fit on a cluster: is the model the same?

Usage: python -m benchmarks.kills [repeats, default 1]

Two worker processes, which are started again when they die.  In every run a task of one phase kills
its worker by SIGKILL (traps.py), or all workers, at a moment that is given, not after some seconds.
Right is a model with the bits of the undisturbed one: decision values, gap, objective, iterations.
Kernel machines and batches of classes must have those of a fit without a cluster.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import LocalCluster
from sklearn.datasets import load_digits, make_blobs

from benchmarks.report import SEED, one_thread, table, write
from benchmarks.traps import BEGINS, ENDS, HALFWAY, SENT, Trap, TrappedClient
from widemargin import BlockStore
from widemargin.dask import AdditiveSVC, KernelSVC

WORKERS = PARTS = 2
ROWS_PER_CHUNK = 300
WITHIN = (BEGINS, HALFWAY, ENDS)
AROUND = (BEGINS, ENDS)  # of tasks that do nothing
HANDED_ON = {"_kept", "_first_state", "itemgetter(0)", "itemgetter(1)"}  # nothing is computed


@dataclass(frozen=True)
class Fit:
    """A machine, and data of which ``rows`` are decided on."""

    machine: Any
    parameters: dict
    data: tuple
    rows: np.ndarray
    alike: bool = True  # to the model without a cluster

    def on(self, client: Any) -> Any:
        return self.machine(**self.parameters, random_state=SEED, client=client).fit(*self.data)

    def here(self) -> Any:
        return self.machine._local_type(**self.parameters, random_state=SEED).fit(*self.data)

    def bits(self, model: Any) -> tuple:
        said = [model.n_iter_, model.duality_gap_, model.objective_]  # nan, of an early model
        return model.decision_function(self.rows).tobytes(), repr(said)


@dataclass(frozen=True)
class Phase:
    """What a fit does at some time: a task of this kind, and its number among them."""

    fit: str
    words: str
    task: str
    number: int = 0
    moments: tuple[str, ...] = (*WITHIN, SENT)

    @property
    def middle(self) -> str:
        """The moment to choose if there is to be one."""
        return HALFWAY if HALFWAY in self.moments else self.moments[-1]


ROUNDS, BATCHES = "AdditiveSVC, a store in parts", "AdditiveSVC, 40 classes"
EARLY, LEVELS = "early KernelSVC, a store", "KernelSVC, two classes"
PAIRS = "KernelSVC, pairs of a store"
PHASES = [
    Phase(ROUNDS, "parts sent out", "_kept", moments=AROUND),
    Phase(ROUNDS, "first states", "_first_state", moments=AROUND),
    Phase(ROUNDS, "sweep of the first round", "descend", moments=WITHIN),
    Phase(ROUNDS, "moves on their way", "itemgetter(1)", 4 * PARTS, moments=(SENT,)),
    Phase(ROUNDS, "states on their way", "itemgetter(0)", 9 * PARTS, moments=(SENT,)),
    Phase(ROUNDS, "states sent back", "_kept", PARTS, moments=AROUND),
    Phase(ROUNDS, "sweep of the 14th round", "descend", 13 * PARTS, moments=WITHIN),
    Phase(ROUNDS, "weights made afresh", "refresh", moments=WITHIN),
    Phase(ROUNDS, "certificate", "certify", moments=WITHIN),
    Phase(BATCHES, "batches of classes", "solve_batch"),
    Phase(EARLY, "rows sent to clusters", "assign_rows"),
    Phase(EARLY, "clusters of level 2", "solve_task level2", 3),
    Phase(EARLY, "clusters of level 1", "solve_task level1", 1),
    Phase(LEVELS, "clusters before the last pass", "solve_task level1", 1),
    Phase(PAIRS, "pairs of classes", "solve_task whole", 20),
]


def fits(folder: Path) -> dict[str, Fit]:
    """By name; stores are made in the folder, which workers see."""
    digits = load_digits(return_X_y=True)
    many = make_blobs(2000, n_features=8, centers=40, random_state=SEED)
    X, y = make_blobs(3000, n_features=8, centers=12, cluster_std=2.0, random_state=SEED)
    codes, values = (folder / name for name in ("codes", "values"))
    in_parts = {"kernel": "chi2", "tol": 0.025, "n_shards": PARTS}
    return {
        ROUNDS: Fit(AdditiveSVC, in_parts, (_store(codes, *digits),), digits[0], alike=False),
        BATCHES: Fit(AdditiveSVC, {"kernel": "chi2"}, many, many[0]),
        EARLY: Fit(KernelSVC, {"early": 1, "levels": 2}, (_store(values, X, y, "values"),), X),
        LEVELS: Fit(KernelSVC, {"levels": 1, "C": 4.0}, (X, y % 2), X),
        PAIRS: Fit(KernelSVC, {"levels": 0, "C": 4.0}, (BlockStore(values),), X),
    }


def _store(folder: Path, X: np.ndarray, y: np.ndarray, keep: str = "codes") -> BlockStore:
    begins = range(0, len(y), ROWS_PER_CHUNK)
    chunks = [(X[k : k + ROWS_PER_CHUNK], y[k : k + ROWS_PER_CHUNK]) for k in begins]
    block = ROWS_PER_CHUNK * X.shape[1]
    return BlockStore.build(folder, chunks, keep=keep, values_per_block=block)


@contextmanager
def two_workers() -> Iterator[TrappedClient]:
    """Two processes, which come back whenever they are killed.

    Some seconds after a worker was lost a LocalCluster gives up one that is not there; a worker
    that is killed twice within them is not there then.
    """
    own = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        LocalCluster(n_workers=WORKERS, **own) as cluster,
        TrappedClient(cluster) as client,
    ):
        yield client


class Runs:
    """Fits on a cluster, some of them disturbed, in folders of their own."""

    def __init__(self, client: TrappedClient, folder: Path):
        self._client, self._folder, self._numbers = client, folder, count()

    def run(self, fit: Fit, trap: Trap | None = None) -> tuple[tuple, Counter]:
        """The bits of the model, and how often each kind of task has begun."""
        own = self._folder / f"run{next(self._numbers)}"
        with self._client.watched(own, trap) as journal:
            model = fit.on(self._client)
        if any(own.glob("trap*")):
            raise AssertionError(f"Nobody was killed: {trap}")
        self._client.wait_for_workers(WORKERS, timeout=60)
        return fit.bits(model), Counter(journal.read_text().splitlines())


def computed(tasks: Counter) -> int:
    """Tasks that take time."""
    return sum(n for kind, n in tasks.items() if kind not in HANDED_ON)


def compare(phase: Phase, fit: Fit, undisturbed: tuple, runs: Runs, repeats: int) -> list[str]:
    """A line of the table: runs that were right, and tasks that they did more than once."""
    bits, tasks = undisturbed
    cells = []
    for everybody in (False, True):
        right, again, started = [], [], time.perf_counter()
        for moment in ((phase.middle,) if everybody else phase.moments) * repeats:
            found, done = runs.run(fit, Trap(phase.task, moment, phase.number, everybody))
            right.append(found == bits)
            again.append(computed(done) - computed(tasks))
        took = (time.perf_counter() - started) / len(right)
        cells += [f"{sum(right)} of {len(right)}", f"{min(again)} to {max(again)}", f"{took:.1f}"]
    return [phase.fit, phase.words, ", ".join(phase.moments), str(computed(tasks)), *cells]


def main(repeats: int = 1) -> None:
    one_thread()
    with tempfile.TemporaryDirectory() as folder, two_workers() as client:
        runs, ready, rows = Runs(client, Path(folder)), fits(Path(folder)), []
        undisturbed = {name: runs.run(fit) for name, fit in ready.items()}
        for name, fit in ready.items():
            if fit.alike and fit.bits(fit.here()) != undisturbed[name][0]:
                raise AssertionError(f"{name}: another model than without a cluster")
        for phase in PHASES:
            fit = ready[phase.fit]
            rows.append(compare(phase, fit, undisturbed[phase.fit], runs, repeats))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    killed = [[int(n) for n in cell.split(" of ")] for row in rows for cell in (row[4], row[7])]
    right, n_runs = np.sum(killed, axis=0)
    lines = [
        f"{right} of {n_runs} runs ended with the bits of the undisturbed model. A run each (or as "
        "many as the argument says) for every phase and moment: a task begins, is half way, ends, "
        "or its result is sent. Tasks: those that compute, and how many more were begun than "
        "without a kill; seconds of a run, with the start of a new worker.",
        "",
        *table(
            ["fit", "phase", "moment", "tasks", "a worker killed", "again", "s",
             "all workers killed", "again", "s"], rows,
        ),
    ]  # fmt: skip
    write("kills", "Workers killed in every phase of a fit", lines)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
