"""Features of images: what is counted, where, and the same for every number of threads."""

import numpy as np
import pytest
import scipy.ndimage
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from widemargin import papers
from widemargin.vision import (
    BagOfVisualWords,
    Centrist,
    Codebook,
    DenseSIFT,
    ImageError,
    SpatialPyramid,
    codebook,
    icd_words,
    pmsvm_words,
    read_images,
)
from widemargin.vision.centrist import census_transform
from widemargin.vision.pyramid import Words
from widemargin.vision.sift import CELLS, DIRECTIONS

from .helpers import encoded, pixels, striped, write_folder

IMAGES = [striped(across=k % 2 == 0, seed=k) for k in range(16)]
Y = np.arange(16) % 2
WHOLE = SpatialPyramid((1,))


def small(**more) -> BagOfVisualWords:
    return BagOfVisualWords(DenseSIFT(step=6), Codebook(12, **more))


# ------------------------------------------------------------------ CENTRIST


def test_the_census_transform_compares_a_pixel_with_its_eight_neighbours():
    image = np.array([[1, 9, 1], [9, 5, 9], [5, 9, 1]])
    assert census_transform(image)[0, 0] == 0b10100101
    assert (census_transform(np.full((5, 4), 7)) == 255).all()


def test_codes_are_counted_in_windows():
    image = pixels(42, 34)
    found = Centrist(SpatialPyramid((4, 1))).fit_transform([image]).toarray().reshape(26, 256)
    whole = np.bincount(census_transform(image).ravel(), minlength=256)
    np.testing.assert_array_equal(found[-1], whole)
    np.testing.assert_array_equal(found[:16].sum(axis=0), whole)


def test_codes_of_a_large_flat_image_do_not_overflow():
    found = Centrist(WHOLE).fit_transform([np.zeros((302, 402), dtype=np.uint8)])
    assert found[0, 255] == 300 * 400


# ------------------------------------------------------------------ windows


def test_windows_cover_the_image_three_times_and_more():
    count = np.zeros((8, 8), dtype=int)
    for top, left, side in SpatialPyramid().windows():
        rows, columns = (slice(round(8 * a), round(8 * (a + side))) for a in (top, left))
        count[rows, columns] += 1
    assert count[0, 0] == 3  # a block of each size
    assert count[4, 4] == 3 + 2  # and those between blocks


@pytest.mark.parametrize("shares", [False, True])
def test_words_are_counted_where_they_are(shares):
    rng = np.random.default_rng(0)
    n, shape = 200, (30, 50)
    centre = rng.random((n, 2)) * shape
    word = rng.integers(0, 5, (n, 2))
    share = rng.random((n, 2))
    words = Words(word, share, centre, np.full(n, 4), shape, 5)
    pyramid = SpatialPyramid((1, 3), shares=shares)
    found = pyramid.count(words).toarray().reshape(-1, 5)
    for own, (top, left, side) in zip(found, pyramid.windows(), strict=True):
        at = centre / shape
        inside = ((at >= (top, left)) & (at < (top + side, left + side))).all(axis=1)
        expected = np.bincount(word[inside].ravel(), share[inside].ravel(), minlength=5)
        np.testing.assert_allclose(own, expected / expected.sum() if shares else expected, 1e-5)


# ------------------------------------------------------------------ SIFT


def directly(patch, down, right, cell):
    """A patch's descriptor from the gradients of its pixels, one by one."""
    found = np.zeros((CELLS, CELLS, DIRECTIONS))
    for i in range(CELLS * cell):
        for j in range(CELLS * cell):
            turn = np.arctan2(down[i, j], right[i, j]) % (2 * np.pi) * DIRECTIONS / (2 * np.pi)
            low, share = int(turn), turn - int(turn)
            own = found[i // cell, j // cell]
            strength = np.hypot(down[i, j], right[i, j])
            own[low % DIRECTIONS] += (1 - share) * strength
            own[(low + 1) % DIRECTIONS] += share * strength
    found = np.minimum(found / np.linalg.norm(found), 0.2).ravel()
    return found / np.linalg.norm(found)


def test_descriptors_are_those_of_their_patches():
    image = pixels(33, 37)
    found = DenseSIFT(step=4, sides=(16, 24)).describe(image)
    down, right = np.gradient(image.astype(float))
    k = 0
    for side in (16, 24):
        for top in range(0, 33 - side + 1, 4):
            for left in range(0, 37 - side + 1, 4):
                own = (slice(top, top + side), slice(left, left + side))
                expected = directly(image[own], down[own], right[own], side // CELLS)
                np.testing.assert_allclose(found.descriptors[k], expected, atol=1e-5)
                assert found.centre[k].tolist() == [top + side / 2, left + side / 2]
                assert found.side[k] == side
                k += 1
    assert len(found.descriptors) == k


def test_roots_of_descriptors_compare_shares():
    plain, root = (DenseSIFT(6, root=root).describe(pixels(40, 40)) for root in (False, True))
    shares = plain.descriptors / plain.descriptors.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(root.descriptors**2, shares, atol=1e-6)
    assert (DenseSIFT(root=True).describe(np.zeros((20, 20), np.uint8)).descriptors == 0).all()


def test_light_does_not_matter_and_a_flat_patch_is_nothing():
    image, sift = pixels(20, 20) // 3, DenseSIFT()
    np.testing.assert_allclose(
        sift.describe(2 * image + 9).descriptors, sift.describe(image).descriptors, atol=1e-5
    )
    assert (sift.describe(np.full((20, 20), 7, dtype=np.uint8)).descriptors == 0).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (2, 2), (15, 40), (16, 16)])
