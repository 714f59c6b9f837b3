"""SIFT on a grid, and words of it counted in windows."""

import numpy as np
import pytest
from benchmarks import visual_words
from benchmarks.visual_words import (
    CELL,
    CELLS,
    DIRECTIONS,
    PATCH,
    codebook,
    descriptors,
    word_counts,
)


def directly(patch, down, right):
    """A patch's descriptor from the gradients of its pixels, one by one."""
    found = np.zeros((CELLS, CELLS, DIRECTIONS))
    for i in range(PATCH):
        for j in range(PATCH):
            turn = np.arctan2(down[i, j], right[i, j]) % (2 * np.pi) * DIRECTIONS / (2 * np.pi)
            low, share = int(turn), turn - int(turn)
            cell = found[i // CELL, j // CELL]
            strength = np.hypot(down[i, j], right[i, j])
            cell[low % DIRECTIONS] += (1 - share) * strength
            cell[(low + 1) % DIRECTIONS] += share * strength
    found = np.minimum(found / np.linalg.norm(found), 0.2).ravel()
    return found / np.linalg.norm(found)


def test_descriptors_are_those_of_their_patches():
    image = np.random.default_rng(0).integers(0, 256, (25, 31))
    found, places = descriptors(image, step=4)
    assert found.shape == (3 * 4, CELLS * CELLS * DIRECTIONS)
    down, right = np.gradient(image.astype(float))
    k = 0
    for top in range(0, 10, 4):
        for left in range(0, 16, 4):
            own = (slice(top, top + PATCH), slice(left, left + PATCH))
            np.testing.assert_allclose(
                found[k], directly(image[own], down[own], right[own]), atol=1e-5
            )
            np.testing.assert_allclose(places[k], [(top + 8) / 25, (left + 8) / 31])
            k += 1


def test_light_does_not_matter_and_a_flat_patch_is_nothing():
    image = np.random.default_rng(0).integers(0, 100, (20, 20))
    np.testing.assert_allclose(descriptors(2 * image + 9)[0], descriptors(image)[0], atol=1e-5)
    assert (descriptors(np.full((20, 20), 7))[0] == 0).all()


def test_words_are_the_nearest_and_windows_have_their_shares():
    image = np.random.default_rng(0).integers(0, 256, (80, 60))
    found, _ = descriptors(image)
    centres = codebook([image], words=5)
    assert centres.shape == (5, found.shape[1])
    distances = ((found[:, None] - centres) ** 2).sum(axis=2)
    whole = np.bincount(distances.argmin(axis=1), minlength=5) / len(found)
    counts = word_counts(image, centres).toarray().reshape(31, 5)
    np.testing.assert_allclose(counts[-1], whole, atol=1e-6)
    np.testing.assert_allclose(counts.sum(axis=1), 1, atol=1e-6)


def test_features_of_objects(monkeypatch):
    rng = np.random.default_rng(0)
    made = {side: [(kind, rng.integers(0, 256, (40, 36))) for kind in "ab" for _ in range(3)]
            for side in ("train", "test")}  # fmt: skip
    monkeypatch.setattr(visual_words, "caltech101_images", lambda: made)
    X, y, X_test, y_test = visual_words.caltech101_words(words=4)
    assert X.shape == X_test.shape == (6, 31 * 4)
    assert y.tolist() == y_test.tolist() == list("aaabbb")
    assert X.max() == pytest.approx(1.0)
    assert X_test.max() <= 1
