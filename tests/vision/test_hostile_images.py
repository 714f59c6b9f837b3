"""Damaged and hostile images and archives: each is named, nothing else is lost, nothing escapes."""

import io
import os
import stat
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from widemargin.vision import ImageError, Images, read_images

from .helpers import contents, encoded, pixels, striped, write_folder, write_tar, write_zip

GOOD = contents()


def found(path, **more) -> Images:
    """The images of a path; all good ones must be among them."""
    images = read_images(path, on_error="skip", **more)
    assert set(GOOD) <= set(images.names)
    return images


def faults(images: Images) -> dict[str, str]:
    return dict(images.faults)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "GIF", "BMP", "WEBP"])
def test_truncated_at_every_twentieth(kind, tmp_path):
    whole = encoded(striped(across=True, height=90, width=110), kind)
    ending = {"TIFF": "tif", "JPEG": "jpg"}.get(kind, kind.lower())
    files = {f"cut/{k}.{ending}": whole[: len(whole) * k // 20] for k in range(20)}
    images = found(write_folder(tmp_path, GOOD | files))
    assert set(faults(images)) == set(files)
    for name, reason in images.faults:
        assert repr(name) in reason
    with pytest.raises(ImageError, match=r"20 of 26 images cannot be read") as error:
        read_images(tmp_path)
    assert "on_error='skip'" in str(error.value)
    assert "and 10 more" in str(error.value)


def test_mutated_files_are_read_or_named(tmp_path):
    rng = np.random.default_rng(0)
    files = {}
    for k in range(500):
        kind = ("JPEG", "PNG", "TIFF", "GIF", "WEBP")[k % 5]
        content = bytearray(encoded(pixels(seed=k), kind))
        for _ in range(rng.integers(1, 8)):
            content[rng.integers(0, len(content))] = rng.integers(0, 256)
        files[f"m/{k}.jpg"] = bytes(content)
    images = found(write_folder(tmp_path, GOOD | files), n_jobs=2)
    lost = set(files) - set(images.names) - set(faults(images))
    assert lost == set()
    assert len(images.faults) > 100  # and many of them are still images
    assert len(images) > 100


def bomb(width: int, height: int) -> bytes:
    """A PNG of few bytes that declares many pixels."""
    file = io.BytesIO()
    Image.new("1", (width, height)).save(file, "PNG")
    return file.getvalue()


def test_bombs_are_refused_before_they_are_decoded(tmp_path):
    huge = bytearray(bomb(8, 8))
    huge[16:24] = b"\x00\x01\x00\x00" * 2  # 65,536 x 65,536 pixels
    images = found(write_folder(tmp_path, GOOD | {"b/1.png": bomb(6000, 6000), "b/2.png": huge}))
    assert "max_pixels" in faults(images)["b/1.png"]
    assert set(faults(images)) == {"b/1.png", "b/2.png"}


def test_fewer_pixels_are_a_limit_too(tmp_path):
    write_folder(tmp_path, {"a/1.png": encoded(pixels(10, 10)), "a/2.png": encoded(pixels(9, 11))})
    images = read_images(tmp_path, on_error="skip", max_pixels=99)
    assert images.names == ["a/2.png"]
    assert "10 x 10 pixels" in images.faults[0].reason


def test_wrong_endings_and_no_bytes(tmp_path):
    files = {"a/text.jpg": b"hello", "a/zero.png": b"", "a/really a png.jpg": encoded(pixels()),
             "a/script.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"}  # fmt: skip
    images = found(write_folder(tmp_path, GOOD | files))
    assert set(faults(images)) == {"a/text.jpg", "a/zero.png", "a/script.png"}
    assert "a/really a png.jpg" in images.names


def test_pixels_of_other_kinds_are_named(tmp_path):
    deep = encoded(np.full((5, 5), 1 << 20, dtype=np.int32), "TIFF")
    files = {"a/f.tif": encoded(np.ones((5, 5), dtype=np.float32), "TIFF"), "a/i.tif": deep}
    images = found(write_folder(tmp_path, GOOD | files))
    assert set(faults(images)) == set(files)


# ------------------------------------------------------------------ links, pipes, ways out


def test_links_and_pipes_of_a_folder_are_not_followed(tmp_path):
    outside = write_folder(tmp_path / "outside", {"secret.png": encoded(pixels())})
    path = write_folder(tmp_path / "pets", GOOD)
    (path / "cat" / "link.png").symlink_to(outside / "secret.png")
    (path / "more").symlink_to(outside)
    os.mkfifo(path / "cat" / "pipe.png")
    images = found(path)
    assert set(faults(images)) == {"cat/link.png", "more", "cat/pipe.png"}
    assert len(images) == 6


def test_paths_of_a_table_stay_in_its_folder(tmp_path):
    write_folder(tmp_path, {"secret.png": encoded(pixels())})
    path = write_folder(tmp_path / "pets", GOOD)
    (path / "out").symlink_to(tmp_path)
    (path / "cat" / "link.png").symlink_to(path / "cat" / "0.png")
    wrong = ["../secret.png", "out/secret.png", "/etc/hosts", "cat/link.png", "none.png", "cat",
             "cat/\0.png"]  # fmt: skip
    (path / "t.csv").write_text("\n".join(["path", *wrong, *GOOD]))
    images = found(path / "t.csv")
    assert set(faults(images)) == set(wrong)


def members(archive: tarfile.TarFile) -> None:
    for name, kind, target in (
        ("cat/sym.png", tarfile.SYMTYPE, "/etc/hosts"),
        ("cat/hard.png", tarfile.LNKTYPE, "cat/0.png"),
        ("cat/device.png", tarfile.CHRTYPE, ""),
        ("../up.png", tarfile.REGTYPE, ""),
        ("/root.png", tarfile.REGTYPE, ""),
    ):
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, target
        archive.addfile(member)


def test_links_and_ways_out_of_a_tar(tmp_path):
    path = write_tar(tmp_path / "x.tar", GOOD)
    with tarfile.open(path, "a") as archive:
        members(archive)
        twice = tarfile.TarInfo("cat/twice.png")
        archive.addfile(twice)
        archive.addfile(twice)
    images = found(path)
    assert set(faults(images)) == {
        "cat/sym.png", "cat/hard.png", "cat/device.png", "../up.png", "/root.png", "cat/twice.png",
    }  # fmt: skip
    assert {p.name for p in tmp_path.iterdir()} == {"x.tar"}


def test_links_and_ways_out_of_a_zip(tmp_path):
    path = write_zip(tmp_path / "x.zip", GOOD)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("cat/sym.png")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/hosts")
        archive.writestr("../up.png", encoded(pixels()))
        archive.writestr("cat/..\\up.png", encoded(pixels()))
    assert set(faults(found(path))) == {"cat/sym.png", "../up.png", "cat/..\\up.png"}


# ------------------------------------------------------------------ damaged archives


def test_a_tar_that_is_damaged_in_the_middle_says_so(tmp_path):
    content = bytearray(write_tar(tmp_path / "x.tar", GOOD).read_bytes())
    second = content.find(b"cat/1.png")
    content[second + 150] ^= 1  # its header's checksum
    (tmp_path / "x.tar").write_bytes(content)
    images = read_images(tmp_path / "x.tar", on_error="skip")
    assert images.names == ["cat/0.png"]
    assert "'x.tar': the archive is damaged" in images.faults[0].reason


def test_a_truncated_tar_keeps_what_is_whole(tmp_path):
    content = write_tar(tmp_path / "x.tar", GOOD).read_bytes()
    last = content.find(b"dog/2.png")
    for end in range(last, last + 1000, 50):
        (tmp_path / "x.tar").write_bytes(content[:end])
        images = read_images(tmp_path / "x.tar", on_error="skip")
        assert len(images) == 5
        assert images.faults


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip"])
def test_every_damage_of_an_archive_is_an_error_or_a_fault(ending, tmp_path):
    path = tmp_path / f"x.{ending}"
    if ending == "zip":
        write_zip(path, GOOD)
    else:
        write_tar(path, GOOD, "w:gz" if ending == "tar.gz" else "w")
    content = path.read_bytes()
    rng, n_refused = np.random.default_rng(0), 0
    for k in range(60):
        damaged = bytearray(content)
        if k % 2:
            damaged = damaged[: rng.integers(0, len(damaged))]
        else:
            damaged[rng.integers(0, len(damaged))] ^= 1 << rng.integers(0, 8)
        path.write_bytes(damaged)
        try:
            read_images(path, on_error="skip")
        except (ValueError, OSError) as error:
            n_refused += bool(str(error))
    assert ending == "tar" or n_refused > 0


def test_a_file_in_a_zip_that_unpacks_to_too_much(tmp_path):
    path = write_zip(tmp_path / "x.zip", GOOD | {"a/b.png": bytes(10**6)})
    images = found(path, max_pixels=1000)
    assert "larger than any image" in faults(images)["a/b.png"]


def test_an_image_that_goes_after_it_was_listed_is_named(tmp_path):
    images = read_images(write_folder(tmp_path, GOOD))
    (tmp_path / "cat" / "1.png").unlink()
    with pytest.raises(ImageError, match=r"cat/1\.png"):
        list(images)
