"""The core's algorithms need no Python: fuzz/core_sanitized.cpp, under the sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_the_headers_solve_small_problems_without_python(tmp_path):
    program = tmp_path / "core_sanitized"
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # make sanitize's
    source = str(ROOT / "fuzz" / "core_sanitized.cpp")
    command = ["g++", "-std=c++17", "-Wno-psabi", *SANITIZERS, f"-I{ROOT / 'cpp'}", source]
    subprocess.run([*command, "-o", str(program)], check=True, env=environment)
    done = subprocess.run([str(program)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all problems certified, no finding\n"
