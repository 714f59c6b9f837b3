"""What all features of images share: images in, rows of counts out, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.engine import Threads, run_tasks
from widemargin.resources import one_blas_thread
from widemargin.validation import check_n_jobs, check_number
from widemargin.vision.pixels import ImageError, as_grey, reduced
from widemargin.vision.pyramid import SpatialPyramid, Words


def check_images(images) -> None:
    """Raise unless this is a sequence of images."""
    several = hasattr(images, "__len__") and hasattr(images, "__getitem__")
    if not several or isinstance(images, (str, bytes, dict)):
        raise TypeError(
            "Images are a list of arrays, or what widemargin.vision.read_images returns, not "
            f"{type(images).__name__}."
        )
    if len(images) == 0:
        raise ImageError("There are no images (0 of them).")


def in_threads(
    function: Callable[[int, np.ndarray], Any], images: Sequence, n_jobs: int | None
) -> list:
    """Return ``function(k, pixels)`` of every image; one image a thread is in memory."""
    check_images(images)
    check_n_jobs(n_jobs)
    with one_blas_thread():  # the same bits for every n_jobs
        return run_tasks(
            lambda k, control: function(k, as_grey(images[k])),
            range(len(images)),
            Threads(n_jobs),
        )


class WordCounter(TransformerMixin, BaseEstimator):
    """Counts of visual words; subclasses say which words an image has."""

    longest_side: int | None
    pyramid: SpatialPyramid | None
    n_jobs: int | None
    n_words_: int

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def words(self, image: np.ndarray) -> Words:
        """Return the words of grey pixels that `prepared` returned."""
        raise NotImplementedError

    def prepared(self, image: np.ndarray) -> np.ndarray:
        """Return the grey pixels that features are taken of, reduced to ``longest_side``."""
        return reduced(as_grey(image), self.longest_side)

    def _begin(self) -> None:
        """Check the parameters and make the pyramid."""
        if self.longest_side is not None:
            check_number("longest_side", self.longest_side, low=1, integer=True)
        self.pyramid_ = SpatialPyramid() if self.pyramid is None else self.pyramid
        self.pyramid_.check()

    def transform(self, images) -> sp.csr_array:
        """Count the words of each image in each window.

        Parameters
        ----------
        images : sequence of arrays
            Or what `read_images` returns.

        Returns
        -------
        counts : sparse array of shape (n_images, n_windows * n_words), float32
            Whole numbers, unless patches have several words or the pyramid has ``shares=True``.
        """
        check_is_fitted(self, "pyramid_")

        def row(k: int, image: np.ndarray) -> sp.csr_array:
            return self.pyramid_.count(self.words(self.prepared(image)))

        return sp.vstack(in_threads(row, images, self.n_jobs), format="csr")

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Names ``window<i>_word<k>``."""
        check_is_fitted(self, "pyramid_")
        windows, words = range(self.pyramid_.n_windows), range(self.n_words_)
        return np.array([f"window{i}_word{k}" for i in windows for k in words], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return self.pyramid_.n_windows * self.n_words_
