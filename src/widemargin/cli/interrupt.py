"""Ctrl-C during a fit: a wish to stop, after which there still is a model."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from widemargin.progress import FitStopper


class Interrupt(FitStopper):
    """Ends fits once somebody has asked for it.

    Attributes
    ----------
    asked : bool
        Whether there was a Ctrl-C.
    raises : bool
        Whether the first one is raised too; any other one is.
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
    """The first Ctrl-C asks the fit to stop; another one, or one outside of the block, ends all."""
    found = Interrupt(raises=False)
    with _on_ctrl_c(found.hear):
        yield found


@contextmanager
def noticing_ctrl_c() -> Iterator[Interrupt]:
    """Ctrl-C is raised as ever, and remembered: NumPy makes other errors of it within buffers."""
    found = Interrupt(raises=True)
    with _on_ctrl_c(found.hear):
        yield found


@contextmanager
def _on_ctrl_c(handler: Callable) -> Iterator[None]:
    """In the main thread, which alone has signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
