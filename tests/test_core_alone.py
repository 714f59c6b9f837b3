"""The core's algorithms need no Python: fuzz/*_sanitized.cpp, under the sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
MEMORY = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
RACES = ["-fsanitize=thread"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # make sanitize's

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


def run_sanitized(name: str, sanitizers: list[str], folder: Path) -> subprocess.CompletedProcess:
    """Compile a driver of fuzz/ and run it."""
    program, source = folder / name, ROOT / "fuzz" / f"{name}.cpp"
    command = ["g++", "-std=c++17", "-Wno-psabi", "-pthread", *sanitizers, f"-I{ROOT / 'cpp'}"]
    subprocess.run([*command, str(source), "-o", str(program)], check=True, env=ENVIRONMENT)
    return subprocess.run([str(program)], capture_output=True, text=True, env=ENVIRONMENT)


@needs_compiler
def test_the_headers_solve_small_problems_without_python(tmp_path):
    done = run_sanitized("core_sanitized", MEMORY, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all problems certified, no finding\n"


@needs_compiler
def test_threads_leave_the_same_bits_and_race_for_nothing(tmp_path):
    done = run_sanitized("team_sanitized", RACES, tmp_path)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the same bits with any number of threads, no finding\n"
