"""`Centrist`: histograms of the census transform, which need no codebook."""

from __future__ import annotations

import numpy as np

from widemargin.vision.counting import WordCounter, check_images
from widemargin.vision.pyramid import Words

CODES = 256
NEIGHBOURS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def census_transform(image: np.ndarray) -> np.ndarray:
    """Return the codes of all pixels but those of the rim.

    A code says which of a pixel's eight neighbours are no brighter than it, as one of 256 numbers
    (Zabih and Woodfill 1994).

    >>> image = np.array([[9, 9, 9], [9, 5, 1], [1, 1, 1]], dtype=np.uint8)
    >>> int(census_transform(image)[0, 0])
    240
    """
    h, w = image.shape
    if h < 3 or w < 3:
        return np.zeros((max(h - 2, 0), max(w - 2, 0)), dtype=np.uint8)
    centre = image[1:-1, 1:-1]
    code = np.zeros(centre.shape, dtype=np.uint8)
    for bit, (down, right) in enumerate(NEIGHBOURS):
        neighbour = image[1 + down : h - 1 + down, 1 + right : w - 1 + right]
        code |= (centre >= neighbour).astype(np.uint8) << bit
    return code


class Centrist(WordCounter):
    """CENTRIST (Wu and Rehg 2011): counts of census transform codes in windows of an image.

    Counts are whole numbers, which ``papers.icd(scaling=None)`` takes as they are.

    Parameters
    ----------
    pyramid : SpatialPyramid, default=None
        By default ICD's 31 windows.
    longest_side : int, default=None
        Larger images are reduced to this height or width first.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    pyramid_ : SpatialPyramid
    n_words_ : int
        256, the codes of the census transform.

    Examples
    --------
    >>> images = [np.zeros((30, 40), dtype=np.uint8), np.eye(30, dtype=bool)]
    >>> Centrist().fit_transform(images).shape
    (2, 7936)
    """

    def __init__(self, pyramid=None, *, longest_side=None, n_jobs=None):
        self.pyramid = pyramid
        self.longest_side = longest_side
        self.n_jobs = n_jobs

    def fit(self, images, y=None):
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        images : sequence of arrays
        y : ignored

        Returns
        -------
        self : Centrist
        """
        check_images(images)
        self._begin()
        self.n_words_ = CODES
        return self

    def words(self, image: np.ndarray) -> Words:
        """Return the code of every pixel that has eight neighbours, as a patch of 3 x 3."""
        code = census_transform(image)
        place = np.indices(code.shape, dtype=np.float32).reshape(2, -1).T + 0.5
        size, side = code.size, np.full(code.size, 3)
        # Windows are shares of the codes' own rows and columns.
        return Words(code.reshape(size, 1), None, place, side, code.shape, CODES)
