"""Which defaults AdditiveSVC should have: kernel and tolerance, on every set at hand.

Test accuracy and seconds (one thread, one run each: not for comparison between lines) at the
default C, beside LinearSVC with its own defaults.  Columns are scaled to [0, 1] for LinearSVC where
they are not comparable; AdditiveSVC scales by itself.

``python -m benchmarks.additive_defaults`` measures all sets; names of sets measure these again, and
keep the rows of the others.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import LinearSVC

from benchmarks import data
from benchmarks.report import SEED, one_thread, rows_by_set, table, write
from widemargin import AdditiveSVC

ROWS, TEST_ROWS = 20_000, 10_000  # at most, chosen at random
KERNELS = ("linear", "chi2", "intersection")
TOLS = (1e-1, 1e-2, 1e-3)
CHOICES = [(kernel, tol) for kernel in KERNELS for tol in TOLS]


def split(load):
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=SEED, stratify=y)
    return X, y, X_test, y_test


def flat(parts):
    X, y, X_test, y_test = parts
    return X.reshape(len(X), -1), y, X_test.reshape(len(X_test), -1), y_test


SETS = {
    "iris": lambda: split(load_iris),
    "wine": lambda: split(load_wine),
    "breast cancer": lambda: split(load_breast_cancer),
    "digits": lambda: split(load_digits),
    "usps": data.usps,
    "mnist": lambda: flat(data.npz_pair("mnist.npz")),
    "fashion": lambda: flat(data.fashion()),
    "satimage": data.satimage,
    "letter": data.letter,
    "shuttle": data.shuttle,
    "covtype": lambda: data.covtype_classes(ROWS),
    "ijcnn1": data.ijcnn1,
    "a9a": data.a9a,
    "w8a": data.w8a,
    "sector": data.sector,
    "news20 counts": data.news20,
    "news20 tf-idf": data.news20_tfidf,
}


def measured(model, X, y, X_test, y_test) -> tuple[float, float]:
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.perf_counter() - started
    return 100 * float(np.mean(model.predict(X_test) == y_test)), seconds


def measured_row(name: str) -> list[str]:
    parts = data.sampled(SETS[name](), ROWS, TEST_ROWS)
    scaler = MaxAbsScaler() if hasattr(parts[0], "tocsr") else MinMaxScaler()
    found = [measured(make_pipeline(scaler, LinearSVC(random_state=SEED)), *parts)]
    for kernel, tol in CHOICES:
        found.append(measured(AdditiveSVC(kernel, tol=tol, random_state=SEED), *parts))
    shape = f"{parts[0].shape[0]:,} x {parts[0].shape[1]:,}"
    row = [f"{name}, {shape}", *(f"{right:.2f} ({s:.2g})" for right, s in found)]
    print(row, flush=True)
    return row


def main(names: list[str]) -> None:
    one_thread()
    known = rows_by_set("additive_defaults") if names else {}
    rows = [known[name][0] if names and name not in names else measured_row(name) for name in SETS]
    numbers = [[float(cell.split()[0]) for cell in row[1:]] for row in rows]
    columns = ["data", "LinearSVC", *(f"{kernel}, {tol:g}" for kernel, tol in CHOICES)]
    means = ", ".join(
        f"{column} {mean:.2f}"
        for column, mean in zip(columns[1:], np.mean(numbers, axis=0), strict=True)
    )
    told = "Seconds are those of one run each, some of them on a busy machine: not for comparison."
    lines = [told, "", *table(columns, rows), "", f"Means: {means}."]
    title = "Defaults of AdditiveSVC: test accuracy in per cent (seconds to fit)"
    write("additive_defaults", title, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
