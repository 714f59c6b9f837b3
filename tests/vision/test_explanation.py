"""Decisions mapped back to the image: nothing lost, and in the right place."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from tests.drawing.helpers import drawn

from widemargin import AdditiveSVC, KernelSVC, papers
from widemargin.vision import (
    BagOfVisualWords,
    Centrist,
    Codebook,
    DenseSIFT,
    SpatialPyramid,
    explain_image,
    plot_heat,
)

from .helpers import striped
from .test_features import IMAGES, Y

FEATURES = {
    "centrist": Centrist(),
    "words": BagOfVisualWords(codebook=Codebook(8)),
    "several": BagOfVisualWords(
        DenseSIFT(5, sides=(16, 24)), Codebook(9, "intersection", neighbours=3)
    ),
    "edges": BagOfVisualWords(DenseSIFT(6, root=True), Codebook(7), edges=True),
    "shares": BagOfVisualWords(codebook=Codebook(8), pyramid=SpatialPyramid((2,), shares=True)),
}


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize(
    "machine", [papers.icd(scaling=None), AdditiveSVC("chi2"), AdditiveSVC("jensen_shannon")]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_sum_to_the_decision_value(kind, machine, n_classes):
    y = np.arange(16) % n_classes
    model = make_pipeline(FEATURES[kind], MaxAbsScaler(), machine).fit(IMAGES, y)
    scores = model.decision_function(IMAGES[:3])
    for image, score, predicted in zip(IMAGES, scores, model.predict(IMAGES[:3]), strict=False):
        for label in range(n_classes):
            found = explain_image(model, image, label)
            expected = score[label] if n_classes > 2 else (2 * label - 1) * score
            assert found.score == pytest.approx(expected, abs=1e-4)
            total = found.heat.sum() + found.absent.sum() + found.intercept
            assert total == pytest.approx(expected, abs=1e-4)
            assert found.by_window.sum() == pytest.approx(found.by_word.sum(), abs=1e-6)
            assert found.by_window.sum() + found.intercept == pytest.approx(expected, abs=1e-4)
        assert explain_image(model, image).label == predicted


def half(upper: bool, seed: int) -> np.ndarray:
    """Vertical stripes everywhere but in one half, where they lie across."""
    image = striped(across=False, seed=seed, height=64, width=48).copy()
    rows = slice(0, 32) if upper else slice(32, 64)
    image[rows] = striped(across=True, seed=seed, height=32, width=48)
    return image


@pytest.mark.parametrize("features", [Centrist(), BagOfVisualWords(codebook=Codebook(8))],
                         ids=["centrist", "words"])  # fmt: skip
def test_heat_is_where_the_classes_differ(features):
    """Images of one class have stripes across somewhere; the heat for it lies on them."""
    images = [striped(across=False, seed=k, height=64, width=48) for k in range(20)]
    images += [half(upper=k % 2 == 0, seed=k) for k in range(20)]
    y = np.repeat(["plain", "across"], 20)
    features.set_params(pyramid=SpatialPyramid((1,)))
    model = make_pipeline(features, papers.icd(scaling=None)).fit(images, y)
    for upper in (True, False):
        found = explain_image(model, half(upper, seed=50), "across")
        top, bottom = found.heat[:30].sum(), found.heat[34:].sum()
        assert (top > bottom) == upper
        assert max(top, bottom) > 0


def test_a_large_photograph_is_explained_as_it_was_seen():
    model = make_pipeline(FEATURES["words"], papers.icd(scaling=None)).fit(IMAGES, Y)
    big = np.dstack([np.kron(IMAGES[0], np.ones((10, 10), dtype=np.uint8))] * 3)
    found = explain_image(model, big)
    assert found.heat.shape == found.image.shape == (250, 300)
    assert found.score == pytest.approx(
        (2 * found.label - 1) * model.decision_function([big])[0], abs=1e-4
    )
    ax = plot_heat(found, big)
    assert ax.get_title().startswith(f"{found.label}: ")
    assert drawn(ax.figure)
    assert drawn(plot_heat(found).figure)


def test_only_sums_over_words_are_explained():
    model = make_pipeline(FEATURES["words"], KernelSVC()).fit(IMAGES, Y)
    for wrong in (model, AdditiveSVC()):
        with pytest.raises(ValueError, match="not a sum over words"):
            explain_image(wrong, IMAGES[0])
    model = make_pipeline(FEATURES["words"], papers.icd(scaling=None)).fit(IMAGES, Y)
    with pytest.raises(ValueError, match="class_label=7"):
        explain_image(model, IMAGES[0], 7)
