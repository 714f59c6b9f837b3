"""Where, with what and from which source a result was made."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("widemargin", "numpy", "scipy", "scikit-learn")
PEERS = ("scikit-learn-intelex", "lightgbm", "interpret-core")


def describe() -> dict[str, str | int]:
    """Columns of a result: machine, packages, commit and time."""
    return {
        **describe_machine(),
        "packages": json.dumps(versions((*PACKAGES, *PEERS))),
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


def describe_machine() -> dict[str, str | int]:
    """Processor, system, cores and Python.

    >>> sorted(describe_machine())
    ['cores', 'machine', 'python']
    """
    return {
        "machine": f"{cpu()}, {platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
    }


def cpu() -> str:
    """The name of the processor, where the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of the packages that are installed.

    >>> list(versions(["numpy", "no-such-package"]))
    ['numpy']
    """
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
