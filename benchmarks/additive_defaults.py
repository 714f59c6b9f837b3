"""Which defaults AdditiveSVC should have: kernel and tolerance, on every set at hand.

Test accuracy and seconds (one thread, one run each: not for comparison between lines) at the
default C, beside LinearSVC with its own defaults.  Columns are scaled to [0, 1] for LinearSVC where
they are not comparable; AdditiveSVC scales by itself.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import LinearSVC

from benchmarks import data
from benchmarks.report import SEED, one_thread, table, write
from widemargin import AdditiveSVC

ROWS, TEST_ROWS = 20_000, 10_000  # at most, chosen at random
KERNELS = ("linear", "chi2", "intersection")
TOLS = (1e-1, 1e-2, 1e-3)


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


def main() -> None:
    one_thread()
    rows, numbers = [], []
    choices = [(kernel, tol) for kernel in KERNELS for tol in TOLS]
    for name, load in SETS.items():
        parts = data.sampled(load(), ROWS, TEST_ROWS)
        scaler = MaxAbsScaler() if hasattr(parts[0], "tocsr") else MinMaxScaler()
        found = [measured(make_pipeline(scaler, LinearSVC(random_state=SEED)), *parts)]
        for kernel, tol in choices:
            found.append(measured(AdditiveSVC(kernel, tol=tol, random_state=SEED), *parts))
        numbers.append([right for right, _ in found])
        shape = f"{parts[0].shape[0]:,} x {parts[0].shape[1]:,}"
        rows.append([f"{name}, {shape}", *(f"{right:.2f} ({s:.2g})" for right, s in found)])
        print(rows[-1], flush=True)
    columns = ["data", "LinearSVC", *(f"{kernel}, {tol:g}" for kernel, tol in choices)]
    means = ", ".join(
        f"{column} {mean:.2f}"
        for column, mean in zip(columns[1:], np.mean(numbers, axis=0), strict=True)
    )
    lines = [*table(columns, rows), "", f"Means: {means}."]
    title = "Defaults of AdditiveSVC: test accuracy in per cent (seconds to fit)"
    write("additive_defaults", title, lines)


if __name__ == "__main__":
    main()
