"""What only a process of its own can show: signals, pipes, limits, imports, completion."""

import ctypes
import gzip
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

import widemargin
from widemargin import load
from widemargin.cli.app import app

from .helpers import files, run, write

pytestmark = pytest.mark.slow

PYTHON = [sys.executable, "-m", "widemargin"]
PROGRAM = Path(sys.executable).with_name("widemargin")


def process(*words, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*PYTHON, *map(str, words)], capture_output=True, text=True, timeout=60, **more
    )


def python(code: str) -> str:
    """What a script prints."""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return found.stdout.strip()


@pytest.fixture
def model(two):
    run("train", two, "m")
    return Path("m")


@pytest.fixture
def long_job():
    """Random labels, which take minutes to learn."""
    rng = np.random.default_rng(0)
    np.savez("long.npz", X=rng.normal(size=(20_000, 20)), y=rng.integers(0, 2, 20_000))
    return "long.npz"


# ------------------------------------------------------------------ signals


def until(terminal: int, sign: bytes) -> bytes:
    """What comes from a terminal up to a sign."""
    seen = b""
    while sign not in seen:
        part = _read(terminal)
        assert part, seen
        seen += part
    return seen


def _read(terminal: int) -> bytes:
    """Some bytes; none at the end, where Linux reports an error instead."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def rest_of(terminal: int) -> bytes:
    return b"".join(iter(lambda: _read(terminal), b""))


@pytest.mark.parametrize("words", [[], ["-t", "chi2", "-e", "1e-12", "--max-iter", "1000000"]])
def test_ctrl_c_during_training(long_job, words):
    before = files()
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PYTHON, "train", long_job, "-c", "1000", *words], stdout=subprocess.PIPE, stderr=theirs
    ) as job:
        os.close(theirs)
        try:
            until(ours, b"SVC")  # the progress bar: training has begun
            time.sleep(0.5)
            os.kill(job.pid, signal.SIGINT)
            said = rest_of(ours)
            status = job.wait(timeout=30)
        finally:
            job.kill()
    os.close(ours)
    assert status == 130
    assert b"stopping; Ctrl-C again ends without a model" in said
    assert b"with a relative duality gap of" in said
    assert said.endswith(
        b"interrupted: long.npz.safetensors is the model of the unfinished fit.\r\n"
    )
    assert b"Traceback" not in said
    assert files() == before | {"long.npz.safetensors"}
    assert load("long.npz.safetensors").n_features_in_ == 20


def test_easy_speaks_before_scikit_learn_is_imported():
    """That takes two seconds; nothing may import it on the way to the first line."""
    said = process("easy", "nothing.csv", env=os.environ | {"PYTHONPROFILEIMPORTTIME": "1"}).stderr
    before, _, after = said.partition("reading nothing.csv\n")
    assert "sklearn.base" not in before
    assert "sklearn.base" in after


# ------------------------------------------------------------------ pipes and limits


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    job = rng.choice(["smith", "clerk", "nurse"], 300)
    label = np.where(a + b + (job == "clerk") > 0, "yes", "no")
    rows = (f"{x},{y},{j},{k}\n" for x, y, j, k in zip(a, b, job, label, strict=True))
    Path("table.csv").write_text("a,b,job,label\n" + "".join(rows))
    return Path("table.csv")


def from_pipe(content: bytes, *words) -> str:
    """``widemargin WORDS`` with so much on its standard input, which is a pipe."""
    command = [*PYTHON, *map(str, words)]
    found = subprocess.run(command, input=content, capture_output=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.decode()


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_tables_come_from_pipes_as_from_files(packed, table):
    content = packed(table.read_bytes())
    process("train", table, "m")
    expected = process("predict", table, "m").stdout
    assert len(expected.splitlines()) == 300
    assert from_pipe(content, "predict", "-", "m") == expected
    assert from_pipe(content, "predict", "/dev/stdin", "m") == expected
    measured = json.loads(from_pipe(content, "evaluate", "-", "m", "--json"))
    assert measured["rows"] == 300
    from_pipe(content, "train", "-", "m2")
    assert process("predict", table, "m2").stdout == expected


@pytest.mark.parametrize("kernel", ["intersection", "rbf"])
def test_a_pipe_is_trained_from_disk_within_a_limit(kernel, table):
    """As one cannot know how much will come."""
    options = ("-t", kernel, "-e", "1e-6", "--memory-limit", "2GB")
    command = [*PYTHON, "train", "-", "piped", *options]
    content = table.read_bytes()
    found = subprocess.run(command, input=content, capture_output=True, check=False)
    assert b"/dev/stdin may be larger than --memory-limit: training from" in found.stderr
    process("train", table, "whole", *options)
    models = [load(name) for name in ("piped", "whole")]
    piped, whole = (model[-1] if isinstance(model, Pipeline) else model for model in models)
    assert piped.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    predicted = [process("predict", table, name).stdout for name in ("piped", "whole")]
    assert predicted[0] == predicted[1]


def test_a_pipe_that_closes(model):
    write("many.txt", np.ones((20_000, 4)), np.ones(20_000))
    with subprocess.Popen(
        [*PYTHON, "predict", "many.txt", model], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        assert job.stdout.readline().strip() in (b"1", b"-1")
        job.stdout.close()
        said = job.stderr.read()
        status = job.wait(timeout=60)
    assert said == b""
    assert status == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_standard_output_that_is_full(model):
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*PYTHON, "info", model], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 1
    assert found.stderr == "error: standard output: No space left on device.\n"


def test_a_disk_that_fills_up_leaves_the_old_model(two, model):
    before, content = files(), model.read_bytes()
    assert len(content) > 1000

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    found = process("train", two, model, "-c", "5", preexec_fn=small_files)
    assert found.returncode == 1
    assert found.stderr.startswith("error: ")
    assert "Traceback" not in found.stderr
    assert model.read_bytes() == content
    assert files() == before


def as_anybody() -> None:
    """Root may write everywhere; without this capability it is like anybody."""
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0):  # drop CAP_DAC_OVERRIDE
        raise OSError("the capability cannot be dropped")


def test_a_folder_without_permission_keeps_its_model(two):
    folder = Path("folder")
    folder.mkdir()
    run("train", two, folder / "m")
    content = (folder / "m").read_bytes()
    folder.chmod(0o555)
    try:
        found = process("train", two, "folder/m", "-c", "5", preexec_fn=as_anybody)
    finally:
        folder.chmod(0o755)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == "error: folder/m: Permission denied.\n"
    assert (folder / "m").read_bytes() == content
    assert len(list(folder.iterdir())) == 1
    assert load(folder / "m").C == 1


def test_a_progress_bar_where_there_is_a_terminal(two):
    """Also with a scaler before the machine; on standard error, whatever the output is."""
    ours, theirs = pty.openpty()
    command = [*PYTHON, "train", two, "m", "--scale", "minmax", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as job:
        os.close(theirs)
        said = rest_of(ours)
        assert job.stdout is not None
        result = json.loads(job.stdout.read())  # and nothing but that
        assert job.wait(timeout=60) == 0
    os.close(ours)
    assert b"KernelSVC" in said
    assert b"warning" not in said
    assert result["rows"] == 100


# ------------------------------------------------------------------ starting up


def test_the_program_and_the_module_are_the_same():
    expected = f"widemargin {widemargin.__version__}\n"
    assert process("--version").stdout == expected
    if PROGRAM.exists():
        found = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
        assert found.stdout == expected


HELP = """
import sys
from widemargin.cli.app import app, main
heavy = ("numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "widemargin._core", "joblib")
for words in (["--help"], ["--version"], *([c.callback.__name__, "-h"] for c in
              app.registered_commands)):
    sys.argv = ["widemargin", *words]
    try:
        main()
    except SystemExit as stop:
        assert stop.code == 0, words
print("HEAVY:", [name for name in heavy if name in sys.modules])
"""


def test_help_imports_nothing_heavy():
    printed = python(HELP)
    assert printed.count("Usage: widemargin") == 1 + len(app.registered_commands)
    assert printed.endswith("HEAVY: []")


def test_commands_that_draw_nothing_import_no_plots():
    code = """
import sys
from widemargin.cli import choosing, inspect, train, predict
print([m for m in ("widemargin.plots", "matplotlib") if m in sys.modules])
"""
    assert python(code) == "[]"


def test_the_package_imports_nothing_heavy_until_it_is_used():
    code = """
import sys
import widemargin
print([m for m in ("numpy", "sklearn") if m in sys.modules], end=" ")
names = dir(widemargin)
print([m for m in ("numpy", "sklearn") if m in sys.modules], set(widemargin.__all__) <= set(names),
      end=" ")
try:
    widemargin.KernelSCV
except AttributeError as error:
    print(error, end=" ")
print("sklearn" in sys.modules, hasattr(widemargin, "KernelSVC"), "sklearn" in sys.modules)
"""
    assert python(code) == (
        "[] [] True module 'widemargin' has no attribute 'KernelSCV' False True True"
    )


def test_all_names_of_the_package():
    found: dict = {}
    exec("from widemargin import *", found)
    assert set(widemargin.__all__) <= found.keys()
    assert found["KernelSVC"].__module__ == "widemargin.kernel.estimator"
    assert found["papers"].icd
    assert found["__version__"] == widemargin.__version__
    assert sorted(dir(widemargin)) == dir(widemargin)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    environment = {**os.environ, "_WIDEMARGIN_COMPLETE": f"source_{shell}"}
    found = process(env=environment)
    assert found.returncode == 0
    assert "_WIDEMARGIN_COMPLETE=" in found.stdout
    assert "widemargin" in found.stdout


def test_completion_completes():
    def completed(words: str, position: int) -> list[str]:
        environment = {**os.environ, "_WIDEMARGIN_COMPLETE": "complete_bash",
                       "COMP_WORDS": words, "COMP_CWORD": str(position)}  # fmt: skip
        return process(env=environment).stdout.split()

    assert completed("widemargin t", 1) == ["train", "tune"]
    assert "--multi-class" in completed("widemargin train --m", 2)
