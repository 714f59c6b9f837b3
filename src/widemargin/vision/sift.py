"""`DenseSIFT`: descriptors of patches on a grid, from sums of gradients over squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from widemargin.validation import check_bool, check_n_jobs, check_number
from widemargin.vision.counting import in_threads
from widemargin.vision.pixels import LONGEST, reduced

CELLS, DIRECTIONS = 4, 8  # cells of a patch's side, directions
LENGTH = CELLS * CELLS * DIRECTIONS
FAINT = 0.5  # norms per pixel below which a patch has no directions worth the name


class Patches(NamedTuple):
    """Descriptors of an image's patches.

    Attributes
    ----------
    descriptors : ndarray of shape (n, 128)
        At least 0, of norm 1, or 0 where a patch is flat.
    centre : ndarray of shape (n, 2)
        Row and column, in pixels from the upper left corner.
    side : ndarray of shape (n,)
        Height and width in pixels.
    shape : tuple of int
        Height and width of the image.
    """

    descriptors: np.ndarray
    centre: np.ndarray
    side: np.ndarray
    shape: tuple[int, int]


class DenseSIFT(TransformerMixin, BaseEstimator):
    """SIFT (Lowe 2004) of patches on a grid: 4 x 4 cells of 8 directions.

    Parameters
    ----------
    step : int, default=8
        Pixels between the patches of a size.
    sides : sequence of int, default=(16,)
        Heights and widths of patches, each a multiple of 4: one or several scales.
    root : bool, default=False
        Whether descriptors are the square roots of their shares, so that distances are Hellinger's
        (Arandjelović and Zisserman 2012).
    longest_side : int, default=300
        Larger images are reduced to this height or width first; None for as they are.
    n_jobs : int, default=None
        Threads.

    Examples
    --------
    >>> (patches,) = DenseSIFT(step=16).fit_transform([np.eye(48)])
    >>> patches.descriptors.shape, patches.centre[0].tolist()
    ((9, 128), [8.0, 8.0])
    """

    def __init__(self, step=8, *, sides=(16,), root=False, longest_side=300, n_jobs=None):
        self.step = step
        self.sides = sides
        self.root = root
        self.longest_side = longest_side
        self.n_jobs = n_jobs

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def check(self) -> None:
        """Raise if a parameter is wrong."""
        check_number("step", self.step, low=1, high=1 << 16, integer=True)
        if not isinstance(self.sides, (list, tuple)) or not self.sides:
            raise TypeError(f"sides must be a list of whole numbers, got {self.sides!r}.")
        for side in self.sides:
            check_number("sides", side, low=CELLS, high=1 << 12, integer=True)
            if side % CELLS:
                raise ValueError(f"sides={self.sides!r} must be multiples of {CELLS}.")
        check_bool("root", self.root)
        if self.longest_side is not None:
            check_number("longest_side", self.longest_side, low=1, high=LONGEST, integer=True)
        check_n_jobs(self.n_jobs)

    def fit(self, images, y=None):
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        images : sequence of arrays
        y : ignored

        Returns
        -------
        self : DenseSIFT
        """
        self.check()
        return self

    def transform(self, images) -> list[Patches]:
        """Describe the patches of each image.

        Parameters
        ----------
        images : sequence of arrays
            Or what `read_images` returns.

        Returns
        -------
        patches : list of Patches
        """
        self.check()
        return in_threads(
            lambda k, image: self.describe(reduced(image, self.longest_side)), images, self.n_jobs
        )

    def describe(self, image: np.ndarray) -> Patches:
        """Describe the patches of grey pixels, of each side in turn."""
        sums = _sums_of_directions(image)
        parts = [self._of_side(sums, side) for side in self.sides]
        descriptors, centre = (np.concatenate(part) for part in zip(*parts, strict=True))
        side = np.repeat(self.sides, [len(own) for own, _ in parts])
        return Patches(descriptors, centre, side, image.shape)

    def _of_side(self, sums: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Return descriptors and centres of the patches of one size."""
        cell, (height, width) = side // CELLS, (size - 1 for size in sums.shape[:2])
        tops = np.arange(0, height - side + 1, self.step)
        lefts = np.arange(0, width - side + 1, self.step)
        squares = sums[cell:, cell:] - sums[:-cell, cell:] - sums[cell:, :-cell]
        squares += sums[:-cell, :-cell]  # every square of a cell's size
        flat = np.empty((len(tops), len(lefts), CELLS, CELLS, DIRECTIONS), dtype=np.float32)
        for i in range(CELLS) if flat.size else ():
            rows = slice(i * cell, i * cell + tops[-1] + 1, self.step)
            for j in range(CELLS):
                columns = slice(j * cell, j * cell + lefts[-1] + 1, self.step)
                flat[:, :, i, j] = squares[rows, columns]
        corners = np.stack(np.meshgrid(tops, lefts, indexing="ij"), axis=-1).reshape(-1, 2)
        descriptors = _normalised(flat.reshape(-1, LENGTH), FAINT * side)
        if self.root:
            descriptors /= np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-6)
            np.sqrt(descriptors, out=descriptors)
        return descriptors, (corners + side / 2).astype(np.float32)


def _sums_of_directions(image: np.ndarray) -> np.ndarray:
    """Return sums of the gradients' strength above and left of each corner of pixels.

    Of shape (height + 1, width + 1, directions); a gradient is shared by the two directions next
    to it.
    """
    height, width = image.shape
    pixels = image.astype(np.float32)
    down, right = (_differences(pixels, axis) for axis in (0, 1))
    turn = np.arctan2(down, right) * np.float32(DIRECTIONS / (2 * np.pi))
    strength = np.hypot(down, right)
    below = np.floor(turn)
    above = (turn - below) * strength
    first = below.astype(np.intp).ravel() % DIRECTIONS
    maps = np.zeros(height * width * DIRECTIONS, dtype=np.float32)
    pixel = np.arange(0, maps.size, DIRECTIONS)
    maps[pixel + first] = (strength - above).ravel()
    maps[pixel + (first + 1) % DIRECTIONS] = above.ravel()
    sums = np.zeros((height + 1, width + 1, DIRECTIONS))
    inner = sums[1:, 1:]
    inner[:] = maps.reshape(inner.shape)
    for i in range(1, height):  # a twentieth of the time of np.cumsum
        inner[i] += inner[i - 1]
    for j in range(1, width):
        inner[:, j] += inner[:, j - 1]
    return sums


def edges(image: np.ndarray) -> np.ndarray:
    """Return the strength of edges in grey pixels, as grey pixels (Sobel)."""
    x = np.pad(image.astype(np.int32), 1, mode="edge")
    down, right = x[:-2] + 2 * x[1:-1] + x[2:], x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]
    strength = np.hypot(down[:, 2:] - down[:, :-2], right[2:] - right[:-2])
    return np.minimum(strength / 4, 255).astype(np.uint8)


def _differences(pixels: np.ndarray, axis: int) -> np.ndarray:
    return np.gradient(pixels, axis=axis) if pixels.shape[axis] > 1 else np.zeros_like(pixels)


def _normalised(flat: np.ndarray, faint: float) -> np.ndarray:
    """Scale to norm 1, clip at 0.2 and scale again, as Lowe: light matters less.

    Differences of sums can be a rounding below 0.
    """
    norms = np.linalg.norm(flat, axis=1, keepdims=True)
    flat = np.clip(flat / np.maximum(norms, faint), 0, 0.2)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)
