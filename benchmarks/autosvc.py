"""AutoSVC at its default against default forests and boosted trees, on sets held apart.

The sets were chosen before any rule of the search was written.  None of them is in
benchmarks/easy.py or among the twelve of benchmarks/experiments/tables/today.toml, by which rules
are settled.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.datasets import load_diabetes, load_iris, load_sample_image, load_wine
from sklearn.model_selection import train_test_split

from benchmarks import data
from benchmarks.report import SEED
from widemargin import read

ROWS = 5_000  # to train on, at most; and to test on
WORDS = 500
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
    "news20, 500 words": frequent_words,
    "census, sex": partial(census_column, 12, 22),
    "census, marital status": partial(census_column, 7, 19, 22, 23),
    "kddcup99 corrected, kind": attacks,
    "two photographs": photographs,
    "scene15, thumbnails": thumbnails,
}


def samples(name: str, seed: int = SEED):
    """Rows to learn from and rows to test on: half of the data each, and ROWS at most."""
    X, y = APART[name]()
    size = min(ROWS, len(y) // 2)
    sizes = {"train_size": size, "test_size": size, "stratify": y, "random_state": seed}
    return train_test_split(X, y, **sizes)
