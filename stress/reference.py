"""The tests' independent solver (tests/reference.py), which no package contains."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import reference  # noqa: F401
