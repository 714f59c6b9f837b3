"""Prediction of covtype rows by models of 30,000, and of one row of digits: ours, SVC, intelex."""

from __future__ import annotations

import time

from sklearn.datasets import load_digits
from sklearn.svm import SVC

from benchmarks import data
from benchmarks.report import SEED, accuracy, alternate, table, write
from widemargin import KernelSVC

CALLS = 500  # with one row


def one_row() -> list[str]:
    """Milliseconds of CPU for one row, best of five times ``CALLS``."""
    X, y = load_digits(return_X_y=True)
    models = {"KernelSVC": KernelSVC(random_state=SEED).fit(X, y), "SVC": SVC().fit(X, y)}

    def calls(method):
        return lambda: [method(X[:1]) for _ in range(CALLS)]

    lines = []
    for name in ("predict", "decision_function"):
        tasks = {n: calls(getattr(m, name)) for n, m in models.items()}
        seconds = alternate(tasks, 5, time.process_time)
        own = seconds["KernelSVC"]
        for n, s in seconds.items():
            lines.append([f"{n}.{name}", f"{1000 * s / CALLS:.3f}", f"{s / own:.1f}"])
    return table(["one row of digits", "CPU, ms", "its time / ours"], lines)


def main() -> None:
    from sklearnex import svm

    X, y, X_test, y_test = data.covtype(30_000)
    X_test, y_test = X_test[:20_000], y_test[:20_000]
    ours = KernelSVC(C=32, gamma=32, n_jobs=2, random_state=SEED).fit(X, y)
    intel = svm.SVC(C=32, gamma=32, cache_size=6000).fit(X, y)
    libsvm = SVC(C=32, gamma=32, cache_size=6000).fit(X, y)
    models = {"KernelSVC": ours, "scikit-learn-intelex": intel, "SVC": libsvm}
    tasks = {n: (lambda m=m: m.predict(X_test)) for n, m in models.items()}
    seconds = alternate(tasks, 2, time.process_time)  # others may work on the machine
    bars = {"KernelSVC": "", "scikit-learn-intelex": "2.5", "SVC": "70"}
    times = {n: [f"{s:.3f}", f"{s / seconds['KernelSVC']:.1f}"] for n, s in seconds.items()}
    lines = table(
        ["", "seconds", "its time / ours", "bar", "accuracy, %", "support vectors"],
        [
            [n, *times[n], bars[n], accuracy(m, X_test, y_test), str(len(m.support_))]
            for n, m in models.items()
        ],
    )
    lines += [
        "",
        "CPU seconds of all threads together: others may work on the machine. Bars are for",
    ]
    lines += ["elapsed seconds on two idle cores, of which SVC uses one and the others two.", ""]
    lines += one_row()
    write("kernel_predict", "Prediction of 20,000 covtype rows, seconds of two threads", lines)


if __name__ == "__main__":
    main()
