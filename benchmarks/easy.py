"""`easy` against grid searches of SVC and LinearSVC: test accuracy, and seconds of all of it.

Grids are searched by the three folds that `easy` looks at first, and go on by one step where the
best is at an end of them; the best is then trained on all. A few thousand rows of every set, drawn
by class, so that no search of SVC takes many minutes. Our machines as they come are there too: what
`easy` adds to them. Rows that the table has already are kept: take one out to measure it again.
"""

from __future__ import annotations

import sys
import time
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks import data
from benchmarks.many_classes import dense
from benchmarks.report import SEED, kept_rows, one_thread, table, write
from widemargin import AdditiveSVC, AutoSVC, KernelSVC
from widemargin.search import CS, FOLDS
from widemargin.selection import sample_rows

MINUTES = 4.0
TEST_ROWS = 10_000
MOST_STEPS = 6  # by which a peer's grid goes on
BAR = 0.5  # points

COLUMNS = ["data", "easy", "AdditiveSVC()", "KernelSVC(), scaled", "SVC, grid", "LinearSVC, grid",
           "easy less the best, points"]  # fmt: skip
FEW = {"breast cancer": load_breast_cancer, "digits": load_digits}
SPLITS = 5  # of sets of so few test rows that one of them is a tenth of a point and more
SETS = {
    "satimage": data.satimage,
    "letter": lambda: dense(data.letter()),
    "shuttle": data.shuttle,
    "ijcnn1": data.ijcnn1_dense,
    "a9a": data.a9a,
    "w8a": data.w8a,
    "covtype, 7 classes": lambda: data.covtype_classes(20_000),
    "usps": data.usps,
}


SIZES = [(2000, 0, [*FEW, *SETS]), (1000, 1, list(SETS)),
         (4000, 2, ["satimage", "shuttle", "ijcnn1", "covtype, 7 classes"])]  # fmt: skip
"""Rows, the seed that draws them, and of which sets."""
TASKS = [(name, n_rows, seed) for n_rows, seed, names in SIZES for name in names]


def searched(model, grid: dict[str, list[float]], X, y):
    """The best of a grid, which goes on until the best is inside of it; of equals the smallest."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    scores: dict[tuple[float, ...], float] = {}
    for _ in range(MOST_STEPS):
        for point in product(*grid.values()):
            if point not in scores:
                tried = clone(model).set_params(**dict(zip(grid, point, strict=True)))
                scores[point] = cross_val_score(tried, X, y, cv=folds).mean()
        best = max(sorted(scores), key=scores.__getitem__)
        inside = True
        for value, values in zip(best, grid.values(), strict=True):
            if value == values[0]:
                values.insert(0, values[0] ** 2 / values[1])
                inside = False
            elif value == values[-1]:
                values.append(values[-1] ** 2 / values[-2])
                inside = False
        if inside:
            break
    return clone(model).set_params(**dict(zip(grid, best, strict=True))).fit(X, y), inside


def methods(X) -> dict:
    """Pipelines and their grids."""
    sparse = sp.issparse(X)
    scaler, standard = (MaxAbsScaler(),) * 2 if sparse else (MinMaxScaler(), StandardScaler())
    scaled = scaler.fit_transform(X)
    square = (scaled.multiply(scaled) if sparse else np.square(scaled)).mean()
    gammas = 4.0 ** np.arange(-2, 3) / (X.shape[1] * (square - scaled.mean() ** 2))
    svc = make_pipeline(scaler, SVC(cache_size=2000))
    linear = make_pipeline(standard, LinearSVC(random_state=SEED))
    return {
        "SVC": (svc, {"svc__C": list(CS), "svc__gamma": list(gammas)}),
        "LinearSVC": (linear, {"linearsvc__C": [0.01, 0.1, 1.0]}),
    }


def samples(name: str, n_rows: int, seed: int):
    """Rows to learn from, and rows to test on."""
    if name in FEW:
        X, y = FEW[name](return_X_y=True)
        for own in range(SPLITS):
            parts = train_test_split(X, y, test_size=0.4, random_state=own, stratify=y)
            yield parts[0], parts[2], parts[1], parts[3]
        return
    X, y, X_test, y_test = SETS[name]()
    rows = sample_rows(X, y, n_rows, seed)
    yield X[rows], y[rows], X_test[:TEST_ROWS], y_test[:TEST_ROWS]


def fits(X, y) -> dict:
    """What is compared: calls that return a model, and whether its grid has gone on far enough."""
    scaler = MaxAbsScaler() if sp.issparse(X) else MinMaxScaler()
    ours = {"AdditiveSVC": AdditiveSVC(random_state=SEED)}
    ours["KernelSVC"] = make_pipeline(scaler, KernelSVC(random_state=SEED))
    chosen = AutoSVC(60 * MINUTES, scoring="accuracy", random_state=SEED)
    tasks = {"easy": lambda: (chosen.fit(X, y), True)}
    tasks |= {key: lambda m=m: (m.fit(X, y), True) for key, m in ours.items()}
    return tasks | {k: lambda m=m, g=g: searched(m, g, X, y) for k, (m, g) in methods(X).items()}


def compare(name: str, n_rows: int, seed: int) -> list[str]:
    found: dict[str, list[tuple[float, float, bool]]] = {}
    for X, y, X_test, y_test in samples(name, n_rows, seed):
        for key, task in fits(X, y).items():
            started = time.perf_counter()
            model, inside = task()
            seconds = time.perf_counter() - started
            right = 100 * float(np.mean(model.predict(X_test) == y_test))
            found.setdefault(key, []).append((right, seconds, inside))
    many = f", mean of {SPLITS} splits" * (name in FEW)
    cells, means = [f"{name}, {X.shape[0]:,} x {X.shape[1]:,}{many}"], {}
    for key, runs in found.items():
        means[key] = float(np.mean([right for right, *_ in runs]))
        longest = max(seconds for _, seconds, _ in runs)
        ends = ", end of grid" * (not all(inside for *_, inside in runs))
        cells.append(f"{means[key]:.2f} ({longest:.0f} s)" + ends)
    return [*cells, f"{means['easy'] - max(means.values()):+.2f}"]


def main(names: list[str]) -> None:
    one_thread()
    rows = kept()
    for task in TASKS:
        if task not in rows and (not names or task[0] in names):
            rows[task] = compare(*task)
            there = [rows[t] for t in TASKS if t in rows]
            write("easy", "easy against grid searches", [*_said(there), *table(COLUMNS, there)])


def kept() -> dict[tuple[str, int, int], list[str]]:
    """Rows of the table as it is, which a run that was stopped has left."""
    rows, found = kept_rows("easy"), {}
    for task in TASKS:
        name, n_rows, _ = task
        start = f"{name}, " + ("" if name in FEW else f"{n_rows:,} x ")
        own = [row for row in rows if row[0].startswith(start)]
        if own:
            found[task] = own[0]
    return found


def _said(rows: list[list[str]]) -> list[str]:
    below = [float(row[-1]) for row in rows]
    longest = max(int(row[1].split("(")[1].split(" s")[0]) for row in rows)
    missing = len(TASKS) - len(rows)
    return [
        "Test accuracy in per cent, and seconds of search and fit in one thread of a machine that "
        "others use too.",
        f"`easy` had {60 * MINUTES:.0f} s and took {longest} s at most.",
        f"Bar: not below the best of all by more than {BAR}; it is below in "
        f"{sum(b < -BAR for b in below)} of {len(below)} rows, the worst is {min(below):+.2f}.",
        *[f"{missing} of {len(TASKS)} rows are not measured yet."] * (missing > 0),
        "",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
