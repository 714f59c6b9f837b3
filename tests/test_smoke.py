"""What `make package` runs in an environment of its own runs here, too."""

import subprocess
import sys
from pathlib import Path

import pytest

import widemargin

SMOKE = Path(__file__).parents[1] / "tools" / "smoke.py"


@pytest.mark.slow
def test_the_first_minutes_of_a_stranger():
    done = subprocess.run([sys.executable, SMOKE], capture_output=True, text=True, check=True)
    assert f"widemargin {widemargin.__version__} works" in done.stdout
