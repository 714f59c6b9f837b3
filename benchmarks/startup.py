"""Start-up: `widemargin --help` as a process, and imports beyond scikit-learn's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.report import alternate, write

IMPORTS = {
    "import sklearn.base, sklearn.cluster, sklearn.pipeline, sklearn.callback": None,
    "import widemargin": None,
    "from widemargin import AdditiveSVC, KernelSVC, load, read, save": None,
}


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    widemargin = str(Path(sys.executable).with_name("widemargin"))
    tasks = {
        "widemargin --help": lambda: run(widemargin, "--help"),
        "widemargin train --help": lambda: run(widemargin, "train", "--help"),
        "python -c pass": lambda: run(sys.executable, "-c", "pass"),
    }
    tasks |= {code: (lambda c=code: run(sys.executable, "-c", c)) for code in IMPORTS}
    seconds = alternate(tasks, 5)
    first, *_, last = IMPORTS
    lines = ["| process | seconds |", "|---|---|"]
    lines += [f"| `{name}` | {s:.3f} |" for name, s in seconds.items()]
    lines += [
        "",
        "Bars: 0.3 s for `widemargin --help`; imports at most 0.6 s beyond scikit-learn's own. All "
        f"names of widemargin take {seconds[last] - seconds[first]:.2f} s more than the parts of "
        "scikit-learn that they use.",
    ]
    write("startup", "Start-up", lines)


if __name__ == "__main__":
    main()
