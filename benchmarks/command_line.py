"""`widemargin train` on ijcnn1 text as a whole process, against LIBLINEAR and LIBSVM.

Each side starts, reads the text, trains and writes a model.  Peers: the Python bindings of
liblinear-official and libsvm-official (in a fresh interpreter), and the C programs of Debian's
liblinear-tools and libsvm-tools where they are installed.  Accuracy is on the test set.
"""

from __future__ import annotations

import bz2
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import data
from benchmarks.report import alternate, write

LIBLINEAR = """
from liblinear.liblinearutil import svm_read_problem, train, save_model
y, x = svm_read_problem("train.txt"{reader})
save_model("linear.model", train(y, x, "-q"))
"""
LIBSVM = """
from libsvm.svmutil import svm_read_problem, svm_train, svm_save_model
y, x = svm_read_problem("train.txt", return_scipy=True)
svm_save_model("kernel.model", svm_train(y, x, "-q -c 32 -g 2 -m 4000"))
"""
SCORES = {
    "linear": "from liblinear.liblinearutil import svm_read_problem, load_model, predict\n"
    "y, x = svm_read_problem('test.txt', return_scipy=True)\n"
    "print(predict(y, x, load_model('linear.model'), '-q')[1][0])",
    "kernel": "from libsvm.svmutil import svm_read_problem, svm_load_model, svm_predict\n"
    "y, x = svm_read_problem('test.txt', return_scipy=True)\n"
    "print(svm_predict(y, x, svm_load_model('kernel.model'), '-q')[1][0])",
}
OURS = {"additive": "-t intersection", "kernel": "-c 32 -g 2 --intercept"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("train.txt", "trn"), ("test.txt", "tst")):
            packed = (data.folder() / f"ijcnn1.{part}.bz2").read_bytes()
            (Path(folder) / name).write_bytes(bz2.decompress(packed))
        write("command_line", "The command line as a whole process", measure(folder))


def measure(folder: str) -> list[str]:
    def run(*command: str) -> str:
        return subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True
        ).stdout

    widemargin = str(Path(sys.executable).with_name("widemargin"))
    tasks = {
        f"widemargin train {options}": lambda n=name, o=options: run(
            widemargin, "train", "train.txt", f"{n}.st", "-q", *o.split()
        )
        for name, options in OURS.items()
    }
    tasks["import sklearn.base, nothing else"] = lambda: run(
        sys.executable, "-c", "import sklearn.base"
    )
    tasks["liblinear-official, lists"] = lambda: run(
        sys.executable, "-c", LIBLINEAR.format(reader="")
    )
    tasks["liblinear-official, scipy"] = lambda: run(
        sys.executable, "-c", LIBLINEAR.format(reader=", return_scipy=True")
    )
    tasks["libsvm-official, scipy"] = lambda: run(sys.executable, "-c", LIBSVM)
    if shutil.which("liblinear-train"):
        tasks["liblinear-train (C program)"] = lambda: run(
            "liblinear-train", "-q", "train.txt", "linear.model"
        )
    if shutil.which("svm-train"):
        tasks["svm-train (C program)"] = lambda: run(
            "svm-train", "-q", "-c", "32", "-g", "2", "-m", "4000", "train.txt", "kernel.model"
        )
    seconds = alternate(tasks, 3)
    accuracy = {k: float(run(sys.executable, "-c", code)) for k, code in SCORES.items()}
    lines = [
        "Bar: faster than both at higher or equal accuracy. Defaults of LIBLINEAR; LIBSVM at",
        "C = 32, gamma = 2, a cache of 4 GB. scikit-learn's import is part of ours.",
        "",
        "| process | seconds | test accuracy, % |",
        "|---|---|---|",
    ]
    for name, time in seconds.items():
        if name.startswith("widemargin"):
            model = "additive.st" if "intersection" in name else "kernel.st"
            score = run(widemargin, "evaluate", "test.txt", model).split()[1]
        elif name.startswith("import"):
            score = ""
        else:
            score = f"{accuracy['linear' if 'liblinear' in name else 'kernel']:.2f}"
        lines.append(f"| {name} | {time:.2f} | {score} |")
    return lines


if __name__ == "__main__":
    main()
