"""What to expect of 10, 100 and 1,000 workers: measured bytes and seconds, and simulated accidents.

Usage: python -m benchmarks.cluster

Measured here, on one core: a cluster of `KernelSVC`'s rows, a sweep of `AdditiveSVC` over a part of
a store, and the bytes that a round sends to a part and back.  How rounds grow with the number of
parts comes from results/parts.md (up to 8 parts, continued as a power).  Simulated is what a
cluster adds: workers that are slow, or lost with what they had, and one link for all weights.
"""

from __future__ import annotations

import heapq
import pickle
import re
import tempfile
import time
from dataclasses import dataclass

import numpy as np

from benchmarks import data
from benchmarks.report import RESULTS, SEED, one_thread, table, write
from widemargin import AdditiveSVC, BlockStore, KernelSVC
from widemargin.additive.rounds import Round, Shard, Weights, descend
from widemargin.dask import ROUNDS_KEPT

WORKERS = (10, 100, 1000)
ROWS_PER_CLUSTER = 5_000
CLUSTERS = 20_000
ROWS = 1_000_000_000  # of a store of covtype's 54 columns
REPEATS = 10


@dataclass(frozen=True)
class Accidents:
    """What happens on a cluster; all of it is assumed."""

    spread: float = 0.2  # of the logarithm of a task's seconds
    slow: float = 0.05  # share of workers that take `slower` times as long
    slower: float = 2.0
    hours_between: float = 200.0  # losses of one worker: 1,000 workers lose five in an hour
    restart: float = 60.0  # seconds until there is another one
    per_task: float = 1e-3  # seconds of the scheduler
    link: float = 1e9  # bytes a second, of the one client


def speeds(n: int, accidents: Accidents, rng: np.random.Generator) -> np.ndarray:
    """How many times as long each worker takes."""
    return np.where(rng.random(n) < accidents.slow, accidents.slower, 1.0)


def tasks_in_turn(
    seconds: float, n_tasks: int, n: int, accidents: Accidents, rng: np.random.Generator
) -> tuple[float, int]:
    """When the last of some independent tasks is done, and how many had to be done again."""
    slower = speeds(n, accidents, rng)
    free = [(0.0, k) for k in range(n)]
    lost_at = rng.exponential(3600 * accidents.hours_between, n)
    left, again, end, scheduler = n_tasks, 0, 0.0, 0.0
    while left:
        now, worker = heapq.heappop(free)
        scheduler = max(scheduler, now) + accidents.per_task
        done = scheduler + seconds * slower[worker] * np.exp(rng.normal(0, accidents.spread))
        left -= 1
        if lost_at[worker] < done:  # and the task is for somebody else
            left, again = left + 1, again + 1
            done = max(lost_at[worker], scheduler) + accidents.restart
            lost_at[worker] = done + rng.exponential(3600 * accidents.hours_between)
        else:
            end = max(end, done)
        heapq.heappush(free, (done, worker))
    return end, again


def rounds_together(
    seconds: float, n_bytes: int, n_rounds: int, n: int, accidents: Accidents, rng
) -> tuple[float, int]:
    """When as many rounds are done, of parts that wait for each other, and how many were lost."""
    slower, total, losses = speeds(n, accidents, rng), 0.0, 0
    exchange = n * (n_bytes / accidents.link + accidents.per_task)
    for k in range(n_rounds):
        own = seconds * slower * np.exp(rng.normal(0, accidents.spread, n))
        lost = rng.random(n) < (own + exchange) / (3600 * accidents.hours_between)
        # Its part begins again where all states were last kept; nobody goes on before it.
        own[lost] += accidents.restart + (k % ROUNDS_KEPT + 1) * seconds
        total, losses = total + own.max() + exchange, losses + int(lost.sum())
    return total, losses


def cluster_seconds() -> float:
    """One cluster of covtype's rows, to the default gap."""
    X, y, *_ = data.covtype(ROWS_PER_CLUSTER)
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        KernelSVC(C=32.0, gamma=32.0, random_state=SEED).fit(X, y)
        best = min(best, time.process_time() - started)
    return best


