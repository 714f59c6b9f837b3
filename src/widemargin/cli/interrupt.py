"""Ctrl-C during a fit: a wish to stop, after which there still is a model."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupt:
    """As a callback of scikit-learn's, ends fits once somebody has asked for it.

    They keep what they have, and warn of the gap that is left.
    """

    def __init__(self) -> None:
        self.asked = False

    def setup(self, estimator, context) -> None:
        pass

    def teardown(self, estimator, context) -> None:
        pass

    def on_fit_task_begin(self, estimator, context) -> None:
        pass

    def on_fit_task_end(self, estimator, context) -> bool:
        return self.asked


@contextmanager
def stopping_on_ctrl_c() -> Iterator[Interrupt]:
    """The first Ctrl-C asks the fit to stop; another one, or one outside of the block, ends all."""
    found = Interrupt()
    if threading.current_thread() is not threading.main_thread():  # which alone has signals
        yield found
        return

    def ask(number, frame) -> None:
        if found.asked:
            raise KeyboardInterrupt
        found.asked = True
        print("stopping; Ctrl-C again ends without a model", file=sys.stderr)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def noticing_ctrl_c() -> Iterator[Interrupt]:
    """Ctrl-C is raised as ever, and remembered: NumPy makes other errors of it within buffers."""
    found = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return

    def notice(number, frame) -> None:
        found.asked = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, notice)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
