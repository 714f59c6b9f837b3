"""`Codebook`: visual words, as clusters of descriptors, and the nearest words of each patch.

By histogram intersection a cluster's mean is not a point but a sum of functions, one per element
of a descriptor (Wu and Rehg 2009): on quantised descriptors a table of look-ups, as everywhere in
this package.  Similarities to all words are then one product of a sparse matrix and these tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin.engine import Threads, run_tasks
from widemargin.resources import one_blas_thread, one_openmp_thread
from widemargin.validation import check_choice, check_n_jobs, check_number
from widemargin.vision.pyramid import Words
from widemargin.vision.sift import Patches

METHODS = ("kmeans", "intersection")
LEVELS = 32  # of a quantised element of a descriptor
_QUANTILE = 0.999  # of the elements, which is the highest level
AT_ONCE = 512  # descriptors compared with all words at a time: their scores stay in the cache
_BATCH = 8192  # descriptors of a step of k-means


class Codebook(TransformerMixin, BaseEstimator):
    """Visual words: clusters of descriptors.

    Parameters
    ----------
    n_words : int, default=200
    method : {"kmeans", "intersection"}, default="kmeans"
        Mini-batch k-means on Euclidean distances, or kernel k-means with the histogram intersection
        kernel on descriptors quantised to 32 levels.
    neighbours : int, default=1
        Words of a patch: the nearest one, so that counts are whole numbers, or several that share
        it, each the less the farther it is.
    max_iter : int, default=20
        Passes over the descriptors at most.
    random_state : int, RandomState or None, default=0
    n_jobs : int, default=None
        Threads; results do not depend on them.

    Attributes
    ----------
    centres_ : ndarray of shape (n_words, n_elements)
        The words, of ``method="kmeans"``.
    tables_ : ndarray of shape (n_elements * (LEVELS - 1), n_words)
        What each level above 0 of each element adds to the similarity to each word, of
        ``method="intersection"``.
    top_ : float
        Elements at least this large are at the highest level.
    half_norms_ : ndarray of shape (n_words,)
        Half of the squared norm of each word.
    spread_ : float
        Mean squared distance of a descriptor to its word.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> book = Codebook(4, method="intersection").fit(rng.random((500, 8)) ** 3)
    >>> nearest, _ = book.nearest(rng.random((3, 8)))
    >>> nearest.shape
    (3, 1)
    """

    def __init__(
        self,
        n_words=200,
        method="kmeans",
        *,
        neighbours=1,
        max_iter=20,
        random_state=0,
        n_jobs=None,
    ):
        self.n_words = n_words
        self.method = method
        self.neighbours = neighbours
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def check(self) -> None:
        """Raise if a parameter is wrong."""
        check_number("n_words", self.n_words, low=1, high=1 << 20, integer=True)
        check_choice("method", self.method, METHODS)
        check_number("neighbours", self.neighbours, low=1, high=self.n_words, integer=True)
        check_number("max_iter", self.max_iter, low=1, high=1 << 30, integer=True)
        check_n_jobs(self.n_jobs)

    def fit(self, patches, y=None):
        """Learn the words.

        Parameters
        ----------
        patches : ndarray of shape (n, n_elements) or sequence of Patches
            Descriptors; with ``method="intersection"`` negative elements count as 0.
        y : ignored

        Returns
        -------
        self : Codebook
        """
        self.check()
        X = _stacked(patches)
        if len(X) < self.n_words:
            raise ValueError(
                f"There are {len(X)} patches for n_words={self.n_words}. Take fewer words, more "
                "images, or a smaller step."
            )
        rng = check_random_state(self.random_state)
        with one_blas_thread(), one_openmp_thread():  # the same bits on every machine's threads
            if self.method == "kmeans":
                self._fit_points(X, rng)
            else:
                self._fit_tables(X, rng)
            spread = float(np.mean(self._squares(X) - 2 * self._best(X)[1]))
        self.spread_ = max(spread, float(np.finfo(np.float32).tiny))
        return self

    def _fit_points(self, X: np.ndarray, rng: np.random.RandomState) -> None:
        kmeans = MiniBatchKMeans(
            self.n_words,
            init="random",
            n_init=1,
            batch_size=_BATCH,
            max_iter=self.max_iter,
            random_state=rng,
        ).fit(X)
        self.centres_ = np.ascontiguousarray(kmeans.cluster_centers_, dtype=np.float32)
        self.half_norms_ = 0.5 * (self.centres_**2).sum(axis=1)

    def _fit_tables(self, X: np.ndarray, rng: np.random.RandomState) -> None:
        """Kernel k-means: words become means of their descriptors until none changes its word."""
        positive = X[X > 0]
        self.top_ = float(np.quantile(positive, _QUANTILE)) if positive.size else 1.0
        levels = self._levels(X)
        word, last = np.full(len(X), -1), None
        word[rng.permutation(len(X))[: self.n_words]] = np.arange(self.n_words)
        for _ in range(self.max_iter):
            self._set_means(levels, word)
            word, score = self._best(X)
            if last is not None and np.array_equal(word, last):
                break
            last = word.copy()
            _fill_empty(word, self._squares(X) - 2 * score, self.n_words)

    def _set_means(self, levels: np.ndarray, word: np.ndarray) -> None:
        """Set the words to the means of their descriptors in the kernel's space."""
        own = word >= 0
        word, levels = word[own], levels[own]
        n, d = np.bincount(word, minlength=self.n_words), levels.shape[1]
        at_least = np.empty((d, LEVELS - 1, self.n_words))  # share of members at a level or above
        for j in range(d):
            cell = levels[:, j].astype(np.int64) * self.n_words + word
            counts = np.bincount(cell, minlength=LEVELS * self.n_words).reshape(LEVELS, -1)
            at_least[j] = counts[:0:-1].cumsum(axis=0)[::-1] / np.maximum(n, 1)
        # k(x, mean) is the sum of these shares up to the level of x, in each element.
        self.tables_ = at_least.cumsum(axis=1).reshape(-1, self.n_words).astype(np.float32)
        self.half_norms_ = 0.5 * (at_least**2).sum(axis=(0, 1)).astype(np.float32)

    def _levels(self, X: np.ndarray) -> np.ndarray:
        scaled = X * np.float32((LEVELS - 1) / self.top_)
        return np.rint(np.clip(scaled, 0, LEVELS - 1)).astype(np.uint8)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return half of each descriptor's squared norm less its squared distance to each word.

        Parameters
        ----------
        X : ndarray of shape (n, n_elements)

        Returns
        -------
        scores : ndarray of shape (n, n_words), float32
        """
        if self.method == "kmeans":
            return X @ self.centres_.T - self.half_norms_
        levels = self._levels(X)
        element = np.flatnonzero(levels)
        level = levels.ravel()[element]
        start = np.r_[0, np.cumsum(np.count_nonzero(levels, axis=1))]
        column = element % X.shape[1] * (LEVELS - 1) + level - 1
        ones = np.ones(len(column), dtype=np.float32)
        codes = sp.csr_array((ones, column, start), shape=(len(X), len(self.tables_)))
        return codes @ self.tables_ - self.half_norms_

    def _squares(self, X: np.ndarray) -> np.ndarray:
        """Return each descriptor's squared norm, in the space of its method."""
        if self.method == "kmeans":
            return (X.astype(np.float64) ** 2).sum(axis=1)
        return self._levels(X).sum(axis=1, dtype=np.float64)

    def _best(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest word of each descriptor and its score."""

        def part(begin: int, control) -> tuple[np.ndarray, np.ndarray]:
            control.check()
            scores = self.scores(X[begin : begin + AT_ONCE])
            word = scores.argmax(axis=1)
            return word, scores[np.arange(len(word)), word]

        found = run_tasks(part, range(0, len(X), AT_ONCE), Threads(self.n_jobs))
        word, score = map(np.concatenate, zip(*found, strict=True))
        return word, score

    def nearest(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the words of descriptors, nearest first, and their shares.

        Parameters
        ----------
        X : ndarray of shape (n, n_elements)

        Returns
        -------
        word : ndarray of shape (n, neighbours)
        share : ndarray of shape (n, neighbours), or None
            Proportional to exp(-d²/spread) for the squared distance d²; None for one neighbour.
        """
        check_is_fitted(self, "half_norms_")
        X = np.asarray(X, dtype=np.float32)
        begins = range(0, max(len(X), 1), AT_ONCE)
        parts = [self._nearest(self.scores(X[begin : begin + AT_ONCE])) for begin in begins]
        word, share = (np.concatenate(part) for part in zip(*parts, strict=True))
        return word, share if self.neighbours > 1 else None

    def _nearest(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the words of the largest scores, and their shares."""
        k = self.neighbours
        if k == 1:
            word = scores.argmax(axis=1)[:, None]
            return word, np.ones(word.shape)
        word = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        own = np.take_along_axis(scores, word, axis=1)
        order = np.argsort(-own, axis=1, kind="stable")
        word, own = (np.take_along_axis(a, order, axis=1) for a in (word, own))
        share = np.exp(2 * (own - own[:, :1]) / self.spread_)
        return word, share / share.sum(axis=1, keepdims=True)

    def words_of(self, patches: Patches) -> Words:
        """Return the words of an image's patches.

        Parameters
        ----------
        patches : Patches

        Returns
        -------
        words : Words
        """
        word, share = self.nearest(patches.descriptors)
        return Words(word, share, patches.centre, patches.side, patches.shape, self.n_words)

    def transform(self, patches: Sequence[Patches]) -> list[Words]:
        """Return the words of each image.

        Parameters
        ----------
        patches : sequence of Patches

        Returns
        -------
        words : list of Words
        """
        check_is_fitted(self, "half_norms_")
        with one_blas_thread():
            return run_tasks(
                lambda own, control: self.words_of(own), list(patches), Threads(self.n_jobs)
            )


def _stacked(patches) -> np.ndarray:
    """Return descriptors of any kind of input as one matrix."""
    if not isinstance(patches, np.ndarray):
        patches = np.concatenate([own.descriptors for own in patches])
    X = np.ascontiguousarray(patches, dtype=np.float32)
    if X.ndim != 2 or not np.all(np.isfinite(X)):
        raise ValueError(f"Descriptors are a matrix of finite numbers, not {X.shape}.")
    return X


def _fill_empty(word: np.ndarray, distance: np.ndarray, n_words: int) -> None:
    """Give each word that has no descriptor one of those farthest from their words."""
    empty = np.flatnonzero(np.bincount(word, minlength=n_words) == 0)
    if len(empty):
        word[np.argsort(-distance, kind="stable")[: len(empty)]] = empty
