"""`easy` against grid searches of SVC and LinearSVC: test accuracy, and seconds of all of it.

Grids are searched by three folds on the same 5,000 rows that `easy` looks at, and go beyond what it
chooses; the best is then trained on all rows, at most 20,000 of them, because of SVC.
"""

from __future__ import annotations

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
from widemargin.easy import CS, FOLDS, ROWS, Easy
from widemargin.selection import sample_rows

MINUTES = 10.0
MOST_ROWS, TEST_ROWS = 20_000, 10_000
BAR = 0.5  # points

SETS = {
    "breast cancer": lambda: split(load_breast_cancer),
    "digits": lambda: split(load_digits),
    "satimage": data.satimage,
    "usps": data.usps,
    "letter": lambda: dense(data.letter()),
    "shuttle": data.shuttle,
    "ijcnn1": data.ijcnn1_dense,
    "a9a": data.a9a,
    "w8a": data.w8a,
    "covtype, 7 classes": lambda: data.covtype_classes(MOST_ROWS),
    "news20, tf-idf": data.news20_tfidf,
}


def searched(model, grid, X, y):
    rows = sample_rows(X, y, ROWS)
    found = GridSearchCV(model, grid, cv=FOLDS, n_jobs=2).fit(X[rows], y[rows])
    return clone(found.best_estimator_).fit(X, y)


def methods(X) -> dict:
    """Pipelines and their grids."""
    sparse = sp.issparse(X)
    gammas = 4.0 ** np.arange(-2, 4) * Easy(X, np.zeros(X.shape[0]))._scale()
    scaler, standard = (MaxAbsScaler(),) * 2 if sparse else (MinMaxScaler(), StandardScaler())
    svc = make_pipeline(scaler, SVC(cache_size=2000))
    linear = make_pipeline(standard, LinearSVC(random_state=SEED))
    return {
        "SVC": (svc, {"svc__C": [*CS, 1000.0], "svc__gamma": gammas}),
        "LinearSVC": (linear, {"linearsvc__C": [0.01, *CS]}),
    }


def compare(name: str) -> list[str]:
    X, y, X_test, y_test = SETS[name]()
    rows = sample_rows(X, y, MOST_ROWS)
    X, y, X_test, y_test = X[rows], y[rows], X_test[:TEST_ROWS], y_test[:TEST_ROWS]
    cells, found = [f"{name}, {X.shape[0]:,} x {X.shape[1]:,}"], {}
    tasks = {"easy": Easy(X, y, seconds=60 * MINUTES, parameters={"n_jobs": -1}).fit}
    tasks |= {key: lambda m=m, g=g: searched(m, g, X, y) for key, (m, g) in methods(X).items()}
    for key, task in tasks.items():
        started = time.perf_counter()
        model = task()
        seconds = time.perf_counter() - started
        found[key] = 100 * float(np.mean(model.predict(X_test) == y_test))
        cells.append(f"{found[key]:.2f} ({seconds:.0f} s)")
    return [*cells, f"{found['easy'] - max(found['SVC'], found['LinearSVC']):+.2f}"]


def main(names: list[str]) -> None:
    rows = []
    for name in names or SETS:
        rows.append(compare(name))
        print(*rows[-1], sep=" | ", flush=True)
    columns = ["data", "easy", "SVC, grid", "LinearSVC, grid", "easy less the better, points"]
    lines = [f"Test accuracy in per cent. Bar: not below the better by more than {BAR}.", ""]
    write("easy", "easy against grid searches", [*lines, *table(columns, rows)])


if __name__ == "__main__":
    main(sys.argv[1:])
