"""The digits of the largest benchmark, and the slope of the one about growth."""

import numpy as np
import pytest
from benchmarks.eight_million import deformed, smooth_fields
from benchmarks.growth import slope


def squares(n=200):
    images = np.zeros((n, 28, 28), dtype=np.uint8)
    images[:, 8:20, 10:18] = 200
    return images.reshape(n, -1)


def test_every_image_is_moved_a_little_and_otherwise_than_the_others():
    fields = smooth_fields(np.random.default_rng(0))
    images = deformed(squares(), fields, np.random.default_rng(1))
    assert (images.shape, images.dtype) == ((200, 784), np.uint8)
    assert len(np.unique(images, axis=0)) == 200
    likeness = [np.corrcoef(image, squares(1)[0])[0, 1] for image in images]
    assert 0.6 < np.min(likeness) < np.median(likeness) < 0.999
    again = deformed(squares(), fields, np.random.default_rng(1))
    np.testing.assert_array_equal(images, again)


def test_nothing_has_no_edges_to_move():
    fields = smooth_fields(np.random.default_rng(0))
    assert not deformed(np.zeros((5, 784), np.uint8), fields, np.random.default_rng(1)).any()


def test_slopes_are_exponents():
    rows = [10, 20, 40]
    assert slope(rows, [3, 6, 12]) == pytest.approx(1)
    assert slope(rows, [1, 4, 16]) == pytest.approx(2)
