"""`BagOfVisualWords`: photographs as counts of visual words, with the papers' settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from widemargin.validation import check_bool, check_number
from widemargin.vision.codebook import Codebook
from widemargin.vision.counting import WordCounter, in_threads
from widemargin.vision.pyramid import SpatialPyramid, Words
from widemargin.vision.sift import DenseSIFT, Patches, edges


class BagOfVisualWords(WordCounter):
    """Counts of visual words of dense SIFT in windows of an image.

    Descriptors of one image a thread are in memory, so that images may be many: the codebook
    learns from a sample of all images' patches, and each image becomes a row of counts by itself.
    Results depend on the codebook's seed, not on threads.

    Parameters
    ----------
    features : DenseSIFT, default=None
        By default patches of 16 x 16 pixels on a grid of 8.
    codebook : Codebook, default=None
        By default 200 words of k-means.
    pyramid : SpatialPyramid, default=None
        By default ICD's 31 windows.
    edges : bool, default=False
        Whether the words of the image of edges are counted too, beside those of the photograph, as
        libHIK does ("use both").
    sample_size : int, default=100,000
        Patches that the codebook learns from, the same number of each image.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    features_ : DenseSIFT
    codebook_ : Codebook
    pyramid_ : SpatialPyramid
    n_words_ : int

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import papers
    >>> rng = np.random.default_rng(0)
    >>> images = [np.cumsum(rng.random((40, 50)), axis=k % 2) / 50 for k in range(20)]
    >>> y = np.arange(20) % 2
    >>> model = make_pipeline(BagOfVisualWords(codebook=Codebook(8)), papers.icd(scaling=None))
    >>> model.fit(images[:10], y[:10]).score(images[10:], y[10:])
    1.0
    """

    def __init__(
        self,
        features=None,
        codebook=None,
        pyramid=None,
        *,
        edges=False,
        sample_size=100_000,
        n_jobs=None,
    ):
        self.features = features
        self.codebook = codebook
        self.pyramid = pyramid
        self.edges = edges
        self.sample_size = sample_size
        self.n_jobs = n_jobs

    @property
    def longest_side(self) -> int | None:  # type: ignore[override]
        """That of the features."""
        features = self.features if self.features is not None else DenseSIFT()
        return features.longest_side

    def fit(self, images, y=None):
        """Learn the codebook from patches of the images.

        Parameters
        ----------
        images : sequence of arrays
            Or what `read_images` returns.
        y : ignored

        Returns
        -------
        self : BagOfVisualWords
        """
        check_number("sample_size", self.sample_size, low=1, integer=True)
        check_bool("edges", self.edges)
        features = DenseSIFT() if self.features is None else self.features
        codebook = Codebook() if self.codebook is None else self.codebook
        features.check()
        codebook.check()
        self._begin()
        self.features_ = clone(features)
        self.codebook_ = clone(codebook).set_params(n_jobs=self.n_jobs)
        self.codebook_.fit(self._sample(images))
        self.n_words_ = self.codebook_.n_words * (1 + self.edges)
        return self

    def _sample(self, images) -> np.ndarray:
        """Return descriptors of some patches of each image, the same for a seed."""
        each = -(-self.sample_size // max(len(images), 1))
        seed = check_random_state(self.codebook_.random_state).randint(2**31)

        def some(k: int, image: np.ndarray) -> np.ndarray:
            described = self.described(self.prepared(image))
            found = np.concatenate([patches.descriptors for patches in described])
            return found[np.random.default_rng([seed, k]).permutation(len(found))[:each]]

        return np.concatenate(in_threads(some, images, self.n_jobs))

    def described(self, image: np.ndarray) -> list[Patches]:
        """Return the patches of grey pixels, and those of their edges if these count."""
        layers = [image, edges(image)] if self.edges else [image]
        return [self.features_.describe(layer) for layer in layers]

    def words(self, image: np.ndarray) -> Words:
        """Return the words of the patches of grey pixels."""
        return self.words_of(self.described(image))

    def words_of(self, described: list[Patches]) -> Words:
        """Return the words of patches; those of edges have numbers of their own."""
        first, *others = (self.codebook_.words_of(patches) for patches in described)
        for own in others:  # of the same patches, so that each has one word more
            word = np.hstack([first.word, own.word + first.n_words])
            share = None if own.share is None else np.hstack([first.share, own.share])
            first = replace(first, word=word, share=share, n_words=self.n_words_)
        return first


def icd_words(**changes) -> BagOfVisualWords:
    """ICD's features (Wu 2010, section 4.3): 200 words of k-means in 31 windows, as counts.

    The paper's codebook is libHIK's, on a grid that is not printed: here it is Lazebnik's (2006),
    every eighth pixel.  Keyword arguments change single settings, also of a part
    (``features__step=4``).
    """
    bag = BagOfVisualWords(DenseSIFT(step=8), Codebook(200), SpatialPyramid())
    return bag.set_params(**changes)


def pmsvm_words(**changes) -> BagOfVisualWords:
    """PmSVM's features of Caltech 101 (Wu 2012): 2,000 words in 31 windows, every second pixel.

    Words are those of k-means; libHIK's one-class words are not made.  Windows have shares instead
    of counts, so that images of different sizes can be compared.
    """
    pyramid = SpatialPyramid(shares=True)
    return BagOfVisualWords(DenseSIFT(step=2), Codebook(2000), pyramid).set_params(**changes)
