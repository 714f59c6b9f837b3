"""AutoSVC at its default against default forests and boosted trees, on sets held apart.

The sets were chosen before any rule of the search was written.  None of them is in
benchmarks/easy.py or among the twelve of benchmarks/experiments/tables/today.toml, by which rules
are settled: `columns` compares on small pieces of these what is done to the columns before an RBF
kernel.  Of AutoSVC a part is measured again: with five seeds, on a rare class, and on MNIST.

The clock of AutoSVC is that of its process, whose seconds are those of all its threads together, so
that a table depends less on what else runs: 30 of them are 15 s or more on two cores.
"""

from __future__ import annotations

import io
import sys
import tarfile
import time
import tomllib
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris, load_sample_image, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import data, prepared
from benchmarks.report import SEED, kept_rows, table, write
from widemargin import AutoSVC, TableEncoder, candidates, pace, read, selection
from widemargin.selection import Sample, cross_validated, folds_of, ranked

LIMIT = 30.0  # seconds of AutoSVC
SHORT = 10.0  # the same with five seeds, and on a rare class
MNIST_LIMIT = 30.0
OWN = "Seconds are those of the process, all threads together."
ROWS = 5_000  # to train on, at most; and to test on
WORDS = 500
TODAY = Path(__file__).parent / "experiments" / "tables" / "today.toml"
COLUMN_WIDTHS, COLUMN_CS = (1 / 16, 1 / 4, 1.0, 4.0), (1.0, 10.0, 100.0)
PREPARED = ["scaled", "weighted", "normal scores, weighted", "standardised, weighted",
            "normal scores", "standardised"]  # fmt: skip
PATCH = 4  # pixels
THUMBNAIL = 16


def diabetes_median():
    X, y = load_diabetes(return_X_y=True)
    return X, y > np.median(y)


def diabetes_sex():
    X, _ = load_diabetes(return_X_y=True)
    return np.delete(X, 1, axis=1), X[:, 1] > 0


def frequent_words():
    """The counts of the most frequent words of the training part of 20 Newsgroups."""
    X, y, *_ = data.news20()
    frequent = np.argsort(-np.asarray((X > 0).sum(axis=0)).ravel(), kind="stable")[:WORDS]
    return X[:, np.sort(frequent)].toarray(), y


def census_column(label: int, *known: int):
    """A frame of census-income with another column as the label, without those that tell it."""
    found = read(data.folder() / "census-income.test.zip", label=label, na=["?"])
    return found.X.to_pandas().drop(columns=[str(column) for column in known]), found.y


def attacks():
    """Which of the five most frequent kinds of connection, or any other (KDD, corrected)."""
    found = read(data.folder() / "kddcup99.corrected.gz", label=-1)
    kinds, counts = np.unique(found.y, return_counts=True)
    frequent = kinds[np.argsort(-counts)[:5]]
    return found.X.to_pandas(), np.where(np.isin(found.y, frequent), found.y, "other")


