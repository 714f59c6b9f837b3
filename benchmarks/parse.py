"""Reading svmlight text: `widemargin.read` against scikit-learn's `load_svmlight_file`.

Files of about 200 MB: sector's text (short decimals, wide rows) repeated, and numbers with 17
digits.  Both sides read from the page cache; the arrays must be identical.
"""

from __future__ import annotations

import bz2
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks import data
from benchmarks.report import SEED, alternate, write
from widemargin import read

SIZE = 200e6


def sector(path: Path) -> None:
    text = bz2.decompress((data.folder() / "sector.scale.bz2").read_bytes())
    path.write_bytes(text * int(np.ceil(SIZE / len(text))))


def long_decimals(path: Path) -> None:
    rng = np.random.default_rng(SEED)
    rows = [
        f"{rng.integers(2)} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) + "\n"
        for row in rng.standard_normal((2000, 50)).tolist()
    ]
    text = "".join(rows).encode()
    path.write_bytes(text * int(np.ceil(SIZE / len(text))))


def same(ours, theirs) -> bool:
    X, y = theirs
    pairs = [(ours.X.data, X.data), (ours.X.indices, X.indices), (ours.X.indptr, X.indptr)]
    return all(np.array_equal(a, b) for a, b in [*pairs, (ours.y, y)])


def compare(name: str, make, folder: Path) -> str:
    path = folder / "data.txt"
    make(path)
    results: dict = {}
    tasks = {
        "load_svmlight_file": lambda: results.update(theirs=load_svmlight_file(str(path))),
        "one": lambda: results.update(one=read(path, n_jobs=1)),
        "two": lambda: results.update(two=read(path, n_jobs=2)),
    }
    seconds = alternate(tasks, 3)
    identical = same(results["one"], results["theirs"]) and same(results["two"], results["theirs"])
    theirs, one, two = (seconds[k] for k in ("load_svmlight_file", "one", "two"))
    size = path.stat().st_size / 1e6
    return (
        f"| {name} | {size:.0f} | {theirs:.2f} | {one:.2f} | {two:.2f} | {theirs / one:.1f} | "
        f"{theirs / two:.1f} | {size / one:.0f} | {'yes' if identical else '**no**'} |"
    )


def main() -> None:
    lines = [
        "Bars: 5 times faster on one thread, 8 times on two; identical arrays.",
        "",
        "| file | MB | load_svmlight_file, s | one thread, s | two, s | ratio | ratio, two | "
        "MB/s, one | identical |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        lines.append(compare("sector, repeated", sector, Path(folder)))
        lines.append(compare("17 digits", long_decimals, Path(folder)))
    write("parse", "Reading svmlight text", lines)


if __name__ == "__main__":
    main()
