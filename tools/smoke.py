"""What a stranger does in the first minutes, with the package as it is installed: tools/smoke.py.

A first model, several at once in threads, an own CSV file on the command line, a saved model.  It
needs no clone, and says on which instruction set it ran.
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

import widemargin
from widemargin import AdditiveSVC, KernelSVC, _core, load, save


def first_models(X, y) -> None:
    for make in (AdditiveSVC, KernelSVC):
        model = make(random_state=0).fit(X[:1000], y[:1000])
        assert model.score(X[1000:], y[1000:]) > 0.9
        save(model, "model.safetensors")
        loaded = load("model.safetensors")
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


def in_threads(X, y) -> None:
    """Fits that run side by side in one process have the bits of a fit alone."""

    def decisions(make) -> np.ndarray:
        return make(random_state=0, n_jobs=1).fit(X, y).decision_function(X[:100])

    makes = [AdditiveSVC, KernelSVC] * 4
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(decisions, makes))
    for make, found in zip(makes, together, strict=True):
        assert np.array_equal(found, decisions(make))


def own_table() -> None:
    data = load_breast_cancer()
    lines = [",".join([*map(str, data.feature_names), "diagnosis"])]
    for row, label in zip(data.data, data.target_names[data.target], strict=True):
        lines.append(",".join([*map(str, row), label]))
    Path("own.csv").write_text("\n".join(lines) + "\n")
    for words in (
        ["train", "own.csv", "own.safetensors", "--label", "diagnosis", "-t", "auto"],
        ["evaluate", "own.csv", "own.safetensors"],
        ["predict", "own.csv", "own.safetensors", "out.txt"],
    ):
        subprocess.run([sys.executable, "-m", "widemargin", *words], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    assert len(Path("out.txt").read_text().split()) == len(data.target)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        X, y = load_digits(return_X_y=True)
        first_models(X, y)
        in_threads(X[:500], y[:500])
        own_table()
        os.chdir("/")
    lock = "with" if getattr(sys, "_is_gil_enabled", lambda: True)() else "without"
    print(f"  widemargin {widemargin.__version__} works: {_core.instruction_set()}, {lock} a lock")
