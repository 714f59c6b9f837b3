"""Words of photographs and the machines on them, for `scene15` and `caltech101`.

Several bags of words count the same images in one pass, so that a line of an ablation, or another
split's codebook, costs no more than its words.  Counts are kept in a folder, part after part: a run
that ends early goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from widemargin import load, papers, save
from widemargin.vision import BagOfVisualWords, Images

AT_ONCE = 250  # images of a part
FOLDS = 3


def count(bags: dict[str, BagOfVisualWords], images: Images, folder: Path) -> dict:
    """Return the counts of all images by each fitted bag, and keep them in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[sp.csr_array]] = {name: [] for name in bags}
    for begin in range(0, len(images), AT_ONCE):
        paths = {name: folder / f"{name}, {begin}.npz" for name in bags}
        if missing := [name for name, path in paths.items() if not path.exists()]:
            own = images[begin : begin + AT_ONCE]
            rows = [_count_one({name: bags[name] for name in missing}, image) for image in own]
            for name in missing:
                sp.save_npz(paths[name], sp.vstack([row[name] for row in rows], format="csr"))
        for name, path in paths.items():
            found[name].append(sp.csr_array(sp.load_npz(path)))
    return {name: sp.vstack(parts, format="csr") for name, parts in found.items()}


def _count_one(bags: dict[str, BagOfVisualWords], image: np.ndarray) -> dict[str, sp.csr_array]:
    """Describe an image once for all bags whose patches are the same."""
    described: dict[str, list] = {}
    row = {}
    for name, bag in sorted(bags.items(), key=lambda item: not item[1].edges):
        key = str(bag.features_.get_params())
        if key not in described:  # first by a bag that describes edges too, if there is one
            described[key] = bag.described(bag.prepared(image))
        row[name] = bag.pyramid_.count(bag.words_of(described[key][: 1 + bag.edges]))
    return row


# ------------------------------------------------------------------ machines


def icd(C: float):
    return papers.icd(scaling=None, C=C)


def linear(C: float):
    return LinearSVC(C=C, random_state=0)


def scaled_linear(C: float):
    """Each count divided by its largest value in training."""
    return make_pipeline(MaxAbsScaler(), LinearSVC(C=C, random_state=0))


MACHINES = {
    "ICD": (icd, (1e-4, 1e-3, 1e-2)),
    "linear": (linear, (1e-6, 1e-5, 1e-4)),
    "linear, scaled": (scaled_linear, (1e-3, 1e-2, 1e-1)),
}


def best_C(name: str, X, y: np.ndarray) -> float:
    """Return the C of three with the best accuracy in cross-validation."""
    make, Cs = MACHINES[name]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y))
    scores = {C: np.mean([make(C).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]) for C in Cs}
    return max(Cs, key=lambda C: scores[C])


def kept(path: Path, bag: BagOfVisualWords, images: Images) -> BagOfVisualWords:
    """Return features fitted to images, from their file if it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        save(bag.fit(images), path)
    return load(path)


def fitted(name: str, C: float, X, y: np.ndarray):
    """Return the machine and the processor's seconds of its fit."""
    began = time.process_time()
    model = MACHINES[name][0](C).fit(X, y)
    return model, time.process_time() - began


def mean_recall(model, X, y: np.ndarray) -> float:
    """Return the mean accuracy of the classes, in percent."""
    right = model.predict(X) == y
    return 100 * float(np.mean([right[y == label].mean() for label in np.unique(y)]))


def spread(values: Sequence[float]) -> str:
    """Return mean and deviation."""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=min(1, len(values) - 1)):.1f}"
