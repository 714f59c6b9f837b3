"""`python -m stress --minutes 2 --seed 0 [check ...]`: exits 1 when a promise is broken.

Checks take turns; each turn is a process of its own with a seed of its own, so that a crash or a
hang costs one turn and is a failure like any other.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from pathlib import Path

from stress import checks, report
from stress.hunt import CASE_SECONDS, Count, Hunt, died

CASES, SECONDS = 200, 5.0  # of a turn, at most
SEEDS = 1_000_000  # of a run: those of different runs do not meet
FORK = multiprocessing.get_context("fork")  # a turn begins with everything imported


@dataclass
class Turn:
    """A process that hunts for one check, from one seed."""

    check: str
    seed: int
    trace: Path
    answer: Connection
    process: BaseProcess

    @classmethod
    def begin(cls, check: str, seed: int, folder: Path, limit: tuple, *, isolated=False) -> Turn:
        trace = folder / f"{check}-{seed}"
        trace.touch()
        answer, send = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_hunt, args=(check, seed, trace, limit, isolated, send))
        process.start()
        send.close()
        return cls(check, seed, trace, answer, process)

    def hung(self) -> bool:
        return time.time() - self.trace.stat().st_mtime > CASE_SECONDS

    def end(self) -> Count | None:
        """What it found, or None if it died."""
        try:
            return self.answer.recv()
        except EOFError:
            return None
        finally:
            self.process.join()

    def kill(self) -> Count:
        self.process.kill()
        self.process.join()
        return self.lost("hung")

    def lost(self, how: str) -> Count:
        """What is known of a process that did not come back: the case it was at."""
        return Count(
            1, 0, 1, [died(self.check, self.trace.read_text().splitlines(), how, self.seed)]
        )


def _hunt(check: str, seed: int, trace: Path, limit: tuple, isolated: bool, send) -> None:
    send.send(Hunt(check, seed, trace, isolated=isolated).run(*limit))


Limits = tuple[str, int, int, float]  # check, seed, cases, seconds


def for_minutes(names: list[str], minutes: float, jobs: int, seed: int) -> Iterator[Limits]:
    """All checks in turn until time is up, and each at least once."""
    until = time.monotonic() + 60 * minutes
    share = min(SECONDS, 60 * minutes * jobs / len(names))
    for turn, name in enumerate(cycle(names)):
        left = until - time.monotonic()
        if left <= 0 and turn >= len(names):
            return
        yield name, SEEDS * seed + turn, CASES, min(share, max(left, 1.0))


def for_cases(names: list[str], n_cases: int, seed: int) -> Iterator[Limits]:
    """Each check once, however long it takes: the same cases on every machine."""
    for turn, name in enumerate(names):
        yield name, SEEDS * seed + turn, n_cases, math.inf


def run(turns: Iterator[Limits], names: list[str], jobs: int) -> report.Totals:
    """Turns, as many at once as there are jobs; the next is asked for when one has ended.

    Ctrl-C ends it with what has been counted.
    """
    totals = report.Totals({name: Count() for name in names})
    running: list[Turn] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            while True:
                for name, seed, *limit in islice(turns, jobs - len(running)):
                    limit = (*limit, totals.kinds)
                    running.append(Turn.begin(name, seed, Path(folder), limit))
                if not running:
                    break
                wait_for([turn.answer for turn in running], timeout=1.0)
                running = [turn for turn in running if not _ended(turn, totals)]
        except KeyboardInterrupt:
            for turn in running:
                turn.kill()
    return totals


def _ended(turn: Turn, totals: report.Totals) -> bool:
    if turn.answer.poll():
        found = turn.end()
        totals.add(turn.check, found or _shrunk_crash(turn, totals.kinds))
    elif turn.hung():
        totals.add(turn.check, turn.kill())
    else:
        return False
    return True


def _shrunk_crash(turn: Turn, kinds: set[str]) -> Count:
    """The same cases again, each in a process of its own, so that hypothesis sees the crash."""
    limit = (CASES, 10 * SECONDS, kinds)
    again = Turn.begin(turn.check, turn.seed, turn.trace.parent, limit, isolated=True)
    found = again.end()
    return found if found and found.failures else turn.lost(f"exit {turn.process.exitcode}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stress", description=__doc__)
    parser.add_argument("check", nargs="*", help=f"of {', '.join(checks.CHECKS)}; all by default")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--cases", type=int, help="of each check, however long they take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="a document whose table of counts to replace")
    told = parser.parse_args()
    unknown = [name for name in told.check if name not in checks.CHECKS]
    if unknown:
        parser.error(f"no check is called {unknown[0]!r}; there are {', '.join(checks.CHECKS)}")
    names = told.check or list(checks.CHECKS)
    if told.cases:
        turns, how = for_cases(names, told.cases, told.seed), f"{told.cases} cases"
    else:
        turns = for_minutes(names, told.minutes, told.jobs, told.seed)
        how = f"{told.minutes:g} minutes"
    totals = run(turns, names, told.jobs)
    print(totals.table())
    if told.write:
        report.write(told.write, totals, f"{how}, seed {told.seed}")
    return bool(totals.failed)


if __name__ == "__main__":
    sys.exit(main())
