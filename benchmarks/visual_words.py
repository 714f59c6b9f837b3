"""Bags of visual words: PmSVM's own kind of features of Caltech 101, made anew.

SIFT of every patch of 16 x 16 pixels (4 x 4 cells of 8 directions; Lowe 2004) on a grid, the
nearest of 2,000 words that k-means finds in patches of training images, and counts of words in the
31 windows of `benchmarks.images`: 62,000 features.  The paper's are made by libHIK ("use both, use
one-class SVM, and grid step size 2"), with a codebook that cannot be had.  Here the grid is every
sixth pixel of images reduced to 220 pixels.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

from benchmarks.images import caltech101_images, windows

CELL, CELLS, DIRECTIONS = 4, 4, 8  # pixels of a cell's side, cells of a patch's, directions
PATCH = CELL * CELLS
STEP, WORDS, SAMPLED = 6, 2000, 60  # pixels; words; patches of an image that make the codebook
FAINT = 8.0  # norms below which a patch has no directions worth the name


def descriptors(image: np.ndarray, step: int = STEP) -> tuple[np.ndarray, np.ndarray]:
    """SIFT of all patches, and their centres as shares of the image's height and width."""
    down, right = np.gradient(image.astype(np.float32))
    turn = np.arctan2(down, right) * (DIRECTIONS / (2 * np.pi)) % DIRECTIONS
    strength = np.hypot(down, right)
    away = np.abs(turn - np.arange(DIRECTIONS, dtype=np.float32)[:, None, None])
    maps = strength * np.maximum(1 - np.minimum(away, DIRECTIONS - away), 0)  # to the two nearest
    sums = np.pad(maps, ((0, 0), (1, 0), (1, 0))).cumsum(axis=1, dtype=float).cumsum(axis=2)
    cells = sums[:, CELL:, CELL:] - sums[:, :-CELL, CELL:] - sums[:, CELL:, :-CELL]
    cells += sums[:, :-CELL, :-CELL]  # of every square of a cell's size
    tops, lefts = (np.arange(0, size - PATCH + 1, step) for size in image.shape)
    offsets = CELL * np.arange(CELLS)
    found = cells[:, tops[:, None, None, None] + offsets[:, None],
                  lefts[:, None, None] + offsets]  # fmt: skip
    flat = np.moveaxis(found, 0, -1).reshape(len(tops) * len(lefts), -1)
    norms = np.linalg.norm(flat, axis=1, keepdims=True)
    flat = np.minimum(flat / np.maximum(norms, FAINT), 0.2)  # as Lowe has it: light matters less
    flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)
    places = np.stack(np.meshgrid(tops, lefts, indexing="ij"), axis=-1).reshape(-1, 2)
    return flat.astype(np.float32), (places + PATCH / 2) / image.shape


def codebook(
    images: Iterable[np.ndarray], words: int = WORDS, step: int = STEP, seed: int = 0
) -> np.ndarray:
    """Centres of k-means among some patches of each image."""
    from sklearn.cluster import MiniBatchKMeans

    rng = np.random.default_rng(seed)
    some = []
    for image in images:
        found, _ = descriptors(image, step)
        some.append(found[rng.permutation(len(found))[:SAMPLED]])
    kmeans = MiniBatchKMeans(words, init="random", n_init=1, batch_size=8192, random_state=seed)
    return kmeans.fit(np.concatenate(some)).cluster_centers_


def word_counts(image: np.ndarray, centres: np.ndarray, step: int = STEP) -> sp.csr_matrix:
    """Shares of the words in each of the 31 windows, one after the other."""
    found, places = descriptors(image, step)
    words = np.argmax(found @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)
    parts = []
    for top, left, side in windows():
        inside = (places >= (top, left)).all(axis=1) & (places < (top + side, left + side)).all(
            axis=1
        )
        counts = np.bincount(words[inside], minlength=len(centres))
        parts.append(counts / max(counts.sum(), 1))
    return sp.csr_matrix(np.concatenate(parts).astype(np.float32))


def caltech101_words(words: int = WORDS, step: int = STEP):
    """Scaled to [0, 1] by the largest value of each feature; images are those of `caltech101`."""
    from sklearn.preprocessing import MaxAbsScaler

    sides = caltech101_images()
    centres = codebook((image for _, image in sides["train"]), words, step)
    X, X_test = (
        sp.vstack([word_counts(image, centres, step) for _, image in sides[side]], format="csr")
        for side in ("train", "test")
    )
    y, y_test = (np.array([label for label, _ in sides[side]]) for side in ("train", "test"))
    scaler = MaxAbsScaler().fit(X)
    X_test = scaler.transform(X_test)
    X_test.data = np.minimum(X_test.data, 1)
    return scaler.transform(X), y, X_test, y_test
