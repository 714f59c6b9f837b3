"""Where, with what and from which source a result was made."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from widemargin import environment
from widemargin.environment import describe_machine, versions

PACKAGES = (*environment.PACKAGES, "scikit-learn-intelex", "lightgbm", "interpret-core")
ROOT = Path(__file__).parents[2]


def describe() -> dict[str, str | int]:
    """The columns that say so."""
    return {
        **describe_machine(),
        "packages": json.dumps(versions(PACKAGES)),
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