def photographs():
    """Patches of two photographs: which of them a patch is of."""
    parts = []
    for name in ("china.jpg", "flower.jpg"):
        image = load_sample_image(name)
        rows, columns = (PATCH * (size // PATCH) for size in image.shape[:2])
        blocks = image[:rows, :columns].reshape(rows // PATCH, PATCH, columns // PATCH, PATCH, 3)
        parts.append(blocks.swapaxes(1, 2).reshape(-1, PATCH * PATCH * 3))
    return np.concatenate(parts), np.repeat([0, 1], [len(part) for part in parts])


def thumbnails():
    """The 15 kinds of scenes, as small grey pictures."""
    from PIL import Image

    X, y = [], []
    with tarfile.open(data.folder() / "scene15.tar") as archive:
        for member in archive:
            if member.isfile():
                picture = Image.open(io.BytesIO(archive.extractfile(member).read()))
                X.append(np.asarray(picture.convert("L").resize((THUMBNAIL, THUMBNAIL))).ravel())
                y.append(member.name.split("/")[1])
    return np.array(X), np.array(y)


APART: dict[str, Callable] = {
    "wine": partial(load_wine, return_X_y=True),
    "iris": partial(load_iris, return_X_y=True),
    "diabetes, above the median": diabetes_median,
    "diabetes, sex": diabetes_sex,
    "census, sex": partial(census_column, 12, 22),
    "census, marital status": partial(census_column, 7, 19, 22, 23),
    "kddcup99 corrected, kind": attacks,
    "two photographs": photographs,
    "scene15, thumbnails": thumbnails,
    "news20, 500 words": frequent_words,
}


def samples(name: str, seed: int = SEED):
    """Rows to learn from and rows to test on: half of the data each, and ROWS at most."""
    X, y = APART[name]()
    size = min(ROWS, len(y) // 2)
    sizes = {"train_size": size, "test_size": size, "stratify": y, "random_state": seed}
    return train_test_split(X, y, **sizes)


def timed(model, X, y) -> float:
    """Fit by the clock of this process, and return the seconds of it."""
    clock = SimpleNamespace(monotonic=time.process_time, perf_counter=time.process_time)
    began = time.process_time()
    with (
        mock.patch.object(pace, "time", clock),
        mock.patch.object(selection, "time", clock),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return time.process_time() - began


def others() -> dict:
    """Default forests and boosted trees; categories in the way that suits each."""
    encoder = TableEncoder(scaling=None, sparse_output=False)
    forest = RandomForestClassifier(random_state=SEED)
    trees = HistGradientBoostingClassifier(random_state=SEED)
    return {"forest": make_pipeline(encoder, forest), "boosted trees": trees}


def score(auto: AutoSVC, model, X, y) -> float:
    """Of what AutoSVC maximised, in per cent."""
    measure = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return 100 * float(measure[auto.scoring_](y, model.predict(X)))


def compare(name: str) -> list[str]:
    X, X_test, y, y_test = samples(name)
    auto = AutoSVC(LIMIT, random_state=SEED)
    seconds = [f"{timed(auto, X, y):.1f}"]
    found = [score(auto, auto, X_test, y_test)]
    for model in others().values():
        seconds.append(f"{timed(model, X, y):.1f}")
        found.append(score(auto, model, X_test, y_test))
    better = [found[0] - other for other in found[1:]]
    cells = [f"{s:.2f}" for s in found] + [f"{b:+.2f}" for b in better]
    measure = auto.scoring_.replace("_", " ")
    return [f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", measure, *cells, *seconds]


COLUMNS = [
    *("data", "score", "AutoSVC, %", "forest, %", "boosted trees, %"),
    *("less the forest", "less boosted trees"),
    *("AutoSVC, s", "forest, s", "boosted trees, s"),
]


def apart() -> None:
    rows = {row[0]: row for row in kept_rows("autosvc")[1:]}
    for name in APART:
        if not any(first.startswith(f"{name}, ") for first in rows):
            own = compare(name)
            rows[own[0]] = own
        write("autosvc", "AutoSVC against default forests and boosted trees", _said(rows))


def _said(rows: dict[str, list[str]]) -> list[str]:
    found = list(rows.values())
    good = sum(min(float(row[5]), float(row[6])) >= 0 for row in found)
    each = [sum(float(row[k]) >= 0 for row in found) for k in (5, 6)]
    longest = max(float(row[7]) for row in found)
    return [
        f"Half of the rows to train on, 5,000 at most. {OWN} The limit of AutoSVC was {LIMIT:g} s; "
        f"its longest fit took {longest:.1f} s.",
        f"Bar: at least as good as both on 8 of 10 sets. It is on {good} of {len(found)}; as the "
        f"forest on {each[0]}, as boosted trees on {each[1]}.",
        "",
        *table(COLUMNS, found),
    ]


def seeds() -> None:
    """Another seed of AutoSVC, the same rows."""
    rows: list[list[str]] = []
    for name in ("diabetes, above the median", "wine", "iris", "two photographs"):
        X, X_test, y, y_test = samples(name)
        found = []
        for seed in range(5):
            auto = AutoSVC(SHORT, random_state=seed)
            timed(auto, X, y)
            found.append(score(auto, auto, X_test, y_test))
        rows.append([name, ", ".join(f"{s:.2f}" for s in found), f"{np.std(found):.2f}"])
        columns = ["data", "test scores of five seeds, %", "standard deviation"]
        said = f"Limit {SHORT:g} s. {OWN} Bar: a standard deviation below 0.3 points."
        lines = [said, "", *table(columns, rows)]
        write("autosvc", "AutoSVC with five seeds", lines, "seeds")


def imbalance() -> None:
    """Digit 9 of MNIST against the others, thinned to 7 %."""
    X, y, X_test, y_test = data.mnist()
    rng = np.random.default_rng(SEED)
    rare = rng.permutation(np.flatnonzero(y == 9))[:210]
    others = rng.permutation(np.flatnonzero(y != 9))[:2790]
    digits = np.concatenate([rare, others])
    cells = ["MNIST, 9 or not, 7 % of 3,000"]
    for how in ({}, {"class_weight": "balanced", "scoring": "accuracy"}):
        auto = AutoSVC(SHORT, random_state=SEED, **how)
        timed(auto, X[digits], y[digits] == 9)
        cells.append(f"{100 * balanced_accuracy_score(y_test == 9, auto.predict(X_test)):.2f}")
    columns = ["data", "default call", 'class_weight="balanced", by accuracy']
    said = f"Balanced accuracy, in per cent, with a limit of {SHORT:g} s. {OWN}"
    lines = [said, "", *table(columns, [cells])]
    write("autosvc", "AutoSVC on a rare class", lines, "imbalance")


def columns(*wanted: str) -> None:
    """Held-out scores of every preparation of the columns at its best gamma and C."""
    names = tomllib.loads(TODAY.read_text(encoding="utf-8"))["data"]
    rows = {row[0]: row for row in kept_rows("autosvc_columns")[1:]}
    for name in (name for name in wanted or names if name not in rows):
        rows[name] = _by_columns(name)
        found = [rows[each] for each in names if each in rows]
        lines = _said_of_columns(found)
        write("autosvc", "Columns before an RBF kernel", lines, "columns")


def _by_columns(name: str) -> list[str]:
    """Test accuracies, in brackets those in the folds, on 1,500 rows of a set."""
    X, y, X_test, y_test = data.sampled(prepared.load(name), 1500, 4000, SEED + 1)
    X, X_test = (Z.toarray() if sp.issparse(Z) else Z for Z in (X, X_test))
    made = candidates.Candidates(Sample(X, y), "accuracy", ["kernel"], {"random_state": SEED})
    folds, (first,) = folds_of(Sample(X, y), 3, SEED), made.kernels()
    cells = [name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family in (first, *made.variants(first)):
            trials = [
                trial
                for width in COLUMN_WIDTHS
                for trial in cross_validated(made.make(family, width), folds, COLUMN_CS)
            ]
            best = ranked(trials)[0]
            right = best.candidate.fit(X, y, best.C).score(X_test, y_test)
            cells.append(f"{100 * right:.2f} ({100 * best.score:.2f})")
    return cells


def _said_of_columns(found: list[list[str]]) -> list[str]:
    scores = np.array([[[float(part.strip("()")) for part in cell.split()] for cell in row[1:]]
                       for row in found])  # fmt: skip
    gain = scores[:, :, 0] - scores[:, :1, 0]
    means = ", ".join(
        f"{k} {m:+.2f}" for k, m in zip(PREPARED[1:], gain.mean(axis=0)[1:], strict=True)
    )
    by_folds = gain[np.arange(len(found)), scores[:, :, 1].argmax(axis=1)]
    return [
        "Test accuracy in per cent of a KernelSVC on 1,500 rows, 4,000 to test, at the gamma and C "
        "that are best in three folds (their accuracy in brackets), of "
        f"{len(COLUMN_WIDTHS)} widths and {len(COLUMN_CS)} C.",
        f"Mean gain over scaling alone, points: {means}. Where the folds choose the preparation "
        f"too: {by_folds.mean():+.2f}, from {by_folds.min():+.2f} to {by_folds.max():+.2f}.",
        "",
        *table(["data", *PREPARED], found),
    ]


def mnist() -> None:
    X, y, X_test, y_test = data.mnist()
    auto = AutoSVC(MNIST_LIMIT, random_state=SEED)
    seconds = f"{timed(auto, X, y):.1f}"
    right = f"{score(auto, auto, X_test, y_test):.2f}"
    row = [f"{MNIST_LIMIT:g}", seconds, right, auto.trained_on_]
    columns = ["limit, s", "seconds", "accuracy, %", "final fit"]
    lines = [f"Bar: 97.5 % in 30 s on two cores. {OWN}", "", *table(columns, [row])]
    write("autosvc", "AutoSVC on 60,000 MNIST images", lines, "mnist")


PARTS = {"": apart, "seeds": seeds, "imbalance": imbalance, "mnist": mnist, "columns": columns}

if __name__ == "__main__":
    part, *names = sys.argv[1:] or [""]
    PARTS[part](*names)
