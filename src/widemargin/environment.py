"""Where and with what a result was made."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("widemargin", "numpy", "scipy", "scikit-learn")


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
    """The processor by the name that its maker gave it, where that can be known."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Of those that are installed.

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
