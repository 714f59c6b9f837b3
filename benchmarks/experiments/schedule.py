"""Fits of many lines side by side: those of the first lines first, until the time is up."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from math import inf

from benchmarks.experiments import process
from benchmarks.experiments.plan import Cell
from benchmarks.experiments.runner import Line, Rows, Runner, Wave

NOTHING = Wave([])  # what a line waits for before it has begun


@dataclass(eq=False)
class _Place:
    """A line of a table, the fits it waits for, and what they came to (nothing yet: {})."""

    runner: Runner
    line: Line
    wave: Wave = NOTHING
    answers: Rows = field(default_factory=list)
    rows: Rows = field(default_factory=list)  # of the whole line, once it has ended
    ended: bool = False


class Schedule:
    """Runs what the runners' results do not have yet, ``jobs`` threads of fits at once.

    A fit has a process and its own number of threads, and waits until so many are free.  When
    ``budget`` seconds are over, fits that run are killed and forgotten: the next run has them.
    """

    def __init__(
        self,
        runners: Sequence[Runner],
        jobs: int = 1,
        budget: float = inf,
        stop: Callable[[], None] = process.stop,
    ):
        self.jobs, self.free, self.stop = jobs, jobs, stop
        self.until = time.monotonic() + budget
        self.places = [_Place(runner, line) for runner in runners for line in runner.lines()]
        self.waiting: list[tuple[int, int]] = []  # a heap of lines and fits, by their numbers
        self.running: dict[Future, tuple[int, int]] = {}

    def run(self) -> bool:
        """Whether every line has come to its end."""
        for k in range(len(self.places)):
            self._advance(k)
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                while (self.waiting or self.running) and self._left() > 0:
                    self._start(pool)
                    self._take(*wait(self.running, self._patience(), FIRST_COMPLETED))
            finally:
                self._end()
        return not self.open_lines()

    def open_lines(self) -> int:
        """How many have not come to their end."""
        return sum(not place.ended for place in self.places)

    def rows(self, runner: Runner) -> Rows:
        """Of the lines of one runner that have come to their ends."""
        return [row for place in self.places if place.runner is runner for row in place.rows]

    def _advance(self, k: int) -> None:
        """Ask a line for its next fits, as long as those that it wants are known."""
        place = self.places[k]
        while not place.ended and all(place.answers):
            try:
                place.wave = (
                    next(place.line) if place.wave is NOTHING else place.line.send(place.answers)
                )
            except StopIteration as end:
                place.rows, place.ended = end.value, True
                return
            place.answers = [place.runner.find(cell) or {} for cell in place.wave.cells]
            for i, answer in enumerate(place.answers):
                if not answer:
                    heapq.heappush(self.waiting, (k, i))

    def _start(self, pool: ThreadPoolExecutor) -> None:
        while self.waiting:
            place, cell, threads = self._fit_at(*self.waiting[0])
            if threads > self.free:
                return
            self.free -= threads
            future = pool.submit(place.runner.fit, cell, place.runner.experiment.limit)
            self.running[future] = heapq.heappop(self.waiting)

    def _take(self, done: set[Future], _: set[Future]) -> None:
        for future in done:
            k, i = self.running.pop(future)
            place, cell, threads = self._fit_at(k, i)
            self.free += threads
            place.answers[i] = place.runner.keep(cell, future.result(), place.wave.at_end)
            self._advance(k)

    def _fit_at(self, k: int, i: int) -> tuple[_Place, Cell, int]:
        """A line, one of the fits that it waits for, and the threads that this takes."""
        place = self.places[k]
        cell = place.wave.cells[i]
        return place, cell, min(cell.threads, self.jobs)

    def _left(self) -> float:
        return self.until - time.monotonic()

    def _patience(self) -> float | None:
        return None if self.until == inf else max(self._left(), 0.0)

    def _end(self) -> None:
        """Kill what runs: also a process that has just been started, which `stop` may miss."""
        while any(not future.done() for future in self.running):
            self.stop()
            wait(self.running, 0.1)
