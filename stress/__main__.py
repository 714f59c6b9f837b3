"""`python -m stress --minutes 2 --jobs 2 --seed 0 [check ...]`: exits 1 when a promise is broken.

Checks take turns; each turn is a process of its own with a seed of its own, so that a crash or a
hang costs one turn and is a failure like any other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, cycle
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from pathlib import Path

from stress import checks, report
from stress.hunt import CASE_SECONDS, Count, Hunt, died

CASES, SECONDS = 200, 5.0  # of a turn, at most
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


def run(names: list[str], minutes: float, jobs: int, seed: int) -> report.Totals:
    """All checks in turn until time is up, and each at least once."""
    totals = report.Totals({name: Count() for name in names})
    until = time.monotonic() + 60 * minutes
    share = min(SECONDS, 60 * minutes * jobs / len(names))
    todo, first_round = _turns(names, seed), len(names)
    with tempfile.TemporaryDirectory() as folder:
        running: list[Turn] = []
        while running or first_round > 0 or time.monotonic() < until:
            left = until - time.monotonic()
            while len(running) < jobs and (left > 0 or first_round > 0):
                limit = (CASES, min(share, max(left, 1.0)), totals.kinds)
                running.append(Turn.begin(*next(todo), Path(folder), limit))
                first_round -= 1
            wait_for([turn.answer for turn in running], timeout=1.0)
            running = [turn for turn in running if not _ended(turn, totals)]
    return totals


def _turns(names: list[str], seed: int) -> Iterator[tuple[str, int]]:
    """Seeds of different runs do not meet: each has a million turns."""
    return zip(cycle(names), count(1_000_000 * seed))


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
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="a document whose table of counts to replace")
    told = parser.parse_args()
    unknown = [name for name in told.check if name not in checks.CHECKS]
    if unknown:
        parser.error(f"no check is called {unknown[0]!r}; there are {', '.join(checks.CHECKS)}")
    totals = run(told.check or list(checks.CHECKS), told.minutes, told.jobs, told.seed)
    print(totals.table())
    if told.write:
        report.write(told.write, totals, f"{told.minutes:g} minutes, seed {told.seed}")
    return bool(totals.failed)


if __name__ == "__main__":
    sys.exit(main())
