"""Small photographs, in folders and archives."""

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image


def pixels(height=24, width=20, seed=0) -> np.ndarray:
    """Grey noise, the same for a seed."""
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


def striped(across: bool, seed=0, height=40, width=48) -> np.ndarray:
    """Stripes of one direction with noise: two classes that features tell apart."""
    rng = np.random.default_rng(seed)
    down, right = np.mgrid[:height, :width]
    wave = np.sin((down if across else right) * rng.uniform(0.6, 0.9) + rng.uniform(0, 6))
    return np.clip(128 + 80 * wave + rng.normal(0, 8, (height, width)), 0, 255).astype(np.uint8)


def encoded(image: np.ndarray, kind="PNG", **more) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind, **more)
    return file.getvalue()


def contents(n=3, kinds=("cat", "dog")) -> dict[str, bytes]:
    """Names and bytes of n images a class."""
    return {
        f"{kind}/{k}.png": encoded(pixels(seed=10 * c + k))
        for c, kind in enumerate(kinds)
        for k in range(n)
    }


def write_folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def write_tar(path: Path, files: dict[str, bytes], mode="w") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path
