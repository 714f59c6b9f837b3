"""Histograms of images, of the kind that ICD and PmSVM were made for (`widemargin.vision`).

The windows are those of ICD's section 4.3.  Its features count 200 words of a codebook that cannot
be had; here the census transform's 256 codes are counted (CENTRIST, by the same author).  PmSVM's
features of Caltech 101 are made anew: 2,000 words of k-means, where the paper has libHIK's ("use
both, use one-class SVM, and grid step size 2"), on every sixth pixel of images reduced to 220.
"""

from __future__ import annotations

import numpy as np

from benchmarks.data import folder
from widemargin.vision import (
    BagOfVisualWords,
    Centrist,
    Codebook,
    DenseSIFT,
    Images,
    SpatialPyramid,
    read_images,
)

WINDOWS = SpatialPyramid((4, 2, 1), shares=True)
STEP, WORDS, SAMPLED = 6, 2000, 60  # pixels; words; patches of an image that make the codebook


def scene15():
    """Shares of the codes in each window, of 15 scenes; 100 training images of each."""
    sides = [read_images(folder() / "scene15.tar", inside=side) for side in ("train", "test")]
    return tuple(part for images in sides for part in (_codes(images), images.labels))


def caltech101(n_train: int = 15, n_test: int = 20, seed: int = 0):
    """The same of 101 kinds of objects: 15 images each to learn from, 20 to score (PmSVM, 5.4)."""
    sides = caltech101_images(n_train, n_test, seed)
    return tuple(part for images in sides for part in (_codes(images), images.labels))


def _codes(images: Images) -> np.ndarray:
    return Centrist(WINDOWS, n_jobs=-1).fit(images).transform(images).toarray()


def caltech101_images(n_train: int = 15, n_test: int = 20, seed: int = 0) -> tuple[Images, Images]:
    """Images to learn from and images to score."""
    images = read_images(folder() / "caltech101.tar")
    objects = np.flatnonzero(~np.char.startswith(images.labels, "BACKGROUND"))
    rng = np.random.default_rng(seed)
    sides: tuple[list[int], list[int]] = ([], [])
    for label in np.unique(images.labels[objects]):
        own = objects[images.labels[objects] == label]
        chosen = rng.permutation(own)[: n_train + n_test].tolist()
        sides[0].extend(chosen[:n_train])
        sides[1].extend(chosen[n_train:])
    return images.subset(sides[0]), images.subset(sides[1])


def caltech101_words(words: int = WORDS, step: int = STEP):
    """Scaled to [0, 1] by the largest value of each feature; images are those of `caltech101`."""
    from sklearn.preprocessing import MaxAbsScaler

    train, test = caltech101_images()
    bag = BagOfVisualWords(
        DenseSIFT(step), Codebook(words), WINDOWS, sample_size=SAMPLED * len(train), n_jobs=-1
    )
    X, X_test = bag.fit(train).transform(train), bag.transform(test)
    scaler = MaxAbsScaler().fit(X)
    X_test = scaler.transform(X_test)
    X_test.data = np.minimum(X_test.data, 1)
    return scaler.transform(X), train.labels, X_test, test.labels
