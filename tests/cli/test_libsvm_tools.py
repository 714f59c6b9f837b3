"""The scripts that come with LIBSVM run unmodified on our commands, where they are installed.

Debian's package libsvm-tools has them.  easy.py takes too long: it starts grid.py on 110 settings.
"""

import os
import shutil
import subprocess
import sys

import pytest
from sklearn.datasets import load_iris

from widemargin import read
from widemargin.data import write_svmlight

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("svm-grid"), reason="Debian's package libsvm-tools is not installed"
    ),
]


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """LIBSVM's folders: its scripts in tools/, and above them its programs, which are ours."""
    (tmp_path / "tools").mkdir()
    for name in ("grid", "subset", "checkdata"):
        (tmp_path / "tools" / f"{name}.py").symlink_to(shutil.which(f"svm-{name}"))
    for name in ("train", "scale"):
        program = tmp_path / f"svm-{name}"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m widemargin {name} "$@"\n')
        program.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)  # their first lines ask for it
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path / "tools")
    X, y = load_iris(return_X_y=True)
    write_svmlight("iris.txt", X[::2], y[::2])
    write_svmlight("iris.t", X[1::2], y[1::2])
    return tmp_path / "tools"


def run(*words) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_grid(tools):
    words = ["-log2c", "-1,3,2", "-log2g", "-2,0,2", "-v", "3", "-gnuplot", "null", "-out", "null"]
    lines = run("grid.py", *words, "-svmtrain", "../svm-train", "iris.txt").splitlines()
    assert len([line for line in lines if "[local]" in line]) == 3 * 2
    C, gamma, rate = map(float, lines[-1].split())
    assert C in (0.5, 2, 8)
    assert gamma in (0.25, 1)
    assert rate > 90


def test_subset(tools):
    run("subset.py", "-s", "1", "iris.txt", "30", "some.txt", "rest.txt")
    some, rest = read("some.txt"), read("rest.txt")
    assert (len(some.y), len(rest.y)) == (30, 45)


def test_checkdata(tools):
    """What we write passes, and so does what we scale."""
    assert "No error" in run("checkdata.py", "iris.txt")
    subprocess.run(["../svm-scale", "-s", "range", "iris.txt", "scaled.txt"], check=True)
    assert "No error" in run("checkdata.py", "scaled.txt")
