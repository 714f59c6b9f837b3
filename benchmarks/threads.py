"""Two threads against one on 26 classes (letter) and 105 classes (sector).

The tasks are batches of 16 classes: letter has 2, sector 7, so that two threads can at best be
7 / 4 = 1.75 times faster there.  Letter is shown at two values of C because runs of either have
given anything from 1.63 to 1.74: the differences between these rows are within the noise of a
shared machine.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import SEED, alternate, one_thread, table, write
from widemargin import AdditiveSVC


def compare(name, C, X, y, X_test) -> list[str]:
    models = {n: AdditiveSVC("chi2", C=C, n_jobs=n, random_state=SEED) for n in (1, 2)}
    seconds = alternate({str(n): (lambda m=m: m.fit(X, y)) for n, m in models.items()}, repeats=4)
    same = np.array_equal(*(m.decision_function(X_test) for m in models.values()))
    times = [f"{seconds['1']:.3f}", f"{seconds['2']:.3f}", f"{seconds['1'] / seconds['2']:.2f}"]
    return [name, str(len(models[1].classes_)), *times, "yes" if same else "NO"]


def main() -> None:
    one_thread()
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, X_test, _ = data.letter()
    S, t, S_test, _ = data.sector()
    rows = [compare(f"letter, C = {C}", C, X.toarray(), y, X_test.toarray()) for C in (10, 30)]
    rows.append(compare("sector, C = 3", 3, S, t, S_test))
    columns = ["data", "classes", "1 thread, s", "2 threads, s", "speed-up (bar 1.7)", "same bits"]
    lines = table(columns, rows)
    write("threads", "Threads", lines)


if __name__ == "__main__":
    main()