def part_of_a_round(n_rows: int = 100_000) -> tuple[float, int]:
    """Seconds for each row of a part's sweep, and bytes to it and back."""
    X, y, *_ = data.covtype(n_rows)
    with tempfile.TemporaryDirectory() as folder:
        machine = AdditiveSVC(random_state=SEED)
        store = BlockStore.build(folder, [(X, y)])
        training = machine._prepare_stored(store, None, None)
        _, shared = machine._shared_problem(training)
        part = Shard(shared, training.targets.coding.targets)
        told = Round(Weights.zeros(shared, part.targets.shape[1]), 10, SEED, True)
        best = np.inf
        for _ in range(3):
            started = time.process_time()
            _, move = descend(part, part.first_state, told)
            best = min(best, time.process_time() - started)
    return best / n_rows, len(pickle.dumps(told)) + len(pickle.dumps(move))


def rounds_of(n_shards: int) -> int:
    """Of covtype, as results/parts.md has them, continued as a power of the number of parts."""
    line = re.search(r"\| covtype.*classes \|(.*)\|", (RESULTS / "parts.md").read_text())
    assert line is not None
    found = [int(cell) for cell in line[1].split("|")]
    parts = 2 ** np.arange(len(found))
    slope, start = np.polyfit(np.log(parts[1:]), np.log(found[1:]), 1)
    return round(float(np.exp(start + slope * np.log(n_shards))))


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.{0 if seconds >= 600 else 1}f}"


def expected(seconds: float, per_row: float, n_bytes: int) -> list[list[str]]:
    accidents, rng, rows = Accidents(), np.random.default_rng(SEED), []
    for n in WORKERS:
        ideal = seconds * CLUSTERS / n
        runs = [tasks_in_turn(seconds, CLUSTERS, n, accidents, rng) for _ in range(REPEATS)]
        end, again = np.mean(runs, axis=0)
        n_rounds, sweep = rounds_of(n), per_row * ROWS / n
        rounds = [
            rounds_together(sweep, n_bytes, n_rounds, n, accidents, rng) for _ in range(REPEATS)
        ]
        total, losses = np.mean(rounds, axis=0)
        rows.append(
            [
                f"{n:,}",
                f"{minutes(ideal)}, {minutes(end)} ({ideal / end:.0%})",
                f"{again:.1f}",
                f"{n_rounds}",
                f"{sweep:.1f} + {n * (n_bytes / accidents.link + accidents.per_task):.2f}",
                f"{minutes(total)} ({losses:.1f} lost)",
            ]
        )
    return rows


def main() -> None:
    one_thread()
    seconds, (per_row, n_bytes) = cluster_seconds(), part_of_a_round()
    a = Accidents()
    heads = ["workers", "clusters, min", "repeated", "rounds", "s per round", "all rounds, min"]
    lines = [
        f"Measured: a cluster of {ROWS_PER_CLUSTER:,} rows takes {seconds:.2f} s, a sweep "
        f"{1e9 * per_row:.0f} ns a row, a round {n_bytes / 1e3:.0f} kB to a part and back.",
        "",
        f"Clusters: those of an early `KernelSVC`, {CLUSTERS:,} of them; minutes without and with "
        "accidents, and tasks done again. Rounds: `AdditiveSVC` to a gap of 1 % on a store of "
        f"{ROWS / 1e9:.0f} billion rows of 54 columns, a part for each worker; seconds of a sweep "
        "+ of the exchange, minutes with accidents, and workers lost meanwhile.",
        "",
        *table(heads, expected(seconds, per_row, n_bytes)),
        "",
        f"Assumed: the logarithm of a task's seconds spreads by {a.spread}, {a.slow:.0%} of "
        f"workers take {a.slower:g} times as long, each is lost every {a.hours_between:g} hours, "
        f"and there is another one after {a.restart:g} s; the scheduler takes "
        f"{1e3 * a.per_task:g} ms a task, and one client's link has {a.link / 1e9:g} GB/s. Means "
        f"of {REPEATS} simulations.",
    ]
    write("cluster", "What to expect of a cluster", lines)


if __name__ == "__main__":
    main()
