"""A function in a forked process: its value, or how the process ended."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """``how`` is "returned", "hung", or "exit n"; there is a value in the first case only."""

    how: str
    value: Any = None


def in_child(function: Callable[[], Any], seconds: float) -> Answer:
    """Call it in a fork that is killed when it takes longer than that."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(function, writing)
    os.close(writing)
    until, said = time.monotonic() + seconds, b""
    while select.select([reading], [], [], max(until - time.monotonic(), 0))[0]:
        part = os.read(reading, 1 << 20)
        if not part:
            break
        said += part
    else:
        os.kill(child, signal.SIGKILL)
        said = b""
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    if said:
        return Answer("returned", pickle.loads(said))
    ended = os.waitstatus_to_exitcode(status)
    return Answer("hung" if ended == -signal.SIGKILL else f"exit {ended}")


def _answer(function: Callable[[], Any], writing: int) -> None:
    """What the child does; it must not return into its parent's stack."""
    try:
        content = memoryview(pickle.dumps(function()))
        while content:
            content = content[os.write(writing, content) :]
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(0)
