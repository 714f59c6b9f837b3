"""Folders, archives and tables of images: the same pixels and labels from all of them."""

import pickle

import numpy as np
import pytest
from PIL import Image
from sklearn.model_selection import KFold

from widemargin.errors import TooLargeError
from widemargin.vision import ImageError, as_grey, read_images

from .helpers import contents, encoded, pixels, write_folder, write_tar, write_zip

FILES = contents()
LAYOUTS = {
    "folder": lambda path: write_folder(path / "pets", FILES),
    "tar": lambda path: write_tar(path / "pets.tar", FILES),
    "tar.gz": lambda path: write_tar(path / "pets.tar.gz", FILES, "w:gz"),
    "tar.xz": lambda path: write_tar(path / "pets.txz", FILES, "w:xz"),
    "zip": lambda path: write_zip(path / "pets.zip", FILES),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_names_labels_and_pixels(layout, n_jobs, tmp_path):
    images = read_images(LAYOUTS[layout](tmp_path), n_jobs=n_jobs)
    assert images.names == sorted(FILES)
    assert images.labels.tolist() == ["cat"] * 3 + ["dog"] * 3
    for k, image in enumerate(images):
        np.testing.assert_array_equal(image, pixels(seed=10 * (k // 3) + k % 3))
    assert len(images[1:3]) == 2
    np.testing.assert_array_equal(images[-1], images[1:][4])
    assert images.subset([5, 0]).labels.tolist() == ["dog", "cat"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_part_of_it_alone(layout, tmp_path):
    deeper = {f"train/{name}": content for name, content in FILES.items()}
    deeper |= {"test/cat/9.png": encoded(pixels()), "training/cat/8.png": encoded(pixels())}
    made = {"folder": write_folder, "zip": write_zip}.get(layout)
    path = tmp_path / "all.zip" if layout == "zip" else tmp_path / "all"
    if made is None:
        path = write_tar(tmp_path / f"all.{layout}", deeper, f"w:{layout[4:]}")
    else:
        made(path, deeper)
    images = read_images(path, inside="train")
    assert (len(images), set(images.labels)) == (6, {"cat", "dog"})
    with pytest.raises(ImageError, match="'nowhere'"):
        read_images(path, inside="nowhere")


def test_deeper_folders_are_parts_of_their_class(tmp_path):
    write_folder(tmp_path, {"cat/day 1/a.png": encoded(pixels()), "dog/b.png": encoded(pixels())})
    assert read_images(tmp_path).labels.tolist() == ["cat", "dog"]


def test_images_of_no_class_have_no_labels(tmp_path):
    write_folder(tmp_path, {"a.png": encoded(pixels()), "cat/b.png": encoded(pixels())})
    assert read_images(tmp_path).labels is None
    assert read_images(tmp_path / "a.png").names == ["a.png"]


def test_a_table_of_paths(tmp_path):
    write_folder(tmp_path, FILES)
    (tmp_path / "some.csv").write_text("label,path\nfeline,cat/1.png\ncanine,dog/0.png\n")
    images = read_images(tmp_path / "some.csv")
    assert (images.names, images.labels.tolist()) == (["cat/1.png", "dog/0.png"],
                                                      ["feline", "canine"])  # fmt: skip
    (tmp_path / "some.tsv").write_text("path\tsize\ndog/2.png\t3\n")
    assert read_images(tmp_path / "some.tsv").labels is None
    for text, said in (("a,b\n", "no column 'path'"), ("path\nx.png\nx.png\n", "line 3")):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(ImageError, match=said):
            read_images(tmp_path / "bad.csv")


def test_other_files_are_named_and_hidden_ones_are_no_images(tmp_path):
    other = {"README": b"x", "cat/.DS_Store": b"x", "cat/._0.png": b"x", "__MACOSX/c/1.png": b"x"}
    images = read_images(write_folder(tmp_path, FILES | other))
    assert len(images) == 6
    assert images.ignored == tuple(sorted(other))
    assert images.faults == ()


def test_images_split_as_lists_do(tmp_path):
    images = read_images(write_folder(tmp_path, FILES))
    for train, test in KFold(3).split(images):
        assert len(images.subset(train)) + len(images.subset(test)) == 6
    again = pickle.loads(pickle.dumps(images))
    np.testing.assert_array_equal(again[2], images[2])


# ------------------------------------------------------------------ pixels


def test_a_photograph_stands_upright_as_its_exif_says(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees, clockwise
    content = encoded(pixels(), exif=exif)
    write_folder(tmp_path, {"a.png": content})
    np.testing.assert_array_equal(read_images(tmp_path)[0], np.rot90(pixels(), -1))


def test_sixteen_bits_colours_palettes_and_frames(tmp_path):
    grey = pixels()
    colour = np.dstack([grey, grey, grey])
    files = {
        "16.png": encoded(grey.astype(np.uint16) * 257),
        "16.tif": encoded(grey.astype(np.uint16) * 257, "TIFF"),
        "colour.png": encoded(colour),
        "with alpha.png": encoded(np.dstack([colour, 255 - grey])),
        "p.gif": encoded(grey, "GIF"),
        "p.pgm": encoded(grey, "PPM"),
        "b.bmp": encoded(grey, "BMP"),
        "w.webp": encoded(colour, "WEBP", lossless=True),
    }
    images = read_images(write_folder(tmp_path, files))
    assert len(images) == len(files)
    for name, image in zip(images.names, images, strict=True):
        assert image.dtype == np.uint8
        np.testing.assert_allclose(image, grey, atol=1, err_msg=name)


def test_arrays_of_any_kind_are_the_same_pixels():
    grey = pixels()
    for same in (grey.astype(np.uint16) * 257, grey / 255, np.dstack([grey] * 3),
                 np.dstack([grey] * 4) / 255):  # fmt: skip
        np.testing.assert_array_equal(as_grey(same), grey)
    assert as_grey(grey > 100).max() == 255
    for wrong in (grey.astype(float), grey.astype(int), grey[0], np.dstack([grey] * 2), grey[:0],
                  np.full((3, 3), np.nan)):  # fmt: skip
        with pytest.raises(ImageError):
            as_grey(wrong)


# ------------------------------------------------------------------ what is asked for


def test_what_cannot_be_read_is_said(tmp_path):
    (tmp_path / "rows.npz").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    for path, said in (("rows.npz", "none of a folder"), ("empty", "no images")):
        with pytest.raises(ImageError, match=said):
            read_images(tmp_path / path)
    with pytest.raises(FileNotFoundError, match=r"none\.tar"):
        read_images(tmp_path / "none.tar")
    with pytest.raises(ValueError, match="on_error"):
        read_images(tmp_path, on_error="ignore")


def test_a_compressed_tar_is_unpacked_within_a_limit(tmp_path):
    path = write_tar(tmp_path / "big.tar.gz", {"a/x.png": bytes(10**6)}, "w:gz")
    with pytest.raises(TooLargeError, match="max_bytes=100000"):
        read_images(path, max_bytes=100_000)
