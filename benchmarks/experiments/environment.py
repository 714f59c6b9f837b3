"""Where, with what and from which source a result was made."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.report import cpu

PACKAGES = ("widemargin", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "lightgbm",
            "interpret-core")  # fmt: skip
ROOT = Path(__file__).parents[2]


def describe() -> dict[str, str | int]:
    """The columns that say so."""
    return {
        "machine": f"{cpu()}, {platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "packages": json.dumps({p: v for p in PACKAGES if (v := _version(p))}),
        "commit": commit(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit() -> str:
    """The commit of this tree, with a + where files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
