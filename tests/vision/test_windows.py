"""Windows: every score is that of the window's own counts, and hard negatives are learned from."""

import numpy as np
import pytest
from sklearn.base import clone

from widemargin import AdditiveSVC
from widemargin.vision import BagOfVisualWords, Codebook, DenseSIFT, SpatialPyramid, WindowDetector
from widemargin.vision.pyramid import Words

BAG = BagOfVisualWords(DenseSIFT(4, sides=(8, 16)), Codebook(12), SpatialPyramid((1, 2)))
EDGES = clone(BAG).set_params(edges=True)
SIZE = (32, 24)
BOXES = [np.array([[20, 30, 52, 54]]), np.array([[8, 60, 40, 84]]), np.zeros((0, 4)),
         np.array([[40, 8, 72, 32]])]  # fmt: skip


def board(square: int) -> np.ndarray:
    return (255 * (np.indices(SIZE).sum(axis=0) // square % 2)).astype(np.uint8)


def scene(boxes, seed: int) -> np.ndarray:
    """Noise with a board of small squares in each box, and one of larger squares elsewhere."""
    image = np.random.default_rng(seed).integers(0, 90, (80, 96), dtype=np.uint8)
    image[44:76, 64:88] = board(8)
    for top, left, bottom, right in boxes.astype(int):
        image[top:bottom, left:right] = board(5)
    return image


IMAGES = [scene(own, k) for k, own in enumerate(BOXES)]


@pytest.fixture(scope="module")
def finder():
    return WindowDetector(SIZE, BAG).fit(IMAGES, BOXES)


@pytest.mark.parametrize(
    ("bag", "machine"), [(BAG, None), (BAG, AdditiveSVC("chi2", random_state=0)), (EDGES, None)]
)
def test_scores_are_those_of_each_windows_counts(bag, machine):
    finder = WindowDetector(SIZE, bag, machine, overlap=1.0, rounds=1).fit(IMAGES, BOXES)
    bag, image = finder.bag_, IMAGES[0]
    words = bag.words(image)
    expected = {}
    for top in range(0, 80 - 32 + 1, 4):
        for left in range(0, 96 - 24 + 1, 4):
            first = words.centre - words.side[:, None] / 2 - (top, left)
            own = ((first >= 0) & (first + words.side[:, None] <= SIZE)).all(axis=1)
            inside = Words(words.word[own], None, words.centre[own] - (top, left),
                           words.side[own], SIZE, words.n_words)  # fmt: skip
            row = bag.pyramid_.count(inside).toarray()
            expected[top, left] = finder.machine_.decision_function(row)[0]
    found = finder.detect(image, threshold=-np.inf)
    assert len(found.scores) == len(expected) == 13 * 19
    assert (np.diff(found.scores) <= 0).all()
    for box, score in zip(found.boxes.tolist(), found.scores, strict=True):
        assert score == pytest.approx(expected[box[0], box[1]], abs=1e-4)
        assert (box[2] - box[0], box[3] - box[1]) == SIZE


def test_objects_of_new_images_are_found_once(finder):
    boxes = np.array([[4, 12, 36, 36], [36, 16, 68, 40]])
    found = finder.detect(scene(boxes, 9))
    assert found.boxes[found.boxes[:, 0].argsort()].tolist() == boxes.tolist()
    assert (found.scores > 0).all()


def test_hard_negatives_are_added_until_there_are_none(finder):
    assert finder.n_negatives_[0] == 4 * 20
    many = WindowDetector(SIZE, BAG, rounds=50).fit(IMAGES, BOXES)
    assert many.n_negatives_[: len(finder.n_negatives_)] == finder.n_negatives_
    assert (np.diff(many.n_negatives_) > 0).all()
    assert len(many.n_negatives_) < 51
    for image, boxes in zip(IMAGES, BOXES, strict=True):
        assert len(many.detect(image).boxes) == len(boxes)


def test_larger_objects_are_found_in_smaller_copies():
    large = [np.kron(image, np.ones((2, 2), dtype=np.uint8)) for image in IMAGES]
    bag = clone(BAG).set_params(codebook__n_words=30)
    finder = WindowDetector(SIZE, bag, scales=(1.0, 0.5)).fit(large, [2 * own for own in BOXES])
    found = finder.detect(np.kron(scene(BOXES[3], 9), np.ones((2, 2), dtype=np.uint8)))
    assert found.boxes.tolist() == (2 * BOXES[3]).tolist()


def test_threads_change_nothing(finder):
    again = WindowDetector(SIZE, BAG, n_jobs=2).fit(IMAGES, BOXES)
    assert again.n_negatives_ == finder.n_negatives_
    for one, other in zip(again.detect(IMAGES[1], -9), finder.detect(IMAGES[1], -9), strict=True):
        np.testing.assert_array_equal(one, other)


def test_images_smaller_than_a_window_have_none(finder):
    assert len(finder.detect(IMAGES[0][:20]).boxes) == 0
    assert len(finder.detect(IMAGES[0][:4, :4]).boxes) == 0


@pytest.mark.parametrize(
    ("changes", "boxes", "said"),
    [
        ({}, BOXES[:2], "4 images, but boxes of 2"),
        ({}, [[]] * 4, "no object"),
        ({"overlap": 0}, [[[0, 0, 80, 96]]] * 4, "free of objects"),
        ({"size": (10, 2)}, BOXES, "size"),
        ({"size": (8, 8), "bag": BagOfVisualWords()}, BOXES, "no room for a patch"),
        ({"scales": (2.0,)}, BOXES, "scales"),
        ({"overlap": 2}, BOXES, "overlap"),
        ({"rounds": -1}, BOXES, "rounds"),
        ({"bag": BagOfVisualWords(codebook=Codebook(4, neighbours=2))}, BOXES, "neighbours=1"),
        ({"bag": BagOfVisualWords(pyramid=SpatialPyramid(shares=True))}, BOXES, "shares=False"),
        ({}, [np.array([[0, 0, 0, 9]])] * 4, "box"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(changes, boxes, said):
    with pytest.raises(ValueError, match=said):
        WindowDetector(SIZE, BAG).set_params(**changes).fit(IMAGES, boxes)
