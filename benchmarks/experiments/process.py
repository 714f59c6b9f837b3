"""A fit in a fresh process that is killed when its time is up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict

from benchmarks.experiments.plan import Cell

AROUND = 600.0  # seconds for reading data, predicting and measuring, beside the fit's own
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def fit(cell: Cell, limit: float) -> dict:
    """The result, or why there is none: status is done, timeout, missing, failed or killed."""
    environment = os.environ | dict.fromkeys(THREADS, str(cell.threads))
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.experiments.cell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        order = json.dumps({"cell": asdict(cell), "limit": limit})
        out, err = process.communicate(order, timeout=limit + AROUND)
    except subprocess.TimeoutExpired:
        _end(process)
        return {"status": "timeout", "message": "killed while reading, predicting or measuring"}
    except BaseException:  # Ctrl-C: the fit must not go on alone
        _end(process)
        raise
    return _outcome(process.returncode, out, err, limit)


def _end(process: subprocess.Popen) -> None:
    os.killpg(process.pid, signal.SIGKILL)  # a session of its own: its workers too
    process.communicate()


def _outcome(code: int, out: str, err: str, limit: float) -> dict:
    if code == 0:
        return {"status": "done", "message": "", **json.loads(out.splitlines()[-1])}
    if code == -signal.SIGALRM:
        return {"status": "timeout", "message": f"killed after {limit:g} s"}
    if code < 0:
        return {"status": "killed", "message": signal.Signals(-code).name}
    message = err.strip().splitlines()[-1] if err.strip() else f"exit status {code}"
    status = "missing" if "MissingPackageError" in message else "failed"
    return {"status": status, "message": message}