def test_small_images_have_few_words_or_none(shape):
    image = np.full(shape, 9, dtype=np.uint8)
    n = int(min(shape) >= 16)
    assert len(DenseSIFT().describe(image).descriptors) == n
    assert small().fit(IMAGES).transform([image]).sum() == 5 * n  # one in each grid
    assert Centrist(WHOLE).fit_transform([image]).sum() == max(shape[0] - 2, 0) * max(
        shape[1] - 2, 0
    )


# ------------------------------------------------------------------ words


def test_words_of_kmeans_are_the_nearest(monkeypatch):
    X = np.random.default_rng(0).random((300, 7), dtype=np.float32)
    book = Codebook(9).fit(X)
    word, share = book.nearest(X)
    distance = ((X[:, None] - book.centres_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(word[:, 0], distance.argmin(axis=1))
    assert share is None
    monkeypatch.setattr(codebook, "AT_ONCE", 7)  # a part after the other
    np.testing.assert_array_equal(book.nearest(X)[0], word)
    assert book.spread_ == pytest.approx(distance.min(axis=1).mean(), rel=1e-4)


def test_words_by_intersection_are_the_means_of_kernel_kmeans():
    """Distances from tables are those that the kernel matrix of the descriptors gives."""
    X = np.random.default_rng(0).random((120, 6), dtype=np.float32) ** 2
    book = Codebook(5, method="intersection").fit(X)
    levels = np.rint(np.clip(X * 31 / book.top_, 0, 31))
    gram = np.minimum(levels[:, None], levels).sum(axis=2)
    word = book.nearest(X)[0][:, 0]
    member = np.eye(5)[word] / np.bincount(word, minlength=5)
    exact = gram @ member - 0.5 * np.einsum("ik,ij,jk->k", member, gram, member)
    np.testing.assert_allclose(book.scores(X), exact, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(word, exact.argmax(axis=1))  # it has converged
    distance = np.diag(gram) - 2 * exact.max(axis=1)
    assert book.spread_ == pytest.approx(distance.mean(), rel=1e-4)


@pytest.mark.parametrize("method", ["kmeans", "intersection"])
def test_no_word_is_without_descriptors(method):
    """Five points, each many times, are five words."""
    points = np.random.default_rng(0).random((5, 6))
    X = np.repeat(points, 40, axis=0)
    book = Codebook(5, method, random_state=1, max_iter=50).fit(X)
    if method == "intersection":
        assert len(np.unique(book.nearest(points)[0])) == 5
        assert book.spread_ < 1e-3
    with pytest.raises(ValueError, match="3 patches for n_words=5"):
        book.fit(X[:3])


@pytest.mark.parametrize("method", ["kmeans", "intersection"])
def test_several_words_share_a_patch(method):
    X = np.random.default_rng(0).random((200, 6), dtype=np.float32)
    book = Codebook(8, method).fit(X)
    nearest = book.nearest(X)[0]
    word, share = book.set_params(neighbours=3).nearest(X)
    np.testing.assert_array_equal(word[:, :1], nearest)
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-5)
    assert (share[:, :-1] >= share[:, 1:]).all()
    ratio = np.exp(2 * np.diff(np.sort(book.scores(X), axis=1)[:, -2:])[:, 0] / book.spread_)
    np.testing.assert_allclose(share[:, 0] / share[:, 1], ratio, rtol=1e-3)


# ------------------------------------------------------------------ bags of words


@pytest.mark.parametrize("method", ["kmeans", "intersection"])
def test_threads_and_order_do_not_matter(method):
    X = small(method=method).fit(IMAGES).transform(IMAGES)
    two = small(method=method).set_params(n_jobs=2).fit(IMAGES)
    assert (two.transform(IMAGES) != X).nnz == 0
    assert (two.transform(IMAGES[::-1]) != X[::-1]).nnz == 0
    other = small(method=method).set_params(codebook__random_state=1).fit(IMAGES)
    assert (other.transform(IMAGES) != X).nnz > 0


def test_counts_are_whole_numbers_and_shares_are_not():
    X = small().fit_transform(IMAGES)
    assert X.dtype == np.float32
    assert (X.data == np.rint(X.data)).all()
    n_patches = len(DenseSIFT(step=6).describe(IMAGES[0]).descriptors)
    windows = X.toarray().reshape(16, 31, 12).sum(axis=2)
    assert (windows[:, 0] == n_patches).all()  # the whole
    shared = small(neighbours=3).fit_transform(IMAGES)
    np.testing.assert_allclose(shared.sum(axis=1), X.sum(axis=1), rtol=1e-4)


def test_a_bag_is_its_parts_in_order():
    bag = small().fit(IMAGES)
    by_hand = make_pipeline(bag.features_, bag.codebook_, bag.pyramid_)
    assert (by_hand.transform(IMAGES) != bag.transform(IMAGES)).nnz == 0


def test_words_of_edges_stand_beside_those_of_the_photograph():
    bag = clone(small()).set_params(edges=True, pyramid=WHOLE).fit(IMAGES)
    found = bag.transform(IMAGES).toarray()
    assert found.shape == (16, 2 * 12)
    assert (found[:, :12].sum(axis=1) == found[:, 12:].sum(axis=1)).all()
    image = IMAGES[0].astype(float)
    inner = np.pad(image, 1, mode="edge")
    strength = np.hypot(scipy.ndimage.sobel(inner, 0), scipy.ndimage.sobel(inner, 1))[1:-1, 1:-1]
    layers = [IMAGES[0], np.minimum(strength / 4, 255).astype(np.uint8)]
    words = [bag.codebook_.words_of(bag.features_.describe(layer)) for layer in layers]
    expected = [bag.pyramid_.count(own).toarray()[0] for own in words]
    np.testing.assert_array_equal(found[0], np.concatenate(expected))


def test_files_and_arrays_are_the_same(tmp_path):
    files = {f"{k % 2}/{k:02}.png": encoded(image) for k, image in enumerate(IMAGES)}
    images = read_images(write_folder(tmp_path, files))
    order = [int(name[2:4]) for name in images.names]
    bag = small().fit(images)
    same = bag.transform([np.dstack([IMAGES[k]] * 3) for k in order])
    assert (bag.transform(images) != same).nnz == 0


@pytest.mark.parametrize("features", [Centrist(), small(), small(method="intersection")],
                         ids=["centrist", "kmeans", "intersection"])  # fmt: skip
def test_stripes_are_told_apart(features):
    model = make_pipeline(features, papers.icd(scaling=None))
    assert cross_val_score(model, IMAGES, Y, cv=4).mean() == 1.0
    names = clone(features).fit(IMAGES).get_feature_names_out()
    assert (len(names), names[0]) == (features.fit_transform(IMAGES).shape[1], "window0_word0")


def test_presets_have_the_papers_settings():
    assert icd_words().codebook.n_words * icd_words().pyramid.n_windows == 6200
    preset = pmsvm_words(features__step=4)
    assert preset.codebook.n_words * preset.pyramid.n_windows == 62000
    assert preset.features.step == 4
    assert pmsvm_words().features.step == 2


def test_large_photographs_are_reduced():
    big = np.kron(IMAGES[0], np.ones((20, 20), dtype=np.uint8))
    bag = BagOfVisualWords(codebook=Codebook(4)).fit(IMAGES)
    assert bag.prepared(big).shape == (250, 300)
    assert bag.transform([big]).sum() == bag.transform([bag.prepared(big)]).sum()


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("images", "error"),
    [
        ("photos", TypeError),
        (3, TypeError),
        ([], ImageError),
        (np.ones((5, 4)), ImageError),
        ([pixels(), pixels().astype(int)], ImageError),
    ],
)
def test_what_is_no_sequence_of_images(images, error):
    for features in (Centrist(), small()):
        with pytest.raises(error):
            features.fit(images).transform(images)


@pytest.mark.parametrize(
    "features",
    [
        Centrist(SpatialPyramid((0,))),
        Centrist(SpatialPyramid(4)),
        Centrist(SpatialPyramid(shares=1)),
        Centrist(longest_side=0),
        BagOfVisualWords(codebook=Codebook(0)),
        BagOfVisualWords(codebook=Codebook(method="mean")),
        BagOfVisualWords(codebook=Codebook(4, neighbours=5)),
        BagOfVisualWords(DenseSIFT(0)),
        BagOfVisualWords(DenseSIFT(sides=(18,))),
        BagOfVisualWords(DenseSIFT(sides=16)),
        BagOfVisualWords(sample_size=0),
        BagOfVisualWords(edges=1),
        BagOfVisualWords(DenseSIFT(root="yes")),
    ],
)
def test_parameters_are_checked(features):
    with pytest.raises((ValueError, TypeError)):
        features.fit(IMAGES)
