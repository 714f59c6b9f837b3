"""scikit-learn's examples that use its SVMs, as they are and under `widemargin.sklearn.patch()`.

    python -m benchmarks.examples FOLDER      (examples/ of scikit-learn's source)

Every example runs twice, each time as a program of its own without a display, and its figures are
compared: the share of pixels that differ by more than a tenth.  build/examples keeps them to be
looked at, and what ended there is not run again.  Examples that need the network, or another
package, end both ways in the same error and are named below the table.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import table, write

USES = re.compile(r"\b(SVC|LinearSVC|SVR|OneClassSVM)\(|\bsvm\.SVC\b")
SECONDS = 300
KEPT = Path("build/examples").resolve()
CLEAR = 0.1  # of the range of a pixel
RUN = """
import runpy, sys, time, warnings
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
if sys.argv[1] == "ours":
    from widemargin.sklearn import patch
    patch()
folder, script = sys.argv[2:]
np.random.seed(0)  # for those that set none
show = plt.show
plt.show = lambda *args, **how: None
sys.argv = [script]
started = time.perf_counter()
runpy.run_path(script, run_name="__main__")
print("\\nseconds", time.perf_counter() - started)
for number in plt.get_fignums():
    plt.figure(number).savefig(f"{folder}/{number}.png", dpi=50)
"""


@dataclass
class Run:
    seconds: float | None  # None where it failed
    said: str
    figures: list[np.ndarray]


def run(script: Path, whose: str) -> Run:
    folder = KEPT / script.stem / whose
    kept = folder / "run.json"
    if kept.exists():
        return Run(**json.loads(kept.read_text()), figures=pictures(folder))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [sys.executable, "-c", RUN, whose, str(folder), str(script)]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder
        )
        last = done.stdout.rsplit("seconds", 1)[-1].strip()
        found = {"seconds": float(last) if done.returncode == 0 else None, "said": done.stderr}
    except subprocess.TimeoutExpired:
        found = {"seconds": None, "said": f"more than {SECONDS} s"}
    kept.write_text(json.dumps(found))
    return Run(**found, figures=pictures(folder))


def pictures(folder: Path) -> list[np.ndarray]:
    import matplotlib.image

    return [matplotlib.image.imread(f) for f in sorted(folder.glob("*.png"))]


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The share of pixels that differ clearly."""
    if a.shape != b.shape:
        return 1.0
    return float(np.mean(np.abs(a - b).max(axis=2) > CLEAR))


def ended(run: Run) -> str:
    return last_line(run.said) if run.seconds is None else "ends"


def last_line(said: str) -> str:
    return (said.strip().splitlines() or ["no word"])[-1][:120]


def main() -> None:
    folder, lines, neither = Path(sys.argv[1]).resolve(), [], []
    for script in sorted(folder.rglob("*.py")):
        if not USES.search(script.read_text(encoding="utf-8")):
            continue
        name = str(script.relative_to(folder))
        theirs, ours = run(script, "theirs"), run(script, "ours")
        print(name, theirs.seconds, ours.seconds, flush=True)
        if theirs.seconds is None and ours.seconds is None:
            neither.append(f"- {name}: {last_line(theirs.said)}")
            continue
        shares = [difference(a, b) for a, b in zip(theirs.figures, ours.figures, strict=False)]
        same = "none" if not shares else f"{100 * max(shares):.1f} %"
        left = "; ".join(sorted(set(re.findall(r"scikit-learn's own: (.*)", ours.said))))
        lines.append([name, ended(theirs), ended(ours), same, left])
    heads = ["example", "scikit-learn", "patched", "pixels that differ"]
    heads += ["left to scikit-learn"]
    text = ["Of several figures, the one that differs most.", "", *table(heads, lines), ""]
    text += ["Neither ended:", "", *neither] if neither else []
    write("examples", "scikit-learn's examples under the patch", text)


if __name__ == "__main__":
    main()
