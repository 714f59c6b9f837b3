"""`KernelSVC` in the place of SVC: the same predictions, the cost of its intercept, probabilities.

Both at tol = 1e-6 on two thirds of the rows of ten sets, C from .03 to 1,000; labels of the other
rows.  Ties of votes go to the first class, as SVC has them.  The cost of the free intercept is CPU
time at default settings with and without it.  The log loss of probabilities is of held-out halves,
the mean of six splits.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.report import SEED, alternate, one_thread, table, write
from widemargin import CalibratedSVC, KernelSVC

CS = (0.03, 0.1, 1.0, 10.0, 100.0, 1000.0)
KERNELS = ("rbf", "poly")
SPLITS = 6


def _made(n: int, classes: int, seed: int, **how):
    how = {"n_informative": 6, "flip_y": 0.1, **how}
    return make_classification(n, 8, n_classes=classes, random_state=seed, **how)


def _some(X, y):
    return X[:900] / 16, y[:900]


SETS = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "digits, 900 rows": _some(*load_digits(return_X_y=True)),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "moons": make_moons(600, noise=0.3, random_state=SEED),
    "2 classes": _made(600, 2, 0),
    "3 classes": _made(600, 3, 1),
    "5 classes": _made(1000, 5, 2),
    "7 classes": _made(1400, 7, 3),
    "9 to 1": _made(800, 2, 4, weights=[0.9]),
}


def halves(X, y, seed: int, share: float):
    X, rows = StandardScaler().fit_transform(X), np.random.default_rng(seed).permutation(len(y))
    train, test = rows[: int(share * len(y))], rows[int(share * len(y)) :]
    return X[train], y[train], X[test], y[test]


def differences(X, y) -> tuple[int, int]:
    """Labels that differ, and all of them."""
    train, labels, test, _ = halves(X, y, SEED, 2 / 3)
    n, of = 0, 0
    for kernel in KERNELS:
        for C in CS:
            ours = KernelSVC(kernel, C=C, tol=1e-6, break_ties=False).fit(train, labels)
            theirs = SVC(kernel=kernel, C=C, tol=1e-6, cache_size=1000).fit(train, labels)
            n += int(np.sum(ours.predict(test) != theirs.predict(test)))
            of += len(test)
    return n, of


def cost(X, y) -> tuple[float, float]:
    """CPU milliseconds of a fit with a free intercept and without."""
    X = StandardScaler().fit_transform(X)
    tasks = {k: lambda k=k: KernelSVC(fit_intercept=k).fit(X, y) for k in (True, False)}
    seconds = alternate(tasks, 9, time.process_time)
    return 1e3 * seconds[True], 1e3 * seconds[False]


def losses(X, y) -> tuple[float, float]:
    found = []
    for seed in range(SPLITS):
        train, labels, test, truth = halves(X, y, seed, 0.5)
        for model in (CalibratedSVC(KernelSVC()), SVC(probability=True, random_state=seed)):
            probability = model.fit(train, labels).predict_proba(test)
            found.append(log_loss(truth, probability))
    return float(np.mean(found[::2])), float(np.mean(found[1::2]))


def main() -> None:
    one_thread()
    warnings.simplefilter("ignore")
    lines = []
    for name, (X, y) in SETS.items():
        n, of = differences(X, y)
        free, without = cost(X, y)
        ours, theirs = losses(X, y)
        lines.append(
            [
                f"{name}, {len(y):,} x {X.shape[1]}",
                f"{n} of {of:,}",
                f"{free:.1f}",
                f"{without:.1f}",
                f"{free / without:.2f}",
                f"{ours:.3f}",
                f"{theirs:.3f}",
                f"{ours / theirs:.2f}",
            ]
        )
    heads = ["data", "labels that differ", "free intercept, CPU ms", "without", "times"]
    heads += ["log loss", "SVC's", "times"]
    text = [" ".join(__doc__.split("\n\n")[1].split()), ""]
    write("drop_in", "KernelSVC in the place of SVC", text + table(heads, lines))


if __name__ == "__main__":
    main()
