"""Workers of a cluster that are killed in the middle of a task that was chosen before.

A kill after some seconds meets whatever runs just then.  Here the client lays a trap: one task
kills its worker (SIGKILL) as it begins, half way through, as it ends, or while its result is sent.
Once, since another worker that does the task again finds the trap sprung.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client

from widemargin.engine import _by_itself

BEGINS, HALFWAY, ENDS, SENT = "begins", "halfway", "ends", "sent"


@dataclass(frozen=True)
class Trap:
    """Which task kills its worker, and when.

    Parameters
    ----------
    task : str
        Its kind, as `kind_of` has it.
    moment : str
        As it begins, half way, as it ends or while its result is sent.  The last is for results
        that only the client needs: a task on the same worker would be given a parcel.
    number : int
        Among the tasks of this kind, as the client sends them.
    everybody : bool
        All workers that there were when the trap was laid die with this one.
    times : int
        As many workers die of this task, one after the other; not with ``everybody``, since the
        number of a process that is gone may be that of another program by then.
    """

    task: str
    moment: str = HALFWAY
    number: int = 0
    everybody: bool = False
    times: int = 1

    def __post_init__(self) -> None:
        if self.everybody and self.times > 1:
            raise ValueError("All workers are killed once.")


@dataclass(frozen=True)
class Laid:
    """A trap where workers see it: whoever removes one of its files dies, and others first."""

    moment: str
    files: tuple[Path, ...]
    others: tuple[int, ...] = ()

    def sprung(self) -> bool:
        """Whether it is this process that dies."""
        for file in self.files:
            try:
                file.unlink()
            except FileNotFoundError:
                continue
            return True
        return False

    def kill(self) -> None:
        for process in {*self.others} - {os.getpid()}:
            os.kill(process, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Parcel:
    """A result that springs the trap when it is packed, and is itself when it is unpacked."""

    content: Any
    trap: Laid

    def __reduce__(self):
        if self.trap.sprung():
            self.trap.kill()
        return _unpacked, (self.content,)


def _unpacked(content: Any) -> Any:
    return content


def kind_of(function: Any, *arguments: Any) -> str:
    """The name of what a task does; of a cluster of rows, with its level.

    >>> from operator import itemgetter
    >>> kind_of(sorted), kind_of(itemgetter(0)), kind_of(partial(sorted, reverse=True))
    ('sorted', 'itemgetter(0)', 'sorted')
    """
    if function is _by_itself:  # a task of an executor
        function, task = arguments
        level = getattr(task, "name", "").partition("-")[0]
        level = "whole" if level.startswith("whole") else level
        return f"{kind_of(function)} {level}".strip()
    if isinstance(function, partial):
        return kind_of(function.func)
    return getattr(function, "__name__", repr(function).removeprefix("operator."))


class TrappedClient(Client):
    """A client that notes which tasks run, and where a trap has been laid."""

    _trap: Trap | None = None
    _laid: Laid | None = None
    _journal: Path | None = None
    _met = 0

    @contextmanager
    def watched(self, folder: Path, trap: Trap | None = None) -> Iterator[Path]:
        """The journal of what is done meanwhile: a line for each time that a task begins."""
        folder.mkdir()
        self._journal, self._trap, self._met = folder / "journal", trap, 0
        self._journal.touch()
        if trap is not None:
            files = tuple(folder / f"trap{k}" for k in range(trap.times))
            for file in files:
                file.touch()
            others = self.run(os.getpid).values() if trap.everybody else ()
            self._laid = Laid(trap.moment, files, tuple(others))
        try:
            yield self._journal
        finally:
            self._journal = self._trap = self._laid = None

    def submit(self, function, *arguments: Any, **named: Any) -> Any:  # type: ignore[override]
        if self._journal is None:
            return super().submit(function, *arguments, **named)
        kind, laid = kind_of(function, *arguments), None
        if self._trap is not None and kind == self._trap.task:
            laid = self._laid if self._met == self._trap.number else None
            self._met += 1
        return super().submit(noted, self._journal, kind, laid, function, *arguments, **named)


def noted(journal: Path, kind: str, trap: Laid | None, function: Callable, *arguments: Any) -> Any:
    """What a worker does: the task, after a line in the journal, or its own end."""
    with journal.open("a") as file:
        file.write(f"{kind}\n")
    if trap is None:
        return function(*arguments)
    if trap.moment == SENT:
        return Parcel(function(*arguments), trap)
    if not trap.sprung():
        return function(*arguments)
    if trap.moment == HALFWAY:
        _do_half(function, arguments, trap.kill)
    elif trap.moment == ENDS:
        function(*arguments)
    return trap.kill()


def _do_half(function: Callable, arguments: tuple, end: Callable[[], None]) -> None:
    """Call ``end`` in the middle of a function: at half the calls that it makes, counted before."""
    calls = _count_calls(function, arguments, lambda n: None)
    _count_calls(function, arguments, lambda n: end() if n > calls // 2 else None)


def _count_calls(function: Callable, arguments: tuple, at_call: Callable[[int], None]) -> int:
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1
        at_call(calls)

    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return calls
