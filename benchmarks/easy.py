"""`easy` against grid searches of SVC and LinearSVC: test accuracy, and seconds of all of it.

Grids are searched by three folds on the same rows that `easy` looks at; the best is then trained on
all. At most 2,000 rows of every set, drawn by class, so that no search of SVC takes minutes. Our
machines as they come are there too: what `easy` adds to them.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks import data
from benchmarks.many_classes import dense, split
from benchmarks.report import SEED, table, write
from widemargin import AdditiveSVC, KernelSVC
from widemargin.easy import CS, FOLDS, ROWS, Easy
from widemargin.selection import sample_rows

MINUTES = 4.0
MOST_ROWS, TEST_ROWS = 2000, 10_000
BAR = 0.5  # points

COLUMNS = ["data", "easy", "AdditiveSVC()", "KernelSVC(), scaled", "SVC, grid", "LinearSVC, grid",
           "easy less the best, points"]  # fmt: skip
SETS = {
    "breast cancer": lambda: split(load_breast_cancer),
    "digits": lambda: split(load_digits),
    "satimage": data.satimage,
    "letter": lambda: dense(data.letter()),
    "shuttle": data.shuttle,
    "ijcnn1": data.ijcnn1_dense,
    "a9a": data.a9a,
    "w8a": data.w8a,
    "covtype, 7 classes": lambda: data.covtype_classes(MOST_ROWS),
    "usps": data.usps,
}


def searched(model, grid, X, y):
    rows = sample_rows(X, y, ROWS)
    found = GridSearchCV(model, grid, cv=FOLDS).fit(X[rows], y[rows])
    return clone(found.best_estimator_).fit(X, y)


def methods(X) -> dict:
    """Pipelines and their grids."""
    sparse = sp.issparse(X)
    gammas = 4.0 ** np.arange(-2, 3) * Easy(X, np.zeros(X.shape[0]))._scale()
    scaler, standard = (MaxAbsScaler(),) * 2 if sparse else (MinMaxScaler(), StandardScaler())
    svc = make_pipeline(scaler, SVC(cache_size=2000))
    linear = make_pipeline(standard, LinearSVC(random_state=SEED))
    return {
        "SVC": (svc, {"svc__C": CS, "svc__gamma": gammas}),
        "LinearSVC": (linear, {"linearsvc__C": [0.01, 0.1, 1.0]}),
    }


def compare(name: str) -> list[str]:
    X, y, X_test, y_test = SETS[name]()
    rows = sample_rows(X, y, MOST_ROWS)
    X, y, X_test, y_test = X[rows], y[rows], X_test[:TEST_ROWS], y_test[:TEST_ROWS]
    cells, found = [f"{name}, {X.shape[0]:,} x {X.shape[1]:,}"], {}
    tasks = {"easy": Easy(X, y, seconds=60 * MINUTES).fit}
    scaler = MaxAbsScaler() if sp.issparse(X) else MinMaxScaler()
    ours = {"AdditiveSVC": AdditiveSVC(random_state=SEED)}
    ours["KernelSVC"] = make_pipeline(scaler, KernelSVC(random_state=SEED))
    tasks |= {key: lambda m=m: m.fit(X, y) for key, m in ours.items()}
    tasks |= {key: lambda m=m, g=g: searched(m, g, X, y) for key, (m, g) in methods(X).items()}
    for key, task in tasks.items():
        started = time.perf_counter()
        model = task()
        seconds = time.perf_counter() - started
        found[key] = 100 * float(np.mean(model.predict(X_test) == y_test))
        cells.append(f"{found[key]:.2f} ({seconds:.0f} s)")
    return [*cells, f"{found['easy'] - max(found.values()):+.2f}"]


def main(names: list[str]) -> None:
    rows = []
    for name in names or SETS:
        rows.append(compare(name))
        write("easy", "easy against grid searches", [*_said(rows), *table(COLUMNS, rows)])


def _said(rows: list[list[str]]) -> list[str]:
    worst = min(float(row[-1]) for row in rows)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    busy = f" The machine was busy ({load:.0f} tasks per core): the seconds say little."
    return [
        f"Test accuracy in per cent, and seconds of search and fit, at most {MOST_ROWS:,} rows.",
        f"Bar: not below the best of all by more than {BAR}; the worst is {worst:+.2f}."
        + busy * (load > 1.5),
        "",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
