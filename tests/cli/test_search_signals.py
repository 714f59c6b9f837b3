"""Ctrl-C in `tune` and `easy`, at random moments, in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from widemargin.persistence import read_header

from .helpers import DIGIT, DIGITS, write

pytestmark = pytest.mark.slow

N = 200  # rows
MOMENTS = 10
SOON = 5.0  # seconds

# Importing takes longer than the searches, so it is done once; each process is forked from there,
# and gets its signal as another share of the time that a search takes has passed.
_PROGRAM = """
import contextlib, json, os, random, signal, sys, time
import widemargin.cli.choosing
from widemargin.cli.app import app

words, moments, seed = json.loads(sys.argv[1])
with contextlib.redirect_stdout(open(os.devnull, "w")), contextlib.suppress(SystemExit):
    app(args=["tune", "--help"], prog_name="widemargin")  # typer imports pydantic at the first call

def begin(k):
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for fd, name in ((1, f"{k}.out"), (2, f"{k}.err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), fd)
    try:
        app(args=[word.format(k) for word in words], prog_name="widemargin")
    except SystemExit as end:
        status = end.code or 0
    sys.stdout.flush()
    os._exit(status)

started = time.monotonic()
os.waitpid(begin("all"), 0)
whole, draw, found = time.monotonic() - started, random.Random(seed), []
for k in range(moments):
    moment = draw.uniform(0.05, 1.0) * whole
    pid = begin(k)
    time.sleep(moment)
    asked = time.monotonic()
    os.kill(pid, signal.SIGINT)
    _, end = os.waitpid(pid, 0)
    found.append([os.waitstatus_to_exitcode(end), time.monotonic() - asked])
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    "words",
    [
        ["tune", "digits.txt", "{}.model", "-t", "chi2,rbf,intersection", "-c", "1,10", "-v", "3"],
        ["easy", "digits.txt", "--model", "{}.model"],
    ],
    ids=["tune", "easy"],
)
def test_ctrl_c_at_any_moment_ends_soon_and_keeps_what_is_found(words):
    write("digits.txt", DIGITS[:N], DIGIT[:N])
    asked = json.dumps([words, MOMENTS, 0])
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, asked], capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert len(found) == MOMENTS
    for k, (status, seconds) in enumerate(found):
        said, printed = (Path(f"{k}.{end}").read_text() for end in ("err", "out"))
        assert status in (0, 130), said  # 0: it had ended already
        assert seconds < SOON
        assert "Traceback" not in said
        if status == 130 and "\nkernel " in f"\n{said}":  # a candidate had been tried
            assert "best" in printed, said
            assert read_header(f"{k}.model").record.n_rows == N
    assert 130 in [status for status, _ in found]
