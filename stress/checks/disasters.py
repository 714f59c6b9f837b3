"""Kills, interrupts and little memory, at random moments: nothing is lost, and nothing is wrong."""

from __future__ import annotations

import resource
import signal
import tempfile
import time
from pathlib import Path

from sklearn.base import clone

from stress.children import in_child
from stress.compare import random_of, same_bits, same_problem

PATIENCE = 60.0
AT_ONCE = 5.0  # seconds for an interrupt; the promise is one, on a machine of one's own
BYTES = (4, 8)  # on top of what the process has, as powers of ten


def killed(model, X, y, w=None) -> None:
    """A fit that is killed goes on from its checkpoint to the same model."""
    with tempfile.TemporaryDirectory() as folder:
        careful = clone(model).set_params(checkpoint=str(Path(folder) / "fit"))
        for moment in random_of(X, y).uniform(0, 1.5, 2) * model.fit_record_.seconds:
            in_child(lambda: careful.fit(X, y, w) and None, max(moment, 1e-4))
        same_bits(careful.fit(X, y, w), model, X, "a kill")


def interrupted(model, X, y, w=None) -> None:
    """Ctrl-C ends a fit soon, and the next fit is as if there had been none."""
    other = clone(model)
    moment = random_of(X, y).uniform(0.02, 1) * model.fit_record_.seconds
    started = time.perf_counter()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(moment, 1e-4))
        other.fit(X, y, w)
    except KeyboardInterrupt:
        late = time.perf_counter() - started - moment
        assert late < AT_ONCE, f"an interrupt was late: {late:.1f} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    same_bits(clone(other).fit(X, y, w), model, X, "an interrupt")


def memory(model, X, y, w=None) -> None:
    """With little memory a fit ends in a MemoryError, or in a solution of the same problem."""
    extra = int(10 ** random_of(X, y).uniform(*BYTES))
    answer = in_child(lambda: _limited(clone(model), X, y, w, extra), PATIENCE)
    assert answer.how == "returned", f"little memory ends the process: {answer.how}, {extra} bytes"
    if answer.value is not None:
        same_problem((model, X, y, w), (answer.value, X, y, w), "little memory")


def _limited(model, X, y, w, extra: int):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, hard))
    try:
        return model.fit(X, y, w)
    except MemoryError:
        return None
    except RuntimeError as error:  # a thread's stack could not be had
        if "start new thread" in str(error):
            return None
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
