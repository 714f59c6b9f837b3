"""`SpatialPyramid`: words of an image counted in windows, from the whole to small blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from widemargin.validation import check_bool, check_number


@dataclass(frozen=True)
class Words:
    """What is where in an image.

    Attributes
    ----------
    word : ndarray of shape (n, k)
        Numbers of words: one per patch, or several that share it.
    share : ndarray of shape (n, k), or None
        Their shares of the patch; None where it has one word.
    centre : ndarray of shape (n, 2)
        Row and column of each patch's centre, in pixels from the upper left corner.
    side : ndarray of shape (n,)
        Height and width of each patch in pixels.
    shape : tuple of int
        Height and width of the image.
    n_words : int
    """

    word: np.ndarray
    share: np.ndarray | None
    centre: np.ndarray
    side: np.ndarray
    shape: tuple[int, int]
    n_words: int


class SpatialPyramid(TransformerMixin, BaseEstimator):
    """Counts of words in windows of an image, one window after the other.

    Windows are shares of the image, so that images of all sizes have the same.  The default is the
    31 windows of ICD's section 4.3: 1 x 1, 2 x 2 and the one between, 4 x 4 and the nine between.

    Parameters
    ----------
    levels : sequence of int, default=(1, 2, 4)
        Blocks along each side, for each level.
    overlap : bool, default=True
        Whether each level has windows between its blocks too.
    shares : bool, default=False
        Whether counts are divided by their sum in each window; whole numbers if not.

    Examples
    --------
    >>> len(SpatialPyramid().windows()), len(SpatialPyramid(overlap=False).windows())
    (31, 21)
    """

    def __init__(self, levels=(1, 2, 4), *, overlap=True, shares=False):
        self.levels = levels
        self.overlap = overlap
        self.shares = shares

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def check(self) -> None:
        """Raise if a parameter is wrong."""
        if not isinstance(self.levels, (list, tuple)) or not self.levels:
            raise TypeError(f"levels must be a list of whole numbers, got {self.levels!r}.")
        for parts in self.levels:
            check_number("levels", parts, low=1, high=64, integer=True)
        check_bool("overlap", self.overlap)
        check_bool("shares", self.shares)

    def _grids(self) -> Iterator[tuple[int, float]]:
        """Yield windows along a side and where the first begins; those of a grid do not overlap."""
        for parts in self.levels:
            yield parts, 0.0
            if self.overlap and parts > 1:
                yield parts - 1, 0.5 / parts

    def windows(self) -> np.ndarray:
        """Return top, left and side of the windows, as shares of the image, (n_windows, 3)."""
        found = [
            (first + i * side, first + j * side, side)
            for n, first in self._grids()
            for side in [(1 - 2 * first) / n]
            for i in range(n)
            for j in range(n)
        ]
        return np.array(found)

    @property
    def n_windows(self) -> int:
        return sum(n * n for n, _ in self._grids())

    def windows_of(self, words: Words) -> np.ndarray:
        """Return the window of each patch in each grid, (n_grids, n); -1 outside all of them."""
        places = words.centre / np.array(words.shape)
        found, begin = [], 0
        for n, first in self._grids():
            cell = np.floor((places - first) * (n / (1 - 2 * first))).astype(np.int64)
            inside = ((cell >= 0) & (cell < n)).all(axis=1)
            found.append(np.where(inside, begin + cell[:, 0] * n + cell[:, 1], -1))
            begin += n * n
        return np.array(found)

    def count(self, words: Words) -> sp.csr_array:
        """Return the counts of an image, of shape (1, n_windows * n_words)."""
        n, k = self.n_windows, words.n_words
        window = self.windows_of(words)[:, :, None]
        inside = np.broadcast_to(window >= 0, (len(window), *words.word.shape))
        cell = (window * k + words.word)[inside]
        share = None
        if words.share is not None:
            share = np.broadcast_to(words.share, inside.shape)[inside]
        counts = np.bincount(cell, share, minlength=n * k)
        if self.shares:
            by_window = counts.reshape(n, k)
            counts = (by_window / np.maximum(by_window.sum(axis=1, keepdims=True), 1)).ravel()
        return sp.csr_array(counts[None].astype(np.float32))

    def fit(self, words: Sequence[Words], y=None):
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        words : sequence of Words
        y : ignored

        Returns
        -------
        self : SpatialPyramid
        """
        self.check()
        return self

    def transform(self, words: Sequence[Words]) -> sp.csr_array:
        """Count the words of each image.

        Parameters
        ----------
        words : sequence of Words

        Returns
        -------
        counts : sparse array of shape (n_images, n_windows * n_words), float32
        """
        self.check()
        return sp.vstack([self.count(own) for own in words], format="csr")
