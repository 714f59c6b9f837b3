"""Histograms of images, of the kind that ICD and PmSVM were made for: CENTRIST on a pyramid.

A pixel's census transform says which of its eight neighbours are no brighter than it, as one of 256
numbers (Zabih and Woodfill 1994); their histogram is CENTRIST (Wu and Rehg 2011), by ICD's first
author.  The 31 windows are those of ICD's section 4.3: 4 x 4 blocks and the 9 between them, 2 x 2
and the one between, and the whole.  ICD's own features count 200 visual words in the same windows,
of a codebook that cannot be had.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from benchmarks.data import folder

CODES = 256
NEIGHBOURS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def census_transform(image: np.ndarray) -> np.ndarray:
    """Of all pixels but those of the rim.

    >>> int(census_transform(np.array([[9, 9, 9], [9, 5, 1], [1, 1, 1]]))[0, 0])
    240
    """
    image = image.astype(np.int16)
    h, w = image.shape
    centre = image[1:-1, 1:-1]
    code = np.zeros(centre.shape, dtype=np.uint8)
    for bit, (down, right) in enumerate(NEIGHBOURS):
        neighbour = image[1 + down : h - 1 + down, 1 + right : w - 1 + right]
        code |= (centre >= neighbour).astype(np.uint8) << bit
    return code


def windows() -> Iterator[tuple[float, float, float]]:
    """Top, left and side of the 31 windows, as shares of the image.

    >>> len(list(windows()))
    31
    """
    for parts in (4, 2, 1):
        side = 1 / parts
        for offset in (0.0, side / 2):
            number = parts if offset == 0 else parts - 1
            for i in range(number):
                for j in range(number):
                    yield offset + i * side, offset + j * side, side


def centrist(image: np.ndarray) -> np.ndarray:
    """Counts of the census transform's codes in every window, one after the other."""
    code = census_transform(image)
    h, w = code.shape
    parts = []
    for top, left, side in windows():
        rows = slice(round(top * h), round((top + side) * h))
        columns = slice(round(left * w), round((left + side) * w))
        parts.append(np.bincount(code[rows, columns].ravel(), minlength=CODES))
    return np.concatenate(parts).astype(np.uint16)


def read_images(
    path: Path, wanted: Collection[str] | None = None
) -> Iterator[tuple[str, np.ndarray]]:
    """Names and grey pixels of the JPEG files in a tar file, in its order: all, or those wanted."""
    from PIL import Image

    with tarfile.open(path) as archive:
        for member in archive:
            asked = member.name.endswith(".jpg") and (wanted is None or member.name in wanted)
            file = archive.extractfile(member) if asked else None
            if file is not None:
                with Image.open(io.BytesIO(file.read())) as image:
                    yield member.name, np.asarray(image.convert("L"))


def scene15():
    """Shares of the codes in each window, of 15 scenes; 100 training images of each."""
    found: dict[str, tuple[list, list]] = {"train": ([], []), "test": ([], [])}
    for name, image in read_images(folder() / "scene15.tar"):
        side, label = Path(name).parts[-3:-1]
        found[side][0].append(_shares(centrist(image)))
        found[side][1].append(label)
    return tuple(np.array(part) for side in ("train", "test") for part in found[side])


def caltech101(n_train: int = 15, n_test: int = 20, seed: int = 0):
    """The same of 101 kinds of objects: 15 images each to learn from, 20 to score (PmSVM, 5.4)."""
    sides = caltech101_images(n_train, n_test, seed)
    return tuple(
        np.array(part)
        for side in ("train", "test")
        for part in (
            [_shares(centrist(image)) for _, image in sides[side]],
            [label for label, _ in sides[side]],
        )
    )


def caltech101_images(
    n_train: int = 15, n_test: int = 20, seed: int = 0
) -> dict[str, list[tuple[str, np.ndarray]]]:
    """Kinds and pixels of the images to learn from ("train") and to score ("test")."""
    names: dict[str, list[str]] = {}
    with tarfile.open(folder() / "caltech101.tar") as archive:
        for name in archive.getnames():
            if name.endswith(".jpg") and "BACKGROUND" not in name:
                names.setdefault(Path(name).parts[-2], []).append(name)
    rng = np.random.default_rng(seed)
    side: dict[str, str] = {}
    for label in sorted(names):
        chosen = rng.permutation(sorted(names[label]))[: n_train + n_test]
        side |= {name: "train" if k < n_train else "test" for k, name in enumerate(chosen)}
    found: dict[str, list[tuple[str, np.ndarray]]] = {"train": [], "test": []}
    for name, image in read_images(folder() / "caltech101.tar", side):
        found[side[name]].append((Path(name).parts[-2], image))
    return found


def _shares(counts: np.ndarray) -> np.ndarray:
    by_window = counts.reshape(-1, CODES).astype(np.float32)
    return (by_window / by_window.sum(axis=1, keepdims=True)).ravel()
