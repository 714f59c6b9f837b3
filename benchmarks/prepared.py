"""Data sets as experiments take them, a file each: ``python -m benchmarks.prepared FOLDER``.

Text is slow to parse and every fit has a process of its own, so sets are read once and kept as
arrays: those named after the folder, or all.  Fits find them in ``WIDEMARGIN_PREPARED``, and read
the data itself where it is not set.  They need neither the raw file nor its reader, so they are
also what is carried to a machine that has little.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks import data, images
from widemargin.files import replacing

SIDES = ("train", "test")


def load(name: str):
    """X, y, X_test and y_test, prepared or as `benchmarks.data` reads them."""
    folder = os.environ.get("WIDEMARGIN_PREPARED")
    path = Path(folder) / f"{name}.npz" if folder else None
    if path is None or not path.exists():
        return reader(name)()
    with np.load(path, allow_pickle=False) as arrays:
        if str(arrays["made_by"]) != made_by(name):
            raise ValueError(f"{path} is from other code that reads data: remove it, make it anew.")
        return tuple(
            part for side in SIDES for part in (_matrix(arrays, side), arrays[f"y_{side}"])
        )


def keep(name: str, folder: Path) -> Path:
    """Write a set to the folder, unless it is there; return where it is."""
    path = folder / f"{name}.npz"
    if path.exists():
        return path
    X, y, X_test, y_test = reader(name)()
    arrays = {
        "made_by": np.array(made_by(name)),
        "y_train": np.asarray(y),
        "y_test": np.asarray(y_test),
    }
    for side, Z in zip(SIDES, (X, X_test), strict=True):
        arrays |= {f"{side}_{k}": v for k, v in _parts(Z).items()}
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez(file, **arrays)
    return path


def reader(name: str) -> Callable:
    """What reads a set: a function of that name in data.py or images.py."""
    return getattr(data, name, None) or getattr(images, name)


def made_by(name: str) -> str:
    """Names the code that reads a set: files of other code are not to be believed."""
    code = Path(sys.modules[reader(name).__module__].__file__ or "").read_bytes()
    return hashlib.sha256(code).hexdigest()[:16]


def _parts(Z) -> dict:
    if not sp.issparse(Z):
        return {"X": Z}
    return {"data": Z.data, "indices": Z.indices, "indptr": Z.indptr, "shape": Z.shape}


def _matrix(arrays, side: str):
    if f"{side}_X" in arrays:
        return arrays[f"{side}_X"]
    parts = [arrays[f"{side}_{k}"] for k in ("data", "indices", "indptr")]
    return sp.csr_matrix(tuple(parts), shape=tuple(arrays[f"{side}_shape"]))


def main() -> None:
    from benchmarks.experiments import plan

    if len(sys.argv) < 2:
        sys.exit("python -m benchmarks.prepared FOLDER [NAME ...]: name the folder to write to.")
    known = dict.fromkeys(name for e in plan.names() for name in plan.read(e).data)
    for name in sys.argv[2:] or known:
        try:
            path = keep(name, Path(sys.argv[1]))
        except FileNotFoundError as error:
            print(f"{name}: {error}", flush=True)
        else:
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
