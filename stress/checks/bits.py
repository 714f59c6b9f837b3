"""What must not change a bit: threads, fits at the same time, files; and what is not written to."""

from __future__ import annotations

import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import widemargin
from stress import truth
from stress.compare import same_bits
from widemargin.kernel.precision import ROUNDING

SINGLE = 1e-4  # of the sum of a decision's absolute terms
ROWS = 8  # that are decided one by one


def n_jobs(model, X, y, w=None) -> None:
    for n in (2, 3):
        same_bits(clone(model).set_params(n_jobs=n).fit(X, y, w), model, X, f"n_jobs={n}")


def concurrent(model, X, y, w=None) -> None:
    """Fits in several threads of the caller's."""
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(clone(model).set_params(n_jobs=n).fit, X, y, w) for n in (1, 2, 1, 2)]
        for fit in fits:
            same_bits(fit.result(), model, X, "fits at the same time")


def pickled(model, X, y, w=None) -> None:
    same_bits(pickle.loads(pickle.dumps(model)), model, X, "pickle")


def saved(model, X, y, w=None) -> None:
    """All but sparse rows for a function of the user's, which `save` refuses."""
    kernel = model.kernel if callable(model.kernel) else None
    if kernel is not None and sp.issparse(X):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        widemargin.save(model, path)
        additive = isinstance(model, widemargin.AdditiveSVC)
        loaded = widemargin.load(path) if additive else widemargin.load(path, kernel=kernel)
    same_bits(loaded, model, X, "save and load")


def single_rows(model, X, y, w=None) -> None:
    """A row is decided alike alone and among others, up to rounding."""
    together = model.decision_function(X)
    rows = sp.csr_array(X) if sp.issparse(X) else X
    alone = np.concatenate([model.decision_function(rows[[i]]) for i in range(min(ROWS, len(y)))])
    off, room = np.abs(alone - together[: len(alone)]), rounding(model, X, y, w)
    assert np.all(off <= room), f"a single row is decided otherwise: by {off.max():g} of {room:g}"


def rounding(model, X, y, w) -> float:
    """What single precision may do to a decision value at a training row.

    Models predict in it where they expect no more than `ROUNDING` of the margin.
    """
    problem = truth.problem_of(model, X, y, w)
    return ROUNDING + SINGLE * float((np.abs(problem.K) @ np.abs(problem.coef)).max())


def inputs(model, X, y, w=None) -> None:
    """Neither fitting nor predicting writes to what it is given."""
    given = [X.copy(), y.copy(), None if w is None else w.copy()]
    parts = _parts(given)
    before = [part.tobytes() for part in parts]
    other = clone(model).fit(*given)
    other.predict(given[0])
    for part, content in zip(parts, before, strict=True):
        assert part.tobytes() == content, f"an input was written to: {part.dtype}, {part.shape}"


def _parts(given: list) -> list[np.ndarray]:
    parts = []
    for array in given:
        if sp.issparse(array):
            names = (
                ("data", "indices", "indptr")
                if hasattr(array, "indptr")
                else ("data", "row", "col")
            )
            parts += [getattr(array, name) for name in names]
        elif array is not None:
            parts.append(array)
    return parts
