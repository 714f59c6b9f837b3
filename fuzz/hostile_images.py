"""Hostile images, read from a folder and a tar: each is read or named, and nothing else is lost.

    python -m fuzz.hostile_images --count 500 --seed 1 --write docs/stress.md

Every attack is a folder of hostile files beside six good ones, and the same as a tar, which another
process reads with `read_images`, so that a crash, a hang or too much memory is seen.
"""

import argparse
import io
import resource
import sys
import tarfile
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image

from widemargin.vision import read_images

FORMATS = {"JPEG": "jpg", "PNG": "png", "TIFF": "tif", "GIF": "gif", "BMP": "bmp", "WEBP": "webp",
           "PPM": "ppm"}  # fmt: skip
GOOD = [f"good/{k}.png" for k in range(6)]
LONGEST = 120  # seconds of a processor for the files of an attack
MEMORY = 400 << 20  # bytes that reading may take beyond what the process had
LINK = "a link to "  # files that begin so become links
OUTCOMES = ("files", "read", "named", "failed")


def encoded(seed: int, kind: str = "PNG", shape=(90, 110)) -> bytes:
    """A photograph of noise and stripes."""
    rng = np.random.default_rng(seed)
    wave = 90 * np.sin(np.arange(shape[1]) * rng.uniform(0.1, 0.9))
    pixels = np.clip(128 + wave + rng.normal(0, 9, shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


# ------------------------------------------------------------------ attacks: files, read at most


def truncated(rng, count):
    """Every format, cut at every 5 %; none of it is an image."""
    for kind, ending in FORMATS.items():
        whole = encoded(1, kind)
        for k in range(20):
            yield f"{kind}/{k}.{ending}", whole[: len(whole) * k // 20]


def mutated(rng, count):
    """Bytes changed, removed and repeated; what is still an image is read."""
    for k in range(count):
        kind = list(FORMATS)[k % len(FORMATS)]
        content = bytearray(encoded(k, kind, (30, 40)))
        for _ in range(rng.integers(1, 12)):
            at = int(rng.integers(0, len(content)))
            turn = rng.integers(0, 4)
            if turn == 0:
                content[at : at + 4] = int(rng.integers(0, 2**32)).to_bytes(4, "big")
            elif turn == 1:
                del content[at : at + int(rng.integers(1, 30))]
            elif turn == 2:
                content[at:at] = content[at : at + int(rng.integers(1, 300))]
            else:
                content[at] ^= 1 << int(rng.integers(0, 8))
        yield f"{kind}/{k}.{FORMATS[kind]}", bytes(content)


def bombs(rng, count):
    """Few bytes that declare, or unpack to, more pixels than are allowed."""
    for k, side in enumerate((6000, 9000, 12000)):
        for kind in ("PNG", "TIFF"):
            file = io.BytesIO()
            packed = {"compression": "tiff_deflate"} if kind == "TIFF" else {}
            Image.new("1", (side, side)).save(file, kind, **packed)
            yield f"{kind}/{k}.{FORMATS[kind]}", file.getvalue()
    declared = {"PNG": (16, 8, "big"), "BMP": (18, 8, "little"), "GIF": (6, 4, "little")}
    for kind, (at, n, _) in declared.items():
        for k, largest in enumerate((b"\xff\xff", b"\x7f\x7f", b"\xf0\xf0")):
            content = bytearray(encoded(k, kind))
            small = b"\0\0" if n == 8 else b""
            each = small + largest if kind == "PNG" else largest + small
            content[at : at + n] = each * 2
            yield f"{kind}/declared {k}.{FORMATS[kind]}", bytes(content)
    for k in range(3):
        yield f"PPM/{k}.ppm", b"P5 %d %d 255\n" % (10 ** (5 + k), 10 ** (5 + k))


def wrong_endings(rng, count):
    """Every format under every other ending, which is read; text and programs, which are not."""
    for kind in FORMATS:
        for ending in FORMATS.values():
            if ending != FORMATS[kind]:
                yield f"image/{kind}.{ending}", encoded(2, kind)
    for ending in FORMATS.values():
        for name, content in {
            "text": b"hello\n", "program": b"\x7fELF" + bytes(60), "pdf": b"%PDF-1.4\n",
            "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
            "page": b"<html></html>", "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        }.items():  # fmt: skip
            yield f"other/{name}.{ending}", content


def empty(rng, count):
    """No bytes, and nothing but zeros."""
    for ending in FORMATS.values():
        for n in (0, 1, 100, 10**5):
            yield f"zero/{n}.{ending}", bytes(n)


def links(rng, count):
    """Links to images, to folders, to themselves, out of the folder and to nothing."""
    for k, target in enumerate(
        ("../good/0.png", "/etc/hosts", "../../outside.png", "nothing.png", "5.png", "../good", ".")
    ):
        yield f"link/{k}.png", LINK.encode() + target.encode()


# attack: whether files may be read, by name; all others must be named
ATTACKS = {
    truncated: lambda name: False,
    mutated: lambda name: True,
    bombs: lambda name: False,
    wrong_endings: lambda name: name.startswith("image/"),
    empty: lambda name: False,
    links: lambda name: False,
}


# ------------------------------------------------------------------ reading


def write(files: dict[str, bytes], folder: Path) -> None:
    """Write the files as a folder and as a tar."""
    with tarfile.open(folder / "all.tar", "w") as archive:
        for name, content in files.items():
            path = folder / "all" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith(LINK.encode()):
                path.symlink_to(content[len(LINK) :].decode())
            else:
                path.write_bytes(content)
            archive.add(path, name, recursive=False)


def read(path: Path) -> dict:
    """Return what becomes of the images of a path, and the memory that it takes."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    images = read_images(path, on_error="skip", n_jobs=2)
    shapes = {name: image.shape for name, image in zip(images.names, images, strict=True)}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
    return {"read": shapes, "named": dict(images.faults), "bytes": 1024 * grown}


def failures(path: Path, names: list[str], may_be_read) -> tuple[dict[str, str], dict]:
    """Return what went wrong with which file, and what was read and named."""
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        try:
            found = pool.submit(read, path).result()
        except Exception as error:  # also a process that ended
            said = f"{type(error).__name__}: {error}"
            return dict.fromkeys(names, said), {"read": {}, "named": {}}
    wrong = {name: "lost" for name in GOOD if name not in found["read"]}
    for name in names:
        if name in found["read"]:
            if not may_be_read(name):
                wrong[name] = "read"
        elif repr(name) not in found["named"].get(name, ""):
            wrong[name] = "neither read nor named"
    if found["bytes"] > MEMORY:
        wrong["all"] = f"{found['bytes'] / 1e6:.0f} MB"
    return wrong, found


def run(seed: int, count: int) -> list[str]:
    """Return the lines of the table, and print failures."""
    lines = [f"| attack | {' | '.join(OUTCOMES)} |", "|---" * 5 + "|"]
    for attack, may_be_read in ATTACKS.items():
        files = dict(attack(np.random.default_rng(seed), count))
        good = {name: encoded(k) for k, name in enumerate(GOOD)}
        counts = np.zeros(4, dtype=int)
        with tempfile.TemporaryDirectory() as folder:
            write(good | files, Path(folder))
            for path in ("all", "all.tar"):
                wrong, found = failures(Path(folder) / path, list(files), may_be_read)
                for name, said in wrong.items():
                    print(f"FAILED: {attack.__name__}, {path}, {name}: {said}", file=sys.stderr)
                n_read = len(set(files) & set(found["read"]))
                counts += [len(files), n_read, len(set(files) & set(found["named"])), len(wrong)]
        name = attack.__name__.replace("_", " ")
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in counts)} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="mutated files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="a document whose table to replace")
    options = parser.parse_args()
    lines = run(options.seed, options.count)
    if options.write is not None:
        from stress.report import write_between

        mark = "<!-- written by python -m fuzz.hostile_images -->"
        end = "<!-- end of the images -->"
        write_between(options.write, mark, end, f"seed {options.seed}", "\n".join(lines))


if __name__ == "__main__":
    main()
