"""Progress on a terminal (duality gap of a fit, folds of a search), and Ctrl-C.

The number of epochs of a fit is unknown, but gaps shrink by factors, so progress is measured on
a logarithmic scale.  The time left is shown only where the number of tasks is fixed.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from widemargin.progress import FitStopper

_ENOUGH = 4  # finished tasks before a time left is estimated


def way(gap: float, first: float, tol: float) -> float:
    """Return progress from 0 (the first gap) to 1 (the tolerance), on a logarithmic scale.

    >>> [round(way(gap, 1.0, 1e-4), 2) for gap in (1.0, 0.1, 1e-3, 1e-4, 1e-5)]
    [0.0, 0.25, 0.75, 1.0, 1.0]
    """
    if not (gap > tol and math.isfinite(gap)):
        return 1.0 if gap <= tol else 0.0
    return max(0.0, 1 - math.log(gap / tol) / math.log(max(first, gap) / tol))


@dataclass
class Part:
    """The tasks of one level, which run at the same time."""

    name: str
    kind: str  # of its tasks
    n: int
    tol: float
    started: float = field(default_factory=time.monotonic)
    _gaps: dict[int, list[float]] = field(default_factory=dict)  # of each task: first and last
    _done: set[int] = field(default_factory=set)
    _furthest: float = 0.0

    def begin(self, task: int) -> None:
        self._gaps = {**self._gaps, task: []}  # another thread may be reading

    def tell(self, task: int, gap: float | None) -> None:
        if gap is not None and math.isfinite(gap):
            self._gaps[task] = [*self._gaps[task][:1], gap]

    def end(self, task: int) -> None:
        if task in self._gaps:
            self._done.add(task)

    @property
    def n_done(self) -> int:
        return len(self._done)

    @property
    def way(self) -> float:
        """Return the progress of all tasks; never decreases, though gaps may grow."""
        running = (gaps for task, gaps in self._gaps.items() if gaps and task not in self._done)
        ways = sum(way(gaps[-1], gaps[0], self.tol) for gaps in running)
        self._furthest = max(self._furthest, (self.n_done + ways) / max(self.n, 1))
        return self._furthest

    def said(self, now: float) -> str:
        """Return tasks, gap, and the time left or, if unknown, spent."""
        several = "batches" if self.kind == "batch" else f"{self.kind}s"
        words = [f"{self.n_done} of {self.n} {several}"] if self.n > 1 else []
        gaps = [g[-1] for task, g in self._gaps.items() if g and task not in self._done]
        if gaps:
            words.append(f"gap {max(gaps):.2g}, to reach {self.tol:g}")
        return ", ".join([*words, spent_or_left(now - self.started, self.n_done, self.n)])


def spent_or_left(seconds: float, done: int, n: int) -> str:
    """Return the estimated time left for n tasks, or the time spent if too few are done."""
    if done < _ENOUGH or done == n:
        return f"{clock(seconds)} so far"
    return f"about {clock(seconds / done * (n - done))} left"


def clock(seconds: float) -> str:
    """
    >>> clock(7.4), clock(75), clock(3700)
    ('7 s', '1:15 min', '1:01 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


_TASKS = ("batch", "cluster", "problem")  # tasks with epochs


class FitBar:
    """A callback that draws a line for the running part of a fit.

    A fit of `AdditiveSVC` has one part, made of batches; a fit of `KernelSVC` has a part of
    clusters for each level and a part of problems for all rows.
    """

    def __init__(self, line: Line | NoLine):
        self._line, self._lock = line, threading.Lock()
        self._part = Part("", "", 1, 1.0)
        self._part_context: Any = None

    def setup(self, estimator, context) -> None:
        self._line.show(Part(type(estimator).__name__, "", 1, float(estimator.tol)))

    def teardown(self, estimator, context) -> None:
        pass

    def on_fit_task_begin(self, estimator, context) -> None:
        kind = context.task_name.partition(" ")[0]
        if kind not in _TASKS:
            return
        with self._lock:
            if context.parent is not self._part_context:
                self._part_context = context.parent
                where = {"fit": "", "level 0": ", all rows"}
                part = where.get(context.parent.task_name, f", {context.parent.task_name}")
                n, tol = context.parent.max_subtasks, float(estimator.tol)
                self._part = Part(f"{type(estimator).__name__}{part}", kind, n, tol)
                self._line.show(self._part)
            self._part.begin(context.task_id)

    def on_fit_task_end(self, estimator, context) -> None:
        with self._lock:
            if context.parent is self._part_context and self._part_context is not None:
                self._part.end(context.task_id)
            elif context.task_name == "epoch" and context.parent.parent is self._part_context:
                self._part.tell(context.parent.task_id, context.gap)


class SearchBar:
    """Draws a line for a search, with the time left, as the number of folds is fixed."""

    def __init__(self, line: Line | NoLine, n: int, unit: str = "folds"):
        self.name, self._n, self._done, self._unit = "", n, 0, unit
        self._ends = [time.monotonic()]  # of folds, from the beginning on
        line.show(self)

    @property
    def way(self) -> float:
        return self._done / self._n

    def begin(self, name: str, done: int) -> None:
        """Start a candidate after ``done`` folds of others."""
        self.name, self._done = name, done

    def fold(self) -> None:
        self._done += 1
        self._ends.append(time.monotonic())

    def said(self, now: float) -> str:
        """Return the folds done, and the time left at the pace of the last ones."""
        recent = self._ends[-_ENOUGH - 1 :]
        if len(recent) <= _ENOUGH:
            seen = spent_or_left(now - self._ends[0], 0, self._n)
        else:
            seen = spent_or_left(now - recent[0], _ENOUGH, _ENOUGH + self._n - self._done)
        return f"{self._done} of {self._n} {self._unit}, {seen}"


class TimeBar:
    """Draws a line that shows how much of a time limit is spent."""

    def __init__(self, line: Line | NoLine, name: str, seconds: float):
        self.name, self._seconds, self._started = name, seconds, time.monotonic()
        line.show(self)

    @property
    def way(self) -> float:
        return min(1.0, (time.monotonic() - self._started) / self._seconds)

    def said(self, now: float) -> str:
        return f"{clock(now - self._started)} of {clock(self._seconds)} at most"


class View(Protocol):
    """Something that a line can show."""

    @property
    def name(self) -> str: ...
    @property
    def way(self) -> float: ...
    def said(self, now: float) -> str: ...


class Line:
    """One line of a terminal (name, bar, text), redrawn as time passes."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._view: View | None = None
        self._live = Live(
            console=Console(file=sys.stderr),
            get_renderable=self._drawn,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
        )

    def show(self, view: View) -> None:
        self._view = view

    def _drawn(self):
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1))
        if self._view is not None:
            bar = ProgressBar(total=1.0, completed=self._view.way, width=40)
            table.add_row(Text(self._view.name), bar, Text(self._view.said(time.monotonic())))
        return table

    def __enter__(self) -> Line:
        self._live.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.refresh()
        self._live.stop()


class NoLine:
    """A line that is not shown."""

    def show(self, view: View) -> None:
        pass


@contextmanager
def line(quiet: bool) -> Iterator[Line | NoLine]:
    """Return a line on standard error, which shows nothing unless that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield NoLine()
        return
    with Line() as shown:
        yield shown


@contextmanager
def progress_on(machine, quiet: bool, *also) -> Iterator[None]:
    """Set a machine's callbacks for a fit: ``also``, and progress on a terminal."""
    with line(quiet) as shown:
        machine.set_callbacks(*also, *([FitBar(shown)] if isinstance(shown, Line) else []))
        try:
            yield
        finally:
            machine.set_callbacks()


class Interrupt(FitStopper):
    """Stops fits after Ctrl-C (``asked``).

    With ``raises``, the first Ctrl-C raises KeyboardInterrupt, as later ones do.
    """

    def __init__(self, raises: bool) -> None:
        self.asked, self.raises = False, raises

    def hear(self, number, frame) -> None:
        again, self.asked = self.asked, True
        if self.raises or again:
            raise KeyboardInterrupt
        print("stopping; Ctrl-C again ends without a model", file=sys.stderr)

    @property
    def is_over(self) -> bool:
        return self.asked


@contextmanager
def stopping_on_ctrl_c() -> Iterator[Interrupt]:
    """In this block the first Ctrl-C stops the fit; another one ends the command."""
    interrupt = Interrupt(raises=False)
    with _on_ctrl_c(interrupt.hear):
        yield interrupt


@contextmanager
def noticing_ctrl_c() -> Iterator[Interrupt]:
    """Raise and remember Ctrl-C, because NumPy may turn it into other errors."""
    interrupt = Interrupt(raises=True)
    with _on_ctrl_c(interrupt.hear):
        yield interrupt


@contextmanager
def _on_ctrl_c(handler: Callable) -> Iterator[None]:
    """Install a handler for Ctrl-C, in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
