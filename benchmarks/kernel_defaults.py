"""Which defaults KernelSVC should have: pairs of classes or one against the others, with or without
an intercept.  Test accuracy of every set at hand at C = 1 and 10 and gamma="scale", beside SVC.

``python -m benchmarks.kernel_defaults`` measures all sets; names of sets measure these again, and
keep the rows of the others.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.svm import SVC

from benchmarks import data
from benchmarks.many_classes import SETS, dense, images
from benchmarks.report import SEED, rows_by_set, table, write
from widemargin import KernelSVC

ROWS, TEST_ROWS = 6000, 5000  # at most, chosen at random, so that SVC ends
CHOICES = {
    f"{multi_class}, {'intercept' if intercept else 'none'}": (multi_class, intercept)
    for multi_class in ("ovo", "ovr")
    for intercept in (True, False)
}
MORE = {
    "fashion": lambda: images(data.fashion()),
    "news20": lambda: data.news20_tfidf(),
    "a9a": lambda: dense(data.a9a()),
    "w8a": lambda: dense(data.w8a()),
    "ijcnn1": lambda: data.ijcnn1_dense(),
    "covtype, 2 classes": lambda: data.covtype(ROWS),
}


def accuracies(name: str, load, C: float) -> list[str]:
    X, y, X_test, y_test = data.sampled(load(), ROWS, TEST_ROWS)
    svc = SVC(C=C).fit(X, y)
    expected = svc.predict(X_test)
    right = [100 * np.mean(expected == y_test)]
    agreed = []
    two = len(np.unique(y)) == 2
    for multi_class, intercept in CHOICES.values():
        if two and multi_class == "ovr":  # the same problem
            right.append(np.nan)
            agreed.append(np.nan)
            continue
        model = KernelSVC(
            C=C, multi_class=multi_class, fit_intercept=intercept, n_jobs=2, random_state=SEED
        )
        found = model.fit(X, y).predict(X_test)
        right.append(100 * np.mean(found == y_test))
        agreed.append(100 * np.mean(found == expected))
    cells = [f"{value:.2f}" if np.isfinite(value) else "" for value in right]
    row = [f"{name}, {X.shape[0]:,} rows", f"{C:g}", *cells, f"{agreed[0]:.2f}"]
    print(row, flush=True)
    return row


def main(names: list[str]) -> None:
    sets = {name: load for name, (load, _) in SETS.items()} | MORE
    known = rows_by_set("kernel_defaults") if names else {}
    rows = []
    for name, load in sets.items():
        again = not names or name in names
        rows += [accuracies(name, load, C) for C in (1.0, 10.0)] if again else known[name]
    columns = ["data", "C", "SVC", *CHOICES, "first agrees with SVC, %"]
    numbers = np.array([[float(cell or "nan") for cell in row[2:7]] for row in rows])
    below = numbers[:, 1:] - numbers[:, :1]
    summary = [
        f"{name}: mean difference to SVC {np.nanmean(column):+.2f} points, worst "
        f"{np.nanmin(column):+.2f}."
        for name, column in zip(CHOICES, below.T, strict=True)
    ]
    lines = [*table(columns, rows), "", *summary]
    write("kernel_defaults", "Defaults of KernelSVC: test accuracy in per cent", lines)


if __name__ == "__main__":
    main(sys.argv[1:])
