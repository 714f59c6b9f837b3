"""Our machines against scikit-learn's on the data that comes with it: minutes, nothing to fetch.

One thread for all.  C of every SVM and the learning rate of boosted trees are chosen by
cross-validation of the training rows.  AdditiveSVC scales its features itself, the other SVMs get
standardised ones.

``python -m benchmarks.comparison [FOLDER] [--quick]`` prints a table and writes FOLDER/index.html
(build/comparison by default).  20 splits of each data set; --quick takes 3, in two minutes.  Ctrl-C
keeps what is done.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.peer_gaps import relative_gap
from benchmarks.report import table
from widemargin import AdditiveSVC, KernelSVC
from widemargin.resources import one_blas_thread, one_openmp_thread

DATA: dict[str, Callable] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}
MACHINES: dict[str, Callable[[], Any]] = {
    "AdditiveSVC": lambda: AdditiveSVC(random_state=0),
    "KernelSVC": lambda: make_pipeline(StandardScaler(), KernelSVC(random_state=0)),
    "LinearSVC": lambda: make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
    "SVC": lambda: make_pipeline(StandardScaler(), SVC()),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}
OURS = ("AdditiveSVC", "KernelSVC")
GRIDS = {
    "C": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
    "learning_rate": (0.03, 0.1, 0.3),
}
FOLDS, TEST_SHARE = 3, 0.3
REPEATS, ENOUGH = 3, 1.0  # timings of a fit, unless they took so many seconds already
FIGURES = ("right, %", "spread", "learn, s", "label, us a row", "gap", "tuned")


@dataclass(frozen=True)
class Fit:
    """One machine on one split of one data set."""

    parameter: str  # that was tuned, and the value that it got
    value: float
    accuracy: float
    fit_seconds: float
    predict_seconds: float  # of all rows
    rows: int
    gap: float | None  # None where the machine has none that its coefficients tell


@dataclass(frozen=True)
class Outcome:
    """One machine on one data set: its fits, a split each."""

    data: str
    machine: str
    fits: tuple[Fit, ...]

    def median(self, name: str) -> float | None:
        values = [value for fit in self.fits if (value := getattr(fit, name)) is not None]
        return float(np.median(values)) if values else None

    @property
    def accuracy(self) -> float:
        """The mean over splits, in per cent."""
        return 100 * float(np.mean([fit.accuracy for fit in self.fits]))

    @property
    def spread(self) -> float:
        """The standard deviation over splits, in points."""
        return 100 * float(np.std([fit.accuracy for fit in self.fits]))

    @property
    def tuned(self) -> str:
        """The median of what the splits chose, with a star where one chose the end of the grid."""
        star = "*" if self.at_end_of_grid else ""
        return f"{self.fits[0].parameter} {self.median('value'):g}{star}"

    @property
    def worst_gap(self) -> float | None:
        gaps = [fit.gap for fit in self.fits if fit.gap is not None]
        return max(gaps) if gaps else None

    @property
    def microseconds_per_row(self) -> float:
        return 1e6 * float(np.median([fit.predict_seconds / fit.rows for fit in self.fits]))

    @property
    def figures(self) -> tuple[str, ...]:
        """As `FIGURES` names them."""
        return (
            f"{self.accuracy:.2f}",
            f"{self.spread:.2f}",
            f"{self.median('fit_seconds'):.3g}",
            f"{self.microseconds_per_row:.3g}",
            "" if self.worst_gap is None else f"{self.worst_gap:.1e}",
            self.tuned,
        )

    @property
    def at_end_of_grid(self) -> bool:
        """Whether a value beyond the grid might have been better."""
        return any(
            fit.value in GRIDS[fit.parameter][:: len(GRIDS[fit.parameter]) - 1] for fit in self.fits
        )


def compare(splits: int, begin: Callable[[str], None] = lambda name: None) -> Iterator[Outcome]:
    """Every machine on every data set, one after the other; ``begin`` hears what comes next.

    Examples
    --------
    >>> first = next(compare(splits=1))
    >>> first.data, first.machine, first.accuracy > 85
    ('iris', 'AdditiveSVC', True)
    """
    for data, load in DATA.items():
        X, y = load(return_X_y=True)
        for machine, make in MACHINES.items():
            begin(f"{data}, {machine}")
            yield Outcome(data, machine, tuple(_fit(make, X, y, seed) for seed in range(splits)))


def _fit(make: Callable[[], Any], X, y, seed: int) -> Fit:
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=TEST_SHARE, stratify=y, random_state=seed
    )
    with warnings.catch_warnings(), one_blas_thread(), one_openmp_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at the end of a grid; gaps tell
        tuned, model = _tuned(make(), X, y)
        fit_seconds = _least_time(lambda: model.fit(X, y))
        predict_seconds = _least_time(lambda: model.predict(X_test))
        accuracy = float(np.mean(model.predict(X_test) == y_test))
        gap = relative_gap(model, X, y)
    return Fit(*tuned, accuracy, fit_seconds, predict_seconds, len(y_test), gap)


def _tuned(model, X, y) -> tuple[tuple[str, float], Any]:
    """What was tuned and its best value, the smaller one of equals; and the machine with it."""
    ((path, name),) = (
        (path, name) for path in model.get_params() if (name := path.rpartition("__")[2]) in GRIDS
    )
    search = GridSearchCV(
        model, {path: list(GRIDS[name])}, cv=FOLDS, refit=False, error_score="raise"
    ).fit(X, y)
    return (name, search.best_params_[path]), model.set_params(**search.best_params_)


def _least_time(task: Callable[[], object]) -> float:
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < ENOUGH:
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
    return min(times)


def average_ranks(outcomes: list[Outcome]) -> dict[str, float]:
    """Of machines by accuracy, over the data sets that all of them have ended; 1 is best.

    >>> def one(machine, accuracy):
    ...     return Outcome("iris", machine, (Fit("C", 1.0, accuracy, 0.1, 0.1, 10, None),))
    >>> ranks = average_ranks([one(name, 0.9 + 0.01 * (name == "SVC")) for name in MACHINES])
    >>> ranks["SVC"], ranks["AdditiveSVC"]
    (1.0, 3.5)
    """
    ranks: dict[str, list[float]] = {machine: [] for machine in MACHINES}
    for data in DATA:
        own = {o.machine: round(o.accuracy, 6) for o in outcomes if o.data == data}
        if len(own) == len(MACHINES):
            for machine, rank in zip(own, rankdata([-a for a in own.values()]), strict=True):
                ranks[machine].append(float(rank))
    return {machine: float(np.mean(r)) for machine, r in ranks.items() if r}


def main(folder: Path, splits: int) -> int:
    """Print a table, write a page, and return the exit status."""
    from benchmarks.comparison_page import write_comparison

    outcomes: list[Outcome] = []
    n = len(DATA) * len(MACHINES)
    print(f"{splits} splits of every data set, one thread", file=sys.stderr)
    try:
        for outcome in compare(splits):
            outcomes.append(outcome)
            seconds = outcome.median("fit_seconds")
            told = f"{outcome.accuracy:.2f} %, {seconds:.3g} s to learn"
            print(f"{outcome.data}, {outcome.machine}: {told}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"interrupted after {len(outcomes)} of {n} machines.", file=sys.stderr)
    if outcomes:
        rows = [[o.data, o.machine, *o.figures] for o in outcomes]
        print(*table(["", "machine", *FIGURES], rows), sep="\n")
        folder.mkdir(parents=True, exist_ok=True)
        print(write_comparison(outcomes, folder))
    return 0 if len(outcomes) == n else 130


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Our machines against scikit-learn's.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/comparison"))
    parser.add_argument("--quick", action="store_true", help="3 splits of each data set, not 20")
    arguments = parser.parse_args()
    sys.exit(main(arguments.folder, 3 if arguments.quick else 20))
