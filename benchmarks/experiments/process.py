"""A fit in a fresh process that is killed when its time is up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from threading import Lock

from benchmarks.competitors.optional import MissingPackageError
from benchmarks.experiments.plan import Cell
from benchmarks.methods import make

AROUND = 600.0  # seconds for reading data, predicting and measuring, beside the fit's own
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_running: set[subprocess.Popen] = set()
_lock = Lock()


def fit(cell: Cell, limit: float) -> dict:
    """The result, or why there is none: status is done, timeout, missing, failed or killed."""
    try:
        make(cell.use, cell.parameters, cell.seed, cell.threads)
    except MissingPackageError as error:  # known here already, so no process need find out
        return {"status": "missing", "message": str(error)}
    except (TypeError, ValueError):
        pass  # its process says what is wrong
    environment = os.environ | dict.fromkeys(THREADS, str(cell.threads))
    with _lock:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.experiments.cell"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )
        _running.add(process)
    try:
        order = json.dumps({"cell": asdict(cell), "limit": limit})
        out, err = process.communicate(order, timeout=limit + AROUND)
    except subprocess.TimeoutExpired:
        _end(process)
        return {"status": "timeout", "message": "killed while reading, predicting or measuring"}
    except BaseException:
        _end(process)
        raise
    finally:
        with _lock:
            _running.discard(process)
    return _outcome(process.returncode, out, err, limit)


def stop() -> None:
    """Kill the fits that other threads wait for: they must not go on alone."""
    with _lock:
        for process in _running:
            _kill(process)


def _end(process: subprocess.Popen) -> None:
    _kill(process)
    process.communicate()


def _kill(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.killpg(process.pid, signal.SIGKILL)  # a session of its own: its workers too


def _outcome(code: int, out: str, err: str, limit: float) -> dict:
    if code == 0:
        return {"status": "done", "message": "", **json.loads(out.splitlines()[-1])}
    if code == -signal.SIGALRM:
        return {"status": "timeout", "message": f"killed after {limit:g} s"}
    if code < 0:
        return {"status": "killed", "message": signal.Signals(-code).name}
    message = err.strip().splitlines()[-1] if err.strip() else f"exit status {code}"
    absent = message.startswith("FileNotFoundError")  # the data
    return {"status": "missing" if absent else "failed", "message": message}
