"""What a bare machine lacks is said in one sentence, before anything is made."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECK = ROOT / "tools" / "check_machine.sh"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHECK.exists() and shutil.which("sh") and shutil.which("make")),
        reason="not in a checkout, or no sh and make",
    ),
]


def program(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def python(folder: Path, question: str, answer: str) -> Path:
    """This Python, but for its answer when the command line contains the question."""
    case = f'case "$*" in *{question}*) {answer} ;; *) exec {sys.executable} "$@" ;; esac'
    return program(folder / "python", case)


def old(folder: Path) -> Path:
    asked = "*version_info*) exit 1 ;; *--version) echo Python 3.8.1 ;;"
    return program(folder / "python", f'case "$*" in {asked} esac')


FAULTS = {
    "no Python": (lambda folder: folder / "python", "install Python 3.11 or newer"),
    "old Python": (old, "Python 3.8.1 is too old: install Python 3.11"),
    "no venv": (lambda folder: python(folder, "venv", "exit 1"), "install its venv module"),
    "no headers": (lambda folder: python(folder, "Python.h", "exit 1"), "apt install python3-dev"),
}


def refused(*command, **environment) -> str:
    """The one line with which a command fails."""
    environment = os.environ | environment
    result = subprocess.run(
        [str(word) for word in command], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode != 0
    (line,) = [part for part in result.stderr.splitlines() if not part.startswith("make")]
    assert line.endswith(".")
    return line


@pytest.mark.parametrize("fault", FAULTS)
def test_a_python_that_will_not_do(fault, tmp_path):
    make, said = FAULTS[fault]
    assert said in refused("sh", CHECK, make(tmp_path))


def test_venv_without_ensurepip(tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    assert "python3-venv" in refused("sh", CHECK, sys.executable, PYTHONPATH=str(tmp_path))


def test_no_compiler(tmp_path):
    (tmp_path / "uname").symlink_to(shutil.which("uname"))
    sh = shutil.which("sh")
    environment = {"PATH": str(tmp_path), "CXX": ""}
    assert "apt install g++" in refused(sh, CHECK, sys.executable, **environment)
    named = environment | {"CXX": "no-such-compiler"}
    assert "called no-such-compiler" in refused(sh, CHECK, sys.executable, **named)


def test_a_compiler_that_is_too_old(tmp_path):
    compiler = program(tmp_path / "c++", "echo unrecognised option >&2", "exit 1")
    line = refused("sh", CHECK, sys.executable, CXX=str(compiler))
    assert "install GCC 11 or Clang 12 or newer" in line


@pytest.mark.parametrize("target", ["demo", "test"])
@pytest.mark.parametrize("fault", FAULTS)
def test_make_stops_before_anything_is_made(fault, target, tmp_path):
    make, said = FAULTS[fault]
    venv = tmp_path / "venv"
    assert said in refused("make", target, f"VENV={venv}", f"PYTHON={make(tmp_path)}")
    assert not venv.exists()


@pytest.mark.skipif(not shutil.which("c++"), reason="no compiler here")
def test_a_machine_that_will_do_is_told_nothing():
    result = subprocess.run(["sh", str(CHECK), sys.executable], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_demo_needs_no_table_library_no_onnx_and_no_peer():
    command = [sys.executable, str(ROOT / "tools" / "requirements.py"), "cli", "plot"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    names = {line.partition(">")[0] for line in lines}
    assert {"numpy", "scikit-learn", "typer", "rich", "matplotlib"} <= names
    assert not names & {"pandas", "polars", "pyarrow", "onnx", "onnxruntime", "libsvm-official"}


def test_an_extra_of_extras_is_all_of_them():
    command = [sys.executable, str(ROOT / "tools" / "requirements.py"), "all", "test"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    names = {line.partition(">")[0] for line in lines}
    assert {"numpy", "matplotlib", "typer", "pyarrow", "onnx", "pandas", "pytest"} <= names
    assert "widemargin[plot,cli,tables,onnx]" not in names
