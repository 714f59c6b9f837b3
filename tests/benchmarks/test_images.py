"""The sets of images that experiments take: which images, and on which side."""

import numpy as np
import pytest
from tests.vision.helpers import encoded, pixels, write_tar

images = pytest.importorskip("benchmarks.images")


def archive_of(path, names):
    content = {name: encoded(pixels(seed=k), "JPEG") for k, name in enumerate(names)}
    write_tar(path, content)


def test_scenes_are_split_as_their_folders_are(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    archive_of(tmp_path / "scene15.tar", ["train/a/1.jpg", "test/a/2.jpg", "test/b/3.jpg"])
    X, y, X_test, y_test = images.scene15()
    assert (y.tolist(), y_test.tolist()) == (["a"], ["a", "b"])
    assert (X.shape, X_test.shape) == ((1, 31 * 256), (2, 31 * 256))
    np.testing.assert_allclose(X.sum(axis=1), 31, rtol=1e-5)


@pytest.fixture
def objects(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    names = [f"{kind}/{k}.jpg" for kind in ("ant", "BACKGROUND_Google", "bee") for k in range(6)]
    archive_of(tmp_path / "caltech101.tar", names)


def test_objects_are_split_at_random_without_the_background(objects):
    X, y, X_test, y_test = images.caltech101(n_train=2, n_test=3)
    assert sorted(y) == ["ant"] * 2 + ["bee"] * 2
    assert sorted(y_test) == ["ant"] * 3 + ["bee"] * 3
    rows = {row.tobytes() for row in np.vstack([X, X_test])}
    assert len(rows) == 10  # none twice


def test_words_of_objects(objects, monkeypatch):
    split = images.caltech101_images
    monkeypatch.setattr(images, "caltech101_images", lambda: split(3, 2))
    X, y, X_test, y_test = images.caltech101_words(words=3)
    assert (X.shape, X_test.shape) == ((6, 31 * 3), (4, 31 * 3))
    assert (y.tolist(), y_test.tolist()) == (["ant"] * 3 + ["bee"] * 3, ["ant"] * 2 + ["bee"] * 2)
    assert X.max() == pytest.approx(1.0)
    assert X_test.max() <= 1
