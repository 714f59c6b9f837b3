"""Kernel machines, mostly on many classes: fit time, accuracy and agreement with SVC.

Every machine has the same C and gamma: the defaults, or what the literature uses where the table
names them.  Peers have a cache of 6 GB; SVC is run once where it is slow, and not at all where it
takes many minutes.  SVC breaks ties of votes as ours does (break_ties=True) for the last column.

``python -m benchmarks.many_classes small``, ``large``, ``hundreds`` and ``two`` write a table each;
names of sets run these and write none.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import (
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_hastie_10_2,
    make_moons,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import data
from benchmarks.report import SEED, alternate, table, write
from widemargin import KernelSVC

REPEATS, TEST_ROWS = 5, 10_000
FEW, MANY_TURNS = 1_500, 200  # rows whose fit takes milliseconds, of which few turns say little
CACHE = 6000
MADE = ((20, 30), (50, 20), (100, 20), (200, 10), (200, 20), (500, 5))  # classes, rows of each


def split(load):
    """A set that ships with scikit-learn, standardised; 60 % to learn from."""
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=SEED, stratify=y)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def dense(parts):
    X, y, X_test, y_test = parts
    return X.toarray().astype(np.float32), y, X_test.toarray().astype(np.float32), y_test


def first(n, parts):
    X, y, X_test, y_test = parts
    return X[:n], y[:n], X_test, y_test


def scaled(parts):
    X, y, X_test, y_test = parts
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def images(parts):
    X, y, X_test, y_test = parts
    X, X_test = ((Z.reshape(len(Z), -1) / 255).astype(np.float32) for Z in (X, X_test))
    return X, y, X_test, y_test


def made(n_classes, n_rows):
    """Rows around random centres, near enough for classes to touch; as many again to score."""
    rng = np.random.default_rng(SEED)
    y = np.repeat(np.arange(n_classes), 2 * n_rows)
    X = rng.normal(size=(n_classes, 16))[y] + 0.7 * rng.normal(size=(len(y), 16))
    return X[::2], y[::2], X[1::2], y[1::2]


def halved(X, y):
    """As many rows to score as to learn from."""
    return X[::2], y[::2], X[1::2], y[1::2]


def overlapping(n_rows, n_features):
    return make_classification(
        2 * n_rows, n_features, n_informative=n_features // 3, flip_y=0.1, random_state=SEED
    )


SETS = {
    "iris": (lambda: split(load_iris), {}),
    "wine": (lambda: split(load_wine), {}),
    "digits": (lambda: split(load_digits), {}),
    "letter2000": (lambda: first(2000, dense(data.letter())), {}),
    "satimage": (lambda: scaled(data.satimage()), {}),
    "usps": (lambda: data.usps(), {}),
    "letter": (lambda: dense(data.letter()), {}),
    "shuttle": (lambda: scaled(data.shuttle()), {}),
    "covtype": (lambda: data.covtype_classes(30_000), {"C": 32.0, "gamma": 32.0}),
    "sector": (data.sector, {}),
    **{f"made of {n} x {m}": (partial(made, n, m), {}) for n, m in MADE},
    "mnist": (lambda: images(data.npz_pair("mnist.npz")), {"C": 8.0, "gamma": 0.04}),
    "a9a": (data.a9a, {}),
    "w8a": (lambda: halved(*data.w8a()[:2]), {}),
    "moons": (lambda: halved(*make_moons(100_000, noise=0.3, random_state=SEED)), {}),
    "spheres": (lambda: halved(*make_hastie_10_2(24_000, random_state=SEED)), {}),
    "overlapping": (lambda: halved(*overlapping(10_000, 20)), {}),
    "overlapping, more features": (lambda: halved(*overlapping(10_000, 100)), {}),
}
OURS = {"KernelSVC": {}}
SLOW, TOO_SLOW = 20_000, 50_000  # rows, from which SVC is run once, as on texts, and never


def compare(name: str) -> list[list[str]]:
    load, settings = SETS[name]
    X, y, X_test, y_test = load()
    models = {
        key: KernelSVC(n_jobs=2, random_state=SEED, **settings, **own) for key, own in OURS.items()
    }
    if find_spec("sklearnex"):
        from sklearnex import svm as intel

        models["scikit-learn-intelex"] = intel.SVC(cache_size=CACHE, **settings)
    svc = SVC(cache_size=CACHE, break_ties=True, **settings)
    slow = len(y) >= SLOW or sp.issparse(X)
    if not slow:
        models["SVC"] = svc
    repeats = MANY_TURNS if len(y) < FEW else 2 if slow else REPEATS
    seconds = alternate({n: (lambda m=m: m.fit(X, y)) for n, m in models.items()}, repeats)
    if slow and len(y) < TOO_SLOW:
        models["SVC"] = svc
        started = time.perf_counter()
        svc.fit(X, y)
        seconds["SVC"] = time.perf_counter() - started
    ours = seconds[next(iter(models))]
    X_test, y_test = X_test[:TEST_ROWS], y_test[:TEST_ROWS]
    predicted = {key: model.predict(X_test) for key, model in models.items()}
    expected = predicted.get("SVC")
    said = ", ".join(f"{k} = {v:g}" for k, v in settings.items()) or "defaults"
    what = f"{name}: {len(y):,} x {X.shape[1]}, {len(np.unique(y))} classes, {said}"
    rows = []
    for key, found in predicted.items():
        agreed = "" if expected is None else f"{100 * np.mean(found == expected):.2f}"
        times = [f"{seconds[key]:.3f}", f"{seconds[key] / ours:.2f}"]
        rows.append([what, key, *times, f"{100 * np.mean(found == y_test):.2f}", agreed])
        print(rows[-1], flush=True)
        what = ""
    return rows


LARGE = ("covtype", "mnist")
HUNDREDS = (*(name for name in SETS if name.startswith("made")), "sector")
TWO = ("a9a", "w8a", "moons", "spheres", "overlapping", "overlapping, more features")
OTHERS = [name for name in SETS if name not in LARGE + HUNDREDS + TWO]
PARTS = {"small": OTHERS, "large": list(LARGE), "hundreds": list(HUNDREDS), "two": list(TWO)}


def main() -> None:
    columns = ["data", "", "fit, s", "its time / ours", "accuracy, %", "agreement with SVC, %"]
    for name in sys.argv[1:] or PARTS:
        rows = [row for each in PARTS.get(name, [name]) for row in compare(each)]
        if name in PARTS:
            title = f"Kernel machines on many classes: {name}"
            title = "Kernel machines on two classes" if name == "two" else title
            write("many_classes", title, table(columns, rows), part=name)


if __name__ == "__main__":
    main()
