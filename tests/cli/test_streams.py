"""Standard streams that are closed or full, names that are no text, memory that is short."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from widemargin import load

MAIN = [sys.executable, "-m", "widemargin"]
FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="Linux has a device that is full")


def shell(command: str, *words, **how) -> subprocess.CompletedProcess:
    """The command line with redirections of the shell; $@ are the words."""
    return subprocess.run(
        ["sh", "-c", command, "sh", *MAIN, *map(str, words)],
        capture_output=True, text=True, timeout=120, check=False, **how,
    )  # fmt: skip


def one_line(done: subprocess.CompletedProcess, *parts: str) -> None:
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("columns")]
    assert line.startswith("error: ")
    assert all(part in line for part in parts), line


@needs_full
@pytest.mark.parametrize(
    ("redirected", "status"),
    [
        ("<&- >&- 2>&-", 1),
        (">&-", 1),
        ("2>&-", 0),
        (f">{FULL}", 1),
        (f"2>{FULL}", 0),
    ],
)
def test_a_model_is_not_lost_with_what_cannot_be_printed(redirected, status, two):
    done = shell(f'"$@" {redirected}', "train", two, "m")
    assert done.returncode == status
    assert load("m").n_features_in_ == 4
    if status and "2>" not in redirected:
        one_line(done, "standard output")


@needs_full
@pytest.mark.parametrize("words", [["--help"], ["train", "-h"], ["--version"]])
def test_help_that_cannot_be_printed_is_one_line(words):
    one_line(shell(f'"$@" >{FULL}', *words), "standard output", "No space left")


def test_predictions_that_cannot_be_printed_are_an_error(two):
    assert shell('"$@"', "train", two, "m", "-q").returncode == 0
    done = shell('"$@" >&-', "predict", two, "m", "-q")
    assert done.returncode == 1
    one_line(done, "standard output: Bad file descriptor")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_names_that_are_no_text(two, tmp_path):
    name = os.fsencode(tmp_path / "m") + b"\xff"
    assert subprocess.run([*MAIN, "train", two, name, "-q"], check=False).returncode == 0
    page = tmp_path / "page.html"
    done = subprocess.run([*MAIN, "report", name, two, "--out", page], check=False)
    assert done.returncode == 0
    assert "\\udcff" in page.read_text(encoding="utf-8")
    done = subprocess.run([*MAIN, "info", name], check=False, capture_output=True)
    assert name in done.stdout
    done = subprocess.run([*MAIN, "info", name + b"2"], check=False, capture_output=True)
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("command", ["info", "train"])
def test_a_name_of_two_lines_is_told_in_one(command, two):
    Path("a\nb").write_bytes(b"\x80")
    one_line(shell('"$@"', command, "a\nb"), "a\\nb")


def test_a_damaged_archive_is_one_line(two):
    np.savez("data.npz", X=np.eye(4), y=[0, 1, 0, 1])
    content = Path("data.npz").read_bytes()
    at = content.index(b"PK\1\2")  # the central directory
    Path("data.npz").write_bytes(content[:at] + b"PK\7\7" + content[at + 4 :])
    done = shell('"$@"', "train", "data.npz", "m", "-q")
    assert done.returncode == 1
    one_line(done, "data.npz: not a readable .npz file")


def test_a_model_with_categories_names_the_columns_that_text_without_names_lacks(two):
    pytest.importorskip("pyarrow")
    rows = "".join(f"{k},{'abc'[k % 3]},{k % 2}\n" for k in range(30))
    Path("people.csv").write_text("age,job,label\n" + rows)
    Path("v.svm").write_text("1 1:1 2:2\n0 1:3 2:1\n")
    shell('"$@"', "train", "people.csv", "m", "-t", "intersection", "-q")
    for words in (["predict", "v.svm", "m"], ["evaluate", "v.svm", "m"]):
        done = shell('"$@"', *words)
        assert done.returncode == 1
        one_line(done, "v.svm: rows of numbers", "because its columns 'job' are categorical")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize("kilobytes", [600_000, 900_000])
def test_little_memory_is_one_line_or_a_result(kilobytes, two):
    assert shell('"$@"', "train", two, "m", "-q").returncode == 0
    done = shell(f'ulimit -v {kilobytes}; "$@"', "predict", two, "m", "-q")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.count("\n") <= 2  # OpenBLAS has words of its own


def test_what_a_killed_training_has_left_is_removed_by_the_next_one(two, tmp_path):
    command = [*MAIN, "train", "-", "m", "-t", "chi2", "--memory-limit", "1MB", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        until = time.monotonic() + 60
        while not os.path.exists(".m.store/claim.lock") and time.monotonic() < until:
            time.sleep(0.05)
        again = shell('"$@"', "train", two, "m", "-t", "chi2", "--memory-limit", "1")
        one_line(again, ".m.store' is in use by process")
        process.send_signal(signal.SIGKILL)
    assert os.path.exists(".m.store")
    done = shell('"$@"', "train", two, "m", "-t", "chi2", "--memory-limit", "1", "-q")
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(".m.store")
    load("m")


def test_a_folder_of_that_name_with_other_files_is_left_alone(two):
    os.mkdir(".m.store")
    Path(".m.store/thesis.tex").write_text("years of work")
    done = shell('"$@"', "train", two, "m", "-t", "chi2", "--memory-limit", "1", "-q")
    one_line(done, "other files in it")
    assert sorted(os.listdir(".m.store")) == ["claim.lock", "thesis.tex"]


def test_a_pipe_in_the_place_of_a_manifest_is_named(two):
    shell('"$@"', "store", two, "blocks", "-q")
    os.remove("blocks/manifest.json")
    os.mkfifo("blocks/manifest.json")
    done = shell('"$@"', "train", "blocks", "m", "-q")
    assert done.returncode == 1
    one_line(done, "blocks/manifest.json", "not a plain file")
