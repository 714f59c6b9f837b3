"""The core's algorithms need no Python: fuzz/*_sanitized.cpp, under sanitizers and on aarch64."""

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

SOLVED = "all problems certified, no finding\n"
SAME = "the same bits with any number of threads, no finding\n"


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"there is no {' and no '.join(missing)}")


def run(
    name: str,
    folder: Path,
    options: list[str],
    compiler: str = "g++",
    under: tuple[str, ...] = (),
) -> subprocess.CompletedProcess:
    """Compile a driver of fuzz/ and run it, under another program if one is named."""
    program, source = folder / name, ROOT / "fuzz" / f"{name}.cpp"
    command = [compiler, "-std=c++17", "-Wno-psabi", "-pthread", *options, f"-I{ROOT / 'cpp'}"]
    subprocess.run([*command, str(source), "-o", str(program)], check=True, env=ENVIRONMENT)
    command = [*under, str(program)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)


@needs("g++")
def test_the_headers_solve_small_problems_without_python(tmp_path):
    done = run("core_sanitized", tmp_path, MEMORY)
    assert done.returncode == 0, done.stderr
    assert done.stdout == SOLVED


@needs("g++")
def test_threads_leave_the_same_bits_and_race_for_nothing(tmp_path):
    done = run("team_sanitized", tmp_path, RACES)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0, done.stderr
    assert done.stdout == SAME


@pytest.mark.parametrize(("name", "said"), [("core_sanitized", SOLVED), ("team_sanitized", SAME)])
@pytest.mark.parametrize(
    ("compiler", "under"),
    [
        pytest.param("clang++", (), marks=needs("clang++"), id="clang"),
        pytest.param(
            "aarch64-linux-gnu-g++",
            ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
            marks=needs("aarch64-linux-gnu-g++", "qemu-aarch64"),
            id="aarch64",
        ),
    ],
)
def test_other_compilers_and_processors(name, said, compiler, under, tmp_path):
    """Vectors of another width and another order of memory change nothing."""
    done = run(name, tmp_path, ["-O1"], compiler, under)
    assert done.returncode == 0, done.stderr
    assert done.stdout == said
