"""The folder of another fit is refused by name and left alone, functions as kernels included."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from ..helpers import points, rbf2
from .helpers import assert_same_fit, parts, snapshot, svc

# ------------------------------------------------------------------ another fit's folder


OTHER = {
    "a value": ("data", lambda X, y: (np.maximum(X, X.min() + 1e-12), y)),
    "the order of rows": ("data", lambda X, y: (X[::-1], y[::-1])),
    "a label": ("data", lambda X, y: (X, np.where(np.arange(len(y)) == 3, 1 - y % 2, y))),
    "the precision": ("data", lambda X, y: (X.astype(np.float32), y)),
    "the layout": ("data", lambda X, y: (sp.csr_array(X), y)),
    "class names": ("data", lambda X, y: (X, y + 1)),
    "fewer rows": ("data", lambda X, y: (X[:-1], y[:-1])),
    "C": ("parameters", {"C": 5.000001}),
    "gamma": ("parameters", {"gamma": 2.5}),
    "kernel": ("parameters", {"kernel": "laplacian"}),
    "levels": ("parameters", {"levels": 1}),
    "tol": ("parameters", {"tol": 1e-4}),
    "seed": ("parameters", {"random_state": 1}),
    "early": ("parameters", {"early": 1}),
    "fit_intercept": ("parameters", {"fit_intercept": True}),
}


@pytest.mark.parametrize(("name", "change"), OTHER.values(), ids=OTHER)
def test_another_fits_folder_is_refused_by_name_and_left_untouched(name, change, folder):
    X, y = points(160)
    svc(checkpoint=folder).fit(X, y)
    before = snapshot(folder)
    model = svc(checkpoint=folder)
    if callable(change):
        X, y = change(X, y)
    else:
        model.set_params(**change)
    with pytest.raises(ValueError, match=rf"belongs to a fit with other {name}\. It was left"):
        model.fit(X, y)
    assert snapshot(folder) == before


def test_another_weight_is_other_data(folder):
    X, y = points(160)
    svc(checkpoint=folder).fit(X, y)
    with pytest.raises(ValueError, match="other data"):
        svc(checkpoint=folder).fit(X, y, sample_weight=np.where(y == 0, 1.0, 1.5))
    with pytest.raises(ValueError, match="other data and parameters"):
        svc(checkpoint=folder, class_weight={0: 1.0, 1: 1.5}).fit(X, y)


def test_another_version_is_refused(folder, monkeypatch):
    data = points(160)
    svc(checkpoint=folder).fit(*data)
    before = snapshot(folder)
    monkeypatch.setattr("widemargin.kernel.machine.version", lambda name: "0.0.0")
    with pytest.raises(ValueError, match="a fit with other version"):
        svc(checkpoint=folder).fit(*data)
    with pytest.raises(ValueError, match="a fit with other parameters and version"):
        svc(checkpoint=folder, C=1.0).fit(*data)
    assert snapshot(folder) == before


def test_a_folder_with_other_files_is_refused(folder):
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    before = snapshot(folder)
    with pytest.raises(ValueError, match="folder with other files in it"):
        svc(checkpoint=folder).fit(*points(160))
    assert snapshot(folder) == before


def test_an_empty_folder_and_one_that_does_not_exist_are_used(folder):
    data = points(160)
    folder.mkdir()
    svc(checkpoint=folder).fit(*data)
    svc(checkpoint=folder / "deeper" / "still").fit(*data)
    assert parts(folder) == parts(folder / "deeper" / "still") != []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"data": "x"}', b'{"seed": "one"}', b"\xff\xfe\x00", b"null"]
)
def test_a_damaged_head_is_refused_by_name(content, folder):
    data = points(160)
    svc(checkpoint=folder).fit(*data)
    (folder / "fit.json").write_bytes(content)
    before = snapshot(folder)
    with pytest.raises(ValueError, match=r"fit\.json' is not the head of a checkpoint"):
        svc(checkpoint=folder).fit(*data)
    assert snapshot(folder) == before


# ------------------------------------------------------------------ functions as kernels


WIDTH = 2.0


def reads_a_global(A, B):
    return rbf_kernel(A, B, gamma=WIDTH)


def closing_over(state):
    return lambda A, B: rbf_kernel(A, B, gamma=state["gamma"])


class Callable:
    """A kernel that is an object: another one in every process, at another address."""

    def __init__(self, gamma):
        self.gamma = gamma

    def __call__(self, A, B):
        return rbf_kernel(A, B, gamma=self.gamma)


MADE_AGAIN = {
    "a global": lambda gamma: reads_a_global,
    "a closure": lambda gamma: closing_over({"gamma": gamma}),
    "an object": Callable,
    "a bound method": lambda gamma: Callable(gamma).__call__,
    "a partial": lambda gamma: partial(rbf_kernel, gamma=gamma),
}


@pytest.mark.parametrize("make", MADE_AGAIN.values(), ids=MADE_AGAIN)
def test_a_function_is_known_by_its_values(make, folder, solves, monkeypatch):
    X, y = points(300)
    first = svc(make(2.0), checkpoint=folder).fit(X, y)
    before, solves.n = snapshot(folder), 0
    assert_same_fit(svc(make(2.0), checkpoint=folder).fit(X, y), first)
    assert solves.n == 0
    monkeypatch.setitem(globals(), "WIDTH", 20.0)
    with pytest.raises(ValueError, match="a fit with other kernel values"):
        svc(make(20.0), checkpoint=folder).fit(X, y)
    assert snapshot(folder) == before


@pytest.mark.parametrize("make", MADE_AGAIN.values(), ids=MADE_AGAIN)
def test_a_warm_start_is_for_the_same_values(make, monkeypatch):
    X, y = points(300)
    model = svc(make(2.0), warm_start=True, tol=1e-6).fit(X, y)
    assert model.set_params(kernel=make(2.0)).fit(X, y).n_iter_ == 1
    monkeypatch.setitem(globals(), "WIDTH", 20.0)
    warm = model.set_params(kernel=make(20.0)).fit(X, y)
    assert_same_fit(warm, svc(make(20.0), tol=1e-6).fit(X, y))


def test_sparse_rows_of_a_function_are_probed_too(folder, solves):
    X, y = points(160)
    first = svc(rbf2, checkpoint=folder).fit(sp.csr_array(X), y)
    solves.n = 0
    assert_same_fit(svc(rbf2, checkpoint=folder).fit(sp.csr_array(X), y), first)
    assert solves.n == 0
