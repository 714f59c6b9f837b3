"""The requirements in pyproject.toml, a line each, for pip to install before our own build.

Usage: python tools/requirements.py NAME ...   (an extra, a dependency group, or "build")

An extra brings what the package itself needs.  Our own build runs with pip's isolation off; what is
installed from these lines is built, where it must be, in isolation.
"""

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]


def requirements(name: str) -> list[str]:
    if name == "build":  # CMake would fetch these two itself, but for an isolated build only
        return [*PROJECT["build-system"]["requires"], "cmake>=3.18", "ninja"]
    if name in EXTRAS:
        return PROJECT["project"]["dependencies"] + [r for e in parts(name) for r in EXTRAS[e]]
    return GROUPS[name]


def parts(extra: str) -> list[str]:
    """The extras that an extra such as all = ["widemargin[plot,cli]"] stands for."""
    own = PROJECT["project"]["name"] + "["
    first = EXTRAS[extra][0]
    return first.removeprefix(own).rstrip("]").split(",") if first.startswith(own) else [extra]


if __name__ == "__main__":
    print(*dict.fromkeys(line for name in sys.argv[1:] for line in requirements(name)), sep="\n")
