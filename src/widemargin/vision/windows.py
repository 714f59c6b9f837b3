"""`WindowDetector`: an additive machine slid over photographs, by tables of look-ups.

A window's score is a sum over counts of words in its blocks.  Sums of the words above and left of
each patch give a count by four look-ups, and a table of the machine what it adds by one more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from widemargin.papers import icd
from widemargin.validation import check_number
from widemargin.vision.codebook import Codebook
from widemargin.vision.counting import in_threads
from widemargin.vision.pixels import LONGEST, as_grey, reduced, resized
from widemargin.vision.pyramid import SpatialPyramid, Words
from widemargin.vision.sift import DenseSIFT
from widemargin.vision.visual_words import BagOfVisualWords

_MARGIN = -1.0  # the machine has a loss on negatives with larger scores
_EACH = 20  # negatives of an image and scale that a round adds at most


class Detections(NamedTuple):
    """Windows that are taken for objects, the most certain first.

    Attributes
    ----------
    boxes : ndarray of shape (n, 4)
        Top, left, bottom and right, in pixels of the image.
    scores : ndarray of shape (n,)
        Decision values.
    """

    boxes: np.ndarray
    scores: np.ndarray


class WindowDetector(BaseEstimator):
    """Find objects of one kind in windows of one size, at every step and several scales.

    Training begins with random windows as negatives.  Each round adds windows of the training
    images that the machine wrongly scores above its margin (hard negatives).

    Parameters
    ----------
    size : tuple of int, default=(64, 64)
        Height and width of a window in pixels.
    bag : BagOfVisualWords, default=None
        By default 100 words of patches of 16 pixels on a grid of 4, in 21 blocks.  Windows begin
        at its steps.  Images are not reduced, whatever its ``longest_side``.
    machine : AdditiveSVC, default=None
        By default `papers.icd` on counts with C = 0.01.
    scales : sequence of float, default=(1.0,)
        Sizes in which an image is searched; 0.5 finds objects twice as large as ``size``.
    rounds : int, default=2
        How often hard negatives are added at most.
    overlap : float, default=0.3
        Windows whose intersection is a larger share of their union are of one object.
    n_jobs : int, default=None
        Threads; results do not depend on them.

    Attributes
    ----------
    bag_ : BagOfVisualWords
    machine_ : AdditiveSVC
    n_negatives_ : list of int
        Negatives that the machine of each round was trained on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = rng.integers(0, 60, (4, 64, 80), dtype=np.uint8)
    >>> images[:, 20:44, 32:56] = 255 * (np.indices((24, 24)).sum(axis=0) // 6 % 2)
    >>> bag = BagOfVisualWords(DenseSIFT(4, sides=(8,)), Codebook(8))
    >>> finder = WindowDetector((24, 24), bag).fit(images[:3], [[(20, 32, 44, 56)]] * 3)
    >>> finder.detect(images[3]).boxes.tolist()
    [[20.0, 32.0, 44.0, 56.0]]
    """

    def __init__(
        self,
        size=(64, 64),
        bag=None,
        machine=None,
        *,
        scales=(1.0,),
        rounds=2,
        overlap=0.3,
        n_jobs=None,
    ):
        self.size = size
        self.bag = bag
        self.machine = machine
        self.scales = scales
        self.rounds = rounds
        self.overlap = overlap
        self.n_jobs = n_jobs

    def fit(self, images, boxes):
        """Learn words, then the machine, with more negatives in each round.

        Parameters
        ----------
        images : sequence of arrays
        boxes : sequence of arrays of shape (n, 4)
            Top, left, bottom and right of the objects of each image.

        Returns
        -------
        self : WindowDetector
        """
        self._begin(images, boxes)
        found = [np.asarray(own, dtype=float).reshape(-1, 4) for own in boxes]
        objects = in_threads(lambda k, image: self._objects(image, found[k]), images, self.n_jobs)
        rows = [row for own in objects for row in own]
        n_objects, known = len(rows), [dict[tuple, np.ndarray]() for _ in found]
        if n_objects == 0:
            raise ValueError("boxes has no object to learn from.")
        for _ in range(self.rounds + 1):
            more = in_threads(
                lambda k, image: dict(self._negatives(k, image, found[k], known[k])),
                images,
                self.n_jobs,
            )
            if not any(more):
                break
            for own, new in zip(known, more, strict=True):
                own.update(new)
                rows.extend(new.values())
            X = np.array(rows, dtype=np.float32)
            machine = icd(scaling=None, C=0.01) if self.machine is None else clone(self.machine)
            self.machine_ = machine.fit(X, np.arange(len(X)) < n_objects)
            self.n_negatives_.append(len(X) - n_objects)
            self._take_tables(X.shape[1])
        if not self.n_negatives_:
            raise ValueError("No window of the images is free of objects: add images without.")
        return self

    def _begin(self, images, boxes) -> None:
        """Check the parameters, learn the words and find the blocks of a window."""
        for side in self.size:
            check_number("size", side, low=4, high=LONGEST, integer=True)
        for scale in self.scales:
            check_number("scales", scale, above=0, high=1)
        check_number("rounds", self.rounds, low=0, integer=True)
        check_number("overlap", self.overlap, low=0, high=1)
        if len(images) != len(boxes):
            raise ValueError(f"There are {len(images)} images, but boxes of {len(boxes)}.")
        self.n_negatives_: list[int] = []
        self._tables = np.zeros((0, 0, 0))
        bag = BagOfVisualWords(DenseSIFT(4), Codebook(100), SpatialPyramid(overlap=False))
        bag = bag if self.bag is None else clone(self.bag)
        sift = DenseSIFT() if bag.features is None else bag.features
        bag.set_params(features=sift.set_params(longest_side=None), n_jobs=self.n_jobs)
        self.bag_ = bag.fit(images)
        if bag.codebook_.neighbours > 1 or bag.pyramid_.shares:
            raise ValueError("bag must count: neighbours=1 and shares=False.")
        self._blocks = self._find_blocks()

    def _find_blocks(self) -> np.ndarray:
        """Return first and last row and column of patches in each block, for each side."""
        sift, pyramid = self.bag_.features_, self.bag_.pyramid_
        blocks = np.zeros((pyramid.n_windows, len(sift.sides), 4), dtype=np.intp)
        for s, side in enumerate(sift.sides):
            n = [max(0, (length - side) // sift.step + 1) for length in self.size]
            place = np.indices(n).reshape(2, -1).T
            centre = (place * sift.step + side / 2).astype(np.float32)
            words = Words(place, None, centre, np.full(len(place), side), self.size, 1)
            for window in pyramid.windows_of(words):
                for block in np.unique(window[window >= 0]):
                    own = place[window == block]
                    blocks[block, s] = *own.min(axis=0), *(own.max(axis=0) + 1)
        if not blocks.any():
            raise ValueError(f"size={self.size!r} has no room for a patch of {sift.sides} pixels.")
        return blocks

    def _objects(self, image: np.ndarray, boxes: np.ndarray) -> list[np.ndarray]:
        """Return the counts of objects, each brought to the window's size."""
        cut = [image[max(a, 0) : c, max(b, 0) : d] for a, b, c, d in boxes.round().astype(int)]
        if not all(piece.size for piece in cut):
            raise ValueError("A box is empty or outside of its image.")
        words = (self.bag_.words(resized(piece, self.size)) for piece in cut)
        return [self.bag_.pyramid_.count(own).toarray()[0] for own in words]

    def _negatives(
        self, k: int, image: np.ndarray, boxes: np.ndarray, known: dict
    ) -> Iterator[tuple[tuple, np.ndarray]]:
        """Yield places and counts of windows that are no objects: random ones, then hard ones."""
        rng = np.random.default_rng(k)
        for scale, sums, places, corners in self._searched(image):
            free = ~(_shares(corners, boxes) > self.overlap).any(axis=1)
            free &= [(scale, *place) not in known for place in places.tolist()]
            if self._tables.size:
                scores = self._scores(sums, places)
                chosen = np.flatnonzero(free & (scores > _MARGIN))
                chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
            else:
                chosen = rng.permutation(np.flatnonzero(free))
            for place in places[chosen[:_EACH]]:
                parts = [self._counts(sums, block, place[None])[0] for block in self._blocks]
                yield (scale, *place.tolist()), np.concatenate(parts)

    def _searched(self, image: np.ndarray) -> Iterator[tuple]:
        """Yield the scale, its sums of words, and the places and corners of its windows."""
        step = self.bag_.features_.step
        for scale in self.scales:
            small = reduced(image, max(1, round(max(image.shape) * scale)))
            n = [max(0, (a - b) // step + 1) for a, b in zip(small.shape, self.size, strict=True)]
            places = np.indices(n).reshape(2, -1).T
            corners = np.hstack([places * step, places * step + self.size])
            yield (
                scale,
                self._sums(small),
                places,
                corners * np.tile(np.array(image.shape) / small.shape, 2),
            )

    def _sums(self, image: np.ndarray) -> list[np.ndarray]:
        """Return how often each word is above and left of each patch, for each side."""
        words, step, found = self.bag_.words(image), self.bag_.features_.step, []
        for side in self.bag_.features_.sides:
            rows, columns = (max(0, (length - side) // step + 1) for length in image.shape)
            sums = np.zeros((rows + 1, columns + 1, words.n_words), dtype=np.int32)
            own = words.word[words.side == side]
            word = own.reshape(rows, columns, own.shape[1])
            np.put_along_axis(sums[1:, 1:], word, 1, axis=2)
            found.append(sums.cumsum(axis=0, out=sums).cumsum(axis=1, out=sums))
        return found

    def _counts(self, sums: list[np.ndarray], block: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the counts of the words in a block of windows, of shape (n_windows, n_words)."""
        row, column = places.T
        return sum(
            (own[row + down, column + right] - own[row + top, column + right])
            - (own[row + down, column + left] - own[row + top, column + left])
            for own, (top, left, down, right) in zip(sums, block, strict=True)
        )

    def _take_tables(self, n_features: int) -> None:
        """Keep what every count of every word adds to a score."""
        top, left, down, right = self._blocks.transpose(2, 0, 1)
        most = int(((down - top) * (right - left)).sum(axis=1).max())
        counts = np.repeat(np.arange(most + 1, dtype=np.float32), n_features)
        parts = self.machine_.contributions(counts.reshape(most + 1, -1))
        self._intercept = float(parts[0, -1])
        self._tables = parts[:, :-1].reshape(most + 1, len(self._blocks), -1).swapaxes(0, 1).copy()

    def _scores(self, sums: list[np.ndarray], places: np.ndarray) -> np.ndarray:
        """Return the decision values of windows: a look-up for each word in each block."""
        scores, word = np.full(len(places), self._intercept), np.arange(self._tables.shape[2])
        for block, table in zip(self._blocks, self._tables, strict=True):
            scores += table[self._counts(sums, block, places), word].sum(axis=1)
        return scores

    def detect(self, image: np.ndarray, threshold: float = 0.0) -> Detections:
        """Return the windows that score highest among those of the same object.

        Parameters
        ----------
        image : ndarray
            Grey or colour pixels.
        threshold : float, default=0.0
            Windows with lower scores are left out.

        Returns
        -------
        found : Detections
        """
        check_is_fitted(self, "machine_")
        found = [(np.zeros((0, 4)), np.zeros(0))]
        for _, sums, places, corners in self._searched(as_grey(image)):
            found.append((corners, self._scores(sums, places)))
        boxes, scores = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(-scores, kind="stable")
        order, kept = order[scores[order] > threshold], []
        while len(order):
            kept.append(order[0])
            same = _shares(boxes[order], boxes[order[:1]])[:, 0] > self.overlap
            same[0] = True
            order = order[~same]
        return Detections(boxes[kept], scores[kept])


def _shares(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the intersections of boxes with others as shares of their unions."""
    first = np.maximum(boxes[:, None, :2], others[None, :, :2])
    last = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    common = np.clip(last - first, 0, None).prod(axis=2)
    areas = ((own[:, 2:] - own[:, :2]).prod(axis=1) for own in (boxes, others))
    return common / np.maximum(np.add.outer(*areas) - common, 1e-12)
