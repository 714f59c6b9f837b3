"""Histograms of images: what is counted, and where."""

import io
import tarfile

import numpy as np
import pytest
from benchmarks import images

Image = pytest.importorskip("PIL.Image")


def test_the_census_transform_compares_a_pixel_with_its_eight_neighbours():
    image = np.array([[1, 9, 1], [9, 5, 9], [5, 9, 1]])
    assert images.census_transform(image)[0, 0] == 0b10100101
    assert (images.census_transform(np.full((5, 4), 7)) == 255).all()


def test_windows_cover_the_image_three_times_and_more():
    count = np.zeros((8, 8), dtype=int)
    for top, left, side in images.windows():
        rows, columns = (slice(round(8 * a), round(8 * (a + side))) for a in (top, left))
        count[rows, columns] += 1
    assert count[0, 0] == 3  # a block of each size
    assert count[4, 4] == 3 + 2  # and those between blocks


def test_counts_are_those_of_the_windows():
    image = np.random.default_rng(0).integers(0, 256, (42, 34))
    found = images.centrist(image).reshape(31, 256)
    whole = np.bincount(images.census_transform(image).ravel(), minlength=256)
    np.testing.assert_array_equal(found[-1], whole)
    np.testing.assert_array_equal(found[:16].sum(axis=0), whole)


def archive_of(path, names):
    rng = np.random.default_rng(0)
    with tarfile.open(path, "w") as archive:
        for name in names:
            file = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (24, 20), dtype=np.uint8)).save(file, "JPEG")
            entry = tarfile.TarInfo(name)
            entry.size = len(file.getvalue())
            archive.addfile(entry, io.BytesIO(file.getvalue()))


def test_scenes_are_split_as_their_folders_are(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    archive_of(tmp_path / "scene15.tar", ["train/a/1.jpg", "test/a/2.jpg", "test/b/3.jpg"])
    X, y, X_test, y_test = images.scene15()
    assert (y.tolist(), y_test.tolist()) == (["a"], ["a", "b"])
    assert (X.shape, X_test.shape) == ((1, 31 * 256), (2, 31 * 256))
    np.testing.assert_allclose(X.sum(axis=1), 31, rtol=1e-5)


def test_objects_are_split_at_random_without_the_background(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    names = [f"{kind}/{k}.jpg" for kind in ("ant", "BACKGROUND_Google", "bee") for k in range(6)]
    archive_of(tmp_path / "caltech101.tar", names)
    X, y, X_test, y_test = images.caltech101(n_train=2, n_test=3)
    assert sorted(y) == ["ant"] * 2 + ["bee"] * 2
    assert sorted(y_test) == ["ant"] * 3 + ["bee"] * 3
    rows = {row.tobytes() for row in np.vstack([X, X_test])}
    assert len(rows) == 10  # none twice
