"""Model files taken apart, changed, and what every damaged file must do."""

import io
import json
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, KernelSVR, load, papers, save
from widemargin.persistence.container import write_sealed

from .cases import PLAIN, Case, classes, encoded, mostly_zero, rows, table

KEY = "widemargin"


@dataclass
class Parts:
    """A model file taken apart: the JSON header and the arrays, to be changed at will."""

    header: dict
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, path) -> "Parts":
        with safe_open(path, framework="np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return cls(json.loads(file.metadata()[KEY]), arrays)

    def copy(self) -> "Parts":
        return Parts(json.loads(json.dumps(self.header)), dict(self.arrays))

    def content(self, text: str | None = None) -> bytes:
        """The bytes of a file with this header, or with this text in its place, and the digest."""
        text = json.dumps(self.header) if text is None else text
        file = io.BytesIO()
        write_sealed(file, text, self.arrays)
        return file.getvalue()


# Tiny models whose files are damaged in every way: few rows, few bins, little history.
_TINY = {"max_iter": 2, "random_state": 0, "n_bins": 5}
_TINY_X = 1 + np.round(8 * rows(12, 3, seed=4)) / 8


def _tiny(model, X=_TINY_X) -> Case:
    return Case(model, X, classes(X))


DAMAGED: dict[str, Callable[[], Case]] = {
    "spectral": lambda: _tiny(AdditiveSVC("chi2", **_TINY)),
    "unary": lambda: _tiny(papers.icd(**_TINY)),
    "direct": lambda: _tiny(papers.pmsvm(max_iter=2, random_state=0)),
    "rbf": lambda: _tiny(KernelSVC(max_iter=3, **PLAIN, class_weight={0: 1.0, 1: 2.0, 2: 1.0})),
    "compressed": lambda: _tiny(
        KernelSVC("poly", max_iter=3, **PLAIN, early=1, branching=2), mostly_zero(12, 6, seed=3)
    ),
    "points": lambda: _tiny(
        KernelSVC(max_iter=3, **PLAIN, early=1, branching=2, early_prediction="bcm")
    ),
    "precomputed": lambda: _tiny(
        KernelSVC("precomputed", max_iter=3, **PLAIN, early=1, branching=2), rbf_kernel(_TINY_X)
    ),
    "numbers": lambda: Case(KernelSVR(max_iter=3), _TINY_X, _TINY_X[:, 0]),
    "pipeline": lambda: _tiny(make_pipeline(MinMaxScaler(clip=True), KernelSVC(max_iter=3))),
    "columns": lambda: Case(
        AdditiveSVC("chi2", missing="learn", categorical_features=[0], **_TINY),
        np.where(np.arange(36).reshape(12, 3) % 5 == 1, np.nan, _TINY_X),
        classes(_TINY_X),
    ),
    "scaled": lambda: _tiny(make_pipeline(StandardScaler(), AdditiveSVC("linear", **_TINY))),
    "table": lambda: encoded(
        table(12, job=np.array(["a", "b", np.nan] * 4, dtype=object), more=np.arange(12.0)),
        AdditiveSVC("linear", **_TINY),
        date_features=["more"],
    ),
}


@cache
def damaged(name: str, folder) -> tuple[Parts, bytes, Any]:
    """A tiny model's file, taken apart and whole, and rows to try it on."""
    case = DAMAGED[name]()
    path = folder / f"{name}.safetensors"
    save(case.fit(), path)
    return Parts.of(path), path.read_bytes(), case.X[:3]


def outcome(path, content: bytes, X, *, finite: bool = False):
    """Load and use a file that may be damaged: the ValueError, or the decision values.

    Everything else that can happen is a failure: other exceptions leave through here, a crash or
    a hang ends the test run.
    """
    path.write_bytes(content)
    try:
        model = load(path)
    except ValueError as error:
        return _about(error, path)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # numbers of a damaged file overflow
        if not hasattr(model, "predict"):
            return model.transform(X)
        try:
            scores = getattr(model, "decision_function", model.predict)(X)
        except ValueError as error:
            # Of a given kernel only the header says how many rows it was trained on; and a name
            # that is a name may be any.
            told = any(
                s in str(error) for s in ("features as input", "feature names should", "X lacks")
            )
            assert told or not finite, "the numbers of the model were not touched"
            return error
    if not hasattr(model, "classes_"):  # one column of numbers or a flat array
        scores = scores.ravel()
    n_classes = len(getattr(model, "classes_", "12"))
    assert scores.shape == ((len(_dense(X)),) if n_classes == 2 else (len(_dense(X)), n_classes))
    if finite:
        assert np.all(np.isfinite(scores))
    return scores


def _about(error: ValueError, path) -> ValueError:
    assert str(path) in str(error)  # which file it is, first of all
    return error


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


# ------------------------------------------------------------------ what every damaged file must do

each_kind = pytest.mark.parametrize("kind", DAMAGED)


def refused(path, content: bytes, X, match: str = "", what: str = "") -> None:
    """This file is not even loaded, and the message says why."""
    path.write_bytes(content)
    try:
        model = load(path)
    except ValueError as error:
        message = str(error)
    else:
        pytest.fail(f"{what}: a model was made of it, {model!r}")
    assert str(path) in message, what
    assert match in message, what


def length_of_header(content: bytes) -> int:
    return 8 + struct.unpack("<Q", content[:8])[0]


def nodes(tree, where=()):
    """Every node below the root, with the way there; of lists the first and the last."""
    keys = tree if isinstance(tree, dict) else sorted({0, len(tree) - 1} if tree else ())
    for key, value in [(key, tree[key]) for key in keys]:
        yield (*where, key), value
        if isinstance(value, (dict, list)):
            yield from nodes(value, (*where, key))


def replaced(tree, where, value):
    tree = json.loads(json.dumps(tree))
    at = tree
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    return tree


def without_notes(header):
    return [(w, v) for w, v in nodes(header) if w[0] not in ("notes", "package")]


def machines(header) -> list[dict]:
    found = [header, *header.get("steps", [])]
    return [h for h in found if "parameters" in h]
